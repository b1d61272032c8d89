"""Inception-v3 for photos, with the names of the weights that are common (torchvision's)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from inscape._core import checks
from inscape.models.initialisation import pytorch_default

#: Means and standard deviations of ImageNet's colours; the weights were trained with 0.5 for all.
MEANS, DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Size = int | tuple[int, int]


class ConvolvedNormed(nn.Module):
    """A convolution without bias, batch norm and ReLU.

    Attributes:
        conv: The convolution.
        bn: The batch norm.
    """

    def __init__(self, before: int, after: int, size: Size, stride: int = 1, pad: Size = 0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(before, after, size, stride, pad, bias=False, device="meta")
        self.bn = nn.BatchNorm2d(after, eps=0.001, device="meta")

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h2 w2"]:
        """Return the ReLU of the normed convolution."""
        return torch.relu(self.bn(self.conv(x)))


#: A convolution of a branch: its name, channels, size, stride, padding.
Step = tuple[str, int, Size, int, Size]


class Branches(nn.Module):
    """Chains of convolutions side by side, and a pool; their channels one after the other.

    A name that ends with ``a`` has a twin that ends with ``b`` of the turned size; both take the
    same channels.

    Attributes:
        chains: The names of the convolutions of each branch.
    """

    def __init__(self, before: int, branches: tuple[tuple[Step, ...], ...]) -> None:
        super().__init__()
        self.chains: list[list[str]] = []
        for branch in branches:
            inner = before
            for name, after, size, stride, pad in branch:
                self.add_module(name, ConvolvedNormed(inner, after, size, stride, pad))
                inner = inner if name.endswith("a") else after
            self.chains.append([step[0] for step in branch])

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n o h2 w2"]:
        """Return the channels of all branches."""
        return torch.cat([part for chain in self.chains for part in self._branch(chain, x)], 1)

    def _branch(self, chain: list[str], x: Tensor) -> list[Tensor]:
        if not chain:
            return [functional.max_pool2d(x, 3, 2)]
        x = functional.avg_pool2d(x, 3, 1, 1) if chain == ["branch_pool"] else x
        twins: list[Tensor] = []
        for name in chain:
            out = self.get_submodule(name)(x)
            if name[-1] in "ab":
                twins.append(out)
            else:
                x = out
        return twins or [x]


def _thirty_five(before: int, pooled: int) -> Branches:
    """Return a block at 35 x 35 pixels (A)."""
    return Branches(before, (
        (("branch1x1", 64, 1, 1, 0),),
        (("branch5x5_1", 48, 1, 1, 0), ("branch5x5_2", 64, 5, 1, 2)),
        (("branch3x3dbl_1", 64, 1, 1, 0), ("branch3x3dbl_2", 96, 3, 1, 1),
         ("branch3x3dbl_3", 96, 3, 1, 1)),
        (("branch_pool", pooled, 1, 1, 0),),
    ))  # fmt: skip


def _to_seventeen(before: int) -> Branches:
    """Return the block from 35 x 35 to 17 x 17 pixels (B)."""
    return Branches(before, (
        (("branch3x3", 384, 3, 2, 0),),
        (("branch3x3dbl_1", 64, 1, 1, 0), ("branch3x3dbl_2", 96, 3, 1, 1),
         ("branch3x3dbl_3", 96, 3, 2, 0)),
        (),
    ))  # fmt: skip


def _seventeen(before: int, inner: int) -> Branches:
    """Return a block at 17 x 17 pixels (C)."""
    row: tuple[Size, Size] = ((1, 7), (0, 3))
    column: tuple[Size, Size] = ((7, 1), (3, 0))
    return Branches(before, (
        (("branch1x1", 192, 1, 1, 0),),
        (("branch7x7_1", inner, 1, 1, 0), ("branch7x7_2", inner, row[0], 1, row[1]),
         ("branch7x7_3", 192, column[0], 1, column[1])),
        (("branch7x7dbl_1", inner, 1, 1, 0), ("branch7x7dbl_2", inner, column[0], 1, column[1]),
         ("branch7x7dbl_3", inner, row[0], 1, row[1]),
         ("branch7x7dbl_4", inner, column[0], 1, column[1]),
         ("branch7x7dbl_5", 192, row[0], 1, row[1])),
        (("branch_pool", 192, 1, 1, 0),),
    ))  # fmt: skip


def _to_eight(before: int) -> Branches:
    """Return the block from 17 x 17 to 8 x 8 pixels (D)."""
    return Branches(before, (
        (("branch3x3_1", 192, 1, 1, 0), ("branch3x3_2", 320, 3, 2, 0)),
        (("branch7x7x3_1", 192, 1, 1, 0), ("branch7x7x3_2", 192, (1, 7), 1, (0, 3)),
         ("branch7x7x3_3", 192, (7, 1), 1, (3, 0)), ("branch7x7x3_4", 192, 3, 2, 0)),
        (),
    ))  # fmt: skip


def _eight(before: int) -> Branches:
    """Return a block at 8 x 8 pixels (E)."""
    return Branches(before, (
        (("branch1x1", 320, 1, 1, 0),),
        (("branch3x3_1", 384, 1, 1, 0), ("branch3x3_2a", 384, (1, 3), 1, (0, 1)),
         ("branch3x3_2b", 384, (3, 1), 1, (1, 0))),
        (("branch3x3dbl_1", 448, 1, 1, 0), ("branch3x3dbl_2", 384, 3, 1, 1),
         ("branch3x3dbl_3a", 384, (1, 3), 1, (0, 1)), ("branch3x3dbl_3b", 384, (3, 1), 1, (1, 0))),
        (("branch_pool", 192, 1, 1, 0),),
    ))  # fmt: skip


class AuxiliaryHead(nn.Module):
    """A second classifier on the features at 17 x 17 pixels, for training.

    Attributes:
        conv0: A convolution of 1 x 1; ``conv1`` one of 5 x 5.
        fc: The linear layer.
    """

    def __init__(self, before: int, classes: int) -> None:
        super().__init__()
        self.conv0 = ConvolvedNormed(before, 128, 1)
        self.conv1 = ConvolvedNormed(128, 768, 5)
        self.fc = nn.Linear(768, classes, device="meta")

    def forward(self, x: Float[Tensor, "n i h w"]) -> Float[Tensor, "n c"]:
        """Return the scores of all classes."""
        pooled = functional.avg_pool2d(x, 5, 3)
        scores: Tensor = self.fc(self.conv1(self.conv0(pooled)).mean((2, 3)))
        return scores


class InceptionV3(nn.Module):
    """See :func:`inception_v3`; its parameters have no values yet.

    Attributes:
        AuxLogits: The second classifier, which the forward pass does not call; or None.
        fc: The linear layer.
    """

    def __init__(self, classes: int, *, aux: bool, transform_input: bool) -> None:
        super().__init__()
        self.transform_input = transform_input
        self.Conv2d_1a_3x3 = ConvolvedNormed(3, 32, 3, 2)
        self.Conv2d_2a_3x3 = ConvolvedNormed(32, 32, 3)
        self.Conv2d_2b_3x3 = ConvolvedNormed(32, 64, 3, 1, 1)
        self.Conv2d_3b_1x1 = ConvolvedNormed(64, 80, 1)
        self.Conv2d_4a_3x3 = ConvolvedNormed(80, 192, 3)
        self.Mixed_5b = _thirty_five(192, 32)
        self.Mixed_5c = _thirty_five(256, 64)
        self.Mixed_5d = _thirty_five(288, 64)
        self.Mixed_6a = _to_seventeen(288)
        self.Mixed_6b = _seventeen(768, 128)
        self.Mixed_6c = _seventeen(768, 160)
        self.Mixed_6d = _seventeen(768, 160)
        self.Mixed_6e = _seventeen(768, 192)
        self.AuxLogits = AuxiliaryHead(768, classes) if aux else None
        self.Mixed_7a = _to_eight(768)
        self.Mixed_7b = _eight(1280)
        self.Mixed_7c = _eight(2048)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(2048, classes, device="meta")

    def forward(self, x: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n c"]:
        """Return the scores of all classes."""
        if self.transform_input:
            scale = 2 * x.new_tensor(DEVIATIONS)[:, None, None]
            x = x * scale + (2 * x.new_tensor(MEANS) - 1)[:, None, None]
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(functional.max_pool2d(x, 3, 2)))
        x = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(functional.max_pool2d(x, 3, 2))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(x)))))
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        scores: Tensor = self.fc(self.dropout(x.mean((2, 3))))
        return scores


def inception_v3(
    classes: int = 1000, *, aux: bool = True, transform_input: bool = False, seed: int = 0
) -> InceptionV3:
    """Return Inception-v3 (Szegedy et al., 2016), with the key names of the usual weights.

    For images of 299 pixels, and at least 75. The forward pass returns the scores alone, as in eval
    mode; the auxiliary head holds its weights.

    >>> sum(p.numel() for p in inception_v3().parameters())
    27161264

    Args:
        classes: Number of outputs.
        aux: Whether it has the auxiliary head that the published weights have.
        transform_input: Whether images come normalised by ImageNet's colours, as those of other
            networks, and are normalised anew as the published weights expect.
        seed: Seed of the initial weights, PyTorch's own; the global random state is not used.
    """
    checks.whole(1, classes=classes)
    model = InceptionV3(classes, aux=aux, transform_input=transform_input)
    model.to_empty(device="cpu")
    pytorch_default(model, seed=seed)
    return model.eval()
