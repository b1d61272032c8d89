"""Networks that the zoo writes to files, each with random weights of seed 0."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class GRUHead(nn.Module):
    """A recurrent network with a linear head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gru = nn.GRU(4, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.gru(x)[0][:, -1])


class SmallUNet(nn.Module):
    """Down, up, and a connection across."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.down = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.low = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        high = self.down(x)
        return self.last(torch.cat([high, self.up(self.low(high))], 1))


class TransformerHead(nn.Module):
    """One layer of a transformer by plain operators, and a mean over the sequence."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.joined = nn.Linear(8, 24)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.joined(x).chunk(3, -1)
        scores = torch.softmax(query @ key.transpose(1, 2) / 8**0.5, -1)
        return self.head(nn.functional.gelu(self.norm(x + scores @ value)).mean(1))


class Words(nn.Module):
    """Token ids and a mask in, a dictionary out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(20, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
        vectors = self.embedding(ids) * mask[..., None]
        pooled = torch.tanh(vectors.sum(1) / mask.sum(1, keepdim=True))
        return {"pooled": pooled, "logits": self.head(pooled)}


class TwoImages(nn.Module):
    """Two inputs, and a tuple of outputs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.shared = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        left, right = self.shared(a), self.shared(b)
        return self.head(torch.cat([left, right], 1)), (left - right).square().sum(1, keepdim=True)


class Detected(NamedTuple):
    """What a detector returns."""

    boxes: Tensor
    scores: Tensor


class Detector(nn.Module):
    """Two heads on one body, and a named tuple out."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.boxes, self.scores = nn.Linear(36, 4), nn.Linear(36, 3)

    def forward(self, x: Tensor) -> Detected:
        seen = self.body(x)
        return Detected(self.boxes(seen), self.scores(seen).softmax(1))


class Graph(nn.Module):
    """A graph network: features of nodes, and a fixed adjacency."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(3, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        return self.second(torch.relu(adjacency @ self.first(x)).mean(1))


class LowRank(nn.Module):
    """A linear layer with a low-rank addition, as LoRA makes it."""

    def __init__(self, base: nn.Linear, rank: int = 2) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features))
        self.b = nn.Parameter(torch.randn(base.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + x @ self.a.T @ self.b.T
