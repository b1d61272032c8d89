"""Figure 9: the U-Net that completes shapes, at six scales."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Estimate, Experiment, Value
from inscape.lab.statistics import exact_estimate
from inscape.lab.store import Record
from inscape.papers.courtois._unet import LAPTOP, PAPER, SMOKE
from inscape.papers.courtois.section_6_2_3 import CHOICES, DEPARTURE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cell(side: int, channels: list[int]) -> dict[str, Any]:
    """Build the network, send one image through it, and write down what each block gives."""
    import torch

    from inscape.models import unet

    model = unet(channels=channels)
    blocks: list[dict[str, Any]] = []

    def watch(part: str) -> Any:
        def seen(module: Any, _: Any, out: Any) -> None:
            weights = sum(parameter.numel() for parameter in module.parameters())
            _, depth, _, size = out.shape
            blocks.append({"part": part, "channels": depth, "side": size, "weights": weights})

        return seen

    for part in ("down", "up"):
        for block in getattr(model, part):
            block.register_forward_hook(watch(part))
    model.last.register_forward_hook(watch("last"))
    with torch.no_grad():
        model(torch.zeros(1, 1, side, side))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {"blocks": blocks, "parameters": parameters}


def analyse(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return at how many sizes the network looks at an image."""
    sizes = len({block["side"] for block in records[0].values["blocks"]})
    number = float(sizes)
    return {"scales": exact_estimate(number, 1, method="counted")}


def conclude(records: Sequence[Record]) -> list[str]:
    """Say how large the network is."""
    return [
        f"For images of {record.settings['side']} x {record.settings['side']} the network has "
        f"{record.values['parameters']:,} parameters."
        for record in records
    ]


def draw(records: Sequence[Record]) -> "Figure":
    """Draw the blocks."""
    from inscape.papers.courtois._diagrams import scales

    return scales(records[0].values["blocks"])


EXPERIMENT = Experiment(
    shows="Figure 9",
    title="The U-Net of the completion of shapes",
    smoke={name: SMOKE[name] for name in ("side", "channels")},
    laptop={name: LAPTOP[name] for name in ("side", "channels")},
    paper={name: PAPER[name] for name in ("side", "channels")},
    departures={"smoke": ("Two channels.",), "laptop": (DEPARTURE,)},
    cell=cell,
    analyse=analyse,
    conclude=conclude,
    draw=draw,
    claims=(
        Value(
            name="scales",
            says="The U-Net processes the input at six different scales.",
            of="scales",
            published=6,
            tolerance=0.0,
            at=("U-Net", "scales"),
            source="figure 9",
        ),
    ),
    notes=CHOICES[1:],
)
