"""Rules on the answers of a network: accuracy, confidence, and classes that are never predicted."""

import math
from typing import TYPE_CHECKING

import torch

from inscape._core.result import Z95, wilson
from inscape.report.look.checkup import Checkup
from inscape.report.look.finding import FEWEST, Finding, are, class_name, score
from inscape.report.words import listed

if TYPE_CHECKING:
    from inscape.report.look.look import Look

#: Points of accuracy by which another scaling must be better to be the right one: more than any
#: harmless change of the inputs brings.
JUMP = 0.10
#: Points of accuracy between training and test examples that count as memorised, and by which the
#: mean probability may be above the accuracy: the error rate of a good classifier, doubled.
GAP = 0.05
#: Fraction of examples with a saturated probability that is worth a sentence: most of them.
SATURATED = 0.50
#: Examples of a class below which nothing is said of it alone.
OF_A_CLASS = 10


def scaling(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn if the accuracy jumps under another scaling of the inputs."""
    if not checkup.scalings or not math.isfinite(checkup.plain) or checkup.tried < FEWEST:
        return None
    name = max(checkup.scalings, key=lambda name: checkup.scalings[name])
    best = checkup.scalings[name]
    error = math.sqrt((best * (1 - best) + checkup.plain * (1 - checkup.plain)) / checkup.tried)
    if best - checkup.plain < max(JUMP, Z95 * error):
        return None
    tried = listed([other for other in checkup.scalings if other != name])
    return Finding(
        rule="scaling",
        severity=100,
        text=f"The inputs look scaled differently than in training: with {name} it is right on "
        f"{best:.1%} of {checkup.tried:,} examples instead of {checkup.plain:.1%}.",
        advice=(f"Look again with {name}" if name.startswith("--") else "Scale them as in training")
        + (f" (also tried: {tried})." if tried else "."),
    )


def chance(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of an accuracy no better than always predicting the commonest class."""
    known = _accuracy(look, checkup)
    if known is None or checkup.labels is None:
        return None
    accuracy, n, low, high = known
    commonest = checkup.commonest
    if math.isnan(commonest):
        commonest = float(checkup.labels.bincount().max()) / checkup.n
    if low > commonest:
        return None
    return Finding(
        rule="chance",
        severity=95,
        text=f"It is right on {accuracy:.1%} of {n:,} examples (95% interval {low:.1%} to "
        f"{high:.1%}), no better than always answering the commonest class ({commonest:.1%}).",
        advice="Check that the weights were loaded, how the inputs are scaled and how the classes "
        "are numbered.",
    )


def accuracy(look: "Look", checkup: Checkup) -> Finding | None:
    """Report the accuracy where there is no linear model to compare it with."""
    known = _accuracy(look, checkup)
    if known is None or checkup.linear is not None:
        return None
    fraction, n, low, high = known
    return Finding(
        rule="accuracy",
        severity=14,
        text=f"It is right on {fraction:.1%} of {n:,} examples (95% interval {low:.1%} to "
        f"{high:.1%}).",
    )


def _accuracy(look: "Look", checkup: Checkup) -> tuple[float, int, float, float] | None:
    """Return the accuracy on the most examples that there is one of, how many, its interval."""
    if checkup.right is None:
        return None
    fraction, n = (float(checkup.right.double().mean()) if checkup.n else 0.0), checkup.n
    rows = "test examples" if look.data.measured == "test examples" else "examples"
    own = score(look, rows)
    if own is not None and own.accuracy is not None and own.n > n:
        fraction, n = own.accuracy, own.n
    if n < FEWEST:
        return None
    low, high = wilson(torch.tensor(fraction, dtype=torch.float64), n)
    return fraction, n, float(low), float(high)


def never_predicted(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of classes that are among the labels and never predicted."""
    if checkup.labels is None or not checkup.n:
        return None
    counts = checkup.labels.bincount()
    expected = [k for k, count in enumerate(counts.tolist()) if count >= OF_A_CLASS]
    missing = [k for k in expected if not bool((checkup.answers == k).any())]
    if not missing:
        return None
    answers = torch.unique(checkup.answers).tolist()
    rows = sum(int(counts[k]) for k in missing)
    if len(answers) == 1:
        name = class_name(look, answers[0])
        text = f"It gives the same answer, class {name}, to all of {checkup.n:,} examples."
    else:
        names = [class_name(look, k) for k in missing[:5]]
        rest = len(missing) - len(names)
        names += [f"{rest} more" if rest > 1 else "one more"] if rest else []
        named = listed(names)
        text = f"{'Class' if len(missing) == 1 else 'Classes'} {named} {are(len(missing))} never "
        text += f"predicted, though {rows:,} of {checkup.n:,} examples belong there."
    return Finding(
        rule="never predicted",
        severity=80,
        text=text,
        advice="Look at how the classes are numbered, and at their balance in training.",
    )


def memorised(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of a gap between training and test accuracy."""
    train, test = (score(look, rows) for rows in ("training examples", "test examples"))
    if train is None or test is None or train.accuracy is None or test.accuracy is None:
        return None
    a, b = train.accuracy, test.accuracy
    error = math.sqrt(a * (1 - a) / train.n + b * (1 - b) / test.n)
    if a - b < max(GAP, Z95 * error):
        return None
    return Finding(
        rule="memorised",
        severity=50,
        text=f"It has memorised part of its training set: right on {a:.1%} of {train.n:,} training "
        f"examples, on {b:.1%} of {test.n:,} test examples.",
        advice="More data, weight decay or augmentation narrow the gap.",
    )


def overconfident(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of predicted probabilities that are higher than the accuracy."""
    if checkup.right is None or checkup.n < FEWEST:
        return None
    right = checkup.right.double()
    gap = checkup.confidence - right  # paired: what one example adds
    mean, error = float(gap.mean()), float(gap.std()) / math.sqrt(checkup.n)
    if mean < max(GAP, Z95 * error):
        return None
    return Finding(
        rule="overconfident",
        severity=48,
        text=f"It is overconfident: the mean probability of its answers is "
        f"{float(checkup.confidence.mean()):.1%}, and {float(right.mean()):.1%} of "
        f"{checkup.n:,} are right.",
        advice="Calibrate it (temperature scaling) before you use its probabilities.",
    )


def saturates(look: "Look", checkup: Checkup) -> Finding | None:
    """Warn of probabilities that are 0 or 1 to six digits."""
    if checkup.labels is None or checkup.saturated < SATURATED:
        return None
    wrong = 0 if checkup.right is None else int((checkup.certain & ~checkup.right).sum())
    also = f", and {wrong:,} of these answers {are(wrong)} wrong" if wrong else ""
    return Finding(
        rule="saturates",
        severity=40,
        text=f"Its probabilities are saturated: on {checkup.saturated:.0%} of {checkup.n:,} "
        f"examples the largest is 1 to six digits{also}.",
        advice="Do not read them as confidence; calibrate them, or measure the logits.",
    )


def worst_class(look: "Look", checkup: Checkup) -> Finding | None:
    """Report the class with the lowest accuracy, and the class that is predicted instead."""
    if checkup.labels is None or checkup.right is None or bool(checkup.right.all()):
        return None
    counts = checkup.labels.bincount().double()
    hits = checkup.labels[checkup.right].bincount(minlength=len(counts)).double()
    known = (counts >= OF_A_CLASS).nonzero().flatten().tolist()
    if len(known) < 2:
        return None
    worst = min(known, key=lambda k: float(hits[k] / counts[k]))
    if float(hits[worst]) == float(counts[worst]):
        return None
    instead = checkup.answers[(checkup.labels == worst) & ~checkup.right].bincount()
    other = int(instead.argmax())
    is_usual = int(instead[other]) > 1 and int((instead == instead[other]).sum()) == 1
    return Finding(
        rule="worst class",
        severity=18,
        text=f"It is worst on class {class_name(look, worst)}, right on "
        f"{float(hits[worst] / counts[worst]):.1%} of {int(counts[worst]):,} examples"
        + (f"; most often it answers {class_name(look, other)} instead." if is_usual else "."),
    )


def largest_output(look: "Look", checkup: Checkup) -> Finding | None:
    """Report the output that is most often the largest, for data without labels."""
    if look.data.task != "unlabelled" or checkup.outputs.shape[1] < 2 or checkup.n < FEWEST:
        return None
    count = checkup.outputs.shape[1]
    wins = checkup.outputs.argmax(1).bincount(minlength=count)
    most = int(wins.argmax())
    never = int((wins == 0).sum())
    rest = f"; {never} of its {count} outputs never {are(never)}" if never else ""
    return Finding(
        rule="largest output",
        severity=12,
        text=f"Output {most} is the largest on {int(wins[most]) / checkup.n:.0%} of {checkup.n:,} "
        f"examples{rest}.",
        section="slice",
    )
