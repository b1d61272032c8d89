"""One integer, one call: the network, the data and the settings that it stands for."""

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

import inscape
from fuzz import data, odd_networks
from fuzz.extras import extra
from fuzz.networks import Network, network, plain
from fuzz.settings import FEW, FEWEST, LEGAL, MANY, SUITED, UNSUITED, illegal, settings

NAMES = tuple(LEGAL)
#: Instruments that export the network, which takes longer than all the rest of a call.
EXPORTING = frozenset({
    "lipschitz", "boundary", "closed_regions", "line_regions", "local_maps", "plane_regions",
    "region_at", "region_bounds", "region_evolution", "tropical", "slope_variation",
    "total_variation", "weights_product", "spectral_norm", "channel_pruning", "node_pruning",
    "exhaustive_pruning", "path_length", "gradient_path_length", "grid_regions",
    "slice_difference", "saliency",
})  # fmt: skip
#: Instruments that refuse nearly all odd networks, labels and settings: half as many odd networks.
REFUSING = frozenset({"interpolation", "extrapolation"})
#: How often a network of one output has class numbers, which most instruments refuse.
CLASSES_OF_ONE = 0.1
#: Instruments that take as long without an export.
SLOW = frozenset(
    {
        "effective_length_scale",
        "hessian_extremes",
        "interpolation",
        "local_minimum",
        "loss_surface",
        "kernel_drift",
        "path_kernel",
    }
)
#: One slot for each instrument that takes long, five for each that does not.
WHEEL = tuple(name for name in NAMES for _ in range(1 if name in EXPORTING | SLOW else 5))


@dataclass(eq=False)
class Call:
    """A call of an instrument; ``kinds`` says what is odd about it."""

    number: int
    instrument: str
    network: Network
    x: Any
    y: Any
    settings: dict[str, Any]
    kinds: tuple[str, ...] = ()
    legal: bool = True
    context: AbstractContextManager[Any] = field(default_factory=nullcontext)

    @property
    def entry(self) -> Any:
        """Return the instrument's entry in the register."""
        return _register()[self.instrument]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one point."""
        return tuple(self.x.shape[1:])

    @property
    def refused(self) -> bool:
        """Tell whether any answer would be wrong."""
        if self.network.kind in odd_networks.REFUSED:
            return True
        if self.network.kind in odd_networks.MIXING and self.legal:
            return self._mixture_shows()
        return not self.legal and not any(kind in data.PERHAPS for kind in self.kinds)

    @torch.no_grad()
    def _mixture_shows(self) -> bool:
        """Tell whether outputs at a point in the middle move as it comes alone.

        Where they do not (equal points, saturated units, half precision) brute force decides.
        """
        x = self.x.detach().clone()[[0, len(self.x) // 2, -1]]
        whole = self.network.module(x.clone())[1:2]
        alone = self.network.module(x[1:2].clone())
        gap, size = (whole - alone).abs().max(), whole.abs().max()
        coarse = self.network.dtype is torch.bfloat16
        return not coarse and bool(gap > 1e-2 * size)

    def run(self) -> Any:
        """Call the instrument."""
        given = (self.x, self.y) if self.entry.wants_labels else (self.x,)
        with self.context, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the model is in bfloat16: measured as a copy")
            return self.entry.function(self.network.f, *given, **self.settings)


@lru_cache(maxsize=1)
def _register() -> dict[str, Any]:
    return inscape.instruments()


def call(number: int, instrument: str | None = None) -> Call:
    """Return the call that one integer stands for, of a given instrument or one that it names."""
    instrument = WHEEL[number % len(WHEEL)] if instrument is None else instrument
    draw = Random(f"{instrument} {number}")
    chosen = _network(draw, instrument)
    kinds = [chosen.kind] if chosen.kind != "plain" else []
    kinds += ["bfloat16"] if chosen.dtype is torch.bfloat16 else []
    of_data: list[str] = []
    x, legal = _points(draw, instrument, chosen, of_data)
    y = _labels(draw, chosen, x, instrument, of_data)
    given = settings(draw, instrument)
    if isinstance(y, Tensor) and not y.is_floating_point() and given.get("loss") == "mse":
        del given["loss"]
    if draw.random() < 0.06:
        kind, bad = illegal(draw, instrument)
        given |= bad
        kinds += [kind] if kind else []
    context, name = _context(draw)
    kinds += [name] if name else []
    more = extra(instrument, draw, chosen)
    if more is None:  # no training of such a network is on record
        return call(number + 1_000_000_007, instrument)
    if instrument == "path_kernel" and draw.random() < 0.85:  # the very data of the training
        x, y = more.pop("data")
        of_data, legal = [], True
    more.pop("data", None)
    return Call(
        number, instrument, chosen, x, y, {**more, **given}, (*kinds, *of_data), legal, context
    )


def _network(draw: Random, instrument: str) -> Network:
    few = instrument in EXPORTING
    suited = few or instrument in REFUSING
    if draw.random() < 0.75 or (suited and draw.random() < 0.5):
        builder = draw.choice(SUITED.get(instrument, [plain]))
        return network(builder, draw.randrange(FEW if few else MANY))
    builder = draw.choice([*odd_networks.BUILDERS, plain])
    return network(builder, draw.randrange(2 if few else MANY))


def _points(draw: Random, instrument: str, chosen: Network, kinds: list[str]) -> tuple[Any, bool]:
    while True:
        own: list[str] = []
        x, legal = _any_points(draw, instrument, chosen, own)
        few = legal and len(x) < FEWEST.get(instrument, 0)
        if not few or draw.random() < 0.2:
            kinds += own
            return x, legal


def _any_points(
    draw: Random, instrument: str, chosen: Network, kinds: list[str]
) -> tuple[Any, bool]:
    share = draw.random()
    if share < 0.5:
        return data.gaussian(draw, chosen.shape, chosen.dtype), True
    table = data.LEGAL if share < 0.9 else data.ILLEGAL
    kind = draw.choice(list(table))
    if kind in UNSUITED.get(instrument, ()) and draw.random() < 0.8:
        return data.gaussian(draw, chosen.shape, chosen.dtype), True
    kinds.append(kind)
    return table[kind](draw, chosen.shape, chosen.dtype), share < 0.9


def _labels(draw: Random, chosen: Network, x: Any, instrument: str, kinds: list[str]) -> Any:
    if not _register()[instrument].wants_labels:
        return None
    n = len(x) if isinstance(x, Tensor) and x.ndim else 1
    outputs = _outputs(chosen)
    if draw.random() < 0.1:
        kind, y = data.odd_labels(draw, n, outputs, chosen.dtype)
        kinds.append(kind)
        return y
    classes = instrument == "robustness" or draw.random() < (0.4 if outputs > 1 else CLASSES_OF_ONE)
    return (data.class_labels if classes else data.real_labels)(draw, n, outputs, chosen.dtype)


def _outputs(chosen: Network) -> int:
    layers = [m for m in chosen.module.modules() if isinstance(m, nn.Linear)]
    outputs = layers[-1].out_features if layers else chosen.shape[0]
    if isinstance(chosen.module, odd_networks.Twice):
        outputs = [m for m in chosen.module.inner.modules() if isinstance(m, nn.Linear)][
            -1
        ].out_features
    return {"outputs (n,)": 1, "outputs (n, c, h)": 2 * outputs}.get(chosen.kind, outputs)


def _context(draw: Random) -> tuple[AbstractContextManager[Any], str]:
    share = draw.random()
    if share < 0.05:
        return torch.inference_mode(), "inference mode"
    if share < 0.1:
        return torch.no_grad(), "under no_grad"
    return nullcontext(), ""
