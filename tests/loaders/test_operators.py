"""The allowed operators are enough for networks as people build them, decomposed or not."""

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.testing import assert_close

from inscape.errors import BudgetError, UnsupportedModelError
from inscape.loaders import open_model
from inscape.loaders.operators import OPERATORS, operation


def mobile() -> nn.Module:
    """Return depthwise convolutions, batch norm and dropout, as in MobileNetV2."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU6(inplace=True),
        nn.Conv2d(8, 8, 3, padding=1, groups=8, padding_mode="circular"),
        nn.InstanceNorm2d(8),
        nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        weight_norm(nn.Linear(8, 4)),
    )


class Transformer(nn.Module):
    """Patches, a class token and an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1)
        return self.encoder(tokens)[:, 0]


class Shapes(nn.Module):
    """Padding, pooling, interpolation, attention and indices."""

    def forward(self, x: Tensor) -> Tensor:
        h = F.interpolate(F.pad(x, (1, 1, 1, 1), mode="reflect"), scale_factor=2.0, mode="bilinear")
        h = F.max_pool2d(h, 3, ceil_mode=True).flatten(2)
        scores = torch.einsum("bid,bjd->bij", h, h).softmax(-1)
        h = F.scaled_dot_product_attention(scores @ h, h, h, is_causal=True)
        best = h.topk(2, -1)[0] + h[..., [0, 2]]
        best[:, 0] = 0.0
        return torch.where(best > 0, best, 0.1 * best).clamp(-5, 5).mean(1)


NETS: dict[str, Callable[[], nn.Module]] = {
    "mobile": mobile,
    "transformer": Transformer,
    "shapes": Shapes,
}


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_networks_are_replayed_without_trust(tmp_path, name, decomposed):
    torch.manual_seed(0)
    model, x = NETS[name]().eval(), torch.randn(4, 3, 8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
        torch.export.save(
            program.run_decompositions() if decomposed else program, tmp_path / "n.pt2"
        )
    other = torch.randn(6, 3, 8, 8)
    assert_close(open_model(tmp_path / "n.pt2").model(other), model(other))


def test_every_listed_operator_exists_and_none_is_a_backward_or_random_one():
    for target in OPERATORS:
        assert callable(operation(target))
        assert "backward" not in target
        assert not any(word in target for word in ("rand", "bernoulli", "multinomial", "normal_"))


@pytest.mark.parametrize(("dim", "shape"), [(0, (4, 1, 1)), (2, (1, 1, 2)), (-1, ())])
def test_weight_norm_is_that_of_pytorch(dim, shape):
    v, g = torch.randn(4, 3, 2), torch.randn(shape)
    ours = operation("torch.ops.aten._weight_norm.default")(v, g, dim)
    assert_close(ours, torch._weight_norm(v, g, dim))


class Large(nn.Module):
    """Needs the square of what it gets."""

    def forward(self, x: Tensor) -> Tensor:
        return (x[:, :, None] * x[:, None, :]).sum(2)


def test_memory_is_compared_before_it_is_taken(export, tmp_path, monkeypatch):
    path = export(Large(), torch.ones(2, 1000), tmp_path / "large.pt2")
    program = open_model(path).model
    monkeypatch.setattr("inscape.loaders.exported_module.memory", lambda: 16_000_000)
    assert program(torch.ones(2, 1000)).shape == (2, 1000)  # 8 MB of 12
    with pytest.raises(
        BudgetError,
        match=r"must fit into 12 MB, three quarters of the memory here, found 16 MB at "
        r"'torch\.ops\.aten\.mul\.Tensor' for inputs of shape \(4, 1000\): use smaller batches",
    ):
        program(torch.ones(4, 1000))


X, H = torch.ones(5, 4, 6), torch.ones(1, 4, 3)
PARAMS = [torch.ones(12, 6), torch.ones(12, 3), torch.ones(12), torch.ones(12)]
UNSOUND: dict[str, tuple[str, tuple[object, ...], str]] = {
    "stride": (
        "conv_transpose1d.default",
        (torch.ones(4, 6, 8), torch.ones(6, 6, 3), None, [32768]),
        "a stride of at most 512, found 32768",
    ),
    "one state for two directions": (
        "lstm.input",
        (X, [H, H], PARAMS, True, 1, 0.0, False, True, False),
        r"a state for each of its 2 layers and directions, found shapes \[\(1, 4, 3\)",
    ),
    "states that differ": (
        "lstm.input",
        (X, [torch.ones(6, 4, 3), H], PARAMS, True, 1, 0.0, False, False, False),
        "a state for each of its 1 layers",
    ),
    "other heads": (
        "_scaled_dot_product_flash_attention_for_cpu.default",
        (torch.ones(2, 2, 4, 8), torch.ones(4, 6, 8, 8), torch.ones(2, 2, 4, 8)),
        r"fit each other, found shapes \[\(2, 2, 4, 8\), \(4, 6, 8, 8\), \(2, 2, 4, 8\)\]",
    ),
    "few weights": (
        "lstm.input",
        (X, [H, H], PARAMS[:2], True, 1, 0.0, False, False, False),
        r"must have 4 weights, found shapes \[\(12, 6\), \(12, 3\)\]: export it anew",
    ),
    "bias of a cell": (
        "lstm_cell.default",
        (X[0], [H[0], H[0]], *PARAMS[:3], torch.ones(1, 1, 1, 1)),
        r"weights of 1 dimensions and 12 rows, found shapes \[\(1, 1, 1, 1\)\]",
    ),
    "input of a cell": (
        "lstm_cell.default",
        (X, [H[0], H[0]], *PARAMS),
        "must have inputs and states of two dimensions",
    ),
    "input of a layer": (
        "lstm.input",
        (X[None], [H, H], PARAMS, True, 1, 0.0, False, False, False),
        "must have an input of three dimensions",
    ),
    "bias of a layer": (
        "lstm.input",
        (X, [H, H], [*PARAMS[:3], torch.ones(1)], True, 1, 0.0, False, False, False),
        "weights of 1 dimensions and 12 rows",
    ),
}


@pytest.mark.parametrize("shape", [(3, 5), (4, 9), (1,), (2, 3, 4, 5)])
def test_a_mask_that_does_not_fit_is_refused(shape):
    q, k = torch.ones(2, 2, 4, 8), torch.ones(2, 2, 5, 8)
    attention = operation("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default")
    with pytest.raises(UnsupportedModelError, match="and a mask that fit each other"):
        attention(q, k, k, 0.0, False, attn_mask=torch.ones(shape))
    for fitting in ((4, 5), (1, 5), (2, 1, 4, 5)):
        mask = torch.zeros(fitting)
        ours = attention(q, k, k, 0.0, False, attn_mask=mask)[0]
        assert_close(ours, F.scaled_dot_product_attention(q, k, k, attn_mask=mask))


@pytest.mark.parametrize("name", UNSOUND)
def test_arguments_that_kernels_take_on_trust_are_compared(name):
    target, args, text = UNSOUND[name]
    with pytest.raises(UnsupportedModelError, match=text):
        operation(f"torch.ops.aten.{target}")(*args)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN, "projected"])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_layers_of_pytorch_pass(layer, bias):
    more = {"proj_size": 2} if layer == "projected" else {}
    kind = nn.LSTM if layer == "projected" else layer
    net = kind(6, 3, 2, bias=bias, bidirectional=True, **more).eval()
    zeros = torch.zeros(4, 4, 2 if more else 3)
    state = [zeros, torch.zeros(4, 4, 3)] if kind is nn.LSTM else zeros
    name = {nn.LSTM: "lstm", nn.GRU: "gru", nn.RNN: "rnn_tanh"}[kind]
    args = (X, state, list(net._flat_weights), bias, 2, 0.0, False, True, False)
    assert_close(operation(f"torch.ops.aten.{name}.input")(*args)[0], net(X)[0])
