"""Complex weights keep their imaginary parts in every precision."""

import pytest
import torch
from torch import nn

from inscape._core.precision import to_precision
from inscape.errors import UnsupportedModelError
from inscape.functional.precision import in_precision
from inscape.kernels import neighbours, tangent_kernel
from inscape.landscape import hessian_trace
from inscape.loaders import open_model
from inscape.regions import local_maps
from inscape.smoothness import gradient_norm
from inscape.spectra import effective_rank, fisher_rao_norm, parameter_norm


class Spectrum(nn.Module):
    """Real parts of a learnt complex transform, rectified."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 4, dtype=torch.complex64)
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        z = self.layer(torch.complex(x[:, :3], x[:, 3:]))
        return torch.cat([z.real, z.imag], 1).relu()


def test_every_tensor_gets_the_precision_of_its_kind():
    model = Spectrum()
    before = model.layer.weight.detach().clone()
    assert to_precision(model, torch.float64) is model
    assert model.layer.weight.dtype == torch.complex128
    assert model.count.dtype == torch.int64
    assert torch.equal(model.layer.weight, before.to(torch.complex128))
    assert to_precision(model, torch.float32).layer.bias.dtype == torch.complex64


def by_hand(model, x):
    """Return outputs by the real and the imaginary parts of the weights, written out."""
    w, b = model.layer.weight.to(torch.complex128), model.layer.bias.to(torch.complex128)
    a, c = x[:, :3].double(), x[:, 3:].double()
    real = a @ w.real.T - c @ w.imag.T + b.real
    imaginary = a @ w.imag.T + c @ w.real.T + b.imag
    return torch.cat([real, imaginary], 1).relu()


def test_an_opened_model_is_the_same_function_in_double_precision():
    model = Spectrum().eval()
    x = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    opened = open_model(model, dtype="float64").model
    torch.testing.assert_close(opened(x), by_hand(model, x))
    norms = gradient_norm(opened, x).norms
    rows = [torch.func.jacrev(lambda z: by_hand(model, z[None])[0])(row).norm() for row in x]
    torch.testing.assert_close(norms, torch.stack(rows))


@pytest.mark.parametrize("others", [torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_precision_of_a_model_is_that_of_its_weights_whatever_its_buffers_have(dtype, others):
    model = nn.Linear(2, 1, dtype=dtype).eval()
    model.register_buffer("mean", torch.zeros(2, dtype=others))
    f, x, converted = in_precision(model, torch.ones(3, 2, dtype=dtype), "float64")
    assert {tensor.dtype for tensor in f.state_dict().values()} == {x.dtype} == {torch.float64}
    assert converted == ("float32" if torch.float32 in (dtype, others) else None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_instruments_that_compute_in_double_precision_keep_the_imaginary_part(dtype):
    model = to_precision(Spectrum().eval(), dtype)
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(1)).to(dtype)
    torch.testing.assert_close(local_maps(model, x).values.double(), by_hand(model, x))


@pytest.mark.parametrize(
    "measure",
    [
        lambda model, x: parameter_norm(model, x),
        lambda model, x: effective_rank(model, x),
        lambda model, x: tangent_kernel(model, x),
        lambda model, x: next(tangent_kernel.refine(model, x)),
        lambda model, x: neighbours(model, x),
        lambda model, x: fisher_rao_norm(model, x, torch.zeros(4).long()),
        lambda model, x: hessian_trace(model, x, torch.zeros(4).long()),
    ],
)
def test_what_reads_parameters_refuses_complex_ones_by_name(measure):
    text = r"'layer\.weight' in torch\.complex64: keep real and imaginary part as two parameters"
    with pytest.raises(UnsupportedModelError, match=text):
        measure(Spectrum().eval(), torch.rand(4, 6))
