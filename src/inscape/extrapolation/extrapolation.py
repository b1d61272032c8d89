"""Extrapolation: how the error grows with the distance from the data, zone by zone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import Result, Row, Summary, checks, instrument, mean_summary
from inscape._core.anytime import anytime
from inscape._core.checks import Function
from inscape._core.inference import no_grad
from inscape._core.result import NONNEGATIVE, Range, share_summary, wilson
from inscape.extrapolation._baselines import BASELINES
from inscape.extrapolation._evaluation import Domain, Evaluation, PartialErrors, drawn
from inscape.extrapolation._tail import tail_summary
from inscape.extrapolation.profile import Profile, log_errors, profile
from inscape.functional.jacobians import MEMORY, probe

#: Zones of queries: in the domain of the data, else in their convex hull, else outside; the last
#: are those that would be too expensive to decide.
ZONES = ("domain", "hull", "outside", "undecided")
#: The fraction of errors that may be exactly zero where logarithms are smoothed.
ZEROS = 0.05

#: Warning where errors are those of cross-validation.
FOLDS = (
    "The points are queries to each other: if the network was trained on them, its errors are too "
    "small to be compared with those of the baselines."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Extrapolation(Result):
    """Errors of a network, and of baselines, at points by their distance from the data.

    ``errors`` has one column for each name in ``models``, the network first: squared errors (their
    mean over outputs), or 1 and 0 for wrong and right classes. ``zones`` are indices into
    ``ZONES``. ``reach`` is the distance up to which a point counts as in the domain, None where a
    function decided that. ``known`` is the number of data points of baselines, distances and hull;
    the hull is ``flat`` where it has fewer dimensions than the input, so that hardly anything is in
    it. ``warnings`` are sentences on why the comparison may be unfair.
    """

    range: ClassVar[Range] = NONNEGATIVE

    distances: Float64[Tensor, " m"]
    zones: Int64[Tensor, " m"]
    errors: Float64[Tensor, "m k"]
    models: tuple[str, ...]
    reach: float | None
    flat: bool
    classes: bool
    known: int
    folds: int
    seed: int
    warnings: tuple[str, ...] = ()

    def rows(self) -> Iterator[Row]:
        """Yield one row for each query."""
        for n, (distance, zone) in enumerate(
            zip(self.distances.tolist(), self.zones.tolist(), strict=True)
        ):
            errors = dict(zip(self.models, self.errors[n].tolist(), strict=True))
            yield {"query": n, "distance": distance, "zone": ZONES[zone], **errors}

    def by_zone(self) -> Iterator[Row]:
        """Yield one row for each zone that has queries, and model: mean error and its interval."""
        for number, zone in enumerate(ZONES):
            inside = self.zones == number
            for k, model in enumerate(self.models):
                if not bool(inside.any()):
                    continue
                errors = self.errors[inside, k]
                mean = self._mean(errors)
                yield {
                    "zone": zone,
                    "model": model,
                    "queries": len(errors),
                    "error": mean.value,
                    "low": mean.low,
                    "high": mean.high,
                    "median": float(errors.median()),
                }

    def _mean(self, errors: Float64[Tensor, " m"], basis: str = "") -> Summary:
        """Return the mean error with its interval, within [0, 1] for proportions."""
        summary = share_summary if self.classes else mean_summary
        return summary(errors, kind="estimate", basis=basis)

    @property
    def logarithmic(self) -> bool:
        """Tell whether profiles are of logarithms of the errors, or of the errors themselves.

        The latter for classes, and where over 5% of the errors of any model are exactly zero, as of
        a nearest neighbour where labels have few values: zeros have no logarithm. All models of one
        result are smoothed alike, so that they can be compared.
        """
        zeros = (self.errors == 0).double().mean(0)
        return not self.classes and float(zeros.max()) <= ZEROS

    def profile(self, model: str = "network", *, bandwidth: float | None = None) -> Profile:
        """Return the error of a model against distance, smoothed: a mean of logarithms or errors.

        Where ``logarithmic``, natural logarithms are smoothed: a geometric mean, below the mean of
        ``by_zone``, which a few large errors raise. Else the errors themselves are smoothed as in
        ``by_zone``; the interval of class errors is then Wilson's, for the effective sample size.

        Args:
            model: A name in ``models``.
            bandwidth: Of the kernel; by default Silverman's rule.
        """
        checks.one_of(self.models, model=model)
        errors = self.errors[:, self.models.index(model)]
        if self.logarithmic:
            return profile(self.distances, log_errors(errors), bandwidth=bandwidth)
        smoothed = profile(self.distances, errors, bandwidth=bandwidth)
        if not self.classes:
            return replace(smoothed, low=smoothed.low.clamp(min=0))
        low, high = wilson(smoothed.mean, smoothed.weight).unbind(-1)
        return replace(smoothed, low=low, high=high)

    def summary(self) -> Summary:
        """Return the network's mean error at the quarter of queries farthest from the data."""
        quarter = max(2, len(self.distances) // 4)
        order = self.distances.argsort(stable=True)
        near, *_ = self.errors[order[:quarter]].mean(0).tolist()
        _, *others = self.errors[order[-quarter:]].mean(0).tolist()
        basis = f"the {quarter} farthest of {len(order)} points; at the nearest {near:.2g}"
        if others:
            best = min(range(len(others)), key=others.__getitem__)
            basis += f"; {self.models[1 + best].replace('_', ' ')} {others[best]:.2g}"
        if self.warnings:
            basis += "; read the warnings"
        return tail_summary(self.errors[order, 0], quarter, basis, classes=self.classes)


@instrument(
    reads="function",
    better="smaller",
    larger="more error far from the data",
    cost="seconds",
    work=lambda n, c: min(n, 500),
    setup=1.0,
    meaning="At the quarter of the points that lie farthest from the data, the mean error is "
    "{value}.",
    cites="klindt2023controlling, sections 3.1-3.2, figure 2",
    least_rows=5,
)
@anytime
@no_grad
def extrapolation(
    f: Function,
    x: Float[Tensor, "n *d"],
    y: Tensor | None,
    *,
    queries: Float[Tensor, "m *d"] | None = None,
    answers: Tensor | None = None,
    target: Function | None = None,
    domain: Domain | None = None,
    baselines: Sequence[str] = tuple(BASELINES),
    points: int = 500,
    known: int = 2000,
    folds: int = 5,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[Extrapolation]:
    r"""Measure the error of ``f`` by zone and by distance from the data, beside simple models.

    .. math:: e(q) = \lVert f(q) - y(q) \rVert^2 / c, \quad r(q) = \min_i \lVert q - x_i \rVert

    Zones are the domain (by default within the distance that 99% of the data have to their nearest
    neighbour), the convex hull, and outside. The baselines are fitted to the same data. Without
    queries the data are split into folds, each queried given the others, which is fair only if the
    network was not trained on them. Integer labels are classes, with errors 0 and 1. Hull and
    distances are exact; means over queries have intervals.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Known data, such as the training set.
        y: Their labels.
        queries: Points at which errors are measured; by default folds of the data.
        answers: Labels of the queries.
        target: The true function, instead of ``answers``.
        domain: Function of a batch that tells which points are in the training domain.
        baselines: Any of ``"gaussian_process"``, ``"nearest_neighbour"``, ``"linear"``.
        points: How many queries to use, drawn without replacement; all if there are no more.
        known: How many data points to use, drawn likewise (150 of them fit the process).
        folds: Folds where there are no queries.
        seed: Seed of all draws.
        memory: Bytes that the working set may take.
    """
    checks.whole(1, points=points, known=known, memory=memory)
    checks.whole(2, folds=folds)
    for name in baselines:
        checks.one_of(tuple(BASELINES), baselines=name)
    probed = probe(f, x)
    y = _labels(y, x, probed.outputs, "y")
    evaluation = Evaluation(probed, y, domain, tuple(baselines), seed=seed, memory=memory)
    if queries is None:
        _check_no_answers(answers, target)
        yield from _results(evaluation.cross_validated(x, y, points, folds), evaluation)
        return
    expected = _true_labels(queries, answers, target, x)
    if evaluation.classes:
        expected = _labels(expected, queries, probed.outputs, "the answers")
    drawn_queries = drawn(queries, expected, points, seed=seed)
    yield from _results(
        evaluation.at_queries(*drawn(x, y, known, seed=seed), *drawn_queries), evaluation
    )


def _check_no_answers(answers: Tensor | None, target: Function | None) -> None:
    """Raise if labels of queries were passed without queries."""
    if answers is not None or target is not None:
        raise ValueError(
            "answers and target belong to queries, found none of these: pass queries as well."
        )


def _results(answers: Iterator[PartialErrors], evaluation: Evaluation) -> Iterator[Extrapolation]:
    """Yield a result for each set of errors; equal ones share the result."""
    last: PartialErrors | None = None
    for answer in answers:
        if answer is not last:
            result, last = _result(answer, evaluation), answer
        yield result


def _result(answer: PartialErrors, evaluation: Evaluation) -> Extrapolation:
    """Return the result of all tasks, with no baseline or all."""
    tasks, known, folds = answer.parts, answer.known, answer.folds
    reaches = [task.reach for task in tasks if task.reach is not None]
    zones = torch.cat([task.zones for task in tasks])
    warnings = [FOLDS] if folds else []
    warnings += [warning for task in tasks for warning in task.warnings]
    if undecided := int((zones == ZONES.index("undecided")).sum()):
        warnings.append(
            f"For {undecided} of {len(zones)} queries it would take too long to find out "
            "whether they are in the convex hull: pass fewer data or dimensions."
        )
    errors = torch.cat([task.errors for task in tasks])
    return Extrapolation(
        distances=torch.cat([task.distances for task in tasks]),
        zones=zones,
        errors=errors,
        models=("network", *evaluation.baselines)[: errors.shape[1]],
        reach=sum(reaches) / len(reaches) if reaches else None,
        flat=any(task.flat for task in tasks),
        classes=evaluation.classes,
        known=known,
        folds=folds,
        seed=evaluation.seed,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _labels(y: Tensor | None, x: Tensor, outputs: int, name: str) -> Tensor:
    """Return labels, of which integers are classes, or raise what is wrong with them."""
    if y is None:
        raise ValueError(
            "extrapolation needs the label of each point to tell errors, found data without "
            "labels: pass y."
        )
    checks.labels(y, x)
    if y.is_floating_point():
        return y
    return checks.class_numbers(y, max(2, outputs), name)


def _true_labels(
    queries: Tensor, answers: Tensor | None, target: Function | None, x: Tensor
) -> Tensor:
    """Return the labels of the queries, or raise what is missing."""
    checks.points(queries, "queries")
    if queries.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"queries must have points of shape {tuple(x.shape[1:])} as x has, found "
            f"{tuple(queries.shape[1:])}: reshape queries."
        )
    if (answers is None) == (target is None):
        raise ValueError(
            "the labels of the queries must be passed once, found "
            f"{'neither' if answers is None else 'both'}: pass either answers or target."
        )
    expected = target(queries) if target is not None else answers
    checks.labels(expected, queries)
    return expected if expected is not None else queries
