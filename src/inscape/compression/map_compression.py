"""Map compression: how well a network classifies with few local maps instead of all its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.checks import Function
from inscape._core.result import PROPORTION, Range, share_summary, wilson
from inscape.compression._local_maps import MapFeatures, MapReader, map_features, mean_maps
from inscape.compression.k_means import k_means, nearest
from inscape.functional.jacobians import MEMORY, Probe, chunks, probe
from inscape.functional.precision import in_precision

#: Bytes that the maps of one output may take, in float32.
ROOM = 2**30
#: Numbers of clusters unless they are given.
CLUSTERS = (1, 4, 16, 64)
#: Clusters that a search tries at most, and the ratio of two numbers at which it ends.
MOST, NEAR = 1024, 1.05


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MapCompression(Result):
    """The class of each example with so many clusters of local maps, and the network's own.

    ``clusters`` holds the numbers, those of a search for ``wanted`` included, and ``predicted`` the
    classes with them. ``within`` is the fraction of the variance of the maps that is left inside
    the clusters. ``distortion`` is the standard error of the squared distances between maps, 0
    where they were not projected. ``enough`` is the smallest number that reached ``wanted``.
    """

    range: ClassVar[Range] = PROPORTION

    clusters: Int64[Tensor, " k"]
    predicted: Int64[Tensor, "k n"]
    within: Float64[Tensor, " k"]
    own: Int64[Tensor, " n"]
    labels: Int64[Tensor, " n"] | None
    fitted_on: int
    joint: bool
    distortion: float
    wanted: float | None
    enough: int | None
    seed: int

    @property
    def targets(self) -> Int64[Tensor, " n"]:
        """Return the labels, or without them the network's own classes."""
        return self.own if self.labels is None else self.labels

    @property
    def accuracies(self) -> Float64[Tensor, " k"]:
        """Return the accuracy with each number of clusters."""
        return (self.predicted == self.targets).double().mean(1)

    @property
    def ends(self) -> Float64[Tensor, "k 2"]:
        """Return Wilson's 95% interval of each accuracy."""
        return wilson(self.accuracies, self.predicted.shape[1])

    @property
    def own_accuracy(self) -> float:
        """Return the accuracy of the network itself; 1 without labels."""
        return float((self.own == self.targets).double().mean())

    def per_sample(self) -> Float64[Tensor, " n"]:
        """Return 1 where the class with the most clusters is right."""
        return (self.predicted[-1] == self.targets).double()

    def rows(self) -> Iterator[Row]:
        """Yield one row for each number of clusters."""
        for k, count in enumerate(self.clusters.tolist()):
            yield {
                "clusters": count,
                "accuracy": float(self.accuracies[k]),
                "low": float(self.ends[k, 0]),
                "high": float(self.ends[k, 1]),
                "same_class": float((self.predicted[k] == self.own).double().mean()),
                "variance_within": float(self.within[k]),
            }

    def summary(self) -> Summary:
        """Return the accuracy with the most clusters, with Wilson's interval."""
        against = f"network: {self.own_accuracy:.3g}"
        if self.labels is None:
            against = "against its own classes"
        least = f"{int(self.clusters[0])}: {float(self.accuracies[0]):.3g}"
        basis = f"{int(self.clusters[-1])} clusters of {self.fitted_on} maps; {least}, {against}"
        return share_summary(self.per_sample(), kind="estimate", basis=basis)


@instrument(
    reads="function",
    larger="fewer local maps would do",
    cost="minutes",
    work=lambda n, c: 4 * n * (2 + 2 * c),
    setup=2.0,
    meaning="With its local maps merged into a few clusters it classifies the fraction {value} "
    "rightly.",
    cites="sattelberg2026linearity, Eqs. (7.1)-(7.3)",
    by_default=False,
    least_rows=4,
)
def map_compression(
    f: Function,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    clusters: Sequence[int] = CLUSTERS,
    joint: bool = False,
    wanted: float | None = None,
    fit_on: Float[Tensor, "m *d"] | None = None,
    level: float = 0.0,
    seed: int = 0,
    room: int = ROOM,
    memory: int = MEMORY,
) -> MapCompression | NotApplicable:
    r"""Measure how well a network classifies with few local maps instead of all its own.

    .. math:: \hat{f}_j(x) = \bar{c}_{j, \ell(x)} \cdot (x, 1), \quad
              \ell(x) = \arg\min_k \lVert c_j(x) - \bar{c}_{jk} \rVert

    where :math:`c_j(x)` holds gradient and intercept of output ``j`` at ``x``, and the centres are
    those of k-means over the maps at ``fit_on``, for each output by itself or ``joint`` for the
    maps of all outputs. Each example thus uses the centre nearest to the map that it would have
    used. An estimate with Wilson's interval; k-means finds a local minimum. Maps are clustered in
    float32; where those of an output do not fit into ``room`` they are projected at random to 256
    numbers, whose squared distances have the standard error ``distortion`` as a fraction, and the
    centres are means of the true maps. Costs two or three gradients of each output at each point,
    and k-means.

    Args:
        f: A network whose local maps are merged.
        x: Examples to classify.
        y: Their labels; floating-point labels and None compare with the network's own classes.
        clusters: Numbers of clusters; those above the number of maps are that number.
        joint: Whether the maps of all outputs are clustered together.
        wanted: An accuracy; a number of up to 1024 clusters that reaches it, where one a twentieth
            smaller does not, is found by bisection.
        fit_on: Training examples whose maps are clustered; by default each half of ``x`` for the
            other half.
        level: Level that separates the classes of a single output.
        seed: Seed of k-means and of the projection.
        room: Bytes that the maps of one output (all if ``joint``) may take.
        memory: Bytes that the working set of a batch may take.

    >>> import torch
    >>> f = lambda x: torch.cat([x.abs(), torch.ones_like(x)], 1)
    >>> points = torch.tensor([[-3.0], [3.0], [-2.0], [2.0], [-0.5], [0.5], [-0.2], [0.2]])
    >>> map_compression(f, points, clusters=[1, 2]).accuracies.tolist()
    [0.5, 1.0]
    """
    checks.whole(1, room=room, memory=memory)
    checks.number(level=level)
    checks.seed(seed)
    counts = checks.wholes(1, clusters=clusters)
    if wanted is not None:
        _check_wanted(wanted)
    checks.points(x)
    if y is not None:
        checks.labels(y, x)
    if fit_on is None and len(x) < 4:
        reason = f"halves need at least four examples, found {len(x)}: pass fit_on"
        return NotApplicable(what="map_compression", reason=reason)
    f, wide, _ = in_precision(f, x, "float64")
    probed = probe(f, wide)
    probed.need_gradient()
    if fit_on is not None:
        checks.points(fit_on, "fit_on")
        _check_shape(fit_on, x)
        fit_on = fit_on.to(wide)
    labels = _labels(y, probed.outputs)
    work = _Compression(probed, wide, fit_on, joint, seed, room, memory)
    return work.result(counts, wanted, labels, level)


class _Compression:
    """Clusters of the maps on training examples, used on others: all, or half by half."""

    def __init__(
        self, probed: Probe, x: Tensor, fit_on: Tensor | None, joint: bool, seed: int, room: int,
        memory: int,
    ) -> None:  # fmt: skip
        self._x, self._probed, self._joint, self._seed = x, probed, joint, seed
        half = len(x) // 2
        halves = x[:half], x[half:]
        self._splits = ((halves[1], halves[0]), halves) if fit_on is None else ((fit_on, x),)
        self.fitted_on = max(len(training) for training, _ in self._splits)
        outputs = range(probed.outputs)
        groups = (tuple(outputs),) if joint else tuple((j,) for j in outputs)
        self._rows = probed.rows(memory, gradients=len(groups[0]))
        self._readers = [MapReader(f=probed.f, outputs=own, rows=self._rows) for own in groups]
        self._room, self.distortion = room, 0.0

    def result(
        self, counts: list[int], wanted: float | None, labels: Tensor | None, level: float
    ) -> MapCompression:
        """Return the classes with so many clusters, and with those that the search tries."""
        own = _classes(self._values(), level)
        targets = own if labels is None else labels
        predicted: dict[int, Tensor] = {}
        within: dict[int, float] = {}
        reached: dict[int, bool] = {}
        trials = sorted({min(count, self.fitted_on) for count in counts})
        while trials:
            outputs, left = self._outputs(trials)
            for k, count in enumerate(trials):
                predicted[count], within[count] = _classes(outputs[k], level), left[k]
                accuracy = float((predicted[count] == targets).double().mean())
                reached[count] = wanted is not None and accuracy >= wanted
            trials = [] if wanted is None else _between(reached, min(self.fitted_on, MOST))
        numbers = sorted(predicted)
        return MapCompression(
            clusters=torch.tensor(numbers),
            predicted=torch.stack([predicted[k] for k in numbers]),
            within=torch.tensor([within[k] for k in numbers], dtype=torch.float64),
            own=own,
            labels=labels,
            fitted_on=self.fitted_on,
            joint=self._joint,
            distortion=self.distortion,
            wanted=wanted,
            enough=min((k for k in numbers if reached[k]), default=None),
            seed=self._seed,
        )

    @torch.no_grad()
    def _values(self) -> Float64[Tensor, "n c"]:
        parts = [checks.call(self._probed.f, part.clone()) for part in chunks(self._x, self._rows)]
        return torch.cat([part.reshape(len(part), -1) for part in parts])

    def _outputs(self, counts: list[int]) -> tuple[Float64[Tensor, "k n c"], list[float]]:
        """Return the outputs with each number of clusters, and the variance left inside them."""
        sides, left = [], torch.zeros(len(counts), dtype=torch.float64)
        for training, test in self._splits:
            parts = []
            for reader in self._readers:
                features = map_features(reader, training, test, room=self._room, seed=self._seed)
                self.distortion = max(self.distortion, features.distortion)
                values, fractions = _merged(reader, features, training, test, counts, self._seed)
                parts.append(values)
                left += fractions
            sides.append(torch.cat(parts, 2))
        return torch.cat(sides, 1), (left / len(self._readers) / len(self._splits)).tolist()


def _merged(
    reader: MapReader, features: MapFeatures, training: Tensor, test: Tensor, counts: list[int],
    seed: int,
) -> tuple[Float64[Tensor, "k m c"], Float64[Tensor, " k"]]:  # fmt: skip
    """Return the outputs at test points with each number of clusters, and the variance inside."""
    clusterings = [k_means(features.training, k, seed=seed) for k in counts]
    if features.projection is None:
        centres = [clustering.centres * features.scale for clustering in clusterings]
    else:
        centres = mean_maps(reader, training, [clustering.labels for clustering in clusterings])
    middle = features.training.mean(0)
    spread = sum(
        float((part.double() - middle).square().sum())
        for part in torch.split(features.training, reader.rows)
    )
    moved, values = features.test - middle, []
    for clustering, maps in zip(clusterings, centres, strict=True):
        chosen, _ = nearest(moved, (clustering.centres - middle).float())
        parts = zip(torch.split(chosen, reader.rows), torch.split(test, reader.rows), strict=True)
        values.append(torch.cat([reader.evaluated(maps[own], points) for own, points in parts]))
    fractions = [
        min(1.0, clustering.inertia / spread) if spread > 0 else 0.0 for clustering in clusterings
    ]
    return torch.stack(values), torch.tensor(fractions, dtype=torch.float64)


def _between(reached: dict[int, bool], most: int) -> list[int]:
    """Return which numbers of clusters to try next: four steps between the best that are known."""
    enough = min((k for k, good in reached.items() if good), default=None)
    if enough is None:
        return [most] if most not in reached and most > max(reached) else []
    short = max((k for k, good in reached.items() if not good and k < enough), default=0)
    if enough - short <= 1 or enough <= NEAR * short:
        return []
    low = max(short, 1)
    steps = {round(low * (enough / low) ** (part / 4)) for part in (1, 2, 3)}
    return sorted(k for k in steps | {(short + enough) // 2} if short < k < enough)


def _check_wanted(wanted: float) -> None:
    checks.number(wanted=wanted)
    if not 0 < wanted <= 1:
        raise ValueError(
            f"wanted must be an accuracy above 0 and up to 1, found {wanted}: write 98% as 0.98."
        )


def _check_shape(fit_on: Tensor, x: Tensor) -> None:
    if fit_on.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"fit_on must hold examples of the shape of x, {tuple(x.shape[1:])}, found "
            f"{tuple(fit_on.shape[1:])}: pass both in one form."
        )


def _labels(y: Tensor | None, outputs: int) -> Int64[Tensor, " n"] | None:
    """Return class numbers; None for labels that are no classes."""
    if y is None or y.is_floating_point():
        return None
    return checks.class_numbers(y, max(2, outputs)).long().cpu()


def _classes(outputs: Float64[Tensor, "n c"], level: float) -> Int64[Tensor, " n"]:
    return outputs.argmax(1) if outputs.shape[1] > 1 else (outputs[:, 0] > level).long()
