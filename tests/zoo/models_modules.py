"""Modules with inputs, outputs or insides of an unusual kind, as their authors would write them."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import inscape
from zoo.rows import Subject, draw, row


class PackedLSTM(nn.Module):
    """Classifies sequences of several lengths, packed."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits."""
        packed = nn.utils.rnn.pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        return self.head(self.lstm(packed)[1][0][-1])


class Siamese(nn.Module):
    """Compares two images by one tower."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 8)
        )

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """Return how near they are, in two ways."""
        a, b = self.tower(left), self.tower(right)
        return torch.stack([-(a - b).abs().sum(1), (a * b).sum(1)], 1)


class NestedUNet(nn.Module):
    """Segments at two scales; returns a dictionary of dictionaries and lists."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, padding=1, stride=2)
        self.middle = nn.Conv2d(4, 4, 3, padding=1)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.half_head, self.full_head = nn.Conv2d(4, 2, 1), nn.Conv2d(4, 2, 1)

    def forward(self, x: Tensor) -> dict[str, Any]:
        """Return masks by scale, and features."""
        down = self.down(x).relu()
        middle = self.middle(down).relu()
        fine = self.up(middle).relu()
        masks = {"half": self.half_head(middle), "full": self.full_head(fine)}
        return {"masks": masks, "features": [down, middle]}


class Experts(nn.Module):
    """Sends each sample to the best two of four experts."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 4)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the weighted outputs."""
        weights, chosen = self.gate(x).topk(2, dim=-1)
        weights = weights.softmax(-1)
        outputs = x.new_zeros(len(x), 3)
        for number, expert in enumerate(self.experts):
            rows, slots = (chosen == number).nonzero(as_tuple=True)
            if len(rows):
                part = expert(x[rows]) * weights[rows, slots, None]
                outputs = outputs.index_add(0, rows, part)
        return outputs


class Spectrum(nn.Module):
    """Reads the moduli of a learnt complex transform."""

    def __init__(self) -> None:
        super().__init__()
        self.transform = nn.Parameter(torch.randn(5, 9, dtype=torch.complex128) * 0.3)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        return self.head((torch.fft.rfft(x, dim=-1) @ self.transform.T).abs())


class Equilibrium(nn.Module):
    """Iterates one layer until nothing moves, as deep equilibrium models do."""

    def __init__(self) -> None:
        super().__init__()
        self.within, self.into, self.head = nn.Linear(8, 8), nn.Linear(6, 8), nn.Linear(8, 3)
        nn.init.normal_(self.within.weight, std=0.05)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of the fixed point."""
        state = x.new_zeros(len(x), 8)
        for _ in range(60):
            former, state = state, torch.tanh(self.within(state) + self.into(x))
            if (state - former).abs().max() < 1e-15:
                break
        return self.head(state)


class VariationalEncoder(nn.Module):
    """Returns a sample, its mean and its log variance."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 8), nn.Linear(2, 6)
        self.mean, self.log_variance = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return decoded draw, mean and log variance."""
        hidden = self.encoder(x).relu()
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        draws = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decoder(draws), mean, log_variance


class Tabular(nn.Module):
    """Embeds two categorical columns beside six numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(5, 3), nn.Embedding(9, 4)])
        self.net = nn.Sequential(nn.Linear(13, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Return the logits."""
        embedded = [table(categories[:, k]) for k, table in enumerate(self.tables)]
        return self.net(torch.cat([*embedded, numbers], 1))


def made(kind: type[nn.Module]) -> nn.Module:
    """Return a module with seeded weights in double precision, in eval mode."""
    torch.manual_seed(0)
    return kind().double().eval()


def _of_several(kind: type[nn.Module], inputs: Any, how: str) -> Subject:
    model = inscape.adapt(made(kind), inputs=inputs)
    return Subject(model, model.rows(inputs).double(), how)


@row("packed LSTM: sequences and their lengths in", "several")
def packed(folder: Path) -> Subject:
    inputs = {"x": draw(3, 7, 4), "lengths": torch.tensor([7, 3, 5])}
    return _of_several(PackedLSTM, inputs, "`adapt(inputs={'x': ..., 'lengths': ...})`")


@row("Siamese network: one tower, two images in", "several")
def siamese(folder: Path) -> Subject:
    inputs = (draw(3, 1, 8, 8), draw(3, 1, 8, 8, seed=1))
    return _of_several(Siamese, inputs, "`adapt(inputs=(left, right))`")


@row("categories and numbers of a table in", "several")
def tabular(folder: Path) -> Subject:
    inputs = {"categories": torch.tensor([[0, 1], [4, 8], [2, 3]]), "numbers": draw(3, 6)}
    return _of_several(Tabular, inputs, "`adapt(inputs={'categories': ..., 'numbers': ...})`")


@row("U-Net, nested dictionaries out", "several")
def nested(folder: Path) -> Subject:
    model = inscape.adapt(made(NestedUNet), take="masks.half")
    return Subject(model, draw(3, 1, 8, 8), "`adapt(take='masks.half')`")


@row("mixture of experts, two of four", "module")
def experts(folder: Path) -> Subject:
    return Subject(made(Experts), draw(3, 6), "module")


@row("complex weights (Fourier transform)", "module")
def spectrum(folder: Path) -> Subject:
    return Subject(made(Spectrum), draw(3, 16), "module")


@row("deep equilibrium model", "module")
def equilibrium(folder: Path) -> Subject:
    return Subject(made(Equilibrium), draw(3, 6), "module")
