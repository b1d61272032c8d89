import torch
from torch import Tensor, nn

from inscape.report.look.facts import layers


class Reused(nn.Module):
    """One layer used twice, one never called, one parameter of its own, a pair inside."""

    def __init__(self) -> None:
        super().__init__()
        self.square = nn.Linear(2, 2)
        self.idle = nn.Linear(2, 7)
        self.split = Pair()
        self.shift = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        first, _ = self.split(self.square(self.square(x)))
        return first + self.shift


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


def test_layers_are_told_with_shapes_parameters_and_calls():
    result = {layer.name: layer for layer in layers(Reused(), torch.ones(4, 2))}
    assert list(result) == ["(the model)", "square", "idle", "split"]
    assert result["square"].kind == "Linear"
    assert (result["square"].shape, result["square"].parameters, result["square"].calls) == (
        (2,),
        6,
        2,
    )
    assert (result["idle"].shape, result["idle"].parameters, result["idle"].calls) == (None, 21, 0)
    assert (result["(the model)"].shape, result["(the model)"].parameters) == ((2,), 2)
    assert result["split"].shape is None


def test_looking_leaves_no_hooks_and_no_grads():
    model = Reused()
    layers(model, torch.ones(4, 2))
    assert not any(module._forward_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_facts_of_a_look(seen, classified):
    assert (seen.model.name, seen.model.parameters, seen.model.trainable) == ("Sequential", 26, 26)
    assert (seen.model.inputs, seen.model.outputs) == ((3,), 1)
    assert (seen.model.dtype, seen.model.device) == ("float64", "cpu")
    assert (seen.data.n, seen.data.n_train, seen.data.n_test) == (20, 40, 20)
    assert seen.data.measured == "test examples"
    assert (classified.data.n, classified.data.n_test) == (50, 0)
    assert classified.data.measured == "all examples"
    assert classified.data.shape == (2, 2)
    assert len(seen.data.hash) == 64


def test_provenance_of_a_look(seen, classified):
    assert seen.provenance.torch == torch.__version__
    assert (seen.provenance.dtype, classified.provenance.dtype) == ("float64", "float32")
    assert (seen.provenance.seed, classified.provenance.seed) == (0, 3)
    assert seen.provenance.seconds > 0  # however long it took
