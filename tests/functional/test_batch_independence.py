import pytest
import torch
from torch import nn

from cases import dense, points
from inscape.functional.jacobians import probe
from inscape.kernels import tangent_kernel
from inscape.regions import local_maps
from inscape.smoothness import gradient_norm, path_length
from repeated import repeated

MIXED = "must act on each sample independently"


def centred(weight=1.0):
    f = dense(3, 6, 2, act=nn.LeakyReLU)
    return lambda z: f(z.double()).to(z) - weight * f(z.double()).mean(0).to(z)


DATA = {
    "equal first rows": lambda: points(9, 3)[[0, *range(9)]],
    "equal first and last rows": lambda: points(9, 3)[[0, 0, *range(9), 0]],
    "all rows but one equal": lambda: torch.cat([points(1, 3).expand(8, 3), points(9, 3)[8:]]),
    "all rows equal": lambda: points(1, 3).expand(9, 3),
    "nearly equal rows": lambda: points(1, 3) + 1e-9 * points(9, 3),
    "zeros": lambda: torch.zeros(9, 3, dtype=torch.float64),
    "huge rows": lambda: 1e100 * points(1, 3).expand(2, 3),
    "one row": lambda: points(1, 3),
    "two rows": lambda: points(2, 3),
}


@pytest.mark.parametrize("data", DATA)
def test_mixing_is_seen_whatever_the_rows_are(data):
    with pytest.raises(ValueError, match=MIXED):
        gradient_norm(centred(), DATA[data]())


@pytest.mark.parametrize("weight", [1.0, 1e-2, 1e-4, 1e-6, -1e-9])
def test_weak_mixing_is_seen(weight):
    with pytest.raises(ValueError, match=MIXED):
        probe(centred(weight), points(9, 3))


@pytest.mark.parametrize("weight", [1e-2, 1e-4])
def test_weak_mixing_is_seen_in_single_precision(weight):
    with pytest.raises(ValueError, match=MIXED):
        probe(centred(weight), points(9, 3).float())


def test_mixing_of_a_small_output_is_seen_beside_a_large_one():
    def f(z):
        return torch.stack([1e6 * z[:, 0], z[:, 1] - 0.1 * z[:, 1].mean()], dim=1)

    with pytest.raises(ValueError, match=MIXED):
        probe(f, points(9, 3))


@pytest.mark.parametrize("shift", [1, 2, -1, -2])
def test_rows_shifted_by_more_than_one_are_seen(shift):
    with pytest.raises(ValueError, match=MIXED):
        probe(lambda z: z + z.roll(shift, 0), points(9, 3))


class BatchStatistics(nn.Module):
    """A convolution whose batch norm keeps no running statistics: it mixes the batch."""

    def __init__(self):
        super().__init__()
        self.conv, self.last = nn.Conv2d(1, 4, 3), nn.Linear(4 * 36, 2)
        self.norm = nn.BatchNorm2d(4, track_running_stats=False)

    def forward(self, x):
        return self.last(self.norm(self.conv(x)).relu().flatten(1))


@pytest.mark.parametrize("instrument", [gradient_norm, path_length, tangent_kernel, local_maps])
@pytest.mark.parametrize("repeated", [False, True])
def test_batch_norm_without_running_statistics_is_refused(instrument, repeated):
    torch.manual_seed(0)
    x = torch.rand(12, 1, 8, 8)
    x = torch.cat([x[:1], x]) if repeated else x
    with pytest.raises(ValueError, match=MIXED):
        instrument(BatchStatistics().eval(), x)


class Experts(nn.Module):
    """A mixture of experts that runs the rows of each expert in a batch of their own."""

    def __init__(self, width):
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(300, width), nn.Tanh(), nn.Linear(width, 2)) for _ in range(3)
        )

    def forward(self, x):
        which = (x[:, 0] * 1e3).long() % len(self.experts)
        y = x.new_zeros(len(x), 2)
        for k, expert in enumerate(self.experts):
            y = y.index_put(((which == k).nonzero()[:, 0],), expert(x[which == k]))
        return y


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("seed", range(5))
def test_rows_in_batches_of_other_sizes_are_not_taken_for_mixed(dtype, seed):
    torch.manual_seed(seed)
    model, x = Experts(100).to(dtype).eval(), torch.rand(9, 300, dtype=dtype)
    assert probe(model, x).outputs == 2


NETWORKS = {
    "dense": lambda: (nn.Sequential(nn.Linear(300, 70), nn.GELU(), nn.Linear(70, 3)), (300,)),
    "convolution": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()),
        (3, 9, 9),
    ),
    "attention": lambda: (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), (7, 16)),
    "recurrent": lambda: (Last(nn.GRU(5, 7, batch_first=True)), (6, 5)),
}


class Last(nn.Module):
    """The last state of a recurrent layer."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0][:, -1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_networks_that_treat_rows_alone_are_accepted(network, dtype, rows):
    torch.manual_seed(0)
    model, shape = NETWORKS[network]()
    x = torch.randn(rows, *shape).to(dtype)
    assert probe(model.to(dtype).eval(), x).outputs > 0
    assert probe(model, x[:1].expand_as(x)).outputs > 0


def test_a_function_that_accepts_its_data_alone_is_accepted():
    x = torch.ones(3, 2, dtype=torch.float64)

    def f(z):
        if not torch.equal(z, torch.ones_like(z)):
            raise RuntimeError("ones only")
        return z.sum(1)

    assert probe(f, x).outputs == 1


@pytest.mark.parametrize("equal", [False, True])
def test_mixing_of_token_ids_is_seen(equal):
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(9, 4)

        def forward(self, x):
            y = self.table(x).cumsum(1).relu().sum(1)
            return y - 0.01 * y.mean(0)

    torch.manual_seed(0)
    x = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 0]])
    x = x[:1].expand_as(x) if equal else x
    with pytest.raises(ValueError, match=MIXED):
        tangent_kernel(Words().eval(), x)


def test_random_draws_show_at_outputs_of_any_size():
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.linspace(1, 2, 12).reshape(4, 3).to(dtype)
        with pytest.raises(ValueError, match="two calls with the same batch differ"):
            probe(lambda z: 1e-7 * z * (1 + torch.rand_like(z)), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_random_outputs_of_few_bits_are_not_taken_for_repeated(dtype):
    x = points(9, 3).to(dtype)

    def noisy(z):  # one number for each call: three rows show no more bits than one
        return z[:, :1] * (1 + torch.rand(()).to(dtype))

    for seed in repeated(range(400)):  # one in a hundred repeats its bits by chance in one call
        torch.manual_seed(seed)
        with pytest.raises(ValueError, match="two calls with the same batch differ"):
            probe(noisy, x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_short_numbers_take_more_calls_and_others_none(dtype):
    calls = 0

    def f(z):
        nonlocal calls
        calls += 1
        return 2 * z

    probe(f, points(9, 3).to(dtype))
    assert calls == {torch.bfloat16: 6, torch.float16: 5, torch.float32: 3}[dtype]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_softmax_over_the_batch_is_seen_where_rows_hardly_differ(dtype):
    model = dense(3, 6, 2).to(dtype)
    with pytest.raises(ValueError, match=MIXED):
        probe(lambda z: (0.05 * model(z)).softmax(0), points(9, 3).to(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("seed", range(8))
def test_large_values_between_layers_of_a_short_type_are_rounded_not_mixed(dtype, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
    model.append(nn.Linear(64, 3)).to(dtype)
    with torch.no_grad():
        model[-1].weight.mul_(30)
        model[-1].bias.mul_(100)
    probe(model.eval(), points(9, 20, seed=seed).to(dtype))


@pytest.mark.parametrize("instrument", [gradient_norm, path_length, tangent_kernel])
def test_mixing_is_seen_though_units_are_off_at_the_rows_of_the_trial(instrument):
    class Normed(nn.Module):
        def forward(self, z):
            return (z - z.mean(0)).sub(2.5).relu().sum(1, keepdim=True) + self.weight

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros((), dtype=torch.float64))

    x = points(9, 3).tanh()
    x[4 - 1] = 9.0  # neither the first, nor the one in the middle, nor the last
    with pytest.raises(ValueError, match=MIXED):
        instrument(Normed().eval(), x)


def test_a_constant_function_mixes_nothing():
    assert gradient_norm(lambda z: 0 * z + 1, points(9, 3)).norms.max() == 0
