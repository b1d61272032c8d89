"""Planes towards a change: to the nearest adversarial example, or along the active subspace."""

from typing import Any

import torch
from torch import Tensor

from inscape._core import NotApplicable
from inscape._core.checks import Function
from inscape.explorer.subject import ExploredSubject
from inscape.functional.jacobians import MEMORY
from inscape.piecewise import Frame, through
from inscape.robustness import Fab, Target
from inscape.robustness.classifier import classifier_of
from inscape.robustness.norm_balls import Draws
from inscape.sensitivity import active_subspace

#: More classes than this are attacked one after the other, the likeliest alone.
CLASSES = 10
#: Seconds that finding a direction may take, about, and the most steps and gradients for it.
SECONDS, STEPS, GRADIENTS = 8.0, 60, 500

Facts = dict[str, Any]


def nearest_adversarial(f: Function, x: Tensor, steps: int = STEPS) -> Tensor:
    """Return the nearest input with another answer that the attack FAB finds, in the l2 norm.

    Args:
        f: The network.
        x: One input, without the batch.
        steps: Steps of the attack.
    """
    point = x[None].detach()
    classifier = classifier_of(f, point, bounds=None, memory=MEMORY)
    y = classifier.scores_without_gradient(point).argmax(1)
    draws = Draws(torch.arange(1), 1, 0)
    target = Target(classifier=classifier, x=point, y=y, budget=float("inf"), draws=draws)
    adversarial = Fab(targeted=classifier.classes > CLASSES, steps=steps).perturb(target)
    if not bool(classifier.wrong(adversarial, y)[0]):
        raise ValueError(
            "an adversarial direction leads to another answer, found none near this example: "
            "choose another example, or a random plane."
        )
    return adversarial[0]


def adversarial_plane(
    subject: ExploredSubject, row: int, other: int
) -> tuple[Frame, tuple[float, float], str]:
    """Return the plane through an example, its nearest adversarial example and another example.

    Returns also where the adversarial example lies, and Python that makes the plane.
    """
    classes = max(2, subject.subject.probe.outputs)
    passes = 36.0 if classes > CLASSES else 2.0 + 2.0 * classes
    affordable = int(SECONDS / (passes * max(subject.subject.pace, 1e-9)))
    steps = max(5, min(STEPS, affordable))
    adversarial = nearest_adversarial(subject.subject.probe.f, subject.x[row], steps)
    frame = through(torch.stack([subject.x[row], adversarial, subject.x[other]]).detach().cpu())
    u, v = frame.of(adversarial[None].detach().cpu())[0].tolist()
    code = (
        "from inscape.explorer.plane_directions import nearest_adversarial\n"
        f"found = nearest_adversarial(model, x[{row}], steps={steps})\n"
        f"plane = inscape.regions.through(torch.stack([x[{row}], found, x[{other}]]))"
    )
    return frame, (u, v), code


def active_plane(subject: ExploredSubject, row: int) -> tuple[Frame, str]:
    """Return the plane through an example in the two directions along which its answer varies most.

    These are the leading directions of the active subspace of the output that is largest there.
    """
    output = int(subject.network().outputs(subject.x[row : row + 1].double())[0].argmax())
    affordable = int(SECONDS / (3.0 * max(subject.subject.pace, 1e-9)))
    points = max(20, min(GRADIENTS, affordable))
    settings: Facts = {"outputs": [output], "count": 2, "points": points, "resamples": 0}
    result = active_subspace(subject.subject.probe.f, subject.x, **settings)
    if isinstance(result, NotApplicable):
        raise ValueError(result.reason)
    words = ", ".join(f"{name}={value}" for name, value in settings.items())
    code = (
        f"active = inscape.sensitivity.active_subspace(model, x, {words})\n"
        f"plane = inscape.regions.Frame(origin=x[{row}], axes=active.images[0])"
    )
    if result.directions.shape[1] < 2 or not float(result.directions[0, 1].norm()) > 0:
        raise ValueError(
            "an active subspace of two directions needs an output that varies along two, found "
            "one: choose another plane."
        )
    axes = result.images[0].detach().cpu()
    return Frame(origin=subject.x[row].detach().double().cpu(), axes=axes), code
