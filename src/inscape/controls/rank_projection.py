"""RankMin and RankMax: singular values of all layers cut off below, or clipped above."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn
from torch.nn.utils import parametrize

from inscape._core import Result, Row, checks
from inscape._core.result import NONNEGATIVE, Range
from inscape.controls._checks import positive
from inscape.controls._modes import in_eval_mode
from inscape.spectra.convolution import Convolution
from inscape.spectra.fourier_blocks import FourierBlocks
from inscape.spectra.fourier_spectrum import fourier_spectrum
from inscape.spectra.layer_maps import LayerMap, Sizes, layer_maps
from inscape.spectra.spectrum import Spectrum

#: What becomes of singular values.
Change = Callable[[Tensor], Tensor]
Stride = Literal["own", "one"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankProjection(Result):
    """What a projection has done to each layer.

    ``before``, ``target`` and ``after`` are effective ranks: of the layer, with its singular values
    changed, and once that was cropped to the size of the kernel. ``errors`` are the distances of
    the last two maps relative to the target (Frobenius norm); zero where nothing was cropped.
    """

    range: ClassVar[Range] = NONNEGATIVE

    layers: tuple[str, ...]
    maps: tuple[str, ...]
    before: Float64[Tensor, " layers"]
    target: Float64[Tensor, " layers"]
    after: Float64[Tensor, " layers"]
    changed: Float64[Tensor, " layers"]
    errors: Float64[Tensor, " layers"]

    def rows(self) -> Iterator[Row]:
        """Yield one row for each layer."""
        columns = ("before", "target", "after", "changed", "errors")
        for k, layer in enumerate(self.layers):
            numbers = {name: float(getattr(self, name)[k]) for name in columns}
            yield {"layer": layer, "map": self.maps[k], **numbers}


def rank_min(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    threshold: float = 0.5,
    *,
    stride: Stride = "own",
    first: bool = True,
    pointwise: bool = True,
    layers: Sequence[str] | None = None,
    sizes: Sizes | None = None,
) -> RankProjection:
    r"""Set the singular values of all layers below a threshold to zero, in place.

    .. math:: \sigma_i \leftarrow \sigma_i \, [\sigma_i \geq \tau]

    RankMin of Goldblum et al. (2020), A.6: of Linear layers exactly; of convolutions with circular
    padding on feature maps of their real sizes (a forward pass tells), by the Fourier transform.
    The kernel that results covers the map; its entries outside of the layer's kernel are dropped
    (Sedghi et al. 2019), and the result says how far that leads away.

    Call it after some epochs of your own loop, or let :func:`after_epochs` do it in ``fit``.

    Args:
        model: Changed in place; in any mode, which it keeps.
        x: Data; the first sample tells the sizes of the feature maps.
        threshold: Smallest singular value that stays.
        stride: ``"own"``: a strided layer is the map that it is. ``"one"``: as if it had no stride
            (Sedghi et al. and the released code).
        first: Whether the first convolution is changed (not in the released code).
        pointwise: Whether 1 x 1 convolutions are (shortcuts are not, in the released code).
        layers: Names of the layers; all Linear and convolutional ones by default.
        sizes: By the name of a layer, the size of its feature map, where it shall be another.

    >>> net = nn.Linear(2, 2, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 0.1]]))
    >>> rank_min(net, torch.ones(1, 2)).changed.tolist(), net.weight.tolist()
    ([0.5], [[3.0, 0.0], [0.0, 0.0]])
    """
    threshold = positive(threshold, "threshold")

    def change(values: Tensor) -> Tensor:
        return values * (values >= threshold)

    chosen = _chosen(model, x, stride, layers, sizes, first=first, pointwise=pointwise)
    return _project(chosen, change, stride)


def rank_max(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    ceiling: float = 1.5,
    *,
    stride: Stride = "own",
    first: bool = True,
    pointwise: bool = True,
    layers: Sequence[str] | None = None,
    sizes: Sizes | None = None,
) -> RankProjection:
    r"""Clip the singular values of all layers at a ceiling, in place.

    .. math:: \sigma_i \leftarrow \min(\sigma_i, \tau)

    RankMax of Goldblum et al. (2020), A.6; all else is as in :func:`rank_min`.

    Args:
        model: As there.
        x: As there.
        ceiling: Largest singular value that stays.
        stride: As there.
        first: As there.
        pointwise: As there.
        layers: As there.
        sizes: As there.

    >>> net = nn.Linear(2, 2, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 0.1]]))
    >>> _ = rank_max(net, torch.ones(1, 2))
    >>> [round(value, 6) for value in net.weight.diagonal().tolist()]
    [1.5, 0.1]
    """
    ceiling = positive(ceiling, "ceiling")
    chosen = _chosen(model, x, stride, layers, sizes, first=first, pointwise=pointwise)
    return _project(chosen, lambda values: values.clamp(max=ceiling), stride)


def after_epochs(
    optimizer: torch.optim.Optimizer,
    action: Callable[[], Any],
    *,
    epochs: Iterable[int],
    per_epoch: int,
) -> torch.optim.Optimizer:
    """Let an optimizer call ``action`` after the last step of some epochs, and return it.

    ``fit(..., optimizer=lambda p: after_epochs(SGD(p, 0.01), lambda: rank_min(net, x), epochs=(1,
    5, 10), per_epoch=391))`` is the schedule of Goldblum et al. (2020).

    Args:
        optimizer: The optimizer whose steps are counted from now on.
        action: What to do, such as ``lambda: rank_min(model, x)``.
        epochs: After which epochs, counted from 1.
        per_epoch: Steps of an epoch.
    """
    checks.whole(1, per_epoch=per_epoch)
    chosen = frozenset(epochs)
    for epoch in chosen:
        checks.whole(1, epochs=epoch)
    steps = 0

    def count(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        nonlocal steps
        steps += 1
        if steps % per_epoch == 0 and steps // per_epoch in chosen:
            action()

    optimizer.register_step_post_hook(count)
    return optimizer


def _chosen(
    model: nn.Module,
    x: Tensor,
    stride: Stride,
    layers: Sequence[str] | None,
    sizes: Sizes | None,
    *,
    first: bool,
    pointwise: bool,
) -> list[LayerMap]:
    """Return the layers that are to be changed, all checked before any of them is."""
    checks.one_of(("own", "one"), stride=stride)
    checks.module(model)
    with in_eval_mode(model):
        checks.points(x)
        checks.weights(model, x)
        maps = layer_maps(model, x, layers=layers, sizes=sizes)
    convolutions = [layer for layer in maps if layer.convolution is not None]
    if not first and convolutions:
        maps.remove(convolutions[0])
    if not pointwise:
        maps = [m for m in maps if m.convolution is None or max(m.convolution.kernel) > 1]
    for layer in maps:
        _check(layer, stride)
    return maps


def _check(layer: LayerMap, stride: Stride) -> None:
    if parametrize.is_parametrized(layer.module, "weight"):
        raise ValueError(
            f"the weight of {layer.name!r} must be a parameter, found one that is made from "
            "another tensor: release(model), or remove that parametrization, first."
        )
    conv = layer.convolution
    if conv is None or stride == "one" or conv.on_torus().wraps:
        return
    raise ValueError(
        f"the stride of {layer.name!r} must divide its feature map, found {conv.stride} and "
        f"{conv.size}: pass stride='one', other sizes, or leave it out with layers=[...]."
    )


@torch.no_grad()
def _project(maps: list[LayerMap], change: Change, stride: Stride) -> RankProjection:
    reports = []
    for layer in maps:
        if layer.convolution is None:
            assert layer.matrix is not None
            weight, report = _projected_matrix(layer.matrix, change)
        else:
            weight, report = _projected(layer.convolution.on_torus(stride=stride == "own"), change)
        parameter = layer.module.weight
        assert isinstance(parameter, Tensor)
        parameter.copy_(weight)
        reports.append(report)
    table = torch.tensor(reports, dtype=torch.float64).reshape(len(maps), 5)
    names = ("before", "target", "after", "changed", "errors")
    return RankProjection(
        layers=tuple(layer.name for layer in maps),
        maps=tuple(layer.text for layer in maps),
        **dict(zip(names, table.unbind(1), strict=True)),
    )


#: Effective rank before, of the target and after; fraction of values that change; relative error.
_Report = tuple[float, float, float, float, float]


def _projected_matrix(matrix: Tensor, change: Change) -> tuple[Tensor, _Report]:
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    changed = change(values)
    before, after = Spectrum.of(values), Spectrum.of(changed)
    moved = float((changed != values).double().mean())
    rank = after.effective_rank()
    report = (before.effective_rank(), rank, rank, moved, 0.0)
    return (left * changed) @ right, report


def _projected(conv: Convolution, change: Change) -> tuple[Tensor, _Report]:
    """Return the kernel nearest to the map whose singular values are changed, and the report."""
    fourier = FourierBlocks(conv)
    difference, values, targets, counts = torch.zeros_like(conv.weight), [], [], []
    for chunk in fourier.chunks():
        left, old, right = torch.linalg.svd(fourier.blocks(chunk), full_matrices=False)
        new = change(old)
        fourier.add_taps(difference, chunk, (left * (new - old)[..., None, :]) @ right)
        values.append(old.flatten())
        targets.append(new.flatten())
        counts.append(fourier.counts[chunk, None, None].expand(old.shape).flatten())
    old, new, repeats = torch.cat(values), torch.cat(targets), torch.cat(counts)
    # where the kernel laps over the map several taps meet one pixel, and share its change
    weight = conv.weight + difference / fourier.overlaps()
    after = fourier_spectrum(replace(conv, weight=weight))
    report = (
        Spectrum.of(old, repeats).effective_rank(),
        Spectrum.of(new, repeats).effective_rank(),
        after.effective_rank(),
        float(((old != new) * repeats).sum() / repeats.sum()),
        _error(fourier, weight, change),
    )
    return weight, report


def _error(fourier: FourierBlocks, weight: Tensor, change: Change) -> float:
    """Return the distance of a kernel's map from the one with changed values, relative to it."""
    projected = FourierBlocks(replace(fourier.conv, weight=weight))
    miss = total = 0.0
    for chunk in fourier.chunks():
        left, values, right = torch.linalg.svd(fourier.blocks(chunk), full_matrices=False)
        target = (left * change(values)[..., None, :]) @ right
        weights = fourier.counts[chunk, None, None, None]
        miss += float(((target - projected.blocks(chunk)).abs().square() * weights).sum())
        total += float((target.abs().square() * weights).sum())
    return (miss / total) ** 0.5 if total else 0.0
