"""``draw``: the figure of a result, chosen by its type; and ``save_figure``."""

import io
from functools import singledispatch
from inspect import getdoc
from pathlib import Path

from matplotlib.axes import Axes

from inscape._core.result import NotApplicable, Result
from inscape.figures.literal import literal
from inscape.figures.style import FAINT, new_axes, styled
from inscape.files.atomic import write


@singledispatch
def painter(result: object, ax: Axes) -> None:
    """Draw ``result`` on ``ax``; families register one such function for each result type."""
    raise TypeError(
        f"draw needs a result with a figure, found {type(result).__name__}: "
        "use .to_frame() or .rows() for its numbers."
    )


def draw(result: Result, ax: Axes | None = None) -> Axes:
    """Draw a result on ``ax`` (a new one by default) and return the axes.

    A new figure is not known to pyplot: show it by ``ax.figure`` in a notebook, write it by
    ``save_figure(ax, path)``.
    """
    with styled():
        new = ax is None
        ax = new_axes() if ax is None else ax
        painter(result, ax)
        figure = ax.get_figure(root=True)
        literal(figure if new and figure is not None else ax)
    return ax


def has_figure(result: Result) -> bool:
    """Tell whether a figure is known for this type of result."""
    return painter.dispatch(type(result)) is not painter.dispatch(object)


def caption(result: Result) -> str:
    """Return what the figure of a result shows: the first line of its painter's docstring."""
    line = (getdoc(painter.dispatch(type(result))) or "").partition("\n")[0]
    words = line.removeprefix("Draw ")
    return words[:1].upper() + words[1:]


def save_figure(ax: Axes, path: str | Path) -> Path:
    """Write the figure of ``ax`` as svg, pdf or png, whole or not at all.

    The same figure gives the same bytes.
    """
    path = Path(path)
    if path.suffix not in _UNDATED:
        raise ValueError(
            f"the suffix must be one of {', '.join(_UNDATED)}, found {path.suffix!r}: "
            f"rename {path}."
        )
    write(path, rendered(ax, path.suffix))
    return path


def rendered(ax: Axes, suffix: str = ".svg") -> bytes:
    """Return the figure of ``ax`` as the content of a file with that suffix."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes must belong to a figure, found removed axes: draw them again.")
    out = io.BytesIO()
    with styled():
        figure.savefig(out, format=suffix[1:], metadata=_UNDATED[suffix])
    return out.getvalue()


#: What matplotlib would write of itself and of the date.
_UNDATED: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}


@painter.register(NotApplicable)
def _reason(result: NotApplicable, ax: Axes) -> None:
    """Write why there is nothing to draw."""
    ax.set_axis_off()
    text = f"{result.what.replace('_', ' ')}\n{result.status}"
    ax.text(0.5, 0.5, text, ha="center", va="center", wrap=True, color=FAINT)
