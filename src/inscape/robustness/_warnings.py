"""Whether an attack can be believed: signs that it was weak rather than the network strong."""

from collections.abc import Callable, Generator

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from inscape.functional.final_activation import lie_between_0_and_1
from inscape.robustness._search import Found
from inscape.robustness.attack import Attack, Target
from inscape.robustness.autoattack import AutoAttack
from inscape.robustness.classifier import AttackedClassifier, cross_entropy
from inscape.robustness.fgsm import Fgsm
from inscape.robustness.noise import Noise
from inscape.robustness.norm_balls import Draws, block_size, on_edge, size
from inscape.robustness.square import Square

#: Random steps that are held against the attack, and queries of a short random search.
STEPS, QUERIES = 10, 50
#: With fewer numbers in an input than this, its windows are too few for Square to search well: with
#: 2 or 3 it left up to 16% more points standing than PGD on small tanh networks, with 8 to 32 4%.
NARROW = 8
#: The share of the points that may fall to them and not to the attack before it is said.
ALLOWED = 0.02

#: Steps, one for each batch of the model, and at the end the sentences.
Signs = Generator[None, None, list[str]]


def warnings(
    attack: Attack,
    classifier: AttackedClassifier,
    x: Float[Tensor, "n *d"],
    y: Int64[Tensor, " n"],
    found: Found,
    budget: float,
    *,
    seed: int,
) -> Generator[None, None, tuple[str, ...]]:
    """Return a sentence for each sign that the attack says too little; a step for each batch."""
    outputs = yield from _batched(classifier.outputs, classifier, x)
    signs: list[str] = []
    if outputs.shape[1] == 1 and not classifier.halfway and lie_between_0_and_1(outputs, y):
        signs.append(
            "All outputs lie between 0 and 1 as probabilities do, but are read as logits, positive "
            "for class 1: let the model end in torch.sigmoid, or return the logit."
        )
    signs += yield from _no_numbers(classifier, found)
    if isinstance(attack, Noise):
        return tuple(signs)
    signs += _undone(found)
    if classifier.halfway or _probabilities(outputs):
        signs.append(
            "The outputs are probabilities, which flatten gradients: attack the scores before the "
            f"{'sigmoid' if classifier.halfway else 'softmax'}."
        )
    if isinstance(attack, Square) and x[0].numel() < NARROW and bool((found.right[-1] > 0).any()):
        signs.append(
            f"Inputs of {x[0].numel()} numbers have few windows for 'square' to search, so that it "
            "may leave points standing that others break: hold it against 'autoattack'."
        )
    if attack.follows_gradients:
        signs += yield from _blind(attack, classifier, x[found.lengths > 0], y[found.lengths > 0])
        signs += yield from _beaten(attack, classifier, x, y, found, budget, seed=seed)
    return tuple(signs)


def _batched(
    call: Callable[[Tensor], Tensor], classifier: AttackedClassifier, x: Float[Tensor, "n *d"]
) -> Generator[None, None, Float[Tensor, "n c"]]:
    """Return what a call of the model gives for all points, with a step for each batch."""
    parts = [call(x[:0])] if len(x) == 0 else []
    for piece in classifier.pieces(torch.arange(len(x), device=x.device)):
        parts.append(call(x[piece]))
        yield
    return torch.cat(parts)


def _undone(found: Found) -> list[str]:
    """Say how many points were right again at a larger budget."""
    again = (found.right[1:] > found.right[:-1]).any(0)
    if not bool(again.any()):
        return []
    return [
        f"{int(again.sum())} points that broke at a smaller budget are right again at a larger "
        "one: the attack overshoots; carry=True keeps what it found."
    ]


def _no_numbers(classifier: AttackedClassifier, found: Found) -> Signs:
    """Say how many points broke because scores are not numbers there."""
    scores = yield from _batched(
        classifier.judged, classifier, found.moved[found.lengths.isfinite()]
    )
    lost = int(scores.isnan().any(1).sum())
    if not lost:
        return []
    return [
        f"Scores are not numbers at {lost} points that are broken, which counts as wrong: see "
        "whether the model overflows."
    ]


def _probabilities(outputs: Float[Tensor, "n c"]) -> bool:
    if outputs.shape[1] == 1:
        return False
    sums = outputs.sum(1)
    return bool((outputs >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)


def _blind(
    attack: Attack, classifier: AttackedClassifier, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"]
) -> Signs:
    """Say at how many points the gradient is zero or not a number."""
    blind = 0
    for piece in classifier.pieces(torch.arange(len(x), device=x.device)):
        blind += int((~(_slope(classifier, x[piece], y[piece]) > 0)).sum())
        yield
    if not blind:
        return []
    return [
        f"The gradient is zero or not finite at {blind} of {len(x)} points that are right: "
        f"gradient masking; {_advice(attack)}."
    ]


def _slope(
    classifier: AttackedClassifier, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """Return the largest slope of the cross-entropy at each point; 0 where it is not finite."""
    _, _, gradient = classifier.climb(x, y, cross_entropy)
    finite = gradient.isfinite().flatten(1).all(1)
    return torch.where(finite, size(gradient, "linf"), 0.0)


def _beaten(
    attack: Attack,
    classifier: AttackedClassifier,
    x: Float[Tensor, "n *d"],
    y: Int64[Tensor, " n"],
    found: Found,
    budget: float,
    *,
    seed: int,
) -> Signs:
    """Say how many of the points that stand fall to random steps and to a short random search."""
    one_step = isinstance(attack, Fgsm)  # which a search of many queries may well outdo
    left = (found.right[-1] > 0).nonzero()[:, 0]
    fell = torch.zeros(len(x), dtype=torch.bool, device=x.device)
    by_steps = fell.clone()
    search = Square(norm=attack.norm, queries=QUERIES)
    for piece in classifier.pieces(left):
        draws = Draws(piece.cpu(), block_size(x), seed, 1_000_000)
        target = Target(classifier=classifier, x=x[piece], y=y[piece], budget=budget, draws=draws)
        by_steps[piece] = yield from _random(target, attack.norm)
        fell[piece] = by_steps[piece]
        if not one_step:
            moved = yield from search.search(target)
            fell[piece] |= classifier.wrong(moved, y[piece])
    broken = int(found.start.sum() - found.right[-1].sum())
    if int(by_steps.sum()) > max(1, ALLOWED * len(x), broken):
        return [
            f"Random steps as long as the largest budget break {int(by_steps.sum())} points that "
            f"{attack.name} does not, and it breaks {broken}: gradient masking; {_advice(attack)}."
        ]
    if int(fell.sum()) <= max(1, ALLOWED * len(x)):
        return []
    who = "Random steps" if one_step else "Random steps or a short random search"
    why = "one step goes astray" if one_step else "it ended in local optima"
    return [
        f"{who} within the largest budget broke {int(fell.sum())} points that {attack.name} "
        f"did not: {why}, or gradients are masked; {_advice(attack)}."
    ]


def _advice(attack: Attack) -> str:
    """Return what to try after an attack that says too little: nothing that it has just done."""
    if isinstance(attack, AutoAttack) and "square" in attack.parts:
        return "random search is among what it tried; let it try more, e.g. queries=20000"
    return "try 'autoattack', or 'square', which needs no gradients"


def _random(target: Target, norm: str) -> Generator[None, None, Bool[Tensor, " n"]]:
    """Tell which points fall to random steps of full length."""
    fell = torch.zeros(len(target.x), dtype=torch.bool, device=target.x.device)
    for k in range(STEPS):
        step = on_edge(target.x, norm, target.draws.child(k))
        fell |= target.classifier.wrong(
            target.classifier.boxed(target.x + target.budget * step), target.y
        )
        yield
    return fell
