"""The same function written in the styles of other people gives the same numbers, to the bit."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from inscape.cli import app
from inscape.selection import selected_instruments

STYLES = """
import torch
from torch import nn
from torch.nn import functional


class Ours(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 12), nn.Linear(12, 12), nn.Linear(12, 3)
        self.first, self.second = nn.ReLU(), nn.ReLU()

    def forward(self, x):
        return self.c(self.second(self.b(self.first(self.a(x)))))


class Functional(Ours):
    def forward(self, x):
        return self.c(functional.relu(self.b(torch.relu(self.a(x)))))


class Reused(Ours):
    def forward(self, x):
        for layer in (self.a, self.b):
            x = self.first(layer(x))
        return self.c(x)


class InPlace(Ours):
    def __init__(self):
        super().__init__()
        self.first = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.c(self.b(self.first(self.a(x))).relu_())


class WithBuffers(Ours):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(5))
        self.register_buffer("std", torch.ones(5))
        self.register_buffer("calls", torch.tensor(0), persistent=False)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        x = (x - self.mean) / self.std
        for layer in (self.a, self.b):
            x = self.dropout(self.first(layer(x)))
        return self.c(x)


class Shallow(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 12), nn.Linear(12, 3)
        self.act, self.dropout = nn.ReLU(), nn.Dropout(0.3)

    def forward(self, x):
        return self.b(self.act(self.a(x)))


class ShallowFunctional(Shallow):
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class ShallowInPlace(Shallow):
    def forward(self, x):
        return self.b(self.a(x).relu_())


class ShallowWithDropout(Shallow):
    def forward(self, x):
        return self.b(self.dropout(self.act(self.a(x))))
"""

EVERYWHERE = {
    *("gradient_norm", "gradient_path_length", "path_length", "gradient_deflection", "rugosity"),
    *("effective_rank", "fisher_rao_norm", "parameter_norm", "spectral_norm"),
    *("boundary", "line_regions", "plane_regions", "region_at"),
    *("effective_length_scale", "extrapolation", "robustness"),
    *("active_subspace", "local_minimum", "region_sharing", "saliency"),
}

#: All work for the network and the least for its baselines, which are not compared: no number
#: depends on the clock.
REFINED = [k for k, v in selected_instruments(None).items() if hasattr(v.function, "refine")]
WORK = ("--work", ",".join(["batch=1600", *(f"{name}=all/1/1/1/1" for name in REFINED)]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the styles, the same weights for all of them, and some points."""
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "nets.py").write_text(STYLES)
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(16, 5, generator=rng)
    np.savez(folder / "points.npz", x=x, y=torch.arange(16) % 3)
    deep = _weights({"a": (12, 5), "b": (12, 12), "c": (3, 12)}, rng)
    torch.save(deep, folder / "deep.pt")
    torch.save({**deep, "mean": torch.zeros(5), "std": torch.ones(5)}, folder / "buffers.pt")
    torch.save(_weights({"a": (12, 5), "b": (3, 12)}, rng), folder / "shallow.pt")
    return folder


@pytest.fixture(scope="module")
def numbers(folder):
    """Return a function that looks at a style, once."""

    @cache
    def look(style: str, *more: str) -> dict[str, dict[str, float]]:
        weights = {"WithBuffers": "buffers.pt"}.get(style, "deep.pt")
        weights = "shallow.pt" if style.startswith("Shallow") else weights
        words = ["--model", f"{folder}/nets.py:{style}", "--weights", f"{folder}/{weights}"]
        found, said = measured(folder, *words, *more)
        assert "was in training mode: switched to eval" in said
        return found

    return look


def measured(folder, *words: str) -> tuple[dict[str, dict[str, float]], str]:
    """Return the summaries of all measures of a look, and what was said on stderr."""
    words = words if "--work" in words else (*words, *WORK)
    given = ["look", *words, "--data", f"{folder}/points.npz", "--json", "--no-page"]
    done = CliRunner().invoke(app, given, prog_name="inscape")
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)["measurements"]
    return {measure["name"]: measure["summary"] for measure in result}, done.stderr


def _weights(sizes, rng):
    weights = {f"{name}.weight": torch.randn(*size, generator=rng) for name, size in sizes.items()}
    biases = {f"{name}.bias": torch.randn(size[0], generator=rng) for name, size in sizes.items()}
    return weights | biases


@pytest.mark.parametrize("style", ["Functional", "Reused", "InPlace", "WithBuffers"])
def test_deep_networks(numbers, style):
    expected = numbers("Ours")
    assert set(expected) == EVERYWHERE
    alone = expected["region_sharing"]["value"]  # that of few points, none of which shares a region
    assert alone == 0 < min(v["value"] for k, v in expected.items() if k != "region_sharing")
    results = {name: dict(summary) for name, summary in numbers(style).items()}
    if style == "WithBuffers":  # no path norm of buffers that are added: said in the basis alone
        assert results["parameter_norm"].pop("basis") == "267 parameters"
        expected = {name: dict(summary) for name, summary in expected.items()}
        del expected["parameter_norm"]["basis"]
    assert results == expected


@pytest.mark.parametrize("style", ["ShallowFunctional", "ShallowInPlace", "ShallowWithDropout"])
def test_two_layers_and_their_weights_product(numbers, style):
    expected = numbers("Shallow")
    assert set(expected) == {*EVERYWHERE, "weights_product"}
    assert numbers(style) == expected


def test_the_comparison_can_fail(numbers):
    assert numbers("Shallow")["path_length"] != numbers("Ours")["path_length"]


def test_against_autograd_by_hand(numbers, folder):
    words = ("--only", "gradient_norm", "--dtype", "float64", "--work", "batch=1600")
    result = numbers("Reused", *words)
    weights = torch.load(folder / "deep.pt", weights_only=True)
    x = torch.from_numpy(np.load(folder / "points.npz")["x"]).double()

    def f(row):
        for name in "ab":
            row = torch.relu(weights[f"{name}.weight"].double() @ row + weights[f"{name}.bias"])
        return weights["c.weight"].double() @ row + weights["c.bias"]

    norms = [torch.autograd.functional.jacobian(f, row).norm() for row in x]
    assert result["gradient_norm"]["value"] == pytest.approx(float(sum(norms)) / len(x), rel=1e-12)


def test_the_same_model_exported(numbers, folder):
    names: dict[str, type[torch.nn.Module]] = {}
    exec(STYLES, names)
    model = names["Shallow"]().eval()
    model.load_state_dict(torch.load(folder / "shallow.pt", weights_only=True))
    batch = ({0: torch.export.Dim.AUTO},)
    exported = torch.export.export(model, (torch.zeros(2, 5),), dynamic_shapes=batch)
    torch.export.save(exported, folder / "model.pt2")
    found, _ = measured(folder, "--model", f"{folder}/model.pt2")
    expected = numbers("Shallow")
    assert found.keys() == expected.keys() - {"effective_rank"}  # operations, and no layers
    for name in found:  # other kernels may round otherwise in float32
        assert found[name]["value"] == pytest.approx(expected[name]["value"], rel=1e-5)
