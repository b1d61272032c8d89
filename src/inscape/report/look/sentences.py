"""The sentences of a report: what was measured on what, and how an instrument is defined."""

import html
import inspect
import re
from dataclasses import dataclass

from inscape.report.look.attribution import Attribution
from inscape.report.look.look import Look
from inscape.report.look.parts import Score
from inscape.report.look.scores import NETWORK
from inscape.report.pictures import formula
from inscape.report.words import number, plain, shape


@dataclass(frozen=True, kw_only=True)
class Definition:
    """The docstring of an instrument as HTML: its formula and its paragraphs."""

    formula: str | None
    paragraphs: tuple[str, ...]


def introduction(look: Look) -> str:
    """Return in a few sentences what was measured on what; the findings come after it."""
    model, data = look.model, look.data
    sentences = [
        f"This {model.name} maps {shape(model.inputs)} {_many('input', model.inputs)} to "
        f"{model.outputs} {_many('output', (model.outputs,))} with {model.parameters:,} "
        f"{_many('parameter', (model.parameters,))}. It was measured on "
        f"{'the' if data.measured == 'test examples' else 'all'} {data.n:,} "
        f"{'test examples' if data.measured == 'test examples' else 'examples'}"
        + (f" of {data.name}" if data.is_named else "")
        + (f", {scored}." if (scored := _scored(look.scores, data.n)) else "."),
    ]
    explained = _explained(look.attribution)
    if not look.measurements and not explained:
        sentences.append("Nothing was measured.")
    return " ".join([*sentences, *explained])


def _explained(attribution: Attribution | None) -> list[str]:
    """Return a sentence on predictions that were split into what training examples have added."""
    if attribution is None or not attribution.explained:
        return []
    many = len(attribution.explained)
    subject = "One prediction is" if many == 1 else f"{many} predictions are"
    return [
        f"{subject} explained as the sum of what each of {attribution.training_rows:,} training "
        "examples has added."
    ]


def _many(word: str, sizes: tuple[int, ...]) -> str:
    return word if sizes in ((1,), ()) else f"{word}s"


def _scored(scores: tuple[Score, ...], measured: int) -> str:
    """Say how well the network does, and on how many examples if there was no time for all."""
    own = [score for score in scores if score.who == NETWORK]
    if not own:
        return ""
    last = own[-1]
    few = last.n < measured
    if last.accuracy is not None:
        clause = f"and classifies {last.accuracy:.1%} of {last.n:,} of them correctly"
        return clause if few else f"of which it classifies {last.accuracy:.1%} correctly"
    where = f"on {last.n:,} of which" if few else "where"
    return f"{where} its loss ({plain(last.loss_name)}) is {number(last.loss)}"


def definition(doc: str) -> Definition:
    """Read the formula and the paragraphs of a docstring, up to its arguments."""
    text = inspect.cleandoc(doc)
    text = re.split(r"^(?:Args|Returns|Raises):|^>>>", text, flags=re.MULTILINE)[0]
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
    rendered = None
    paragraphs = []
    for block in blocks[1:]:
        if block.startswith(".. math::"):
            latex = " ".join(block.removeprefix(".. math::").split())
            rendered = formula(latex) or f"<code>{html.escape(latex)}</code>"
        else:
            paragraphs.append(_marked(" ".join(block.split())))
    return Definition(formula=rendered, paragraphs=tuple(paragraphs))


def _marked(text: str) -> str:
    """Return a paragraph of reStructuredText as HTML, as far as our docstrings use it."""
    text = html.escape(text, quote=False)
    text = re.sub(r":math:`([^`]+)`", lambda m: formula(html.unescape(m[1])) or m[1], text)
    text = re.sub(r":\w+:`~?([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"``([^`]+)``", r"<code>\1</code>", text)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)
