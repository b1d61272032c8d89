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
from inscape.extrapolation._peers import PEERS
from inscape.extrapolation._study import Answer, Domain, Study, drawn
from inscape.extrapolation._tail import tail_summary
from inscape.extrapolation.profile import Profile, log_errors, profile
from inscape.functional.jacobians import MEMORY, probe

#: Where a query lies: in the domain of the data, else in their convex hull, else outside; the last
#: are those of which it was too much work to find out.
ZONES = ("domain", "hull", "outside", "undecided")
#: The share of errors that may be exactly zero where logarithms are smoothed.
ZEROS = 0.05

#: What is said where the data are taken for queries to each other.
FOLDS = (
    "The points are queries to each other: if the network was trained on them, its errors are too "
    "small to be held against those of its peers."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Extrapolation(Result):
    """Errors of a network, and of its peers, at points by their distance from the data.

    ``errors`` has one column for each name in ``models``, the network first: squared errors (their
    mean over outputs), or 1 and 0 for wrong and right classes. ``zones`` numbers those of
    ``ZONES``. ``reach`` is the distance up to which a point counts as in the domain, None where a
    function said so. ``known`` data points are what peers, distances and hull were made from; the
    hull is ``flat`` where it has fewer dimensions than the input, so that hardly anything is in it.
    ``doubts`` are sentences on why the comparison may not be a fair one.
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
                found = self._mean(errors)
                yield {
                    "zone": zone,
                    "model": model,
                    "queries": len(errors),
                    "error": found.value,
                    "low": found.low,
                    "high": found.high,
                    "median": float(errors.median()),
                }

    def _mean(self, errors: Float64[Tensor, " m"], basis: str = "") -> Summary:
        """Return the mean error with its interval; that of shares does not leave 0 to 1."""
        summary = share_summary if self.classes else mean_summary
        return summary(errors, kind="estimate", basis=basis)

    @property
    def logarithmic(self) -> bool:
        """Tell whether profiles are of logarithms of the errors, or of the errors themselves.

        The latter for classes, and where over 5% of the errors of any model are exactly zero, as of
        a nearest neighbour where labels have few values: zeros have no logarithm. All models of one
        result are smoothed alike, so that they can be held against each other.
        """
        zeros = (self.errors == 0).double().mean(0)
        return not self.classes and float(zeros.max()) <= ZEROS

    def profile(self, model: str = "network", *, bandwidth: float | None = None) -> Profile:
        """Return the error of a model against distance, smoothed: a mean of logarithms or errors.

        Where ``logarithmic``, natural logarithms are smoothed: their mean is that of a usual error,
        below the mean of ``by_zone``, which a few large errors raise. Else the errors themselves
        are, and the mean is of the kind of ``by_zone``; of classes the band is then Wilson's, for
        as many points as speak at each place.

        Args:
            model: A name in ``models``.
            bandwidth: Of the kernel; by default Silverman's rule.
        """
        checks.one_of(self.models, model=model)
        errors = self.errors[:, self.models.index(model)]
        if self.logarithmic:
            return profile(self.distances, log_errors(errors), bandwidth=bandwidth)
        found = profile(self.distances, errors, bandwidth=bandwidth)
        if not self.classes:
            return replace(found, low=found.low.clamp(min=0))
        low, high = wilson(found.mean, found.weight).unbind(-1)
        return replace(found, low=low, high=high)

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
    peers: Sequence[str] = tuple(PEERS),
    points: int = 500,
    known: int = 2000,
    folds: int = 5,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[Extrapolation]:
    r"""Measure the error of ``f`` by zone and by distance from the data, beside simple models.

    .. math:: e(q) = \lVert f(q) - y(q) \rVert^2 / c, \quad r(q) = \min_i \lVert q - x_i \rVert

    A query is in the domain if ``domain`` says so, by default if a data point is as near as 99% of
    the data have another one; else it may be in their convex hull; else it is outside. Right
    answers at the queries are ``answers`` or what ``target`` says. The same data, up to ``known``
    of them, are given to a Gaussian process (radial basis functions, all settings fitted), to the
    nearest neighbour, and to the best linear model: where these do better, the network is not worth
    its weights.

    Without queries the data are cut into folds, and each is taken for queries to the others. That
    is fair only if the network has not seen them either; this is said in ``doubts``, as is whatever
    else makes the comparison doubtful. A report asks about the test rows, with the training rows as
    data; where there are no test rows, it takes folds.

    Hull and distances are exact for the data points that are used; means over queries have
    intervals. Steps of ``refine`` ask the network about a few queries first, then the peers. Labels
    that are integers are classes: errors are then 1 for a wrong one and 0. A single output is a
    logit, unless the function is seen to end in a sigmoid.

    Args:
        f: Function of a batch; a module in eval mode will do.
        x: Data that are known, such as those of the training.
        y: Their labels.
        queries: Points whose error is asked for.
        answers: Labels of the queries.
        target: Function that has the right answers, instead of ``answers``.
        domain: Function of a batch that tells which points are in the training domain.
        peers: Which models to compare with: ``"gaussian_process"``, ``"nearest_neighbour"``,
            ``"linear"``.
        points: How many queries to use, drawn without replacement; all if there are no more.
        known: How many data points to use, drawn likewise (150 of them set the process's settings).
        folds: Folds where there are no queries.
        seed: Seed of all draws.
        memory: Bytes that the working set may take.
    """
    checks.whole(1, points=points, known=known, memory=memory)
    checks.whole(2, folds=folds)
    for name in peers:
        checks.one_of(tuple(PEERS), peers=name)
    found = probe(f, x)
    y = _labels(y, x, found.outputs, "y")
    study = Study(found, y, domain, tuple(peers), seed=seed, memory=memory)
    if queries is None:
        if answers is not None or target is not None:
            raise ValueError(
                "answers and target belong to queries, found none of these: pass queries as well."
            )

        yield from _results(study.folded(x, y, points, folds), study)
        return
    right = _right(queries, answers, target, x)
    if study.classes:
        right = _labels(right, queries, found.outputs, "the answers")

    asked = drawn(queries, right, points, seed=seed)
    yield from _results(study.asked(*drawn(x, y, known, seed=seed), *asked), study)


def _results(answers: Iterator[Answer], study: Study) -> Iterator[Extrapolation]:
    """Yield a result for each answer, and the same one for the same again."""
    last: Answer | None = None
    for answer in answers:
        if answer is not last:
            result, last = _result(answer, study), answer
        yield result


def _result(answer: Answer, study: Study) -> Extrapolation:
    """Put the parts together; of the peers none, or all."""
    parts, known, folds = answer.parts, answer.known, answer.folds
    reaches = [part.reach for part in parts if part.reach is not None]
    zones = torch.cat([part.zones for part in parts])
    warnings = [FOLDS] if folds else []
    warnings += [warning for part in parts for warning in part.warnings]
    if undecided := int((zones == ZONES.index("undecided")).sum()):
        warnings.append(
            f"For {undecided} of {len(zones)} queries it would take too long to find out "
            "whether they are in the convex hull: pass fewer data or dimensions."
        )
    errors = torch.cat([part.errors for part in parts])
    return Extrapolation(
        distances=torch.cat([part.distances for part in parts]),
        zones=zones,
        errors=errors,
        models=("network", *study.peers)[: errors.shape[1]],
        reach=sum(reaches) / len(reaches) if reaches else None,
        flat=any(part.flat for part in parts),
        classes=study.classes,
        known=known,
        folds=folds,
        seed=study.seed,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _labels(y: Tensor | None, x: Tensor, outputs: int, name: str) -> Tensor:
    """Return labels, of which whole numbers are classes, or say what is wrong with them."""
    if y is None:
        raise ValueError(
            "extrapolation needs the label of each point to tell errors, found data without "
            "labels: pass y."
        )
    checks.labels(y, x)
    if y.is_floating_point():
        return y
    return checks.class_numbers(y, max(2, outputs), name)


def _right(queries: Tensor, answers: Tensor | None, target: Function | None, x: Tensor) -> Tensor:
    """Return the right answers at the queries, or say what is missing."""
    checks.points(queries, "queries")
    if queries.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"queries must have points of shape {tuple(x.shape[1:])} as x has, found "
            f"{tuple(queries.shape[1:])}: reshape queries."
        )
    if (answers is None) == (target is None):
        raise ValueError(
            "the right answers at the queries must be given once, found "
            f"{'neither' if answers is None else 'both'}: pass either answers or target."
        )
    right = target(queries) if target is not None else answers
    checks.labels(right, queries)
    return right if right is not None else queries
