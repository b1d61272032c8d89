import json
import math
from dataclasses import dataclass, fields
from typing import ClassVar

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

import inscape
from cases import dense, points
from inscape._core import Result, Summary, instruments
from inscape.kernels import neighbours, tangent_kernel
from inscape.smoothness import gradient_norm


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sample(Result):
    nonfinite: ClassVar = {"radius": "infinite in a region without end"}

    norms: Float[Tensor, " points"]
    grid: Float[Tensor, "h w"] | None = None
    radius: float = 1.0
    ends: tuple[float, ...] = ()

    def rows(self):
        yield from ({"norm": norm} for norm in self.norms.tolist())


def test_the_first_row_that_is_not_finite_is_named():
    norms = torch.tensor([1.0, 2.0, math.nan, math.inf])
    text = r"Sample\.norms: .* at 2 of 4 points: leave those points out \(the first is 2, counted"
    with pytest.raises(ValueError, match=text):
        Sample(norms=norms)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_every_kind_of_field_is_looked_at(value):
    norms = torch.ones(3)
    grid = torch.ones(2, 2)
    grid[1, 0] = value
    with pytest.raises(ValueError, match=r"Sample\.grid: .* at 1 of 2 rows: .* first is 1"):
        Sample(norms=norms, grid=grid)
    with pytest.raises(ValueError, match=rf"Sample\.ends: .* found {value}: scale the data"):
        Sample(norms=norms, ends=(0.0, value))


def test_large_finite_numbers_whose_sum_overflows_are_accepted():
    huge = torch.full((4,), torch.finfo(torch.float32).max)
    assert torch.equal(Sample(norms=huge).norms, huge)


def test_infinity_is_accepted_where_it_has_a_meaning():
    assert Sample(norms=torch.ones(2), radius=math.inf).radius == math.inf


def test_a_saved_result_passes_the_same_check(tmp_path):
    path = gradient_norm(dense(3, 4, 1), points(5, 3)).save(tmp_path / "result.json")
    record = json.loads(path.read_text())
    record["fields"]["norms"]["values"][3] = {"float": "nan"}
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=r"GradientNorm\.norms: .* at 1 of 5 points: .* is 3"):
        inscape.load(path)


def test_declared_fields_exist_and_say_what_they_mean():
    instruments()
    for result in Result.types.values():
        assert set(result.nonfinite) <= {field.name for field in fields(result)}
        assert all(result.nonfinite.values())


def overflowing():
    """Return a network with finite outputs whose kernel overflows float32 at one point."""
    model = nn.Sequential(nn.Linear(2, 1, bias=False)).eval()
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1e20, 2e20], [1.0, 1.0]])
    with torch.no_grad():
        model[0].weight.fill_(1e-3)
    return model, x


def test_a_tangent_kernel_that_overflows_is_refused():
    with pytest.raises(ValueError, match=r"TangentKernel\.\w+: .* found NaN or Inf at"):
        tangent_kernel(*overflowing())
    with pytest.raises(ValueError, match="found NaN or Inf at 1 of 4 points"):
        tangent_kernel(*overflowing(), normalised=True)


def test_neighbours_are_not_ranked_by_numbers_that_overflow():
    model, x = overflowing()
    with pytest.raises(ValueError, match="found NaN or Inf at"):
        neighbours(model, x, count=2)
    with pytest.raises(ValueError, match="found NaN or Inf at"):
        neighbours(model, x, queries=x[:2], count=2)


def test_a_summary_is_a_number():
    with pytest.raises(ValueError, match=r"a number in its interval, found nan \(exact\)"):
        Summary(value=math.nan, kind="exact", basis="")
