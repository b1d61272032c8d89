"""Figure 8: a structure that completes rows exactly, with weights set by hand."""

from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Estimate, Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Exact, Quantities
from inscape.lab.records import Records

WHOLE = grid(p=[4, 8, 16, 32, 64, 128], r=[1, 2, 8], count=10_000, seed=0)
#: Largest length whose rows are all tried.
ALL = 16


def cell(p: int, r: int, count: int, seed: int) -> dict[str, Any]:
    """Set the weights, and compare with eq. (10) on all rows or on many drawn ones."""
    import torch

    from inscape.papers.courtois import _completion

    if p <= ALL:
        numbers = torch.arange(2**p)[:, None]
        x = (numbers >> torch.arange(p) & 1).float()
    else:
        x = torch.cat([_completion.rows(count // 5, p, ones, seed=seed) for ones in _counts(p)])
    model = _completion.Completion(p, r)
    layers = [type(part).__name__ for part in model.modules()]
    found = {
        "convolutions": layers.count("Convolution"),
        "nonlinearities": layers.count("ReLU"),
        "downsamplings": len(model.levels),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "rows": len(x),
    }
    if r < 2:
        return {**found, "least": _completion.least_error_of_one_unit()}
    _completion.set_by_hand(model)
    off = 0.0
    with torch.no_grad():
        for part in torch.split(x, 4096):
            off = max(off, float((model(part) - _completion.completed(part)).abs().max()))
    return {**found, "off": off}


def _counts(p: int) -> tuple[int, ...]:
    return 1, 2, p // 8, p // 2, p


def analyse(records: Records) -> dict[str, Estimate]:
    """Return the largest error over all rows, and the layers at the largest length."""
    two = records.where(r=2)
    longest = records.different("p")[-1]
    return Quantities(
        {
            "off": Exact("off", rule=max, n=sum(two.values("rows")), method="computed").where(r=2),
            "least error of one unit": Exact("least", rule=min, n=1, method="computed").where(r=1),
            **{
                name: Exact(name, method="computed").where(p=longest)
                for name in ("convolutions", "nonlinearities", "downsamplings")
            },
        }
    )(records)


def conclude(records: Records) -> list[str]:
    """Say on how many rows the network is exact."""
    two = records.where(r=2)
    whole = sum(record.values["off"] == 0 for record in two)
    return [
        f"With r = 2 the network equals eq. (10) bit for bit at {whole} of {len(two)} lengths, on "
        f"all rows up to {ALL} pixels and on drawn rows beyond."
    ]


def draw(records: Records) -> Figure:
    """Draw the layers of the longest network, with the signal of one row after each level."""
    from inscape.papers.courtois._diagrams import structure

    return structure(max(record.settings["p"] for record in records))


EXPERIMENT = Experiment(
    shows="Figure 8",
    title="A structure that solves the completion of a row exactly",
    smoke=grid(WHOLE, p=[4, 32], r=[1, 2], count=50),
    settings=WHOLE,
    departures={"smoke": ("Two lengths, few rows.",)},
    cell=cell,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "exact: off = 0.0 ± 0.0": "With r = 2 and weights set by hand the network computes "
            "eq. (10) exactly. | r = 2 | largest error",
            "convolutions: convolutions = 14 ± 0.0": "The network has 2 log2(p) convolutions. | p "
            "= 128 | convolutions",
            "nonlinearities: nonlinearities = 7 ± 0.0": "It has log2(p) non-linearities. | p = "
            "128 | non-linearities",
            "downsamplings: downsamplings = 7 ± 0.0": "It has log2(p) downsamplings. | p = 128 | "
            "downsamplings",
            "two-needed: least error of one unit > 0": "The smallest r for which the structure "
            "can solve the task is 2. | | figure 8",
        },
        source="section 6.1.2",
        test="exact: largest error of the best monotone function of a pair, by all orders",
    ),
    errata=("C4",),
    notes=(
        "The network looks at every window of the row; all windows share their pairs, so it is "
        "computed as convolutions with growing gaps, which tests compare with the text's form.",
        "That one channel cannot do is proved: on rows whose other pixels are zero the network is "
        "then a monotone function of a linear form of one pair, and the parity of a pair is none.",
    ),
)
