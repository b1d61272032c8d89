"""Section 4.1: the tangent kernel of linear regression is the linear kernel."""

from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Experiment, Figure
from inscape.lab.grids import grid
from inscape.lab.quantities import Largest, Quantities
from inscape.lab.records import Records

ERRORS = {
    "kernel": "The tangent kernel of linear regression is the inner product of the inputs.",
    "cosine": "The normalised tangent kernel is the cosine similarity.",
    "moved": "The kernel does not depend on the parameters: training leaves it as it is.",
    "residual": "The O(.) term disappears and the formula becomes exact.",
}
WHOLE = grid(inputs=[1, 2, 16, 64], n=64, steps=200, eta=0.1, seed=list(range(4)))


def cell(inputs: int, n: int, steps: int, eta: float, seed: int) -> dict[str, Any]:
    """Train a linear function, and compare its kernels with those of the text."""
    import torch
    from torch import nn

    from inscape.kernels import TangentKernel, tangent_kernel
    from inscape.papers.courtois import _descent as d

    x, at = d.queries(n, seed, inputs), d.queries(16, seed + 1, inputs)
    y = x.sum(1, keepdim=True).sin()
    model = nn.Linear(inputs, 1, bias=False, dtype=x.dtype).eval()
    nn.init.normal_(model.weight, generator=torch.Generator().manual_seed(seed))
    before = d.kernel_between(model, at, x)
    run = d.descent(model, x, y, eta=eta / max(1, inputs / 3), steps=steps)
    after = d.kernel_between(model, at, x)
    split = d.taken_apart(run, x, y, at)
    shown = tangent_kernel(model, at, others=x, normalised=True)
    assert isinstance(shown, TangentKernel)  # there are trainable parameters
    cosines = nn.functional.cosine_similarity(at[:, None], x[None], dim=2)
    return {
        "kernel": float((after[:, :, 0, 0] - at @ x.T).abs().max()),
        "cosine": float((shown.kernel[:, :, 0, 0] - cosines).abs().max()),
        "moved": float((after - before).abs().max()),
        "residual": split.unattributed,
        "cosines": shown.kernel[0, :, 0, 0].tolist()[:16],
        "expected": cosines[0].tolist()[:16],
    }


def draw(records: Records) -> Figure:
    """Draw normalised kernels against cosines."""
    from inscape.figures.panels import panels
    from inscape.figures.style import BLUE, RULE

    figure, (ax,) = panels(1, size=(3.2, 3.0))
    ax.plot([-1, 1], [-1, 1], color=RULE, lw=0.8, zorder=0)
    for record in records:
        ax.plot(record.values["expected"], record.values["cosines"], ".", color=BLUE, ms=3)
    ax.set(xlabel="cosine of the inputs", ylabel="normalised tangent kernel", aspect="equal")
    return figure


EXPERIMENT = Experiment(
    shows="Section 4.1",
    title="Linear regression: its kernel is linear, its normalised kernel the cosine",
    smoke=grid(inputs=2, n=8, steps=5, eta=0.1, seed=0),
    settings=WHOLE,
    departures={"smoke": ("Two inputs, eight samples, five steps.",)},
    cell=cell,
    analyse=Quantities({name: Largest(name) for name in ERRORS}),
    draw=draw,
    claims=claims(
        {f"{name}: {name} < 1e-12": f"{says}" for name, says in ERRORS.items()},
        source="section 4.1",
        test="largest difference over all pairs and data sets; relative for the residual",
    ),
    notes=(
        "Inputs are uniform on a cube, in float64; the step is divided by a third of the number of "
        "inputs, so that descent does not diverge.",
    ),
)
