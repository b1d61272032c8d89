"""Lemma 1: a ReLU network holds every affine map of rank up to its smallest width."""

from typing import Any

from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Exact, Largest, Quantities
from inscape.lab.records import Records
from inscape.papers.goldblum import _claims, _data

MARGIN = 1.0


def cell(data: str, width: int, layers: int, rank: int, seed: int) -> dict[str, Any]:
    """Embed a random affine map; return the deviation and the pre-activations of each layer."""
    import torch

    from inscape.landscape import affine_embedding
    from inscape.models import image_mlp

    x = _data.images(data).x.double()
    rng = torch.Generator().manual_seed(seed)
    shape: Any = {"generator": rng, "dtype": torch.float64}
    weight = torch.randn(10, rank, **shape) @ torch.randn(rank, x[0].numel(), **shape)
    bias = torch.randn(10, **shape)
    net = image_mlp(*[width] * (layers - 1), seed=seed).double()
    network, report = affine_embedding(net, x, weight, bias, margin=MARGIN)
    largest = float((x.flatten(1) @ weight.T + bias).abs().max())
    constant = max(
        float(p.detach().max()) for name, p in network.named_parameters() if "1.b" in name
    )
    return {
        "deviation": report.deviation / largest,
        "least": report.least.tolist(),
        "constant": constant,
        "points": len(x),
    }


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: one pass over the data in float64."""
    units = settings["width"]
    size = 3072 * units + (settings["layers"] - 2) * units**2
    return 5 + 2e-10 * float(_data.number_of(settings["data"]) * size)


QUANTITIES = Quantities(
    {
        "deviation": Largest("deviation"),
        "least": Exact(lambda record: min(record.values["least"]), min, "least of all cells"),
        "least over constant": Exact(
            lambda record: min(record.values["least"]) / record.values["constant"], min
        ),
    }
)


def conclude(records: Records) -> list[str]:
    """Say how exact it is, and that pre-activations may lie below the constant of the proof."""
    known = QUANTITIES(records)
    if "least" not in known:
        return []
    return [
        f"Outputs deviate by at most {known['deviation'].value:.1e} of the largest one; the least "
        f"pre-activation is {known['least'].value:.4g}, {known['least over constant'].value:.2g} "
        "times the largest bias of the first layer: positive, but not at least c (G1)."
    ]


def draw(records: Records) -> Figure:
    """Draw the least pre-activation of each layer, by rank."""
    from inscape.figures.panels import panels
    from inscape.figures.style import quiet_grid

    figure, (left, right) = panels(2, columns=2, size=(3.2, 2.5))
    for rank, own in records.by("rank").items():
        least = own[0].values["least"]
        left.plot(range(1, len(least) + 1), least, "o-", label=f"rank {rank}")
        right.semilogy([rank] * len(own), [max(d, 1e-17) for d in own.values("deviation")], "o")
    left.axhline(0, color="0.5", linewidth=0.8)
    left.set(xlabel="hidden layer", ylabel="least pre-activation", title="positive on all points")
    right.set(xlabel="rank of the map", ylabel="relative deviation", title="exact up to rounding")
    left.set_xticks(range(1, len(records[0].values["least"]) + 1))
    right.set_ylim(1e-17, 1e-12)
    left.legend(fontsize=7)
    for ax in (left, right):
        quiet_grid(ax)
    return figure


ONCE = grid(width=2048, layers=4, rank=[1, 5, 10], seed=[0, 1])
EXPERIMENT = Experiment(
    shows="Lemma 1",
    title="Random affine maps inside a ReLU network, exact on all points with all units active",
    smoke=grid(data="digits:n=30", width=16, layers=4, rank=[2, 10], seed=0),
    laptop=grid(grid(data="cifar10:n=5000"), **ONCE),
    paper=grid(grid(data="cifar10:n=50000"), **ONCE),
    departures={
        "smoke": ("30 of the embedded digits, 16 hidden units.",),
        "laptop": ("The first 5,000 of the 50,000 images; the network has the paper's size.",),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=_claims.LEMMA_1,
    errata=("G1",),
    notes=(
        "Maps are products of normal matrices; the network is that of table 1: three hidden layers "
        "of 2048 units; images are normalised by channel.",
        f"The construction is our affine_embedding with a margin of {MARGIN:g}, in float64.",
    ),
)
