"""Square attack: random search with windows; it needs no gradients and sees through masking."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from inscape._core import checks
from inscape._core.inference import no_grad
from inscape.robustness.attack import Perturbing, Stepwise, Target, Unbroken
from inscape.robustness.classifier import margin, misclassified
from inscape.robustness.norm_balls import Draws, broadcastable, size
from inscape.robustness.windows import (
    Grid,
    bump,
    corners,
    grid_of,
    mask,
    window_fraction,
    window_size,
)

#: Keeps quotients finite where a window is empty.
TINY = 1e-12


@dataclass(frozen=True, kw_only=True)
class Square(Stepwise):
    """Square attack (Andriushchenko et al. 2020): keep a random change if the margin shrinks.

    A change fills a window of the input: with one corner of the cube for each channel (linf), or
    with a bump whose length is taken from another window (l2). Windows begin with a fraction
    ``start`` of the input and shrink with the queries. Supports inputs of any shape: those that are
    no images are searched along a line.
    """

    queries: int = 5000
    restarts: int = 1
    start: float = 0.8

    follows_gradients = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(1, queries=self.queries, restarts=self.restarts)
        if not 0 < self.start <= 1:
            raise ValueError(
                f"start must be a fraction between 0 and 1, found {self.start}: use 0.8."
            )

    def passes(self, classes: int) -> float:
        """Return one pass for each query."""
        return float(self.restarts * self.queries)

    @no_grad
    def search(self, target: Target) -> Perturbing:
        """Return the first wrong point that was found for each, or the point itself."""
        unbroken = Unbroken(target)
        for restart in range(self.restarts):
            if len(unbroken):
                yield from self._search(unbroken, target.draws.child(restart))
        return unbroken.candidates

    def _search(self, unbroken: Unbroken, draws: Draws) -> Iterator[None]:
        grid = grid_of(tuple(unbroken.target.x.shape[1:]))
        first = _stripes if self.norm == "linf" else _hills
        now = unbroken.target
        draws = draws.of(unbroken.rows)
        at = self._reached(now, first(now.x, grid, draws) * now.budget)
        low = at.new_full((len(at),), torch.inf)
        for query in range(self.queries):
            tried = at if query == 0 else self._tried(now, at, grid, query, draws)
            scores = now.classifier.scores_without_gradient(tried)
            now.tick(float(len(tried)))
            yield
            margins = margin(scores, now.y)
            better = margins < low
            at = torch.where(broadcastable(better, at), tried, at)
            low = torch.where(better, margins, low)
            wrong = misclassified(scores, now.y)
            if bool(wrong.any()):
                at, low = unbroken.set_aside(
                    torch.where(broadcastable(wrong, at), tried, at), wrong, low
                )
                now, draws = unbroken.target, draws.of(~wrong)
                if len(unbroken) == 0:
                    return

    def _tried(
        self, target: Target, at: Float[Tensor, "n *d"], grid: Grid, query: int, draws: Draws
    ) -> Float[Tensor, "n *d"]:
        fraction = window_fraction(query, self.queries, self.start)
        change = (at - target.x).reshape(len(at), *grid)
        uniform = draws.uniform(at.new_empty(len(at), 5 + grid[0]))
        move = _recoloured if self.norm == "linf" else _shifted
        return self._reached(target, move(change, fraction, target.budget, uniform))

    def _reached(self, target: Target, change: Float[Tensor, "n c h w"]) -> Float[Tensor, "n *d"]:
        return target.within(target.x + change.reshape(target.x.shape), self.norm)


def _signs(uniform: Float[Tensor, "n *shape"]) -> Float[Tensor, "n *shape"]:
    """Return -1 or 1 for numbers between 0 and 1."""
    return (uniform - 0.5).sign()


def _stripes(x: Float[Tensor, "n *d"], grid: Grid, draws: Draws) -> Float[Tensor, "n c h w"]:
    """Return vertical stripes of random sign."""
    signs = _signs(draws.uniform(x.new_empty(len(x), grid[0], 1, grid[2])))
    return signs.expand(len(x), *grid)


def _hills(x: Float[Tensor, "n *d"], grid: Grid, draws: Draws) -> Float[Tensor, "n c h w"]:
    """Return bumps of random sign on tiles that cover each input, of norm one in all."""
    _, h, w = grid
    change = x.new_zeros(len(x), *grid)
    tall, wide = max(1, h // 5), max(1, w // 5)
    for start_row in range(0, h, tall):
        for start_column in range(0, w, wide):
            rows, columns = min(tall, h - start_row), min(wide, w - start_column)
            signs = _signs(draws.uniform(x.new_empty(len(x), grid[0], 1, 1)))
            tile = signs * bump((rows, columns), x)
            change[:, :, start_row : start_row + rows, start_column : start_column + columns] = tile
    return change / broadcastable(size(change, "l2").clamp_min(TINY), change)


def _grid(change: Float[Tensor, "n c h w"]) -> Grid:
    return change.shape[1], change.shape[2], change.shape[3]


def _recoloured(
    change: Float[Tensor, "n c h w"],
    fraction: float,
    budget: float,
    uniform: Float[Tensor, "n numbers"],
) -> Float[Tensor, "n c h w"]:
    """Give one window of each input one sign for each channel."""
    grid = _grid(change)
    extent = window_size(grid, fraction)
    where = mask(grid, corners(grid, extent, uniform[:, :2]), extent)
    return torch.where(where, budget * _signs(uniform[:, 5:, None, None]), change)


def _shifted(
    change: Float[Tensor, "n c h w"],
    fraction: float,
    budget: float,
    uniform: Float[Tensor, "n numbers"],
) -> Float[Tensor, "n c h w"]:
    """Move the length of one window, and what is left of the budget, into a bump in another."""
    grid = _grid(change)
    extent = window_size(grid, fraction, least=min(3, grid[2]))
    corner = corners(grid, extent, uniform[:, :2])
    into = mask(grid, corner, extent)
    out_of = mask(grid, corners(grid, extent, uniform[:, 2:4]), extent)
    unused = (budget**2 - size(change, "l2").square()).clamp_min(0) / grid[0]
    rest = change.masked_fill(into | out_of, 0.0)
    moved = (change - rest).square().sum((2, 3), keepdim=True)
    length = (moved + unused[:, None, None, None]).sqrt()
    new = _of_length_one(change.where(into, 0.0))
    new = new + _signs(uniform[:, 5:, None, None]) * _placed(grid, corner, extent, uniform[:, 4])
    return rest + length * _of_length_one(new.where(into, 0.0))


def _of_length_one(change: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
    """Return each channel scaled to norm one; 0 stays 0."""
    length: Tensor = torch.linalg.vector_norm(change, dim=(2, 3), keepdim=True)
    return change / length.clamp_min(TINY)


def _placed(
    grid: Grid,
    corner: tuple[Tensor, Tensor],
    extent: tuple[int, int],
    uniform: Float[Tensor, " n"],
) -> Float[Tensor, "n 1 h w"]:
    """Return a bump in the window of each input, lying or standing at random.

    Outside of the window its rim goes on.
    """
    hill = bump(extent, uniform)
    device = uniform.device
    row = (torch.arange(grid[1], device=device)[None] - corner[0][:, None]).clamp(0, extent[0] - 1)
    column = torch.arange(grid[2], device=device)[None] - corner[1][:, None]
    place = row[:, :, None], column.clamp(0, extent[1] - 1)[:, None, :]
    rotated = hill[place]
    if extent[0] == extent[1]:
        rotated = torch.where(uniform[:, None, None] < 0.5, rotated, hill.T[place])
    return rotated[:, None]
