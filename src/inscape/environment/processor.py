"""The processor and its BLAS: what the rounding of a sum may depend on, for ``inscape doctor``."""

import os
import platform
import re
from pathlib import Path

Fact = dict[str, object]

#: Environment variables that choose other kernels than the processor's own.
SETTINGS = (
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
    "NPY_DISABLE_CPU_FEATURES",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
)


def processor() -> Fact:
    """Return the processor, the instructions in use, every BLAS, and whether slots agree."""
    import torch

    from inscape.ensembles.slots import slots_agree

    agreement = slots_agree()
    return {
        "processor": processor_name(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "BLAS of torch": torch_blas(),
        "BLAS of NumPy": ", ".join(numpy_blas()) or "not known",
        "settings": ", ".join(f"{n}={os.environ[n]}" for n in SETTINGS if n in os.environ)
        or "none",
        "slots of a stack agree bit for bit": "yes"
        if agreement
        else "no: networks are trained in a loop",
    }


def processor_name(info: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor as its maker gives it, or its architecture."""
    try:
        lines = info.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return next(filter(None, [*names, platform.processor(), platform.machine()]), "not known")


def torch_blas() -> str:
    """Return the name, version and number of threads of the library that multiplies in torch."""
    import torch

    described = f"{torch.__config__.show()}\n{torch.__config__.parallel_info()}"
    version = re.search(r"Math Kernel Library Version ([\d.]+)", described)
    names = [name for name in re.findall(r"BLAS_INFO=(\w+)", described) if name]
    name = f"MKL {version[1]}" if version else (names[0] if names else "not known")
    backend = re.search(r"parallel backend: (.+)", described)
    layer = backend[1].strip() if backend else "threading not known"
    return f"{name}, {layer}, {torch.get_num_threads()} threads"


def numpy_blas() -> list[str]:
    """Return name, version, kernels, threading and threads of each BLAS that NumPy may have loaded.

    SciPy may bring one of its own. That of torch is not among them where it is linked into torch.
    """
    import numpy.linalg  # noqa: F401  # loads it
    from threadpoolctl import threadpool_info

    return [
        " ".join(filter(None, (pool["internal_api"], pool["version"], pool.get("architecture"))))
        + f" ({pool.get('threading_layer', 'threading not known')}, {pool['num_threads']} threads)"
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
