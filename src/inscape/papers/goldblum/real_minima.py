"""Beyond section 2: at what kind of point does training end, and what lies below it?"""

from typing import TYPE_CHECKING, Any

from inscape.lab.experiment import Experiment, Figure, Settings
from inscape.lab.grids import grid
from inscape.lab.quantities import Proportion, Quantities
from inscape.lab.records import Record, Records
from inscape.papers.goldblum import _beyond, _data

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn

#: By name: what it is, the data, and the side of its images; MLPs see one channel.
NETS = {
    "relu": ("small ReLU MLP", "mnist", 8),
    "tanh": ("small tanh MLP", "mnist", 8),
    "wide": ("wider ReLU MLP", "mnist", 16),
    "resnet9": ("ResNet9", "cifar10", 32),
}
#: Probability that labels give away to the other classes, so that there is a minimum at all.
SMOOTHING = 0.1
#: Norm of the gradient at which polishing ends.
POLISHED = 1e-11
#: Steps of polishing at laptop scale, of MLPs and of the ResNet9.
MANY, FEW = 5000, 200
PROOFS = ("proved, affine on the data", "proved modulo known flat directions")


def cell(
    data: str, net: str, width: int, epochs: int, polish: int, dense: int, seed: int
) -> dict[str, Any]:
    """Train one network, and polish it; return the verdict on both points."""
    from inscape.landscape import local_minimum
    from inscape.papers.goldblum._training import Recipe, train

    x, y = points(data, net)
    model = network(net, width, x, seed)
    recipe = Recipe(epochs=epochs, lr=0.05, drops=(0.5, 0.75))
    train(model, x, y.float(), recipe, seed=seed)
    model, x = model.double(), x.double()
    values: dict[str, Any] = {"parameters": sum(p.numel() for p in model.parameters())}
    for moment in ("trained", "polished"):
        if moment == "polished":
            values["gradient reached"] = polished(model, x, y, steps=polish)
        found: Any = local_minimum(model, x, y, loss="cross_entropy", dense=dense, seed=seed)
        row = next(iter(found.rows()))
        flat = dict(zip(found.causes, found.flat[0].tolist(), strict=True))
        values[moment] = {**row, "flat by cause": flat}
    return values


def points(data: str, net: str) -> "tuple[Tensor, Tensor]":
    """Return images and probabilities of the classes; one channel, flat, for MLPs."""
    import torch
    from torch.nn.functional import one_hot

    given = _data.images(data, side=NETS[net][2])
    x = given.x if net == "resnet9" else given.x[:, 0].flatten(1)
    labels = one_hot(given.y, 10).to(torch.float64)
    return x, (1 - SMOOTHING) * labels + SMOOTHING / 10


def network(net: str, width: int, x: "Tensor", seed: int) -> "nn.Module":
    """Return a network as it starts."""
    from inscape.models import mlp, resnet9

    if net == "resnet9":
        return resnet9(width=width, seed=seed)
    activation = "tanh" if net == "tanh" else "relu"
    return mlp(x.shape[1], width, 10, activation=activation, seed=seed)


def polished(
    model: "nn.Module", x: "Float[Tensor, 'n *d']", y: "Float[Tensor, 'n c']", *, steps: int
) -> float:
    """Go down to a critical point by L-BFGS on all data; return the norm of the gradient there."""
    import torch
    from torch.nn.functional import cross_entropy

    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=1.0, max_iter=steps, max_eval=2 * steps, history_size=50,
        tolerance_grad=POLISHED, tolerance_change=0.0, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def loss() -> float:
        optimizer.zero_grad()
        value = cross_entropy(model(x), y)
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    loss()
    parts = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return float(torch.cat(parts).norm())


def seconds(settings: Settings) -> float:
    """Guess the time of a cell: training, polishing, and the whole Hessian where it is small."""
    images = _data.number_of(settings["data"])
    if settings["net"] == "resnet9":
        each = 2e-5 * settings["width"] + 1e-5 * settings["width"] ** 2
        return 5 + float(each * images * (settings["epochs"] + 4 * settings["polish"] + 300))
    size = settings["width"] * (NETS[settings["net"]][2] ** 2 + 10)
    each = 2e-7 + 1e-9 * size
    products = min(size, settings["dense"]) if size <= settings["dense"] else 300
    return 5 + float(each * images * (settings["epochs"] + 2 * settings["polish"] + 6 * products))


def verdict(moment: str, *verdicts: str) -> Proportion:
    """Return the fraction of networks with one of some verdicts at a moment."""
    return Proportion(lambda record: record.values[moment]["verdict"] in verdicts)


QUANTITIES = Quantities(
    {
        "moving": verdict("trained", "not stationary"),
        "saddle": verdict("polished", "saddle"),
        "proved": verdict("polished", *PROOFS),
        "proved/tanh": verdict("polished", *PROOFS).where(net="tanh"),
        **{f"saddle/{net}": verdict("polished", "saddle").where(net=net) for net in NETS},
    }
)


def conclude(records: Records) -> list[str]:
    """Say the verdicts on each kind of network, and the reasons that are given most often."""
    said = []
    for net, (title, *_) in NETS.items():
        own = records.where(net=net)
        if not own:
            continue
        parts = [f"{moment}: {_counted(own, moment)}" for moment in ("trained", "polished")]
        said.append(f"{title}, {own[0].values['parameters']:,} parameters. {'; '.join(parts)}.")
        said.append(f"{title}, polished, seed {own[0].settings['seed']}: {_reason(own[0])}.")
    return said


def _counted(records: Records, moment: str) -> str:
    verdicts = [record.values[moment]["verdict"] for record in records]
    return ", ".join(f"{verdicts.count(name)} {name}" for name in sorted(set(verdicts)))


def _reason(record: Record) -> str:
    found = record.values["polished"]
    return f"{found['verdict']}, {found['reason']}; gradient {found['gradient']:.1e}"


def draw(records: Records) -> Figure:
    """Draw gradient and smallest curvature of each network after training and polishing."""
    from inscape.figures.panels import panels
    from inscape.figures.style import CATEGORIES, quiet_grid

    figure, axes = panels(2, columns=2, size=(3.4, 2.8))
    marks = {"trained": "o", "polished": "X"}
    for (net, (title, *_)), colour in zip(NETS.items(), CATEGORIES, strict=False):
        own = records.where(net=net)
        for moment, mark in marks.items():
            found = [record.values[moment] for record in own]
            label = title if moment == "trained" and found else None
            gradients = [max(row["gradient"], 1e-16) for row in found]
            axes[0].plot(gradients, [row["loss"] for row in found], mark, color=colour, label=label)
            known = [row for row in found if row["verdict"] != "not stationary"]
            axes[1].plot(
                [max(row["gradient"], 1e-16) for row in known],
                [row["smallest"] for row in known], mark, color=colour,
            )  # fmt: skip
    axes[0].set(xscale="log", yscale="log", xlabel="gradient; cross: polished", ylabel="loss")
    axes[1].set(xscale="log", xlabel="gradient of critical points", ylabel="smallest curvature")
    axes[1].set_yscale("symlog", linthresh=1e-6)
    axes[1].axhline(0, color="0.5", linewidth=0.8)
    axes[0].legend(fontsize=6.5)
    for ax in axes:
        quiet_grid(ax)
    return figure


def keeps(settings: Settings) -> bool:
    """Keep the data and the sizes that belong to a network."""
    name = settings["data"].partition(":")[0]
    own = settings["net"]
    if name not in ("digits", NETS[own][1]):
        return False
    few = settings["polish"] == FEW
    if few != (own == "resnet9") and settings["polish"] in (FEW, MANY):
        return False
    return bool(settings["width"] == {"relu": 7, "tanh": 7, "wide": 32, "resnet9": 4}[own])


EXPERIMENT = Experiment(
    shows="Section 2, beyond it",
    title="Are real networks at minima? Verdicts where training stops, and after polishing",
    smoke=grid(
        data="digits:n=40", net=["tanh", "resnet9"], width=[7, 4], epochs=1, polish=3, dense=10,
        seed=0,
    ),
    laptop=grid(
        data=["mnist:n=1000", "cifar10:n=250"], net=list(NETS), width=[7, 32, 4], epochs=30,
        polish=[MANY, FEW], dense=600, seed=range(5),
    ),
    paper=grid(
        data=["mnist:n=60000", "cifar10:n=5000"], net=list(NETS), width=[7, 32, 4], epochs=100,
        polish=10_000, dense=9000, seed=range(10),
    ),
    keeps=keeps,
    departures={
        "smoke": ("40 of the embedded digits, one epoch, three steps of polishing.",),
        "laptop": (
            "1,000 images of MNIST and 250 of CIFAR-10 instead of 60,000 and 5,000; 30 epochs "
            "instead of 100; at most 5,000 steps of polishing (ResNet9: 200) instead of 10,000; "
            "the whole Hessian of the small networks alone; five seeds.",
        ),
    },
    cell=cell,
    data=_data.hash_of,
    seconds=seconds,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=_beyond.REAL_MINIMA,
    notes=(
        "An experiment of ours: does local_minimum certify networks that were trained as usual, or "
        "are they all saddles, as most believe?",
        "MNIST images are averaged to 8 x 8 pixels (16 x 16 for the wider network), so that the "
        "small networks have few enough parameters for inertia. ResNet9 is in eval mode, its "
        "batch norm with the statistics of its training.",
        f"Labels are smoothed by {SMOOTHING:g}: without it separable classes have no minimum. "
        "Polishing is L-BFGS on all data in float64 from where SGD stopped; a first trial with "
        "1,000 steps left gradients of 1e-2 (ReLU) and 1e-4 (tanh).",
    ),
)  # fmt: skip
"""Real minima: at what kind of point does training end, and what lies below it?"""
