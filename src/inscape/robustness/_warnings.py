"""Signs that an attack was too weak, such as gradient masking."""

from collections.abc import Callable, Generator

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from inscape.functional.final_activation import lie_between_0_and_1
from inscape.robustness._search import SearchOutcome
from inscape.robustness.attack import Attack, Target
from inscape.robustness.autoattack import AutoAttack
from inscape.robustness.classifier import AttackedClassifier, cross_entropy
from inscape.robustness.fgsm import Fgsm
from inscape.robustness.noise import Noise
from inscape.robustness.norm_balls import Draws, block_size, size, uniform_on_sphere
from inscape.robustness.square import Square

#: Random steps to which the attack is compared, and queries of a short random search.
STEPS, QUERIES = 10, 50
#: With fewer numbers in an input than this, its windows are too few for Square to search well: with
#: 2 or 3 it left up to 16% more points standing than PGD on small tanh networks, with 8 to 32 4%.
NARROW = 8
#: The fraction of points that may be broken by them and not by the attack without a warning.
ALLOWED = 0.02

#: Steps, one for each batch of the model, and at the end the sentences.
Sentences = Generator[None, None, list[str]]


def warnings(
    attack: Attack,
    classifier: AttackedClassifier,
    x: Float[Tensor, "n *d"],
    y: Int64[Tensor, " n"],
    outcome: SearchOutcome,
    budget: float,
    *,
    seed: int,
) -> Generator[None, None, tuple[str, ...]]:
    """Return a sentence for each sign that the attack is too weak, yielding between batches."""
    outputs = yield from _batched(classifier.outputs, classifier, x)
    signs: list[str] = []
    if outputs.shape[1] == 1 and not classifier.halfway and lie_between_0_and_1(outputs, y):
        signs.append(
            "All outputs lie between 0 and 1 as probabilities do, but are read as logits, positive "
            "for class 1: let the model end in torch.sigmoid, or return the logit."
        )
    signs += yield from _nan_scores(classifier, outcome)
    if isinstance(attack, Noise):
        return tuple(signs)
    signs += _overshooting(outcome)
    if classifier.halfway or _probabilities(outputs):
        signs.append(
            "The outputs are probabilities, which flatten gradients: attack the scores before the "
            f"{'sigmoid' if classifier.halfway else 'softmax'}."
        )
    if isinstance(attack, Square) and x[0].numel() < NARROW and bool((outcome.right[-1] > 0).any()):
        signs.append(
            f"Inputs of {x[0].numel()} numbers have few windows for 'square' to search, so that it "
            "may miss points that others break: compare it with 'autoattack'."
        )
    if attack.follows_gradients:
        signs += yield from _vanishing_gradients(
            attack, classifier, x[outcome.lengths > 0], y[outcome.lengths > 0]
        )
        signs += yield from _beaten_by_random_search(
            attack, classifier, x, y, outcome, budget, seed=seed
        )
    return tuple(signs)


def _batched(
    call: Callable[[Tensor], Tensor], classifier: AttackedClassifier, x: Float[Tensor, "n *d"]
) -> Generator[None, None, Float[Tensor, "n c"]]:
    """Return the outputs of a call for all points, yielding between batches."""
    parts = [call(x[:0])] if len(x) == 0 else []
    for piece in classifier.batches(torch.arange(len(x), device=x.device)):
        parts.append(call(x[piece]))
        yield
    return torch.cat(parts)


def _overshooting(outcome: SearchOutcome) -> list[str]:
    """Return a sentence if points are right again at a larger budget."""
    again = (outcome.right[1:] > outcome.right[:-1]).any(0)
    if not bool(again.any()):
        return []
    return [
        f"{int(again.sum())} points that broke at a smaller budget are right again at a larger "
        "one: the attack overshoots; carry=True keeps what it found."
    ]


def _nan_scores(classifier: AttackedClassifier, outcome: SearchOutcome) -> Sentences:
    """Return a sentence if points are broken by NaN scores."""
    scores = yield from _batched(
        classifier.scores_without_gradient, classifier, outcome.moved[outcome.lengths.isfinite()]
    )
    count = int(scores.isnan().any(1).sum())
    if not count:
        return []
    return [
        f"Scores are not numbers at {count} points that are broken, which counts as wrong: see "
        "whether the model overflows."
    ]


def _probabilities(outputs: Float[Tensor, "n c"]) -> bool:
    if outputs.shape[1] == 1:
        return False
    sums = outputs.sum(1)
    return bool((outputs >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)


def _vanishing_gradients(
    attack: Attack, classifier: AttackedClassifier, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"]
) -> Sentences:
    """Return a sentence if gradients are zero or not finite."""
    count = 0
    for batch in classifier.batches(torch.arange(len(x), device=x.device)):
        count += int((~(_gradient_size(classifier, x[batch], y[batch]) > 0)).sum())
        yield
    if not count:
        return []
    return [
        f"The gradient is zero or not finite at {count} of {len(x)} points that are right: "
        f"gradient masking; {_advice(attack)}."
    ]


def _gradient_size(
    classifier: AttackedClassifier, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """Return the maximum norm of the gradient at each point; 0 where it is not finite."""
    _, _, gradient = classifier.loss_gradient(x, y, cross_entropy)
    finite = gradient.isfinite().flatten(1).all(1)
    return torch.where(finite, size(gradient, "linf"), 0.0)


def _beaten_by_random_search(
    attack: Attack,
    classifier: AttackedClassifier,
    x: Float[Tensor, "n *d"],
    y: Int64[Tensor, " n"],
    outcome: SearchOutcome,
    budget: float,
    *,
    seed: int,
) -> Sentences:
    """Return a sentence if random steps or a short random search break many other points."""
    one_step = isinstance(attack, Fgsm)  # which a search of many queries may well outdo
    unbroken = (outcome.right[-1] > 0).nonzero()[:, 0]
    broken_by_random = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    by_steps = broken_by_random.clone()
    search = Square(norm=attack.norm, queries=QUERIES)
    for batch in classifier.batches(unbroken):
        draws = Draws(batch.cpu(), block_size(x), seed, 1_000_000)
        target = Target(classifier=classifier, x=x[batch], y=y[batch], budget=budget, draws=draws)
        by_steps[batch] = yield from _broken_by_random_steps(target, attack.norm)
        broken_by_random[batch] = by_steps[batch]
        if not one_step:
            moved = yield from search.search(target)
            broken_by_random[batch] |= classifier.wrong(moved, y[batch])
    broken_by_attack = int(outcome.start.sum() - outcome.right[-1].sum())
    if int(by_steps.sum()) > max(1, ALLOWED * len(x), broken_by_attack):
        return [
            f"Random steps as long as the largest budget break {int(by_steps.sum())} points that "
            f"{attack.name} does not, and it breaks {broken_by_attack}: gradient masking; "
            f"{_advice(attack)}."
        ]
    if int(broken_by_random.sum()) <= max(1, ALLOWED * len(x)):
        return []
    who = "Random steps" if one_step else "Random steps or a short random search"
    why = "one step goes astray" if one_step else "it ended in local optima"
    return [
        f"{who} within the largest budget broke {int(broken_by_random.sum())} points that "
        f"{attack.name} did not: {why}, or gradients are masked; {_advice(attack)}."
    ]


def _advice(attack: Attack) -> str:
    """Return what to try after a weak attack: nothing that it has just done."""
    if isinstance(attack, AutoAttack) and "square" in attack.parts:
        return "random search is among what it tried; let it try more, e.g. queries=20000"
    return "try 'autoattack', or 'square', which needs no gradients"


def _broken_by_random_steps(target: Target, norm: str) -> Generator[None, None, Bool[Tensor, " n"]]:
    """Tell which points random steps of full length break."""
    broken = torch.zeros(len(target.x), dtype=torch.bool, device=target.x.device)
    for k in range(STEPS):
        step = uniform_on_sphere(target.x, norm, target.draws.child(k))
        broken |= target.classifier.wrong(
            target.classifier.clipped(target.x + target.budget * step), target.y
        )
        yield
    return broken
