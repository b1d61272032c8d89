import pytest
import torch

from inscape.errors import DataError
from inscape.files import size_limits


def test_the_limit_is_2_gb_or_a_quarter_of_memory(monkeypatch):
    monkeypatch.setattr(size_limits, "memory", lambda: 100_000_000_000)
    assert size_limits.size_limit() == 2_000_000_000
    monkeypatch.setattr(size_limits, "memory", lambda: 4_000_000_000)
    assert size_limits.size_limit() == 1_000_000_000
    assert size_limits.size_limit(3) == 3


def test_the_memory_of_a_container_counts(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(size_limits, "_CONTROL_GROUP", limit)
    whole = size_limits.memory()
    limit.write_text("max\n")
    assert size_limits.memory() == whole
    limit.write_text("1000000\n")
    assert size_limits.memory() == 1_000_000


@pytest.mark.parametrize("size", [0, -1, True])
def test_a_limit_that_is_none_is_refused(size):
    with pytest.raises(ValueError, match="max_size must be a positive integer of bytes"):
        size_limits.size_limit(size)


def test_both_figures_and_the_option_are_said():
    with pytest.raises(
        DataError,
        match=r"a\.npz must unpack to at most 1 kB, found 4\.29 GB: use --max-size 5GB "
        r"\(max_size=4294967296\)",
    ):
        size_limits.check_size("a.npz", 2**32, max_size=1000)
    size_limits.check_size("a.npz", 1000, max_size=1000)


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1e9", "4 XB", "0", "0.0001kB", "9" * 40])
def test_a_size_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="--max-size must be a size such as 4GB or 500MB, found"):
        size_limits.read_size(text)


def test_tensors_count_by_what_they_would_take():
    small = torch.zeros(1)
    size_limits.check_tensors({"a": [small, (small,)]}, "f.pt", max_size=4)  # the same one, once
    with pytest.raises(DataError, match="must unpack to at most 4 bytes, found 8 bytes"):
        size_limits.check_tensors([small, small.clone()], "f.pt", max_size=4)
    with pytest.raises(DataError, match=r"found 4\.4 TB"):
        size_limits.check_tensors(small.expand(2**20, 2**20), "f.pt")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")  # told once for each process
def test_only_dense_tensors_are_taken_from_files():
    place = torch.zeros(2, 1).long()
    kinds = {
        "a sparse": torch.sparse_coo_tensor(place, [1.0], (2, 2), check_invariants=True),
        "a quantized": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        r"an empty \(meta\)": torch.empty(2, device="meta"),
    }
    for kind, tensor in kinds.items():
        with pytest.raises(DataError, match=rf"dense tensors of numbers, found {kind} one: conv"):
            size_limits.check_tensors({"w": [tensor]}, "f.pt")


def test_containers_in_themselves_end():
    loop: list[object] = []
    loop.append(loop)
    for _ in range(100_000):
        loop = [loop]
    size_limits.check_tensors(loop, "f.pt", max_size=1)
