"""The task of section 6.3: peaks in a row of pixels, and whether the middle lies between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.ensembles import fit_many
from inscape.lab.experiment import Settings
from inscape.papers.courtois._toys import LONG

PIXELS = 64
#: Number of the middle pixel, counted from 1 as in the text.
MIDDLE = 32
LEFT, RIGHT, ACROSS = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Case:
    """How a network is trained: peaks of its inputs, optimizer, step, samples and initial law."""

    peaks: int
    optimizer: str = "sgd"
    lr: float = 0.1
    n: int = 1024
    init: str = "pytorch"


#: The cases of figure 12. Adam takes its default step, ten times that, and the smaller one again.
CASES = {
    "two": Case(peaks=2),
    "two, factor 1/2": Case(peaks=2, lr=0.05),
    "two, glorot": Case(peaks=2, init="glorot"),
    "two, adam": Case(peaks=2, optimizer="adam", lr=1e-3),
    "four": Case(peaks=4),
    "four, adam": Case(peaks=4, optimizer="adam", lr=1e-3),
    "four, adam 0.01": Case(peaks=4, optimizer="adam", lr=1e-2),
    "six": Case(peaks=6),
    "six, adam": Case(peaks=6, optimizer="adam", lr=1e-3),
    "four, more data": Case(peaks=4, n=4096),
    "four, more data, adam": Case(peaks=4, optimizer="adam", lr=1e-3, n=4096),
}


def all_pairs() -> Int64[Tensor, "n 2"]:
    """Return the places of both peaks, counted from 1, for every input with two."""
    return torch.tensor(list(combinations(range(1, PIXELS + 1), 2)))


def labels(places: Int64[Tensor, "n peaks"]) -> Bool[Tensor, " n"]:
    """Tell whether the middle lies in one of the closed intervals between successive peaks.

    It does if a peak lies on it, or if the number of peaks before it is odd.
    """
    return (places == MIDDLE).any(1) | ((places < MIDDLE).sum(1) % 2 == 1)


def inputs(places: Int64[Tensor, "n peaks"]) -> Float[Tensor, "n 64"]:
    """Return rows of pixels, 1 at the peaks and 0 elsewhere."""
    return torch.zeros(len(places), PIXELS).scatter_(1, places - 1, 1.0)


def groups(places: Int64[Tensor, "n 2"]) -> Int64[Tensor, " n"]:
    """Return whether both peaks lie left of the middle or on it, right or on it, or across."""
    found = torch.full((len(places),), ACROSS)
    found[places[:, 1] <= MIDDLE] = LEFT
    found[places[:, 0] >= MIDDLE] = RIGHT
    return found


def draw(
    peaks: int, n: int, seed: int, n_test: int = 10_000
) -> tuple[Int64[Tensor, "n peaks"], Int64[Tensor, "m peaks"]]:
    """Draw places of training inputs, and of others that are not among them.

    With two peaks the others are all that are left.
    """
    rng = generator(seed)
    if peaks == 2:
        pairs = all_pairs()
        mixed = pairs[torch.randperm(len(pairs), generator=rng)]
        return mixed[:n], mixed[n:]
    rows = torch.rand(2 * (n + n_test), PIXELS, generator=rng).argsort(1)[:, :peaks]
    kinds = torch.unique(rows.sort(1).values + 1, dim=0)
    mixed = kinds[torch.randperm(len(kinds), generator=rng)]
    return mixed[:n], mixed[n : n + n_test]


def targets(places: Int64[Tensor, "n peaks"]) -> Float[Tensor, "n 1"]:
    """Return labels as numbers 0 and 1."""
    return labels(places).float()[:, None]


@torch.no_grad()
def accuracy(model: nn.Module, places: Int64[Tensor, "n peaks"]) -> float:
    """Return the share of inputs on whose side of one half the output is."""
    outputs = model(inputs(places).to(next(model.parameters()).dtype))[:, 0]
    return float(((outputs > 0.5) == labels(places)).double().mean())


def first_network(case: Case, seed: int, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """Return the network of section 5.1 for rows of pixels, as it begins."""
    from inscape.models import mlp

    return mlp(PIXELS, 10, 10, 1, activation="gelu", init=case.init, seed=seed, dtype=dtype)


def trained(
    cells: Sequence[Settings],
) -> Iterator[tuple[int, nn.Module, Int64[Tensor, "n peaks"], Int64[Tensor, "m peaks"]]]:
    """Train networks of cells that differ by their seeds alone; yield each when it is done."""
    case = CASES[cells[0]["case"]]
    n = min(case.n, cells[0]["most"])
    data = [draw(case.peaks, n, cell["seed"]) for cell in cells]
    members = fit_many(
        [first_network(case, cell["seed"]) for cell in cells],
        [inputs(train) for train, _ in data],
        [targets(train) for train, _ in data],
        optimizer=case.optimizer,
        lr=case.lr,
        epochs=cells[0]["steps"],
        backend="auto" if cells[0]["steps"] >= LONG else "loop",
    )
    for member in members:
        yield member.index, member.model, *data[member.index]
