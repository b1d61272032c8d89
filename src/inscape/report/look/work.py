"""The work that a look took, in a text from which it can be repeated.

``batch=64,robustness=3/all/2`` says that batches had 64 examples, and that robustness gave 3
answers for the network, all for the linear model and 2 for the first draw at initialisation;
everything that is not named runs to its end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inscape.report.look.schedule import LookTask

#: The models that are measured, in the order of their counts.
ROLES = ("network", "linear", "initialisation 0", "initialisation 1", "initialisation 2")
ALL = "all"


@dataclass(frozen=True)
class WorkCounts:
    """How many answers of each task, and how many examples of each part, a look takes.

    Attributes:
        answers: By instrument, the answers of each role; None for all there are.
        rows: By part of the look, a number of rows.
    """

    answers: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)

    def most(self, name: str, role: str) -> int | None:
        """Return how many answers to take, None for all."""
        counts, place = self.answers.get(name, ()), ROLES.index(role)
        return counts[place] if place < len(counts) else None

    def __str__(self) -> str:
        """Return the text that :func:`read_work` reads."""
        parts = [f"{name}={count}" for name, count in self.rows.items()]
        for name, counts in self.answers.items():
            words = [ALL if count is None else str(count) for count in counts]
            while words and words[-1] == ALL:
                words.pop()
            if words:
                parts.append(f"{name}={'/'.join(words)}")
        return ",".join(parts)


def work_of(tasks: Iterable[LookTask], rows: Mapping[str, int]) -> WorkCounts:
    """Return the work that was done."""
    answers: dict[str, list[int | None]] = {}
    for task in tasks:
        lost = isinstance(task.error, MemoryError)
        finished = task.complete or (task.error is not None and not lost)
        counts = answers.setdefault(task.name, [None] * len(ROLES))
        counts[ROLES.index(task.role)] = None if finished else task.taken
    return WorkCounts({name: tuple(counts) for name, counts in answers.items()}, dict(rows))


def read_work(text: str, *, names: Iterable[str]) -> WorkCounts:
    """Read the work of a look; names are those of instruments, others count examples.

    >>> work = read_work("batch=64,robustness=3/all/2", names=["robustness"])
    >>> work.rows, work.most("robustness", "linear"), work.most("robustness", "network"), str(work)
    ({'batch': 64}, None, 3, 'batch=64,robustness=3/all/2')
    """
    known, answers, rows = set(names), {}, {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        counts = [_count(word, text) for word in value.split("/")]
        if not equals or len(counts) > len(ROLES):
            raise _unreadable(text)
        if name in known:
            answers[name] = tuple(counts)
        elif len(counts) == 1 and counts[0] is not None and name.isidentifier():
            rows[name] = counts[0]
        else:
            raise _unreadable(text)
    return WorkCounts(answers, rows)


def _count(word: str, text: str) -> int | None:
    if word == ALL:
        return None
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise _unreadable(text)
    return int(word)


def _unreadable(text: str) -> ValueError:
    return ValueError(
        f"--work must be what a look printed behind repeat:, found {text!r}: copy that line, for "
        "example --work batch=64,robustness=3/all/2, or leave it out."
    )
