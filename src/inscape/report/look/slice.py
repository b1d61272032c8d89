"""The slice: the answers of a network on the plane through three of its examples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Float32, Float64, Int64, Shaped
from torch import Tensor

from inscape._core import NotApplicable
from inscape._core.checks import Function
from inscape.functional.jacobians import MEMORY
from inscape.piecewise.planes.frame import Frame
from inscape.piecewise.planes.slices import Anchor, SlicePicture
from inscape.report.look.linear_model import some_rows
from inscape.report.look.subject import Subject
from inscape.report.look.window import SEARCHED, slice_window
from inscape.report.words import one_line

#: Predictions that make a good picture.
ROWS = 12_000
#: A grid needs at least so many nodes a side to show anything, and gains nothing above the other.
COARSEST, FINEST = 8, 192
#: An example lies near the plane if its distance is below this fraction of the longer side.
NEAR = 0.1
#: Numbers in the examples that are searched for near ones, and dots that are kept, at most.
NUMBERS, DOTS = 10_000_000, 400
#: Classes with a layer of their own.
LAYERS = 8


def slice_of(
    subject: Subject, rows: int, names: Sequence[object] = ()
) -> SlicePicture | NotApplicable:
    """Return the slice of a look, evaluated at no more than ``rows`` inputs, or why there is none.

    ``names`` are what class numbers stand for.
    """
    try:
        return slice_picture(
            subject.probe.f,
            subject.x,
            subject.y,
            task=subject.task,
            probability=subject.probability,
            names=names,
            rows=rows,
            batch=subject.probe.rows(MEMORY),
            seed=subject.seed,
        )
    except Exception as error:  # a model may refuse inputs between its data
        return NotApplicable(what="slice", reason=f"{type(error).__name__}: {one_line(error)}")


@torch.no_grad()
def slice_picture(
    f: Function,
    x: Shaped[Tensor, "n *d"],
    y: Tensor | None,
    *,
    task: str,
    rows: int,
    batch: int,
    probability: bool = False,
    names: Sequence[object] = (),
    seed: int = 0,
) -> SlicePicture | NotApplicable:
    """Evaluate a network on a grid over the plane through three examples.

    A two-dimensional input space is its own plane. Costs at most ``rows`` evaluations of ``f``.

    Args:
        f: The network, in eval mode.
        x: Examples.
        y: Their labels.
        task: ``"classes"``, ``"regression"`` or ``"unlabelled"``.
        rows: Most inputs at which ``f`` is evaluated.
        batch: Inputs that go through ``f`` at once.
        probability: Whether a single output is the probability of the second of two classes.
        names: What class numbers stand for.
        seed: Seed of the draw of examples that are searched for ones near the plane.
    """
    chosen = slice_window(x, y, classes=task == "classes")
    if isinstance(chosen, NotApplicable):
        return chosen
    frame, anchors, window = chosen
    width, height = _grid(window, frame, rows - len(anchors))
    if min(width, height) < COARSEST:
        reason = f"there is time for {rows} predictions, too few for a picture"
        return NotApplicable(what="slice", reason=reason)
    places = _grid_places(window, width, height)
    grid = [_outputs(f, frame.at(part).to(x)) for part in torch.split(places, batch)]
    own = _outputs(f, x[anchors]) if anchors else grid[0][:0]
    answers = _answers(torch.cat([own, *grid]), task=task, probability=probability)
    layers = _layers(answers.scores[len(anchors) :], competing=answers.competing)
    near, spots, distance, searched = _near(x, frame, anchors, window, seed)
    labels = y if task == "classes" else None
    return SlicePicture(
        frame=frame,
        low=(float(window[0, 0]), float(window[0, 1])),
        high=(float(window[1, 0]), float(window[1, 1])),
        scores=answers.scores[len(anchors) :, layers].reshape(height, width, -1).float(),
        names=tuple(_name(k, names, task) for k in layers),
        others=_others(answers, layers, len(anchors), (height, width)),
        confidence=answers.on_grid(len(anchors), (height, width)),
        classes=answers.competing,
        labelled=labels is not None,
        anchors=_anchors(frame, x, y, anchors, answers, names, task),
        places=spots,
        winners=_winners(labels, near, layers),
        distance=distance,
        searched=searched,
        rows=len(places) + len(anchors),
    )


def _grid_places(
    window: Float64[Tensor, "2 2"], width: int, height: int
) -> Float64[Tensor, "places 2"]:
    """Return the nodes of a grid over a window, row by row."""
    u, v = (
        torch.linspace(float(window[0, k]), float(window[1, k]), n, dtype=torch.float64)
        for k, n in enumerate((width, height))
    )
    return torch.stack(torch.meshgrid(u, v, indexing="xy"), 2).reshape(-1, 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Answers:
    """Scores of all classes, or the values of all outputs, and how sure the answers are."""

    scores: Float64[Tensor, "n c"]
    confidence: Float64[Tensor, " n"] | None
    competing: bool

    def on_grid(self, after: int, shape: tuple[int, int]) -> Float32[Tensor, "h w"] | None:
        return None if self.confidence is None else self.confidence[after:].reshape(shape).float()


def _answers(outputs: Float64[Tensor, "n c"], *, task: str, probability: bool) -> _Answers:
    """Return outputs as class scores with a probability, or as values."""
    count = outputs.shape[1]
    if task == "regression" or (task == "unlabelled" and count == 1):
        return _Answers(scores=outputs, confidence=None, competing=False)
    if count == 1:
        ahead = outputs[:, 0] - (0.5 if probability else 0.0)
        p = outputs[:, 0] if probability else outputs[:, 0].sigmoid()
        scores = torch.stack([-ahead, ahead], 1)
        return _Answers(scores=scores, confidence=torch.maximum(p, 1 - p), competing=True)
    if task == "unlabelled":
        return _Answers(scores=outputs, confidence=None, competing=True)
    sums = outputs.sum(1)
    known = bool((outputs >= 0).all()) and bool((sums - 1).abs().max() < 1e-4)
    p = outputs if known else outputs.softmax(1)
    return _Answers(scores=outputs, confidence=p.amax(1), competing=True)


def _grid(window: Float64[Tensor, "2 2"], frame: Frame, rows: int) -> tuple[int, int]:
    """Return how many nodes a grid has along u and along v, squares in the input space."""
    lengths = (window[1] - window[0]) * frame.gram.diagonal().sqrt()
    ratio = float(lengths[0] / lengths[1])
    if not 1 / 4 < ratio < 4:  # units of two inputs that have nothing to do with each other
        ratio = 1.0
    rows = max(1, min(rows, FINEST**2))
    width = max(1, min(FINEST, int(math.sqrt(rows * ratio))))
    return width, max(1, min(FINEST, rows // width, round(width / ratio)))


def _outputs(f: Function, x: Float[Tensor, "n *d"]) -> Float64[Tensor, "n c"]:
    return f(x).reshape(len(x), -1).double().cpu()


def _layers(scores: Float64[Tensor, "n c"], *, competing: bool) -> list[int]:
    """Return the classes that win most of the grid, by number; or the output that varies most."""
    if not competing:
        return [int((scores.amax(0) - scores.amin(0)).argmax())]
    counts = scores.argmax(1).bincount(minlength=scores.shape[1])
    order = counts.argsort(descending=True, stable=True).tolist()
    return sorted(k for k in order[:LAYERS] if int(counts[k]))


def _others(
    answers: _Answers, layers: list[int], after: int, shape: tuple[int, int]
) -> Float32[Tensor, "h w"] | None:
    """Return the largest score of a class without a layer, if one of those wins somewhere."""
    scores = answers.scores[after:]
    if not answers.competing or len(layers) == scores.shape[1]:
        return None
    if bool(torch.isin(scores.argmax(1), torch.tensor(layers)).all()):
        return None
    rest = scores.clone()
    rest[:, layers] = -math.inf
    return rest.amax(1).reshape(shape).float()


def _near(
    x: Float[Tensor, "n *d"],
    frame: Frame,
    anchors: list[int],
    window: Float64[Tensor, "2 2"],
    seed: int,
) -> tuple[Int64[Tensor, " m"], Float64[Tensor, "m 2"], float, int]:
    """Return further examples near the plane, their places, how near, and of how many."""
    drawn = some_rows(len(x), min(SEARCHED, 1 + NUMBERS // x[0].numel()), seed=seed)
    drawn = drawn[~torch.isin(drawn, torch.tensor(anchors, dtype=torch.long))]
    flat = x[drawn.to(x.device)].cpu()
    at = frame.of(flat)
    most = NEAR * float((window[1] - window[0]).max()) if anchors else math.inf
    off = (flat.double() - frame.at(at)).flatten(1).norm(dim=1)
    shown = (off <= most) & ((at >= window[0]) & (at <= window[1])).all(1)
    near = drawn[shown][:DOTS]
    return near, at[shown][:DOTS], most if anchors else 0.0, len(drawn)


def _winners(
    labels: Tensor | None, near: Int64[Tensor, " m"], layers: list[int]
) -> Int64[Tensor, " m"]:
    """Return the layer of each example's label, or -1."""
    if labels is None:
        return torch.full((len(near),), -1)
    known = {label: k for k, label in enumerate(layers)}
    own = labels[near.to(labels.device)].flatten().tolist()
    return torch.tensor([known.get(int(label), -1) for label in own], dtype=torch.long)


def _anchors(
    frame: Frame,
    x: Float[Tensor, "n *d"],
    y: Tensor | None,
    rows: list[int],
    answers: _Answers,
    names: Sequence[object],
    task: str,
) -> tuple[Anchor, ...]:
    places = frame.of(x[rows].cpu()).tolist() if rows else []
    sure = None if answers.confidence is None else answers.confidence.tolist()
    return tuple(
        Anchor(
            letter="ABC"[k],
            row=row,
            u=places[k][0],
            v=places[k][1],
            label=_label(y, row, names, task),
            answer=_answer(answers, k, names, task),
            confidence=None if sure is None else sure[k],
            input=x[row].detach().cpu(),
        )
        for k, row in enumerate(rows)
    )


def _answer(answers: _Answers, k: int, names: Sequence[object], task: str) -> str:
    if answers.competing:
        return _name(int(answers.scores[k].argmax()), names, task)
    values = answers.scores[k]
    return f"{float(values[0]):.3g}" if len(values) == 1 else ""


def _label(y: Tensor | None, row: int, names: Sequence[object], task: str) -> str:
    if y is None or task == "unlabelled":
        return ""
    values = y[row].flatten()
    if task == "classes":
        return _name(int(values[0]), names, task)
    return f"{float(values[0]):.3g}" if len(values) == 1 else ""


def _name(k: int, names: Sequence[object], task: str) -> str:
    """Return what a class, or an output of no known meaning, is called."""
    if task == "classes":
        return str(names[k]) if k < len(names) else str(k)
    return f"output {k}"
