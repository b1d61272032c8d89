"""Section 4.2: a network with a linear last layer is a linear function of its tangent features."""

from typing import Any

from inscape._core.result import PROPORTION
from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Largest, Mean, Quantities
from inscape.lab.records import Record, Records

WHOLE = grid(
    activation=["gelu", "relu", "tanh"], width=[10, 30], steps=[0, 1000], n=256, seed=list(range(4))
)


def cell(activation: str, width: int, steps: int, n: int, seed: int) -> dict[str, Any]:
    """Train a network by Adam, compare it with its features, and separate these by a plane."""
    import torch

    from inscape.kernels import separability, tangent_features
    from inscape.models import mlp
    from inscape.papers.courtois._descent import ball
    from inscape.training import fit

    x, y = ball(n, seed)
    model = mlp(2, width, width, 1, activation=activation, seed=seed, dtype=torch.float64)
    if steps:
        fit(model, x, y, optimizer="adam", lr=0.01, epochs=steps, progress=False)
    features = tangent_features(model, x)
    last = features.new_zeros(features.shape[1])
    last[-width - 1 :] = torch.cat([p.detach().flatten() for p in list(model.parameters())[-2:]])
    outputs = model(x).detach()[:, 0]
    linear = features @ last
    labels = (y[:, 0] > 0).long()
    return {
        "error": float((linear - outputs).abs().max() / outputs.abs().max()),
        "accuracy": float(((outputs > 0) == (labels > 0)).double().mean()),
        "accuracy of a": float(((linear > 0) == (labels > 0)).double().mean()),
        "SVM": separability(features @ features.T, labels).accuracy,
        "outputs": outputs[:32].tolist(),
        "linear": linear[:32].tolist(),
    }


def perfect(record: Record) -> bool:
    """Tell whether a network makes no error."""
    return bool(record.values["accuracy"] == 1.0)


QUANTITIES = Quantities(
    {
        "error": Largest("error"),
        "SVM": Mean("SVM", within=PROPORTION).where(perfect),
        "plane a": Mean("accuracy of a", within=PROPORTION).where(perfect),
        "SVM untrained": Mean("SVM", within=PROPORTION).where(steps=0),
    }
)


def conclude(records: Records) -> list[str]:
    """Say how many networks make no error, and what untrained ones give."""
    untrained = records.where(steps=0)
    apart = sum(value == 1.0 for value in untrained.values("SVM"))
    right = untrained.values("accuracy") or [0]
    return [
        f"{len(records.where(perfect))} of {len(records)} networks make no error.",
        f"The converse does not hold: a plane separates the features of {apart} of "
        f"{len(untrained)} untrained networks, which themselves get {min(right):.0%} to "
        f"{max(right):.0%} of the points right.",
    ]


def draw(records: Records) -> Figure:
    """Draw the linear function of the features against the network."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, RULE, VERMILION

    figure, (ax,) = panels(1, size=(3.4, 3.0))
    ends = [min(min(r.values["outputs"]) for r in records)]
    ends.append(max(max(r.values["outputs"]) for r in records))
    ax.plot(ends, ends, color=RULE, lw=0.8, zorder=0)
    for record in records:
        colour = BLUE if record.settings["steps"] else VERMILION
        ax.plot(record.values["outputs"], record.values["linear"], ".", color=colour, ms=2.5)
    ax.plot([], [], ".", color=VERMILION, label="untrained")
    ax.plot([], [], ".", color=BLUE, label="trained")
    ax.set(xlabel="network", ylabel="inner product of features with (W, b, 0, ...)")
    ax.legend()
    return figure


EXPERIMENT = Experiment(
    shows="Section 4.2",
    title="A network with a linear last layer is a linear function of its tangent features",
    smoke=grid(activation="gelu", width=4, steps=[0, 5], n=32, seed=0),
    settings=WHOLE,
    departures={"smoke": ("One small network, 32 points, five steps.",)},
    cell=cell,
    seconds=lambda settings: 0.2 + float(settings["steps"]) * 2e-3,
    analyse=QUANTITIES,
    conclude=conclude,
    draw=draw,
    claims=claims(
        {
            "identity: error < 1e-12": "The inner product of the features with (W, b, 0, ..., 0) "
            "is the network.",
            "plane: plane a = 1.0 ± 0.0": "If the network has 100% accuracy, that plane separates "
            "the features. | networks with 100% accuracy | accuracy of (W, b, 0, ..., 0)",
            "separable: SVM = 1.0 ± 0.0": "If the network has 100% accuracy, a support vector "
            "machine finds the feature space perfectly separable. | networks with 100% accuracy | "
            "accuracy of the SVM",
        },
        source="section 4.2",
        test="largest relative difference over points and networks",
    ),
    notes=(
        "The statement is about any network with a linear last layer: here two hidden layers of "
        "three activations and two widths, untrained and trained on ball against sphere (1000 full "
        "steps of Adam at 0.01, to reach 100% soon).",
    ),
)
