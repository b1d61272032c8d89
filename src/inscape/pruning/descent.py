"""Unit by unit: take one out, fine-tune, look, and go on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import NotApplicable, checks, generator
from inscape._core.progress import progress
from inscape.errors import UnsupportedModelError
from inscape.pruning.curve import last_good
from inscape.pruning.cutting import cut_groups, flat_state, weights
from inscape.pruning.groups import Group, Kind, Structure, structure
from inscape.pruning.scoring import (
    Measured,
    Removals,
    Yardstick,
    checked,
    measured,
    tested,
    yardstick,
)
from inscape.pruning.tuning import Tune, check_tune, tuned
from inscape.training.losses import Loss

Points = tuple[Tensor, Tensor]
WORDS = {"node": "hidden unit of a dense layer", "channel": "channel of a convolution"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a descent was asked for."""

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
        """Refuse what cannot be."""
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
class Descent:
    """A network on its way down, with the units of the first one that it still has."""

    body: nn.Module
    found: Structure
    left: dict[str, list[int]]
    curve: list[Measured] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    widths: list[list[int]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    units: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)

    def note(self, found: Measured, removed: str) -> None:
        """Write down a step."""
        self.curve.append(found)
        self.sizes.append(weights(self.body))
        self.widths.append([len(units) for units in self.left.values()])
        self.units.append(tuple(tuple(units) for units in self.left.values()))
        self.removed.append(removed)

    def candidates(self, kind: Kind) -> list[tuple[Group, int]]:
        """Return every unit that may go: the last one of a layer may not."""
        groups = [group for group in self.found.of(kind) if group.units > 1]
        return [(group, unit) for group in groups for unit in range(group.units)]


def descend(
    model: nn.Module, x: Float[Tensor, "n *d"], y: Tensor, settings: Settings
) -> dict[str, Any] | NotApplicable:
    """Take units out one by one, and return the fields of a ``UnitCurve``."""
    settings.check()
    what = f"{settings.kind}_pruning"
    by = yardstick(y, checked(model, x, y), settings.loss)
    try:
        found = structure(model, x)
    except UnsupportedModelError as error:
        return NotApplicable(what=what, reason=str(error).rstrip("."))
    if reason := nothing(found, settings.kind):
        return NotApplicable(what=what, reason=reason)
    return _Run(model, found, x, by, settings).fields()


def nothing(found: Structure, kind: Kind) -> str:
    """Return why nothing can be taken out of a network, or nothing."""
    if any(group.units > 1 for group in found.of(kind)):
        return ""
    if found.of(kind):
        return f"nothing is left to prune: no layer has more than one {WORDS[kind]}"
    reasons = [f"{layer!r}: {why}" for layer, why in found.fixed.items()]
    return f"no {WORDS[kind]} can be cut ({'; '.join(reasons) or 'the model has no such layer'})"


class _Run:
    """One descent."""

    def __init__(
        self, model: nn.Module, found: Structure, x: Tensor, by: Yardstick, settings: Settings
    ) -> None:
        self.x, self.by, self.settings = x, by, settings
        self.groups = found.of(settings.kind)
        self.fixed = tuple(f"{layer!r}: {why}" for layer, why in found.fixed.items())
        left = {group.name: list(range(group.units)) for group in self.groups}
        self.now = Descent(model, found, left)
        self.draw = generator(settings.seed)
        picks = torch.randperm(len(x), generator=self.draw)[: settings.points].sort().values
        self.some = x[picks.to(x.device)]
        self.by_some = by.on(by.y[picks.to(x.device)])
        self.test_x, self.test_by = tested(model, x, by, settings.test)
        self.state = flat_state(model)

    def fields(self) -> dict[str, Any]:
        """Go down to the end and return the fields of the result."""
        self._note(self.now.body, "")
        most = sum(group.units - 1 for group in self.groups)
        total = min(most, self.settings.steps or most)
        with progress(total, label="pruning") as bar:
            for step in range(total):
                if not self._step(step) or self._fallen():
                    break
                bar.advance(note=f"{self.by.score} {self.now.curve[-1][1]:.3g}")
        losses, scores = torch.tensor(self.now.curve, dtype=torch.float64).T
        chosen = last_good(scores, self.settings.slack)
        return {
            "weights": torch.tensor(self.now.sizes),
            "losses": losses.contiguous(),
            "scores": scores.contiguous(),
            "score": self.by.score,
            "removed": tuple(self.now.removed),
            "chosen": chosen,
            "slack": float(self.settings.slack),
            "state": self.state,
            "seed": self.settings.seed,
            "layers": tuple(self.now.left),
            "widths": torch.tensor(self.now.widths),
            "units": self.now.units[chosen],
            "fixed": self.fixed,
        }

    def _step(self, step: int) -> bool:
        """Take one unit out; tell whether there was one."""
        cases = self.now.candidates(self.settings.kind)
        drawn = self.settings.choice == "drawn"
        taken = self._drawn(cases, step) if drawn else self._lowest(cases, step)
        if taken is None:
            return False
        (group, unit), body = taken
        original = self.now.left[group.name].pop(unit)
        self.now.body, self.now.found = body, structure(body, self.x)
        self._note(body, f"{group.name}: {original}")
        return True

    def _lowest(
        self, cases: Sequence[tuple[Group, int]], step: int
    ) -> tuple[tuple[Group, int], nn.Module]:
        """Take the unit without which the loss is lowest, then fine-tune."""
        removals = Removals(self.now.found, self.some, self.by_some)
        losses = [loss for loss, _ in removals.measured([(g, [unit]) for g, unit in cases])]
        case = cases[int(torch.tensor(losses, dtype=torch.float64).argmin())]
        return case, self._without(case, step)

    def _drawn(
        self, cases: Sequence[tuple[Group, int]], step: int
    ) -> tuple[tuple[Group, int], nn.Module] | None:
        """Fine-tune without each unit and draw among those that do, by the inverse of the loss."""
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
        least = self.now.curve[0][1] - self.settings.slack
        for case in cases:
            body = self._without(case, step)
            if measured(body, self.test_x, self.test_by)[1] >= least:
                yield case, body, measured(body, self.x, self.by)[0]

    def _without(self, case: tuple[Group, int], step: int) -> nn.Module:
        group, unit = case
        kept = [other for other in range(group.units) if other != unit]
        body = cut_groups(self.now.body, [(group, kept)])
        return tuned(body, self.settings.tune, self.x, self.by, self.settings.seed + step)

    def _note(self, body: nn.Module, removed: str) -> None:
        """Write down a step, and keep the weights while the network is good."""
        self.now.note(measured(body, self.test_x, self.test_by), removed)
        if self.now.curve[-1][1] >= self.now.curve[0][1] - self.settings.slack:
            self.state = flat_state(body)

    def _fallen(self) -> bool:
        until = self.settings.until
        return until is not None and self.now.curve[-1][1] < until
