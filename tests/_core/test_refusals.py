"""Each refusal says its cause, and what to type next."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import inscape
from inscape.errors import UnsupportedModelError
from inscape.robustness import robustness
from inscape.smoothness import gradient_norm


class Calls(nn.Module):
    """A linear layer, and whatever is done with it."""

    def __init__(self, call, inputs=4):
        super().__init__()
        self.layer, self.call = nn.Linear(inputs, 2), call

    def forward(self, x):
        return self.call(self.layer, x)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x, mask):
        return self.layer(x) * mask


class OfDictionary(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, batch):
        return self.layer(batch["image"] + batch["other"])


class Yields(nn.Module):
    def forward(self, x):
        yield x


class WithState(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(4, 3, batch_first=True)

    def forward(self, x, state):
        return self.memory(x, state)[0]


X, IMAGES, SEQUENCES = torch.randn(6, 4), torch.randn(6, 8, 8), torch.randn(6, 5, 4)
CONV = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 2))
COLOUR = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(72, 2))
WORDS = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(20, 2))

CASES = {
    "missing argument": (Masked(), X, r"its forward needs 'mask' as well: name all inputs, inputs "
        r"= \{\"x\": x, \"mask\": mask\}; net = inscape.adapt\(model, inputs=inputs\)"),
    "hidden state": (WithState(), SEQUENCES, r"forward needs 'state' as well.*fixed=\{\"state\": "),
    "a dictionary": (OfDictionary(), X, r"looks up batch\['image'\]: name all entries, inputs = "
        r"\{\"batch\": \{\"image\": ..., \"other\": ...\}\}; net = inscape.adapt\(model, inp"),
    "images without channels": (CONV, IMAGES, r"convolution of 1 channel, .* x\[:, None\] puts"),
    "flat images": (CONV, IMAGES.flatten(1), r"\(n, 1, size, size\): reshape.*--input-shape"),
    "channels last": (COLOUR, torch.randn(6, 8, 8, 3), r"channels are last: x.movedim\(-1, 1\)"),
    "images for rows": (nn.Linear(64, 2), IMAGES, r"linear layer of 64 inputs: x.flatten\(1\) mak"),
    "other columns": (nn.Linear(4, 2), X[:, :3], r"linear layer of 4 inputs: reshape the data or "),
    "features of a sequence": (nn.LSTM(3, 2), SEQUENCES, r"layer takes \(n, length, features"),
    "axes of a sequence": (nn.LSTM(4, 2), SEQUENCES[:, None], r"x\[:, :, None\] for numbers"),
    "tokens as numbers": (WORDS, torch.rand(6, 5), r"takes token ids .*embedding=True, inputs=tok"),
    "a list": (Calls(lambda f, x: [f(x)]), X, r"found list: say which output .* take=0\)"),
    "a generator": (Yields(), X, r"found generator: its forward has a yield; return the tensor"),
    "nothing": (Calls(lambda f, x: None), X, r"found NoneType: its forward has no return stat"),
    "an array": (Calls(lambda f, x: f(x).detach().numpy()), X, r"found ndarray: leave out .detach"),
    "a number": (Calls(lambda f, x: f(x).mean().item()), X, r"found float: leave out .item\(\)"),
    "one for all": (Calls(lambda f, x: f(x).mean()), X, r"each input, found shape \(\)"),
    "complex": (Calls(lambda f, x: torch.fft.fft(f(x))), X, r"with .real, .imag or"),
    "class numbers": (Calls(lambda f, x: f(x).argmax(1)), X, r"scores or logits, not"),
    "a dtype inside": (Calls(lambda f, x: f(x.double())), X, r"make no tensors of a fixed dtype"),
    "time first": (Calls(lambda f, x: f(x)[-1]), SEQUENCES, r"use batch_first=True, or let a mo"),
    "time first again": (Calls(lambda f, x: f(x).mT.transpose(0, 1)), SEQUENCES,
        r"keep the batch dimension first, end its forward with .transpose\(0, 1\)"),
    "an error of its own": (Calls(lambda f, x: 1 / 0), X, r"raised ZeroDivisionError: .* mend the"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_refusals_of_models(case):
    model, x, said = CASES[case]
    with pytest.raises(UnsupportedModelError, match=said):
        gradient_norm(model.eval(), x)


@pytest.mark.parametrize("case", ["missing argument", "hidden state", "tokens as numbers"])
def test_what_is_no_matter_of_shape_does_not_say_reshape(case):
    model, x, _ = CASES[case]
    with pytest.raises(UnsupportedModelError) as raised:
        gradient_norm(model.eval(), x)
    assert "reshape" not in str(raised.value)


def test_refusals_of_data():
    words, x = WORDS.eval(), torch.randint(10, 30, (6, 5))
    with pytest.raises(UnsupportedModelError, match=r"ids from 10 to 29 .* 0 \(10 rows\)"):
        inscape.look(words, x, budget=1, quiet=True)
    with pytest.raises(UnsupportedModelError, match=r"x.float\(\); an embedding is only"):
        inscape.adapt(nn.Linear(5, 2).eval(), embedding=True, inputs=x)
    with pytest.raises(ValueError, match=r"pass them, inscape.adapt\(model, embed"):
        inscape.adapt(nn.Linear(5, 2).eval(), embedding=True)
    with pytest.raises(ValueError, match=r"one-hot labels become numbers by y.argmax\(1\)"):
        robustness(nn.Linear(4, 2).eval(), X, functional.one_hot(torch.arange(6) % 2))
    with pytest.raises(UnsupportedModelError, match=r"found 'logits' where it returns 0 \(0\)"):
        inscape.look(Calls(lambda f, x: [f(x)]).eval(), X, take="logits", budget=1, quiet=True)
    wrong = inscape.adapt(Masked().eval(), inputs={"x": X, "msk": X[:, :2]})
    with pytest.raises(UnsupportedModelError, match=r"\(x, mask\), found 'msk': rename"):
        gradient_norm(wrong, torch.randn(3, 6))
