"""A checkup: outputs, units and weights on a few hundred examples, for the findings of a page."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn

from inscape.functional.jacobians import MEMORY
from inscape.report.activations import Activations, recorded
from inscape.report.look.linear_model import some_rows
from inscape.report.look.subject import Subject
from inscape.report.look.untrained_layers import drawn_layers
from inscape.report.words import listed, one_line

T = TypeVar("T")

#: Examples that are looked at, at most.
ROWS = 2000
#: Fraction of the budget that the predictions may take, and that other scalings may take.
FRACTION = 0.03
#: Examples with which other scalings of the inputs are tried.
TRIED = 500
#: A probability that is nearer to 0 or 1 than this is saturated.
SATURATED = 1e-6

#: Other scalings of the inputs that networks are usually trained with, by the option to type.
SCALINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "--divide 255": lambda x: x / 255,
    "--divide 0.00392156862745098": lambda x: 255 * x,
    "--normalise 0.5,0.5": lambda x: (x - 0.5) / 0.5,
    "--normalise mnist": lambda x: (x - 0.1307) / 0.3081,
    "standardised columns": lambda x: (x - x.mean(0)) / x.std(0).clamp(min=1e-6),
    "inputs from 0 to 1": lambda x: (x - x.amin()) / (x.amax() - x.amin()).clamp(min=1e-6),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkup:
    """What some measured examples show of a network.

    Attributes:
        outputs: Its outputs, flat.
        labels: The class of each of these examples, if the labels are classes.
        answers: The class that the network puts each example into; empty for regression.
        targets: The labels of these examples if they are real numbers.
        linear: The outputs of the linear model on the same examples, if there is one.
        scalings: Accuracy on some examples by another scaling of the inputs.
        plain: Accuracy on those examples as they are.
        tried: How many these are.
        commonest: Fraction of all measured examples that are in the commonest class.
        silent: For each ReLU layer, which units were never on.
        copies: For each ReLU layer, which units are a multiple of an earlier one.
        fresh: Names of the layers whose weights are distributed as an initialisation draws them.
        weighed: How many layers were compared with an initialisation.
        probabilities: Whether a single output is a probability.
        problems: What could not be looked into, and why, a sentence each.
    """

    outputs: Float64[Tensor, "n c"]
    labels: Int64[Tensor, " n"] | None
    answers: Int64[Tensor, " answered"]
    targets: Float64[Tensor, "n t"] | None
    linear: Float64[Tensor, "n k"] | None
    scalings: dict[str, float]
    plain: float
    tried: int
    silent: dict[str, Bool[Tensor, " units"]]
    fresh: tuple[str, ...]
    weighed: int
    probabilities: bool
    commonest: float = math.nan
    copies: dict[str, Bool[Tensor, " units"]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Return the number of examples."""
        return len(self.outputs)

    @cached_property
    def right(self) -> Bool[Tensor, " n"] | None:
        """Tell which examples the network classifies correctly."""
        return None if self.labels is None else self.answers == self.labels

    @cached_property
    def linear_right(self) -> Bool[Tensor, " n"] | None:
        """Tell which examples the linear model classifies correctly."""
        if self.labels is None or self.linear is None:
            return None
        return answers_of(self.linear, probability=self.probabilities) == self.labels

    def errors(self, outputs: Float64[Tensor, "n k"]) -> Float64[Tensor, " n"]:
        """Return the squared error of each example, a mean over outputs."""
        assert self.targets is not None
        return (outputs - self.targets).square().mean(1)

    @cached_property
    def confidence(self) -> Float64[Tensor, " n"]:
        """Return the probability of the answer to each example."""
        if self.outputs.shape[1] == 1:
            p = self.outputs[:, 0] if self.probabilities else self.outputs[:, 0].sigmoid()
            return torch.maximum(p, 1 - p)
        sums = self.outputs.sum(1)
        known = bool((self.outputs >= 0).all()) and bool(((sums - 1).abs() < 1e-4).all())
        return (self.outputs if known else self.outputs.softmax(1)).amax(1)

    @cached_property
    def certain(self) -> Bool[Tensor, " n"]:
        """Tell for which examples the largest probability is 1 to six digits."""
        return self.confidence > 1 - SATURATED

    @property
    def saturated(self) -> float:
        """Return the fraction of examples whose largest probability is 1 to six digits."""
        return float(self.certain.double().mean()) if self.n else 0.0

    @property
    def dead(self) -> float:
        """Return the fraction of ReLU units that are off on all examples."""
        return _fraction(self.silent)

    @property
    def duplicate(self) -> float:
        """Return the fraction of ReLU units that are a multiple of an earlier one."""
        return _fraction(self.copies)

    @property
    def linearity(self) -> float | None:
        """Return how much of the outputs' variance an affine function of the linear model explains.

        Adjusted for the number of regressors; None without a linear model.
        """
        if self.linear is None or self.n <= 2 * self.linear.shape[1] + 2:
            return None
        y = self.outputs - self.outputs.mean(0)
        z = self.linear - self.linear.mean(0)
        residual = y - z @ torch.linalg.lstsq(z, y).solution
        power = float(y.square().sum())
        if power == 0:
            return 1.0
        degrees = (self.n - 1) / (self.n - 1 - z.shape[1])
        return 1 - degrees * float(residual.square().sum()) / power


def _fraction(layers: dict[str, Tensor]) -> float:
    units = sum(len(layer) for layer in layers.values())
    return sum(int(layer.sum()) for layer in layers.values()) / units if units else 0.0


def answers_of(outputs: Tensor, *, probability: bool) -> Int64[Tensor, " n"]:
    """Return the class that each row of outputs stands for."""
    if outputs.shape[1] > 1:
        return outputs.argmax(1)
    return (outputs[:, 0] > (0.5 if probability else 0.0)).long()


def checkup(subject: Subject, linear: nn.Module | None, *, rows: int | None = None) -> Checkup:
    """Return what some of the measured examples show of a network and of the linear model.

    As many examples as ``rows`` says, by default up to two thousand and as the budget allows. What
    fails or has no time is left out and told in ``problems``.
    """
    seconds = FRACTION * subject.clock.budget
    most = min(ROWS, len(subject.x)) if rows is None else max(0, min(rows, len(subject.x)))
    count = subject.affordable("checkup", seconds, most, passes=2) if most else 0
    tried = 0
    if count and subject.task == "classes":
        tried = subject.affordable("scalings", seconds, min(TRIED, count), passes=len(SCALINGS))
    drawn = some_rows(len(subject.x), count, seed=subject.seed).to(subject.x.device)
    problems: list[str] = []
    if count < 1:
        problems.append("There was no time to check the predictions on single examples.")
    look = _Look(subject, drawn, problems, tried)
    with torch.no_grad():
        return look.checkup(linear if count else None)


class _Look:
    """The parts of a checkup, each of which may fail without the others."""

    def __init__(self, subject: Subject, rows: Tensor, problems: list[str], tried: int) -> None:
        self.subject, self.rows, self.problems, self.tried = subject, rows, problems, tried
        self.x, self.batch = subject.x[rows], subject.probe.rows(MEMORY)
        self.probability = self.attempt(
            "the meaning of its output was not determined", False, lambda: subject.probability
        )

    def attempt(self, task: str, otherwise: T, make: Callable[[], T]) -> T:
        """Return what ``make`` gives; note what failed and why, and return something else."""
        try:
            return make()
        except Exception as error:  # a part may fail, the look may not
            sentence = f"{task[0].upper()}{task[1:]}"
            self.problems.append(f"{sentence} ({type(error).__name__}: {one_line(error)}).")
            return otherwise

    def checkup(self, linear: nn.Module | None) -> Checkup:
        subject = self.subject
        units = Activations()
        empty = torch.zeros(0, subject.probe.outputs, dtype=torch.float64)
        outputs = empty
        if len(self.x):
            outputs = self.attempt(
                "the predictions on single examples were not checked",
                empty,
                lambda: _outputs(subject.model, self.x, self.batch, units),
            )
        count = len(outputs)
        labels = self.labels()[:count] if self.classes else None
        answers = answers_of(outputs, probability=self.probability)
        tried = min(self.tried, count)
        scalable = labels is not None and tried and subject.scalable
        scalings = self.scalings(labels) if scalable and labels is not None else {}
        plain = math.nan
        if labels is not None and count:
            plain = float((answers == labels)[:tried].double().mean()) if tried else math.nan
        none: tuple[tuple[str, ...], int] = ((), 0)
        fresh, weighed = self.attempt(
            "the weights were not compared with an initialisation",
            none,
            lambda: drawn_layers(subject.model),
        )
        return Checkup(
            outputs=outputs,
            labels=labels,
            answers=answers if self.classes else answers[:0],
            targets=self.targets(count),
            linear=None if linear is None or not count else self.linear(linear),
            scalings=scalings,
            plain=plain,
            tried=tried,
            commonest=self.commonest() if labels is not None else math.nan,
            silent=units.silent,
            copies=self.attempt("duplicate units were not searched for", {}, units.copies),
            fresh=fresh,
            weighed=weighed,
            probabilities=self.probability,
            problems=tuple(self.problems),
        )

    @property
    def classes(self) -> bool:
        return self.subject.task == "classes" and self.subject.y is not None

    def labels(self) -> Tensor:
        y = self.subject.y
        assert y is not None
        return y[self.rows].flatten().long().cpu()

    def commonest(self) -> float:
        """Return the fraction of all measured examples that are in the commonest class."""
        y = self.subject.y
        assert y is not None
        return float(torch.unique(y.flatten(), return_counts=True)[1].max()) / len(y)

    def targets(self, count: int) -> Tensor | None:
        y = self.subject.y
        if self.subject.task != "regression" or y is None or not count:
            return None
        return y[self.rows].reshape(len(self.x), -1).double().cpu()

    def linear(self, model: nn.Module) -> Tensor | None:
        return self.attempt(
            "it was not compared with the linear model",
            None,
            lambda: _outputs(model, self.x, self.batch),
        )

    def scalings(self, labels: Tensor) -> dict[str, float]:
        """Return the accuracy under each other scaling that the model accepts."""
        tried, accuracies, refused = self.x[: self.tried], dict[str, float](), dict[str, str]()
        for name, scaled in SCALINGS.items():
            try:
                outputs = _outputs(self.subject.model, scaled(tried), self.batch)
            except Exception as error:  # a model may refuse inputs that are scaled otherwise
                refused[name] = f"{type(error).__name__}: {one_line(error)}"
                continue
            right = answers_of(outputs, probability=self.probability) == labels[: self.tried]
            accuracies[name] = float(right.double().mean())
        if refused:
            names, why = listed(list(refused)), next(iter(refused.values()))
            self.problems.append(f"The model refuses inputs with {names} ({why}).")
        return accuracies


def _outputs(
    model: nn.Module, x: Tensor, batch: int, units: Activations | None = None
) -> Float64[Tensor, "n c"]:
    """Return the outputs of a model, flat, and note in ``units`` what its ReLU units do."""
    with recorded(model, units):
        parts = [model(part).reshape(len(part), -1) for part in torch.split(x, batch)]
    return torch.cat(parts).double().cpu()
