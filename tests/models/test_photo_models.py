"""ResNets and Inception-v3: counts, work and keys as published, forward passes by hand."""

import hashlib
from pathlib import Path

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from hostile.kinds import Payload
from inscape.errors import DataError
from inscape.models import missing_weights, pretrained, resnet
from inscape.models.inception_v3 import InceptionV3
from inscape.models.pretrained import PUBLISHED, PublishedWeights
from inscape.models.resnet import ResNet
from inscape.piecewise.graph.network import piecewise

#: Weights, and multiplications in units of 1e9 for one image, as published with the weights.
FACTS = {
    "resnet18": (11_689_512, 1.814, 224),
    "resnet50": (25_557_032, 4.089, 224),
    "resnet152": (60_192_808, 11.514, 224),
    "inception_v3": (27_161_264, 5.713, 299),
    "mobilenet_v2": (3_504_872, 0.301, 224),
}


@pytest.mark.parametrize("name", FACTS)
def test_weights_and_work_are_as_published(name):
    weights, work, side = FACTS[name]
    model = PUBLISHED[name].make().eval()  # on the meta device: no memory, no time
    assert sum(p.numel() for p in model.parameters()) == weights
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        scores = model(torch.empty(1, 3, side, side, device="meta"))
    assert scores.shape == (1, 1000)
    assert counter.get_total_flops() / 2e9 == pytest.approx(work, abs=6e-4)


def official_keys(blocks, convolutions):
    """Return the keys of a published ResNet, with how many of the norms' five each has."""
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    keys = ["conv1.weight", *(f"bn1.{part}" for part in norm), "fc.weight", "fc.bias"]
    for stage, count in enumerate(blocks, 1):
        for block in range(count):
            place = f"layer{stage}.{block}"
            for k in range(1, convolutions + 1):
                keys += [f"{place}.conv{k}.weight", *(f"{place}.bn{k}.{part}" for part in norm)]
            if block == 0 and (stage > 1 or convolutions == 3):
                keys += [f"{place}.downsample.0.weight"]
                keys += [f"{place}.downsample.1.{part}" for part in norm]
    return keys


@pytest.mark.parametrize(
    ("depth", "blocks", "convolutions"),
    [(18, (2, 2, 2, 2), 2), (50, (3, 4, 6, 3), 3), (152, (3, 8, 36, 3), 3)],
)
def test_keys_of_resnets_are_the_published_ones(depth, blocks, convolutions):
    keys = official_keys(blocks, convolutions)
    assert set(ResNet(depth, 3, 1000).state_dict()) == set(keys)


def test_keys_of_inception_are_the_published_ones():
    shapes = {
        key: tuple(value.shape)
        for key, value in PUBLISHED["inception_v3"].make().state_dict().items()
    }
    assert len(shapes) == 580
    expected = {
        "Conv2d_1a_3x3.conv.weight": (32, 3, 3, 3),
        "Conv2d_4a_3x3.bn.running_var": (192,),
        "Mixed_5b.branch_pool.conv.weight": (32, 192, 1, 1),
        "Mixed_5d.branch5x5_2.conv.weight": (64, 48, 5, 5),
        "Mixed_6a.branch3x3.conv.weight": (384, 288, 3, 3),
        "Mixed_6b.branch7x7dbl_2.conv.weight": (128, 128, 7, 1),
        "Mixed_6e.branch7x7_2.conv.weight": (192, 192, 1, 7),
        "AuxLogits.conv1.conv.weight": (768, 128, 5, 5),
        "AuxLogits.fc.weight": (1000, 768),
        "Mixed_7a.branch7x7x3_4.conv.weight": (192, 192, 3, 3),
        "Mixed_7c.branch3x3dbl_3b.conv.weight": (384, 384, 3, 1),
        "Mixed_7c.branch3x3_2a.bn.num_batches_tracked": (),
        "fc.weight": (1000, 2048),
    }
    assert {key: shapes[key] for key in expected} == expected


def drawn_state(model, seed=0):
    """Return a random state dict of the keys and shapes of a model."""
    draw, state = torch.Generator().manual_seed(seed), {}
    for key, value in model.state_dict().items():
        if value.dtype is torch.int64:
            state[key] = torch.tensor(0)
        elif key.endswith("running_var"):
            state[key] = torch.rand(value.shape, generator=draw) + 0.5
        else:
            scale = (2 / max(1, value[0].numel())) ** 0.5 if value.ndim > 1 else 0.5
            state[key] = scale * torch.randn(value.shape, generator=draw)
    return state


class ByHand:
    """A network's layers by the keys of its state dict."""

    def __init__(self, state, eps):
        self.state, self.eps = state, eps

    def norm(self, key, x):
        names = ("running_mean", "running_var", "weight", "bias")
        return functional.batch_norm(x, *(self.state[f"{key}.{n}"] for n in names), eps=self.eps)

    def conv(self, key, x, stride=1, pad=0):
        return functional.conv2d(x, self.state[f"{key}.weight"], None, stride, pad)

    def basic(self, key, x, **settings):
        """Return what a block of Inception calls a convolution."""
        return self.norm(f"{key}.bn", self.conv(f"{key}.conv", x, **settings)).relu()


@pytest.mark.parametrize("depth", [18, 50])
def test_resnet_computes_what_the_paper_says(depth):
    model = ResNet(depth, 3, 1000).eval()
    state = drawn_state(model)
    model.load_state_dict(state, assign=True)
    x = torch.rand(1, 3, 40, 36, generator=torch.Generator().manual_seed(1))
    by, blocks = ByHand(state, 1e-5), {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}[depth]
    out = functional.max_pool2d(by.norm("bn1", by.conv("conv1", x, 2, 3)).relu(), 3, 2, 1)
    for stage, count in enumerate(blocks, 1):
        for block in range(count):
            place, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            if depth == 18:
                inner = by.norm(f"{place}.bn1", by.conv(f"{place}.conv1", out, stride, 1)).relu()
                inner = by.norm(f"{place}.bn2", by.conv(f"{place}.conv2", inner, 1, 1))
            else:
                inner = by.norm(f"{place}.bn1", by.conv(f"{place}.conv1", out)).relu()
                inner = by.norm(f"{place}.bn2", by.conv(f"{place}.conv2", inner, stride, 1)).relu()
                inner = by.norm(f"{place}.bn3", by.conv(f"{place}.conv3", inner))
            if f"{place}.downsample.0.weight" in state:
                out = by.norm(
                    f"{place}.downsample.1", by.conv(f"{place}.downsample.0", out, stride)
                )
            out = (out + inner).relu()
    with torch.no_grad():
        expected = out.mean((2, 3)) @ state["fc.weight"].T + state["fc.bias"]
        assert_close(model(x), expected, atol=1e-3, rtol=1e-4)  # float32, dozens of layers


def inception_blocks(by, x):
    """Return what the blocks of kinds A to E give for one input of 192 channels each in turn."""

    def chain(place, x, *steps):
        for name, settings in steps:
            x = by.basic(f"{place}.{name}", x, **settings)
        return x

    p, mean = {"pad": 1}, lambda x: functional.avg_pool2d(x, 3, 1, 1)
    row, column = {"pad": (0, 3)}, {"pad": (3, 0)}
    a = torch.cat([
        chain("Mixed_5b", x, ("branch1x1", {})),
        chain("Mixed_5b", x, ("branch5x5_1", {}), ("branch5x5_2", {"pad": 2})),
        chain("Mixed_5b", x, ("branch3x3dbl_1", {}), ("branch3x3dbl_2", p), ("branch3x3dbl_3", p)),
        chain("Mixed_5b", mean(x), ("branch_pool", {})),
    ], 1)  # fmt: skip
    b_in = torch.cat([a, a[:, :32]], 1)
    b = torch.cat([
        chain("Mixed_6a", b_in, ("branch3x3", {"stride": 2})),
        chain("Mixed_6a", b_in, ("branch3x3dbl_1", {}), ("branch3x3dbl_2", p),
              ("branch3x3dbl_3", {"stride": 2})),
        functional.max_pool2d(b_in, 3, 2),
    ], 1)  # fmt: skip
    c = torch.cat([
        chain("Mixed_6b", b, ("branch1x1", {})),
        chain("Mixed_6b", b, ("branch7x7_1", {}), ("branch7x7_2", row), ("branch7x7_3", column)),
        chain("Mixed_6b", b, ("branch7x7dbl_1", {}), ("branch7x7dbl_2", column),
              ("branch7x7dbl_3", row), ("branch7x7dbl_4", column), ("branch7x7dbl_5", row)),
        chain("Mixed_6b", mean(b), ("branch_pool", {})),
    ], 1)  # fmt: skip
    d = torch.cat([
        chain("Mixed_7a", c, ("branch3x3_1", {}), ("branch3x3_2", {"stride": 2})),
        chain("Mixed_7a", c, ("branch7x7x3_1", {}), ("branch7x7x3_2", row),
              ("branch7x7x3_3", column), ("branch7x7x3_4", {"stride": 2})),
        functional.max_pool2d(c, 3, 2),
    ], 1)  # fmt: skip
    three = chain("Mixed_7b", d, ("branch3x3_1", {}))
    double = chain("Mixed_7b", d, ("branch3x3dbl_1", {}), ("branch3x3dbl_2", p))
    wide, high = {"pad": (0, 1)}, {"pad": (1, 0)}
    e = torch.cat([
        chain("Mixed_7b", d, ("branch1x1", {})),
        chain("Mixed_7b", three, ("branch3x3_2a", wide)),
        chain("Mixed_7b", three, ("branch3x3_2b", high)),
        chain("Mixed_7b", double, ("branch3x3dbl_3a", wide)),
        chain("Mixed_7b", double, ("branch3x3dbl_3b", high)),
        chain("Mixed_7b", mean(d), ("branch_pool", {})),
    ], 1)  # fmt: skip
    return {"Mixed_5b": (x, a), "Mixed_6a": (b_in, b), "Mixed_6b": (b, c), "Mixed_7a": (c, d),
            "Mixed_7b": (d, e)}  # fmt: skip


def test_blocks_of_inception_compute_what_the_paper_says():
    model = InceptionV3(7, aux=False, transform_input=False).eval()
    blocks = ("Mixed_5b", "Mixed_6a", "Mixed_6b", "Mixed_7a", "Mixed_7b")
    state = {}
    for name in blocks:
        own = drawn_state(getattr(model, name), seed=len(state))
        getattr(model, name).load_state_dict(own, assign=True)
        state |= {f"{name}.{key}": value for key, value in own.items()}
    x = torch.rand(1, 192, 9, 9, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for name, (before, after) in inception_blocks(ByHand(state, 1e-3), x).items():
            assert_close(getattr(model, name)(before), after, msg=name)


def test_normalising_anew_is_the_affine_map_of_the_published_network():
    model = InceptionV3(3, aux=False, transform_input=True)
    entered = []

    def enter(module, args):
        entered.append(args[0])
        raise InterruptedError

    model.Conv2d_1a_3x3.register_forward_pre_hook(enter)
    raw = torch.rand(2, 3, 75, 75)
    means = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    deviations = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    with pytest.raises(InterruptedError):
        model((raw - means) / deviations)
    assert_close(entered[0], (raw - 0.5) / 0.5)


def test_resnet_is_piecewise_linear_and_one_seed_is_one_network():
    one, two = resnet(18, classes=3, seed=4), resnet(18, classes=3, seed=4)
    assert torch.equal(one.conv1.weight, two.conv1.weight)
    assert not one.training
    assert len(piecewise(one, torch.rand(1, 3, 32, 32)).ops) == 18  # 17 ReLUs and a pool
    with pytest.raises(ValueError, match="depth must be one of 18, 34, 50, 101, 152, found 20"):
        resnet(20)


def test_weights_are_read_from_a_file_of_the_user_by_their_hash(tmp_path, monkeypatch):
    monkeypatch.setenv("INSCAPE_WEIGHTS_DIR", str(tmp_path))
    state = drawn_state(PUBLISHED["mobilenet_v2"].make())
    needed = tmp_path / "mobilenet_v2-b0353104.pth"
    assert missing_weights("mobilenet_v2") == f"not run: needs {needed.name}, put it at {needed}"
    with pytest.raises(DataError, match=r"needs its published weights, found none: not run: needs"):
        pretrained("mobilenet_v2")
    old = {key: value for key, value in state.items() if "num_batches" not in key}
    torch.save(old, needed)
    assert missing_weights("mobilenet_v2") is None
    with pytest.raises(DataError, match=r"must begin with b0353104, found .*: get the file again"):
        pretrained("mobilenet_v2")
    digest = hashlib.sha256(needed.read_bytes()).hexdigest()
    model = pretrained("mobilenet_v2", sha256=digest[:12])
    assert not model.training
    assert all(torch.equal(model.state_dict()[key], value) for key, value in state.items())
    assert all(p.requires_grad for p in model.parameters())
    with pytest.raises(DataError, match=r"must hold the weights of resnet18, found \d+ other keys"):
        pretrained("resnet18", file=needed, sha256=digest)
    with pytest.raises(DataError, match=r"found nothing at .*none.pth: look there"):
        pretrained("resnet18", file=tmp_path / "none.pth")
    with pytest.raises(ValueError, match=r"found 'resnet19': did you mean resnet18"):
        pretrained("resnet19")


def hostile_files(mark):
    """Yield files that are not the weights of a small network, and what is said of each."""
    good = {"weight": torch.zeros(2, 3), "bias": torch.zeros(2)}
    yield good | {"weight": torch.zeros(1).expand(2**20, 2**20)}, "must unpack to at most"
    yield good | {"weight": torch.zeros(2, 3).to_sparse()}, "must hold dense tensors"
    yield good | {"weight": torch.zeros(2, 3, device="meta")}, "must hold dense tensors"
    yield good | {"weight": Payload(mark)}, "what cannot be read without running code"
    yield good | {"bias": torch.zeros(2, dtype=torch.int64)}, "other keys, shapes or dtypes, the"
    yield good | {"bias": 1.0}, "found 1 other keys, shapes or dtypes, the first 'bias'"
    yield good | {7: torch.zeros(2)}, "found 1 other keys, shapes or dtypes, the first '7'"
    yield [torch.zeros(2)], "found 2 other keys, shapes or dtypes, the first 'weight'"


@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch, about sparse tensors
def test_hostile_weights_are_refused_and_run_nothing(tmp_path, monkeypatch):
    small = PublishedWeights(lambda: torch.nn.Linear(3, 2, device="meta"), ("small-00000000.pth",))
    monkeypatch.setitem(PUBLISHED, "small", small)
    path, mark = tmp_path / "weights.pth", tmp_path / "was_here"
    for content, text in hostile_files(mark):
        torch.save(content, path)
        with pytest.raises(DataError, match=text):
            pretrained("small", file=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    for content in (b"", b"PK", b"no weights"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="must hold the weights of small and nothing else"):
            pretrained("small", file=path, sha256=hashlib.sha256(content).hexdigest())
    assert not mark.exists()
    with pytest.raises(ValueError, match="sha256 must be 8 to 64 hexadecimal digits, found 'ab'"):
        pretrained("small", file=path, sha256="ab")


@pytest.mark.data
def test_published_weights_of_mobilenet_are_found_by_their_name(monkeypatch):
    folder = Path(__file__).parents[3] / "shared" / "weights"
    if not folder.is_dir():
        pytest.skip(f"weights not found: {folder}")
    monkeypatch.setenv("INSCAPE_WEIGHTS_DIR", str(folder))
    model = pretrained("mobilenet_v2")
    assert model(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)
