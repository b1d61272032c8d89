"""Adversarial training: the loss at points perturbed by PGD."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core.checks import Function
from inscape.controls._checks import fraction, not_negative
from inscape.controls._modes import in_eval_mode
from inscape.robustness import Pgd, Target
from inscape.robustness.classifier import (
    AttackedClassifier,
    Bounds,
    classes_of,
    classifier_of,
    cross_entropy,
)
from inscape.robustness.norm_balls import Draws, Norm, uniform_in_ball
from inscape.robustness.pgd import pgd_step
from inscape.training import Fit, Loss, fit
from inscape.training.losses import loss_function
from inscape.training.observer import Watcher
from inscape.training.settings import FitSettings
from inscape.training.update import Update


def adversarial_training(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor,
    *,
    budget: float,
    norm: Norm = "l2",
    steps: int = 7,
    step_size: float | None = None,
    bounds: Bounds = None,
    clean: float = 0.0,
    loss: str | Loss = "cross_entropy",
    seed: int = 0,
    **options: Any,
) -> Fit:
    r"""Train ``model`` in place, as ``fit`` does, on points perturbed by PGD.

    .. math:: \min_\theta \; \mathbb{E} \bigl[ (1 - \lambda) \, \ell(f_\theta(x + \delta^*), y)
              + \lambda \, \ell(f_\theta(x), y) \bigr], \quad
              \delta^* \approx \arg\max_{\lVert \delta \rVert \le c} \ell(f_\theta(x + \delta), y)

    Madry et al. (2018). Each batch is attacked by the current network in eval mode. Batch norm's
    statistics are those of perturbed points; with ``clean`` above 0 clean ones are a separate
    batch. Costs about ``steps + 1`` trainings. ``stop_on="evaluated"`` evaluates clean points.

    Args:
        model: Classifier to be trained: one score for each class, or one output.
        x: Points.
        y: Their class numbers; with ``"bce_logits"`` of any dtype and shape, else as for the loss.
        budget: Largest length of a step; 0 trains as usual.
        norm: ``"l2"`` or ``"linf"``.
        steps: Steps of PGD.
        step_size: Their length as a fraction of the budget; None is 2.5 / steps.
        bounds: Lowest and highest value of an input; None for no bounds.
        clean: Weight of the loss at clean points.
        loss: As in ``fit``: one for class numbers, such as ``"cross_entropy"``.
        seed: Seed of shuffling, of dropout and of PGD's starts.
        **options: Other options of ``fit``.

    >>> x = torch.tensor([[-1.0], [-0.5], [0.5], [1.0]])
    >>> run = adversarial_training(
    ...     nn.Linear(1, 2), x, (x[:, 0] > 0).long(), budget=0.2, lr=1.0, epochs=5
    ... )
    >>> run.epochs
    5
    """
    budget, clean = not_negative(budget, "budget"), fraction(clean, "clean")
    _check_labels(y)
    attack = Pgd(norm=norm, steps=steps, step_size=step_size)
    with in_eval_mode(model):
        classifier = classifier_of(model, x, bounds=bounds, memory=2**62)
        classes_of(y, x, classifier.classes)
        y = _targets(y, loss, model(x[:1]))
    moved = _AdversarialLoss(
        model, classifier, attack, budget, loss_function(loss), clean, seed=seed
    )
    moved.watch = options.pop("watch", None)
    with moved.in_place_of_the_model():
        return fit(model, x, y, loss=moved, seed=seed, watch=moved, **options)


def _check_labels(y: Tensor | None) -> None:
    if y is None:
        raise ValueError(
            "adversarial_training needs the true class of each point, found y=None: pass the "
            "labels of the data, as class numbers."
        )


def _targets(y: Tensor, loss: str | Loss, output: Tensor) -> Tensor:
    """Return class numbers in the dtype and shape that a loss needs."""
    if loss == "cross_entropy" and y.is_floating_point():
        raise TypeError(
            f"adversarial_training with the loss 'cross_entropy' takes class numbers as int64, "
            f"found {y.dtype}: use y.long()."
        )
    if loss == "bce_logits" and output.numel() == 1:
        return y.to(output.dtype).reshape(len(y), *output.shape[1:])
    return y


class _AdversarialLoss:
    """A loss at the perturbed batch, which replaces the model's forward pass.

    The first call of the model in each update of a training is for the loss: it only keeps what it
    was given, unless the loss at unmoved points counts. Later ones, by penalties, are real. As a
    watcher it is told of the end of each update.
    """

    def __init__(
        self,
        model: nn.Module,
        classifier: AttackedClassifier,
        attack: Pgd,
        budget: float,
        loss: Loss,
        clean: float,
        *,
        seed: int,
    ) -> None:
        self.model, self.classifier, self.attack = model, classifier, attack
        self.budget, self.loss, self.clean, self.seed = budget, loss, clean, seed
        self.__name__ = f"adversarial({getattr(loss, '__name__', 'loss')})"
        self.batches = 0
        self.watch: Watcher | None = None
        self._forward: Function = model.forward
        self._batch: Tensor | None = None

    def begin(self, update: Update, x: Tensor, y: Tensor, settings: FitSettings) -> None:
        """Let another watcher look at the training before its first update."""
        if self.watch:
            self.watch.begin(update, x, y, settings)

    def step(self, rows: slice | Tensor, rate: float) -> None:
        """Let another watcher look, and wait for the next batch."""
        if self.watch:
            self.watch.step(rows, rate)
        self._batch = None

    @contextmanager
    def in_place_of_the_model(self) -> Iterator[None]:
        """Take the calls of the model, while the block runs."""
        own = vars(self.model)
        before = own.get("forward")
        own["forward"] = self._called
        try:
            yield
        finally:
            del own["forward"]
            if before is not None:
                own["forward"] = before

    def _called(self, x: Tensor) -> Tensor:
        if self._batch is not None or not self.model.training or self.budget == 0:
            return self._forward(x)
        self._batch = x.detach().clone()
        return self._forward(x) if self.clean else x

    def __call__(self, prediction: Tensor, target: Tensor) -> Tensor:
        if not self.model.training or self.budget == 0 or self._batch is None:
            return self.loss(prediction, target)
        at = self._moved(self._batch, target.reshape(len(target), -1)[:, 0].long())
        hard = self.loss(self.model(at), target)
        if not self.clean:
            return hard
        return (1 - self.clean) * hard + self.clean * self.loss(prediction, target)

    def _moved(self, x: Float[Tensor, "n *d"], y: Tensor) -> Float[Tensor, "n *d"]:
        """Return where PGD moves a batch after all its steps, whether it breaks or not."""
        draws = Draws(torch.arange(len(x)), len(x), self.seed, self.batches)
        self.batches += 1
        target = Target(classifier=self.classifier, x=x, y=y, budget=self.budget, draws=draws)
        size, rate = self.attack.step_size, 2.5 / self.attack.steps
        with in_eval_mode(self.model):
            start = uniform_in_ball(x, self.attack.norm, draws)
            at = self.classifier.clipped(x + self.budget * start)
            for _ in range(self.attack.steps):
                _, _, gradient = self.classifier.loss_gradient(at, y, cross_entropy)
                at = pgd_step(
                    target, at, gradient, rate if size is None else size, self.attack.norm
                )
        return at
