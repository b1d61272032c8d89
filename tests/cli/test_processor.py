"""``inscape doctor`` on the processor, its BLAS, and the bits of slots: on any machine."""

import json

import torch

from inscape.ensembles import slots
from inscape.ensembles.slots import slots_agree
from inscape.environment import processor


def by_slot(left, right):
    """Multiply with a last slot that is rounded in another way."""
    result = torch.bmm(left, right)
    result[-1] *= 1 + 4 * torch.finfo(result.dtype).eps
    return result


def test_slots_agree_or_one_that_differs_is_seen():
    assert slots_agree(lambda left, right: (left[:1] @ right[:1]).expand(len(left), -1, -1))
    assert not slots_agree(by_slot)


def test_facts_of_the_processor(run, monkeypatch):
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    result = json.loads(run("doctor", "--json").stdout)["processor"]
    assert result["processor"]
    assert result["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert f"{torch.get_num_threads()} threads" in result["BLAS of torch"]
    assert ("MKL" in result["BLAS of torch"]) == torch.backends.mkl.is_available()
    assert result["BLAS of NumPy"]
    assert "MKL_CBWR=AVX2" in result["settings"]
    assert result["slots of a stack agree bit for bit"].startswith("yes" if slots_agree() else "no")


def test_slots_that_differ_are_said(monkeypatch):
    monkeypatch.setattr(slots, "aligned_product", by_slot)
    answer = processor.processor()["slots of a stack agree bit for bit"]
    assert answer == "no: networks are trained in a loop"


def test_the_name_of_a_processor(tmp_path, monkeypatch):
    info = tmp_path / "cpuinfo"
    info.write_text("vendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9B14\nmodel name\t: other\n")
    assert processor.processor_name(info) == "AMD EPYC 9B14"
    monkeypatch.setattr(processor.platform, "processor", lambda: "")
    monkeypatch.setattr(processor.platform, "machine", lambda: "arm64")
    assert processor.processor_name(tmp_path / "none") == "arm64"


def test_a_torch_without_mkl_and_a_numpy_without_a_known_blas(monkeypatch):
    monkeypatch.setattr(torch.__config__, "show", lambda: "BLAS_INFO=open, X=1")
    monkeypatch.setattr(torch.__config__, "parallel_info", lambda: "")
    assert processor.torch_blas().startswith("open, threading not known, ")
    monkeypatch.setattr("threadpoolctl.threadpool_info", list)
    assert processor.numpy_blas() == []
