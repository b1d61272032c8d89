"""The page as one script: modules do not load from disk, so that a file to send has them in one."""

import base64
import hashlib
import re
from pathlib import PurePosixPath

from inscape.explorer.page_files import page_files

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n?', re.MULTILINE)
_LIST = re.compile(r"^export ?\{([^}]*)\};?\n?|(?<=;)export ?\{([^}]*)\};?", re.MULTILINE)
_DECLARED = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def bundled(entry: str) -> str:
    """Return a module of the page and all that it imports as one script.

    Each module becomes a function that returns what it exports. Modules of the page import by name
    alone, and not in circles.
    """
    texts = {name: body.decode() for name, (body, _) in page_files().items() if name[-3:] == ".js"}
    parts: list[str] = []
    done: set[str] = set()

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"modules of the page must not import in circles, found {name}.")
        if name in done:
            return
        for match in _IMPORT.finditer(texts[name]):
            add(resolved(name, match[2]), (*above, name))
        done.add(name)
        parts.append(
            f"// {name}\nmodules[{name!r}] = (() => {{\n{_inner(name, texts[name])}}})();\n"
        )

    add(entry, ())
    script = '"use strict";\n(() => {\nconst modules = {};\n' + "".join(parts) + "})();\n"
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def resolved(name: str, target: str) -> str:
    """Return the module that another one imports.

    >>> resolved("views/slice.js", "../pane.js"), resolved("main.js", "./views/all.js")
    ('pane.js', 'views/all.js')
    """
    parts: list[str] = list(PurePosixPath(name).parent.parts)
    for part in target.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _inner(name: str, text: str) -> str:
    """Return the body of a module as that of a function."""
    exported: list[str] = []

    def imported(match: re.Match[str]) -> str:
        names = match[1].replace(" as ", ": ").replace("\n", " ")
        return f"const {{{names}}} = modules[{resolved(name, match[2])!r}];\n"

    def listed(match: re.Match[str]) -> str:
        for entry in (match[1] or match[2]).split(","):
            own, _, public = entry.strip().partition(" as ")
            if own:
                exported.append(f"{public or own}: {own}")
        return ""

    def declared(match: re.Match[str]) -> str:
        exported.append(match[1])
        return ""

    body = _DECLARED.sub(declared, _LIST.sub(listed, _IMPORT.sub(imported, text)))
    if re.search(r"^(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{name} must import and export by name alone: change it, or the bundler.")
    return f"{body}\nreturn {{ {', '.join(exported)} }};\n"


def source_hash(text: str) -> str:
    """Return the hash by which a content security policy allows an inline script or style.

    >>> source_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
