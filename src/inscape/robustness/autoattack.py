"""AutoAttack: four attacks one after the other, each on the points that the last left standing."""

from dataclasses import dataclass

from inscape._core import checks
from inscape.robustness.apgd import Apgd
from inscape.robustness.attack import Attack, Perturbing, Stepwise, Target, Unbroken
from inscape.robustness.fab import Fab
from inscape.robustness.fgsm import Fgsm
from inscape.robustness.noise import Noise
from inscape.robustness.norm_balls import Norm, size, slack
from inscape.robustness.pgd import Pgd
from inscape.robustness.square import Square

#: The parts of AutoAttack, by their names.
PARTS = ("apgd-ce", "apgd-dlr", "apgd-t", "fab", "fab-t", "square")
STANDARD = ("apgd-ce", "apgd-t", "fab-t", "square")
NAMES = ("noise", "fgsm", "fgsm-sign", "pgd", *PARTS, "autoattack")


@dataclass(frozen=True, kw_only=True)
class AutoAttack(Stepwise):
    """The standard ensemble of Croce and Hein (2020), with nothing to tune.

    APGD on the cross-entropy, APGD towards nine other classes, FAB towards the same, and the Square
    attack. It takes any number of classes from two up: where there are fewer than four, the
    targeted loss divides by what scores there are, and with two classes not at all.

    Args:
        norm: ``"l2"`` or ``"linf"``.
        parts: Names of the attacks, in their order.
        steps: Steps of APGD and FAB.
        queries: Queries of the Square attack.
    """

    parts: tuple[str, ...] = STANDARD
    steps: int = 100
    queries: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(1, parts=len(self.parts))
        for part in self.parts:
            checks.one_of(PARTS, parts=part)
        self.attacks()

    def attacks(self) -> tuple[Attack, ...]:
        """Return the parts as attacks."""
        attacks: dict[str, Attack] = {
            "apgd-ce": Apgd(norm=self.norm, loss="ce", steps=self.steps),
            "apgd-dlr": Apgd(norm=self.norm, loss="dlr", steps=self.steps),
            "apgd-t": Apgd(norm=self.norm, loss="targeted", steps=self.steps),
            "fab": Fab(norm=self.norm, steps=self.steps),
            "fab-t": Fab(norm=self.norm, targeted=True, steps=self.steps),
            "square": Square(norm=self.norm, queries=self.queries),
        }
        return tuple(attacks[part] for part in self.parts)

    def passes(self, classes: int) -> float:
        """Return the passes of all parts."""
        return sum(attack.passes(classes) for attack in self.attacks())

    def search(self, target: Target) -> Perturbing:
        """Return the first point within the budget that some part found, or the nearest beyond."""
        unbroken = Unbroken(target)
        for number, attack in enumerate(self.attacks()):
            current = unbroken.target
            if len(unbroken) == 0:
                break
            subtarget = Target(
                classifier=current.classifier,
                x=current.x,
                y=current.y,
                budget=current.budget,
                draws=current.draws.child(number),
                tick=current.tick,
            )
            candidates = yield from attack.search(subtarget)
            wrong = current.classifier.wrong(candidates, current.y)
            unbroken.candidates[unbroken.rows[wrong]] = candidates[
                wrong
            ]  # FAB's may lie beyond the budget
            most = current.budget + slack(current.x, current.budget, self.norm)
            unbroken.set_aside(
                candidates, wrong & (size(candidates - current.x, self.norm) <= most)
            )
        return unbroken.candidates


def attack_named(name: str, norm: Norm) -> Attack:
    """Return the attack of that name, with its usual settings."""
    checks.one_of(NAMES, attack=name)
    checks.one_of(("l2", "linf"), norm=norm)
    if name == "fgsm-sign":
        return Fgsm(norm=norm, reading="sign")
    if name in PARTS:
        return AutoAttack(norm=norm, parts=(name,)).attacks()[0]
    kinds: dict[str, type[Attack]] = {
        "noise": Noise,
        "fgsm": Fgsm,
        "pgd": Pgd,
        "autoattack": AutoAttack,
    }
    return kinds[name](norm=norm)
