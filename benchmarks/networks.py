"""Networks as users have them, for benchmarks: real weights where there are, else trained a little.

Each is ``(model, x, y)`` from :func:`subject`. Real files are looked for in ``shared/weights`` and
``shared/data`` beside the clone; what is trained here is kept in a folder of the system's temporary
ones, so that a second run does not train again.
"""

import math
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from inscape.data import load
from inscape.models import mlp, mobilenet_v2, resnet9

SHARED = Path(__file__).resolve().parents[2] / "shared"
KEPT = Path(tempfile.gettempdir()) / "inscape-benchmark-networks"
MEAN, DEVIATION = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])

Subject = tuple[nn.Module, Tensor, Tensor | None]


class TwoConvolutions(nn.Module):
    """The network of a first tutorial on MNIST."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        x = nn.functional.max_pool2d(x, 2).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


class VisionTransformer(nn.Module):
    """A small vision transformer for images of 32 x 32 pixels."""

    def __init__(self, width: int = 64, depth: int = 4, heads: int = 4, patch: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.position = nn.Embedding((32 // patch) ** 2, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, activation="gelu", batch_first=True,
            norm_first=True,
        )  # fmt: skip
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.position.weight
        return self.head(self.norm(self.encoder(tokens)).mean(1))


class Slow(nn.Module):
    """A small network that takes a while for each row, as if it were a large one."""

    def __init__(self, body: nn.Module, seconds: float) -> None:
        super().__init__()
        self.body, self.seconds = body, seconds

    def forward(self, x: Tensor) -> Tensor:
        end = time.perf_counter() + self.seconds * x.shape[0]
        y = self.body(x)
        while time.perf_counter() < end:
            math.sqrt(2.0)
        return y


def trained(name: str, model: nn.Module, x: Tensor, y: Tensor, *, epochs: int = 1) -> nn.Module:
    """Return the model after a little training, from its file if there is one."""
    path = KEPT / f"{name}.pt"
    if path.exists():
        model.load_state_dict(torch.load(path))
        return model.eval()
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    KEPT.mkdir(exist_ok=True)
    torch.save(model.state_dict(), path)
    return model.eval()


def mnist(name: str, model: nn.Module, shape: tuple[int, ...], *, rows: int = 20_000) -> Subject:
    data = load("mnist", data_dir=SHARED / "data")
    x, x_test = (part.reshape(-1, *shape) for part in (data.x, data.x_test))
    model = trained(name, model, x[:rows], data.y[:rows], epochs=2)
    return model, x_test, data.y_test


def cifar10(name: str, model: nn.Module, *, rows: int = 3000, epochs: int = 2) -> Subject:
    data = load("cifar10", data_dir=SHARED / "data")
    model = trained(name, model, data.x[:rows], data.y[:rows], epochs=epochs)
    return model, data.x_test, data.y_test


def mobilenet() -> Subject:
    """MobileNetV2 at 224 pixels on the labelled photos of the foolbox package."""
    from importlib.util import find_spec

    from PIL import Image

    model = mobilenet_v2()
    model.load_state_dict(torch.load(SHARED / "weights" / "mobilenet_v2-b0353104.pth"))
    x, y = [], []
    found = find_spec("foolbox")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError("the photos are in the package foolbox, which is not installed")
    folder = Path(found.submodule_search_locations[0]) / "data"
    for path in sorted(folder.glob("imagenet_*.jpg")):
        image = Image.open(path).convert("RGB")
        scale = 256 / min(image.size)
        image = image.resize((round(image.width * scale), round(image.height * scale)))
        left, top = (image.width - 224) // 2, (image.height - 224) // 2
        pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), dtype=np.float32) / 255
        x.append((torch.from_numpy(pixels) - MEAN).div(DEVIATION).permute(2, 0, 1))
        y.append(int(re.findall(r"\d+", path.stem)[-1]))
    return model.eval(), torch.stack(x), torch.tensor(y)


def acas_xu() -> Subject:
    """ACAS Xu 1_1 on 1,000 points of its domain, normalised and without labels.

    It advises what has the smallest output; all outputs are negated, so that it is the largest.
    """
    path = next((SHARED / "weights" / "acasxu").glob("*_1_1_*.nnet"))
    lines = [line for line in path.read_text().splitlines() if not line.startswith("//")]
    rows = [[float(word) for word in line.split(",") if word.strip()] for line in lines]
    sizes = [int(size) for size in rows[1]]
    low, high, mean, spread = (torch.tensor(row[:5]) for row in rows[3:7])
    model, at = mlp(*sizes), 7
    for layer in (part for part in model if isinstance(part, nn.Linear)):
        out, into = layer.weight.shape
        layer.weight.data = torch.tensor(rows[at : at + out])[:, :into]
        layer.bias.data = torch.tensor(rows[at + out : at + 2 * out]).flatten()
        at += 2 * out
    layer.weight.data, layer.bias.data = -layer.weight.data, -layer.bias.data
    drawn = torch.rand(1000, 5, generator=torch.Generator().manual_seed(0))
    return model.eval(), (low + drawn * (high - low) - mean) / spread, None


def keras_cnn() -> Subject:
    """The CIFAR-10 network of a Keras file, rebuilt; it was trained on bytes from 0 to 255."""
    import h5py

    layers: list[nn.Module] = []
    with h5py.File(SHARED / "weights" / "cifar10_cnn_keras.h5") as file:
        import json

        config = json.loads(file.attrs["model_config"])["config"]
        weights = file["model_weights"]
        shape: tuple[int, int, int] | None = None
        for entry in config["layers"] if isinstance(config, dict) else config:
            layers += keras_layer(entry, weights, after_flatten=shape)
            if entry["class_name"] == "Flatten":
                with torch.no_grad():
                    body = nn.Sequential(*layers[:-1]).eval()
                    shape = tuple(body(torch.zeros(1, 3, 32, 32)).shape[1:])
            elif entry["class_name"] == "Dense":
                shape = None
    data = load("cifar10", data_dir=SHARED / "data")
    scale = 255.0 if float(data.x_test.max()) <= 1 else 1.0
    return nn.Sequential(*layers).eval(), data.x_test * scale, data.y_test


def keras_layer(entry: dict, weights, after_flatten) -> list[nn.Module]:  # type: ignore[no-untyped-def,type-arg]
    kind, config = entry["class_name"], entry["config"]
    activation = {"relu": [nn.ReLU()]}.get(config.get("activation", ""), [])
    if kind in ("Conv2D", "Convolution2D"):
        kernel, bias = keras_arrays(weights, config["name"])
        layer: nn.Module = nn.Conv2d(
            kernel.shape[2], kernel.shape[3], kernel.shape[:2],
            stride=tuple(config["strides"]), padding=config["padding"],
        )  # fmt: skip
        layer.weight.data, layer.bias.data = kernel.permute(3, 2, 0, 1).contiguous(), bias
        return [layer, *activation]
    if kind == "Dense":
        kernel, bias = keras_arrays(weights, config["name"])
        if after_flatten is not None:  # rows of Keras have the channels last
            c, h, w = after_flatten
            kernel = kernel.reshape(h, w, c, -1).permute(2, 0, 1, 3).reshape(c * h * w, -1)
        layer = nn.Linear(*kernel.shape)
        layer.weight.data, layer.bias.data = kernel.T.contiguous(), bias
        return [layer, *activation]
    if kind == "BatchNormalization":
        gain, shift, mean, variance = keras_arrays(weights, config["name"])
        layer = nn.BatchNorm2d(len(gain), eps=config["epsilon"])
        layer.weight.data, layer.bias.data = gain, shift
        layer.running_mean, layer.running_var = mean, variance
        return [layer]
    if kind == "MaxPooling2D":
        return [nn.MaxPool2d(tuple(config["pool_size"]), tuple(config["strides"]))]
    if kind == "Activation":
        return activation
    return [nn.Flatten()] if kind == "Flatten" else []  # dropout does nothing after training


def keras_arrays(weights, name: str) -> list[Tensor]:  # type: ignore[no-untyped-def]
    group = weights[name]
    return [torch.tensor(np.asarray(group[key])) for key in group.attrs["weight_names"]]


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "784-1024x3-10": lambda: mnist("mlp1024", mlp(784, 1024, 1024, 1024, 10), (784,)),
    "two convolutions": lambda: mnist(
        "two_convolutions", TwoConvolutions(), (1, 28, 28), rows=5000
    ),
    "resnet9": lambda: cifar10("resnet9", resnet9(), rows=1000, epochs=1),
    "vision transformer": lambda: cifar10("vision_transformer", VisionTransformer()),
    "MobileNetV2": mobilenet,
    "ACAS Xu 1_1": acas_xu,
    "Keras CNN": keras_cnn,
    "50 ms a row": lambda: (lambda m, x, y: (Slow(m, 0.05).eval(), x, y))(
        *mnist("mlp64", mlp(784, 64, 10), (784,))
    ),
}
