"""``inscape look --boolean``: a Boolean function instead of a model."""

import re
import shutil
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inscape.cli import options as opt
from inscape.cli.errors import typed
from inscape.cli.output import Speech, check_writable, page_path
from inscape.cli.tables import print_json, print_table
from inscape.cli.terminal import echo

if TYPE_CHECKING:
    import inscape.boolean
    import inscape.report.boolean.summary

#: Options of a look that say something about a model, with what they are when nobody asks.
OF_MODELS = {
    "model": None, "weights": None, "trust": False, "max_size": None, "data": None,
    "data_dir": None, "download": False, "input_shape": None, "scale": "none", "normalise": None,
    "target": None, "labels": "auto", "loss": "auto", "limit": None, "device": "auto",
    "dtype": None, "only": None, "trajectory": None, "explain": None,
}  # fmt: skip


def look_boolean(text: str, given: Mapping[str, Any]) -> None:
    """Look at a Boolean function with the options of a look, print it and write its page."""
    refuse_models(given)
    seed, budget = opt.seed(given["seed"]), opt.seconds(given["budget"])
    threads = opt.threads(given["threads"])
    say = Speech(quiet=given["quiet"])
    page = None
    if not (given["no_page"] or given["dry_run"]):
        page = page_path(given["out"], page_name(text))
        check_writable(page)
    table = function(text)
    say(f"looking: function {table.number} of {table.n} inputs")
    if given["dry_run"]:
        return
    from inscape.report.boolean.summary import look_at_function

    found = look_at_function(
        table,
        asked=text,
        seed=seed,
        budget=budget,
        threads=threads,
        command=typed(),
        quiet=True if given["quiet"] else None,
    )
    print_look(found, page, as_json=given["as_json"])
    if page is not None:
        say(f"report: {found.save(page)}")
    say(f"repeat: {typed()}")


def function(text: str) -> "inscape.boolean.TruthTable":
    """Read NUMBER:INPUTS, or a formula."""
    from inscape.boolean.formula import formula
    from inscape.boolean.truth_table import TruthTable

    if written := re.fullmatch(r"\s*(\d{1,4000})\s*:\s*(\d{1,4})\s*", text):
        table = TruthTable(int(written[2]), int(written[1]))
    elif re.search(r"x\d", text, re.IGNORECASE):
        table = formula(text)
    else:
        raise ValueError(
            f"--boolean must be NUMBER:INPUTS or a formula of x1, x2, ..., found {text[:80]!r}: "
            "write 27030:4, or 'x1 ^ x2 & x3'."
        )
    if table.n > 10:
        raise ValueError(
            f"--boolean takes functions of at most 10 inputs, found {table.n}: leave some out."
        )
    return table


def refuse_models(given: Mapping[str, Any]) -> None:
    """Refuse options that say something about a model."""
    for name, idle in OF_MODELS.items():
        if given[name] != idle:
            raise ValueError(
                f"--boolean looks at a function, found --{name.replace('_', '-')} too, which "
                "describes a model: leave one of them out."
            )


def page_name(text: str) -> str:
    """Return the name of a function's page.

    >>> page_name("27030:4"), page_name("x1 ^ x2 & x3")
    ('boolean-27030-4', 'boolean-x1-x2-x3')
    """
    return "boolean-" + (re.sub(r"\W+", "-", text).strip("-")[:60] or "function")


def print_look(
    look: "inscape.report.boolean.summary.BooleanLook", page: Path | None, *, as_json: bool
) -> None:
    """Print what was found."""
    if as_json:
        print_json({**look.to_dict(), "page": None if page is None else str(page)})
        return
    from inscape.report.boolean.summary import verdict

    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    echo("\n".join(textwrap.wrap(verdict(look), width)) + "\n")
    print_table(look.rows())
    echo("")
    print_table(
        {
            "network": one.size,
            "weights": one.parameters,
            "from": one.how,
            "checked": "for its class" if one.checked is None else one.checked,
        }
        for one in look.networks
    )
    echo("")
    print_table(_rate(one) for one in look.trials)
    if look.seen:
        echo("")
        print_table((_rate(one) for one in look.seen), title="smallest in figure 3.5's records")
    if look.left_out:
        echo(f"\nleft out for time: {', '.join(look.left_out)}")


def _rate(one: Any) -> dict[str, object]:
    return {
        "trained": one.size,
        "units": one.activation,
        "found it": f"{one.found} of {one.networks}",
        "share": one.share,
        "95% interval": f"{one.low:.3f} to {one.high:.3f}",
    }
