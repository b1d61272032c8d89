"""The tangent kernel against gradients written out one by one, in every form that it takes."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import dense, points
from inscape._core import NotApplicable
from inscape.errors import BudgetError
from inscape.kernels import tangent_kernel


def jacobian(model, x):
    """Return the gradient of every output by all trainable parameters, one call for each."""
    weights = [p for p in model.parameters() if p.requires_grad]
    found = []
    for point in x:
        y = model(point[None].clone()).reshape(-1)
        rows = [torch.autograd.grad(v, weights, retain_graph=True, allow_unused=True) for v in y]
        found.append(
            torch.stack(
                [
                    torch.cat(
                        [
                            (torch.zeros_like(p) if g is None else g).flatten()
                            for g, p in zip(row, weights, strict=True)
                        ]
                    )
                    for row in rows
                ]
            )
        )
    return torch.stack(found)


def brute(model, x, z):
    return torch.einsum("nip,mjp->nmij", jacobian(model, x), jacobian(model, z))


class Many(nn.Module):
    """Shared weights, in-place operations, attention, groups, and a parameter used as it is."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.conv = nn.Conv1d(5, 5, 3, padding=1, groups=5)
        self.last = nn.Parameter(torch.randn(4, 3))

    def forward(self, x):
        x = self.shared(x).relu_()
        x = self.norm(self.shared(x) + x)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return (self.conv(x) @ self.last).mean(1) + self.shared.weight.sum()


class Twice(nn.Module):
    """One layer at two places and nowhere else."""

    def __init__(self):
        super().__init__()
        self.shared, self.last = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.shared(self.shared(x).tanh()).tanh())


class Words(nn.Module):
    """A table of rows, numbered by rounded inputs."""

    def __init__(self):
        super().__init__()
        self.table, self.last = nn.Embedding(5, 3), nn.Linear(3, 2)

    def forward(self, x):
        number = x.detach().abs().round().long().clamp(max=4)
        return self.last(self.table(number)).tanh().sum(1) * x.mean(1, keepdim=True)


class Overwrites(nn.Module):
    """Writes over what a layer has taken, so that no gradient of its weights can be had."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.first(x)
        y = self.second(hidden)
        return y + hidden.mul_(3).sum(1, keepdim=True)


def images():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1, stride=2),
        nn.ReLU(inplace=True),
        nn.BatchNorm2d(4),
        nn.Conv2d(4, 6, 3, groups=2, dilation=2),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 3),
    )
    nn.init.normal_(model[2].weight)
    nn.init.uniform_(model[2].running_var, 0.5, 2)
    return model


MODELS = {
    "dense": (lambda: dense(5, 7, 6, 3, act=nn.Tanh), (5,)),
    "no biases": (lambda: nn.Sequential(nn.Linear(5, 4, bias=False), nn.ReLU()), (5,)),
    "tokens": (lambda: nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 2)), (3, 4)),
    "images": (images, (3, 13, 13)),
    "many": (Many, (5, 4)),
    "twice": (Twice, (8,)),
    "words": (Words, (6,)),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (4,)),
    "1-d images": (lambda: nn.Sequential(nn.Conv1d(2, 3, 3, 2, 1), nn.Flatten()), (2, 7)),
}


#: Those with so many outputs that two points have blocks enough.
LONG = ("tokens", "many", "1-d images")


def case(name):
    build, shape = MODELS[name]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = build().double().eval()
    return model, points(6, *shape), points(4, *shape, seed=7)


@pytest.mark.parametrize("memory", [2**27, None], ids=["at once", "in blocks"])
@pytest.mark.parametrize("name", MODELS)
def test_equals_gradients_written_out(name, memory):
    model, x, z = case(name)
    if memory is None:  # every pair of rows in a block of its own
        few = 2 if name in LONG else 3
        x, z = x[:few], z[: few - 1]
        with pytest.raises(BudgetError, match="raise memory to at least that") as error:
            tangent_kernel(model, x, memory=1)
        memory = int(str(error.value).split()[6].replace(",", ""))
    own, cross = brute(model, x, x), brute(model, x, z)
    found = tangent_kernel(model, x, memory=memory)
    assert_close(found.kernel, own)
    assert found.symmetric
    assert_close(tangent_kernel(model, x, others=z, memory=memory).kernel, cross)
    equal = own.diagonal(dim1=2, dim2=3)
    assert_close(tangent_kernel(model, x, outputs="diagonal", memory=memory).kernel, equal)
    assert_close(tangent_kernel(model, x, outputs="trace", memory=memory).kernel, equal.sum(2))
    assert_close(found.trace, equal.sum(2))
    assert_close(found.gradient_norms, equal.sum(2).diagonal().sqrt())


@pytest.mark.parametrize("name", ["dense", "images", "words"])
def test_normalised_kernel_is_a_cosine(name):
    model, x, z = case(name)
    one, two = jacobian(model, x), jacobian(model, z)
    unit = [torch.nn.functional.normalize(j, dim=2) for j in (one, two)]
    full = torch.einsum("nip,mjp->nmij", *unit)
    assert_close(tangent_kernel(model, x, others=z, normalised=True).kernel, full)
    whole = [torch.nn.functional.normalize(j.flatten(1), dim=1) for j in (one, two)]
    trace = tangent_kernel(model, x, others=z, normalised=True, outputs="trace").kernel
    assert_close(trace, whole[0] @ whole[1].T)
    own = tangent_kernel(model, x, normalised=True, outputs="diagonal").kernel
    assert_close(own.diagonal().T, torch.ones_like(one[:, :, 0]))


def test_each_parameter_says_how_it_was_taken():
    model, x, _ = case("many")
    told = dict(tangent_kernel(model, x).layers)
    assert set(told) == dict(model.named_parameters()).keys()
    assert told["shared.weight"] == told["last"] == "dense gradient"
    model, x, _ = case("dense")
    assert set(dict(tangent_kernel(model, x).layers).values()) == {"outer product"}
    model, x, _ = case("twice")
    assert dict(tangent_kernel(model, x).layers)["shared.bias"] == "sum over positions"


def test_order_of_hidden_units_and_of_points_does_not_matter():
    model, x, _ = case("dense")
    other = copy.deepcopy(model)
    order = torch.tensor([3, 1, 0, 6, 5, 2, 4])
    with torch.no_grad():
        other[0].weight.copy_(model[0].weight[order])
        other[0].bias.copy_(model[0].bias[order])
        other[2].weight.copy_(model[2].weight[:, order])
    found = tangent_kernel(model, x).kernel
    assert_close(tangent_kernel(other, x).kernel, found)
    assert_close(tangent_kernel(model, x.flip(0)).kernel, found.flip(0, 1))


def test_kernel_is_how_far_a_step_moves_the_outputs():
    model, x, z = case("dense")
    kernel = tangent_kernel(model, z, others=x[:1]).kernel[:, 0]
    step = 1e-6
    moved = copy.deepcopy(model)
    gradient = torch.autograd.grad(moved(x[:1])[0, 1], list(moved.parameters()))
    with torch.no_grad():
        for p, g in zip(moved.parameters(), gradient, strict=True):
            p += step * g
    slope = (moved(z) - model(z)) / step
    assert_close(slope.detach(), kernel[:, :, 1], rtol=1e-4, atol=1e-4)  # forward difference


def test_frozen_parameters_are_named_and_do_not_count():
    model, x, _ = case("dense")
    model[0].weight.requires_grad_(requires_grad=False)
    found = tangent_kernel(model, x)
    assert found.frozen == ("0.weight",)
    assert_close(found.kernel, brute(model, x, x))
    for p in model.parameters():
        p.requires_grad_(requires_grad=False)
    assert isinstance(tangent_kernel(model, x), NotApplicable)


def test_one_point_and_points_twice():
    model, x, _ = case("dense")
    assert_close(tangent_kernel(model, x[:1]).kernel, brute(model, x[:1], x[:1]))
    twice = tangent_kernel(model, x[[0, 0]]).kernel
    assert_close(twice[0, 0], twice[0, 1])


def test_a_point_without_gradient_has_cosine_zero():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU()).double().eval()
    with torch.no_grad():
        model[0].weight.fill_(1.0)
    x = torch.tensor([[-1.0], [2.0]], dtype=torch.float64)
    found = tangent_kernel(model, x, normalised=True).kernel.squeeze()
    assert_close(found, torch.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=torch.float64))


def test_float32_agrees_with_float64():
    model, x, _ = case("images")
    exact = tangent_kernel(model, x).kernel
    found = tangent_kernel(model.float(), x.float()).kernel.double()
    assert float((found - exact).abs().max() / exact.abs().max()) < 1e-5  # eight digits at best


def test_other_shapes_and_words_are_refused(unchecked):
    model, x, z = case("dense")
    with pytest.raises(ValueError, match="both sets of points must have one shape and dtype"):
        tangent_kernel(model, x, others=z[:, :3])
    with pytest.raises(ValueError, match="outputs must be one of 'full', 'diagonal', 'trace'"):
        tangent_kernel(model, x, outputs="all")


def test_batch_statistics_are_refused():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, track_running_stats=False)).double()
    with pytest.raises(ValueError, match="must act on each sample independently"):
        tangent_kernel(model.eval(), points(4, 3))


def test_a_model_that_writes_over_what_a_layer_took_is_refused():
    with pytest.raises(
        ValueError, match=r"must not modify the input of 'second.weight', found it changed"
    ):
        tangent_kernel(Overwrites().double().eval(), points(3, 4))


class Patches(nn.Module):
    """A convolution, and a linear map used at all its places, at some and at one."""

    def __init__(self):
        super().__init__()
        self.cut, self.map = nn.Conv2d(1, 4, 2, 2), nn.Linear(4, 4)
        self.head = nn.Linear(4, 3, bias=False)

    def forward(self, x):
        y = self.cut(x).flatten(2).transpose(1, 2)
        y = self.map(y).tanh() + y
        y = self.map(y[:, 1:3]).tanh()
        return self.head(self.map(y[:, 0]).tanh() + y.narrow(1, 1, 1)[:, 0])


@pytest.mark.parametrize("outputs", ["full", "diagonal", "trace"])
def test_a_map_at_many_places_after_a_convolution_has_its_gradients(outputs):
    torch.manual_seed(0)
    model = Patches().double().eval()
    x = torch.randn(5, 1, 6, 6, dtype=torch.float64)
    z = torch.randn(4, 1, 6, 6, dtype=torch.float64)
    for others in (None, z):
        expected = brute(model, x, x if others is None else z)
        if outputs != "full":
            expected = expected.diagonal(dim1=2, dim2=3)
        if outputs == "trace":
            expected = expected.sum(2)
        found = tangent_kernel(model, x, others=others, outputs=outputs)
        assert_close(found.kernel, expected)


def test_gradients_of_rows_keep_no_memory_but_their_own():
    from inscape.kernels.tangent.vjp import BackwardPass

    class Sliced(Patches):
        def forward(self, x):
            y = self.map(self.cut(x).flatten(2).transpose(1, 2))
            return self.head(torch.cat([y, 2 * y], 1).tanh().mean(1))

    torch.manual_seed(0)
    backward = BackwardPass(Sliced().double().eval(), torch.randn(3, 1, 6, 6, dtype=torch.float64))
    (gradient,) = backward.gradients(["map.weight"])
    for g in gradient.g:
        assert g.untyped_storage().nbytes() <= g.numel() * g.element_size()


@pytest.mark.parametrize("others", [None, points(4, 3, seed=1)])
def test_traces_of_many_outputs_come_from_random_vectors(others):
    model, x = dense(3, 8, 40), points(5, 3)
    exact = tangent_kernel(model, x, others=others, outputs="trace", projections=0)
    found = tangent_kernel(model, x, others=others, outputs="trace")
    assert exact.squared_norms is None
    assert exact.summary().kind == "exact"
    assert len(found.squared_norms) == 16
    assert float(((found.kernel - exact.kernel).abs() / found.standard_errors).max()) < 5
    summary = found.summary()
    assert (summary.kind, summary.low < exact.summary().value < summary.high) == ("estimate", True)
    assert summary.basis.endswith("x 16 random projections")
    assert_close(found.gradient_norms, found.squared_norms.mean(0).sqrt())
    if others is None:
        assert_close(found.gradient_norms, found.kernel.diagonal().sqrt())


def test_a_trace_is_the_mean_of_the_kernels_of_its_vectors():
    model, x = dense(3, 8, 40), points(5, 3)
    generator = torch.Generator().manual_seed(3)
    vectors = torch.randn(4, 40, generator=generator, dtype=torch.float64)
    whole = brute(model, x, x)
    each = torch.einsum("ki,nmij,kj->knm", vectors, whole, vectors)
    found = tangent_kernel(model, x, outputs="trace", projections=4, seed=3)
    assert_close(found.kernel, each.mean(0))
    assert_close(found.standard_errors, each.std(0) / 2)
    cosines = tangent_kernel(model, x, outputs="trace", projections=4, seed=3, normalised=True)
    lengths = found.gradient_norms[:, None] * found.gradient_norms
    assert_close(cosines.kernel, found.kernel / lengths)
    assert_close(cosines.standard_errors, found.standard_errors / lengths)


def test_as_many_vectors_as_outputs_are_not_needed():
    model, x = dense(3, 8, 4), points(5, 3)
    assert tangent_kernel(model, x, outputs="trace", projections=4).squared_norms is None
    assert tangent_kernel(dense(3, 8, 32), x, outputs="trace").squared_norms is None


def test_a_thousand_outputs_take_little_memory():
    model, x = dense(3, 8, 1000), points(5, 3)
    with pytest.raises(BudgetError):
        tangent_kernel(model, x, memory=2_000)
    found = tangent_kernel(model, x, outputs="trace", projections=2, memory=200_000)
    assert found.summary().kind == "estimate"


@pytest.mark.parametrize(
    "settings", [{"outputs": "full", "projections": 4}, {"outputs": "trace", "projections": 1}]
)
def test_projections_are_for_traces_and_at_least_two(settings):
    with pytest.raises(ValueError, match="pass projections=0, or 2 and more for a trace"):
        tangent_kernel(dense(3, 8, 40), points(5, 3), **settings)
