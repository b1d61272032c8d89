"""Greedy pruning: remove one unit, fine-tune, measure, and repeat."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import NotApplicable, checks, generator
from inscape.errors import UnsupportedModelError
from inscape.pruning.curve import last_good
from inscape.pruning.fine_tuning import Tune, check_tune, tuned
from inscape.pruning.groups import Group, Kind, Structure, structure
from inscape.pruning.scoring import (
    Criterion,
    Measured,
    Removals,
    checked,
    criterion_for,
    measured,
    tested,
)
from inscape.pruning.unit_removal import cut_groups, flat_state, weights
from inscape.runtime.progress import progress
from inscape.training.losses import Loss

Points = tuple[Tensor, Tensor]
UNIT_NAMES = {"node": "hidden unit of a dense layer", "channel": "channel of a convolution"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of a greedy pruning."""

    kind: Kind
    choice: str
    tune: Tune
    loss: str | Loss | None
    test: Points | None
    points: int
    steps: int | None
    until: float | None
    slack: float
    seed: int

    def check(self) -> None:
        """Raise if settings are invalid."""
        checks.one_of(("lowest", "drawn"), choice=self.choice)
        checks.whole(1, points=self.points, steps=1 if self.steps is None else self.steps)
        checks.at_least(0, slack=self.slack)
        check_tune(self.tune)
        if self.choice == "drawn" and self.tune is None:
            raise ValueError(
                "choice='drawn' scores units by the loss after fine-tuning, found tune=None: "
                "pass tune, or choice='lowest'."
            )


@dataclass(eq=False)
class PruningState:
    """The pruned network so far, with its remaining units and its curve."""

    body: nn.Module
    groups: Structure
    remaining: dict[str, list[int]]
    curve: list[Measured] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    widths: list[list[int]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    units: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)

    def note(self, measured_step: Measured, removed: str) -> None:
        """Record a step."""
        self.curve.append(measured_step)
        self.sizes.append(weights(self.body))
        self.widths.append([len(units) for units in self.remaining.values()])
        self.units.append(tuple(tuple(units) for units in self.remaining.values()))
        self.removed.append(removed)

    def candidates(self, kind: Kind) -> list[tuple[Group, int]]:
        """Return every unit that may be removed: not the last one of a layer."""
        groups = [group for group in self.groups.of(kind) if group.units > 1]
        return [(group, unit) for group in groups for unit in range(group.units)]


def greedy_pruning(
    model: nn.Module, x: Float[Tensor, "n *d"], y: Tensor, settings: Settings
) -> dict[str, Any] | NotApplicable:
    """Remove units one by one, and return the fields of a ``UnitCurve``."""
    settings.check()
    name = f"{settings.kind}_pruning"
    criterion = criterion_for(y, checked(model, x, y), settings.loss)
    try:
        groups = structure(model, x)
    except UnsupportedModelError as error:
        return NotApplicable(what=name, reason=str(error).rstrip("."))
    if reason := reason_not_prunable(groups, settings.kind):
        return NotApplicable(what=name, reason=reason)
    return _Run(model, groups, x, criterion, settings).fields()


def reason_not_prunable(groups: Structure, kind: Kind) -> str:
    """Return why no unit can be removed, or an empty text."""
    if any(group.units > 1 for group in groups.of(kind)):
        return ""
    if groups.of(kind):
        return f"nothing is left to prune: no layer has more than one {UNIT_NAMES[kind]}"
    reasons = [f"{layer!r}: {why}" for layer, why in groups.fixed.items()]
    return (
        f"no {UNIT_NAMES[kind]} can be cut ({'; '.join(reasons) or 'the model has no such layer'})"
    )


class _Run:
    """A greedy pruning of one network."""

    def __init__(
        self,
        model: nn.Module,
        groups: Structure,
        x: Tensor,
        criterion: Criterion,
        settings: Settings,
    ) -> None:
        self.x, self.criterion, self.settings = x, criterion, settings
        self.groups = groups.of(settings.kind)
        self.fixed = tuple(f"{layer!r}: {why}" for layer, why in groups.fixed.items())
        remaining = {group.name: list(range(group.units)) for group in self.groups}
        self.now = PruningState(model, groups, remaining)
        self.draw = generator(settings.seed)
        picks = torch.randperm(len(x), generator=self.draw)[: settings.points].sort().values
        self.sample = x[picks.to(x.device)]
        self.criterion_of_sample = criterion.on(criterion.y[picks.to(x.device)])
        self.test_x, self.test_criterion = tested(model, x, criterion, settings.test)
        self.state = flat_state(model)

    def fields(self) -> dict[str, Any]:
        """Prune to the end and return the fields of the result."""
        self._note(self.now.body, "")
        removable = sum(group.units - 1 for group in self.groups)
        total = min(removable, self.settings.steps or removable)
        with progress(total, label="pruning") as bar:
            for step in range(total):
                if not self._step(step) or self._fallen():
                    break
                bar.advance(note=f"{self.criterion.score} {self.now.curve[-1][1]:.3g}")
        losses, scores = torch.tensor(self.now.curve, dtype=torch.float64).T
        chosen = last_good(scores, self.settings.slack)
        return {
            "weights": torch.tensor(self.now.sizes),
            "losses": losses.contiguous(),
            "scores": scores.contiguous(),
            "score": self.criterion.score,
            "removed": tuple(self.now.removed),
            "chosen": chosen,
            "slack": float(self.settings.slack),
            "state": self.state,
            "seed": self.settings.seed,
            "layers": tuple(self.now.remaining),
            "widths": torch.tensor(self.now.widths),
            "units": self.now.units[chosen],
            "fixed": self.fixed,
        }

    def _step(self, step: int) -> bool:
        """Remove one unit; tell whether there was one."""
        cases = self.now.candidates(self.settings.kind)
        is_drawn = self.settings.choice == "drawn"
        choice = self._drawn(cases, step) if is_drawn else self._lowest(cases, step)
        if choice is None:
            return False
        (group, unit), body = choice
        original = self.now.remaining[group.name].pop(unit)
        self.now.body, self.now.groups = body, structure(body, self.x)
        self._note(body, f"{group.name}: {original}")
        return True

    def _lowest(
        self, cases: Sequence[tuple[Group, int]], step: int
    ) -> tuple[tuple[Group, int], nn.Module]:
        """Remove the unit without which the loss is lowest, then fine-tune."""
        removals = Removals(self.now.groups, self.sample, self.criterion_of_sample)
        losses = [loss for loss, _ in removals.measured([(g, [unit]) for g, unit in cases])]
        case = cases[int(torch.tensor(losses, dtype=torch.float64).argmin())]
        return case, self._without(case, step)

    def _drawn(
        self, cases: Sequence[tuple[Group, int]], step: int
    ) -> tuple[tuple[Group, int], nn.Module] | None:
        """Fine-tune without each unit and draw a good network by its inverse loss."""
        good = list(self._good(cases, step))
        if not good:
            return None
        inverse = torch.tensor([1 / max(loss, 1e-12) for *_, loss in good], dtype=torch.float64)
        case, body, _ = good[int(torch.multinomial(inverse, 1, generator=self.draw))]
        return case, body

    def _good(
        self, cases: Sequence[tuple[Group, int]], step: int
    ) -> Iterator[tuple[tuple[Group, int], nn.Module, float]]:
        """Yield the networks that stay good without one unit."""
        threshold = self.now.curve[0][1] - self.settings.slack
        for case in cases:
            body = self._without(case, step)
            if measured(body, self.test_x, self.test_criterion)[1] >= threshold:
                yield case, body, measured(body, self.x, self.criterion)[0]

    def _without(self, case: tuple[Group, int], step: int) -> nn.Module:
        group, unit = case
        remaining = [other for other in range(group.units) if other != unit]
        body = cut_groups(self.now.body, [(group, remaining)])
        return tuned(body, self.settings.tune, self.x, self.criterion, self.settings.seed + step)

    def _note(self, body: nn.Module, removed: str) -> None:
        """Record a step, and the weights while the network is good."""
        self.now.note(measured(body, self.test_x, self.test_criterion), removed)
        if self.now.curve[-1][1] >= self.now.curve[0][1] - self.settings.slack:
            self.state = flat_state(body)

    def _fallen(self) -> bool:
        until = self.settings.until
        return until is not None and self.now.curve[-1][1] < until
