"""One vocabulary: names say what they hold, and words are the field's; the checks are checked."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import inscape

PACKAGE = Path(inscape.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"

#: Packages whose names and words are not clean yet; the list only grows shorter.
NOT_YET = (
    "functional",
    "papers",  # settings and texts of claims are hashed in committed records
    "piecewise",
    "regions",
    "report/look",
    "report/sweeps",
    "training",
)
#: Names that say nothing about what they hold.
VAGUE = frozenset(
    {
        "found",
        "one",
        "some",
        "here",
        "told",
        "way",
        "what",
        "thing",
        "kept",
        "got",
        "given",
        "asked",
        "held",
        "said",
        "seen",
        "taken",
        "made",
        "whole",
        "apart",
        "plain",
        "mine",
        "theirs",
        "its",
        "each",
        "every",
        "them",
        "those",
        "these",
        "this",
        "that",
        "there",
    }
)
#: Names that stay, with the reason.
NAMES_THAT_STAY = {
    ("_core/checks.py", "what"): "named in the error",
    ("_core/checks.py", "whole"): "called in every package; becomes `integer`",
    ("_core/result.py", "what"): "a field of results that users have saved",
    ("controls/activations.py", "seen"): "a buffer in state dicts that users have saved",
    ("files/atomic.py", "what"): "named in the error",
    ("report/words.py", "plain"): "called in report/look and report/sweeps, which follow",
}
#: Private words, for which the field has others.
PRIVATE = re.compile(
    r"\b(bends?|mosaics?|victims?|dice|doubts?|outers|intake|pulled back|written out|"
    r"point by point|likes|whole numbers?|the same bits|no number any more|held against|"
    r"what goes into)\b",
    re.IGNORECASE,
)
#: Where such a word stays for now: the end of the path, the text, the reason.
WORDS_THAT_STAY = (
    ("_core/checks.py", "whole number", "error texts that tests of every package expect"),
    ("_core/setting_types.py", "whole number", "the same texts, for settings of other types"),
)
#: A module is named by a noun: no adverb, participle or preposition.
NO_NOUNS = frozenset(
    {
        "apart",
        "between",
        "carried",
        "plainly",
        "together",
        "looking",
        "beside",
        "beyond",
        "within",
        "across",
        "along",
        "aligned",
        "compiled",
        "exported",
        "attacked",
        "given",
        "held",
        "almost",
        "already",
    }
)
#: Functions beyond 60 lines, docstring included: at most ten, each for its arguments.
LONG = (
    "compression/map_compression.py: map_compression",
    "sensitivity/active_subspace.py: active_subspace",
    "sensitivity/saliency.py: saliency",
)
LONGEST = 60


def is_clean(path: Path) -> bool:
    part = path.relative_to(PACKAGE).as_posix()
    return not part.startswith(tuple(f"{name}/" for name in NOT_YET))


CLEAN = [path for path in sorted(PACKAGE.rglob("*.py")) if is_clean(path)]


def identity(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree(source: str) -> ast.Module:
    return ast.parse(source)


def bound_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each local, argument, attribute, function and class."""
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring, comment and string."""
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            yield token.start[0], token.string


def private_words(text: str, place: str) -> list[str]:
    """Return the private words of a text but for those that stay at its place."""
    for end, context, _ in WORDS_THAT_STAY:
        if place.endswith(end):
            text = text.replace(context, "")
    return [match.group() for match in PRIVATE.finditer(text)]


def test_names_say_what_they_hold():
    vague = [
        f"{identity(path)}, line {line}: {name}"
        for path in CLEAN
        for line, name in bound_names(path.read_text())
        if name.strip("_") in VAGUE and (identity(path), name) not in NAMES_THAT_STAY
    ]
    assert not vague, f"name by content, not {', '.join(vague)}"


def test_words_are_those_of_the_field():
    private = [
        f"{identity(path)}, line {line}: {word}"
        for path in CLEAN
        if PRIVATE.search(path.read_text())  # else reading it token by token shows none either
        for line, text in texts(path.read_text())
        for word in private_words(text, identity(path))
    ]
    assert not private, f"the field has other words for {', '.join(private)}"


def test_pages_speak_the_words_of_the_field():
    private = [
        f"{path.name}, line {number}: {word}"
        for path in sorted(DOCS.glob("*.md"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for word in private_words(line, f"docs/{path.name}")
    ]
    assert not private, f"the field has other words for {', '.join(private)}"


def test_one_name_is_one_class():
    homes = defaultdict(list)
    for path in CLEAN:
        for node in tree(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(identity(path))
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_a_module_is_named_by_a_noun():
    for path in CLEAN:
        assert path.stem.strip("_").split("_")[-1] not in NO_NOUNS, identity(path)


def long_functions(source: str) -> list[str]:
    """Return the functions beyond 60 lines."""
    return [
        node.name
        for node in ast.walk(tree(source))
        if isinstance(node, ast.FunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LONGEST
    ]


def test_few_functions_are_long():
    functions = {
        f"{identity(path)}: {name}" for path in CLEAN for name in long_functions(path.read_text())
    }
    assert functions == set(LONG)
    assert len(LONG) <= 10


def test_the_checks_can_fail():
    source = 'def f(found):\n    """A bend."""\n    self.kept = 1  # by dice\n'
    assert [name for _, name in bound_names(source) if name in VAGUE] == ["found", "kept"]
    words = [word for _, text in texts(source) for word in private_words(text, "a.py")]
    assert words == ["bend", "dice"]
    assert private_words("must be a whole number", "_core/checks.py") == []
    assert long_functions("def f():\n" + "    pass\n" * 60) == ["f"]
    assert long_functions("def f():\n" + "    pass\n" * 59) == []
