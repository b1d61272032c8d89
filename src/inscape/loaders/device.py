"""Where to compute, and in which precision."""

import torch

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def choose_device(name: str | torch.device = "auto") -> torch.device:
    """Return the device of a name, or say that this machine has none.

    Args:
        name: ``auto`` (cuda, then mps, then cpu), ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
    """
    text = str(name)
    if text == "auto":
        text = next((kind for kind in ("cuda", "mps") if _count(kind)), "cpu")
    kind, _, number = text.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (":" in text and not number.isdigit()):
        raise ValueError(
            f"device must be auto, cpu, cuda, cuda:NUMBER or mps, found {text!r}: choose one of "
            "them."
        )
    available = _count(kind)
    if int(number or 0) >= available:
        raise ValueError(
            f"device {text!r} must exist on this machine, found {available} of kind {kind!r} "
            f"(torch {torch.__version__}): use --device cpu or auto."
        )
    return torch.device(text)


def choose_dtype(name: str | torch.dtype | None, device: torch.device) -> torch.dtype | None:
    """Return the precision of a name, or None where the model's own is to be kept."""
    if name is None:
        return None
    dtype = _DTYPES.get(str(name).removeprefix("torch."))
    if dtype is None:
        raise ValueError(f"dtype must be float32 or float64, found {name}: choose one of them.")
    if dtype == torch.float64 and device.type == "mps":
        raise ValueError(
            "dtype float64 must be computed on cpu or cuda, found device 'mps', which has none: "
            "use --device cpu or --dtype float32."
        )
    return dtype


def _count(kind: str) -> int:
    if kind == "cuda":
        return torch.cuda.device_count() if torch.cuda.is_available() else 0
    return int(torch.backends.mps.is_available()) if kind == "mps" else 1
