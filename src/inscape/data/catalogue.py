"""The catalogue of data sets, and how a text such as ``disc:n=512`` names one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from inscape.errors import did_you_mean

Value = bool | int | float | str | None

_SPREAD: dict[str, Value] = {"seed": 0, "dtype": "float32"}
_FILES: dict[str, Value] = {"n": None, "flat": True, "dtype": "float32"}


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """One data set: its line in the list, its settings and the function that makes it."""

    name: str
    summary: str
    maker: str  # "module:function" inside inscape.data
    cites: str = ""
    stand_in: str = ""  # an embedded set of the same form, for where the files are missing
    files: str = ""  # the published files that it reads; empty if it is made or embedded
    needs: tuple[str, ...] = ()  # integers without a default, written "4-9" in a spec
    settings: Mapping[str, Value] = field(default_factory=dict)  # name -> default

    @property
    def source(self) -> str:
        """Say where the data come from: ``made``, ``embedded`` or ``files``."""
        if self.files:
            return "files"
        return "embedded" if self.name.startswith("digits") else "made"


ENTRIES = (
    CatalogueEntry(
        name="disc",
        summary="sum (or product) of two numbers on the unit disc; regression",
        maker="toy:disc",
        cites="klindt, eq 2",
        settings={"n": 128, "n_test": 1280, "target": "addition", **_SPREAD},
    ),
    CatalogueEntry(
        name="annulus",
        summary="sum (or product) of two numbers on the annulus 0.5 <= |x| <= 1; regression",
        maker="toy:annulus",
        cites="klindt, eq 5",
        settings={"n": 256, "n_test": 1280, "inner": 0.5, "target": "addition", **_SPREAD},
    ),
    CatalogueEntry(
        name="noisy-sine",
        summary="noisy sine on [-2 pi, 2 pi], tested on [-3 pi, 3 pi]; regression",
        maker="toy:noisy_sine",
        cites="klindt, section 3.3",
        settings={"n": 128, "n_test": 300, "noise": 0.25, "noise_is": "variance", **_SPREAD},
    ),
    CatalogueEntry(
        name="gp",
        summary="a draw from a Gaussian process on [-1, 1] with f(0) = 0; regression",
        maker="gp:gaussian_process",
        cites="volhejn, section 4.3.1",
        settings={
            "n": 10,
            "n_test": 100,
            "length_scale": 0.5,
            "variance": 1.0,
            "order": "gap",
            "draw": "inscape",
            **_SPREAD,
        },
    ),
    CatalogueEntry(
        name="ball-versus-sphere",
        summary="the unit sphere (+1) around a ball of radius 0.5 (-1); two classes",
        maker="balls:ball_versus_sphere",
        cites="courtois, section 5.1",
        settings={"n": 1024, "n_test": 1024, "dimension": 2, "labels": "regression", **_SPREAD},
    ),
    CatalogueEntry(
        name="half-plane",
        summary="the two sides of a plane through the origin; two classes",
        maker="balls:half_plane",
        cites="courtois, section 5.2",
        settings={"n": 1024, "n_test": 1024, "dimension": 2, "labels": "regression", **_SPREAD},
    ),
    CatalogueEntry(
        name="circle-versus-annulus",
        summary="a disc inside an annulus, or a ball inside a shell; two classes",
        maker="balls:circle_versus_annulus",
        cites="sattelberg, section 4.2.1",
        settings={
            "n": 1000,
            "n_test": 1000,
            "dimension": 2,
            "radius": 0.5,
            "outer": None,
            "normalise": False,
            "labels": "classes",
            **_SPREAD,
        },
    ),
    CatalogueEntry(
        name="xor-circles",
        summary="circle versus annulus with the classes swapped in two quadrants; two classes",
        maker="balls:xor_circles",
        cites="sattelberg, section 6.1",
        settings={
            "n": 1000,
            "n_test": 1000,
            "radius": 0.5,
            "normalise": False,
            "labels": "classes",
            **_SPREAD,
        },
    ),
    CatalogueEntry(
        name="digits",
        summary="scikit-learn's digits, 1797 images of 8 x 8; ten classes",
        maker="embedded:digits",
        settings={"n": None, "n_test": 360, "seed": 0, "flat": True, "dtype": "float32"},
    ),
    CatalogueEntry(
        name="digits-binary",
        summary="two of scikit-learn's digits, labels +1 and -1, e.g. digits-binary:4-9",
        maker="embedded:digits_binary",
        needs=("a", "b"),
        settings={"n": None, "n_test": 360, "seed": 0, "flat": True, "dtype": "float32"},
    ),
    CatalogueEntry(
        name="mnist",
        summary="handwritten digits, 60,000 + 10,000 images of 28 x 28; ten classes",
        maker="images:mnist",
        stand_in="digits",
        files="mnist",
        settings=_FILES,
    ),
    CatalogueEntry(
        name="mnist-binary",
        summary="two digits of MNIST, labels +1 and -1, e.g. mnist-binary:4-9; regression",
        maker="images:mnist_binary",
        stand_in="digits-binary",
        cites="volhejn, section 4.3.2",
        files="mnist",
        needs=("a", "b"),
        settings=_FILES,
    ),
    CatalogueEntry(
        name="fashion-mnist",
        summary="clothes, 60,000 + 10,000 images of 28 x 28; ten classes",
        maker="images:fashion_mnist",
        files="fashion-mnist",
        settings=_FILES,
    ),
    CatalogueEntry(
        name="cifar10",
        summary="photographs, 50,000 + 10,000 images of 3 x 32 x 32; ten classes",
        maker="images:cifar10",
        files="cifar10",
        settings={**_FILES, "flat": False},
    ),
)

_ALIASES = {"gaussian-process": "gp", "cifar-10": "cifar10", "fashion": "fashion-mnist"}
_BY_NAME = {entry.name: entry for entry in ENTRIES}


def names() -> list[str]:
    """Return the names of all data sets."""
    return list(_BY_NAME)


def describe() -> dict[str, str]:
    """Return one line about each data set, by name."""
    return {entry.name: entry.summary for entry in ENTRIES}


def lookup(name: str) -> CatalogueEntry:
    """Return the entry of a name; capitals and underscores do not matter."""
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    key = _ALIASES.get(key, key)
    if key in _BY_NAME:
        return _BY_NAME[key]
    names = f"choose from {', '.join(_BY_NAME)}."
    hint = did_you_mean(key, [*_BY_NAME, *_ALIASES], otherwise=names)
    raise ValueError(f"no data set is called {name!r}: {hint}")


def parse(spec: str) -> tuple[CatalogueEntry, dict[str, Value]]:
    """Read ``NAME``, ``NAME:key=value,key=value`` or, for a pair of digits, ``NAME:4-9,n=64``.

    >>> parse("disc:n=512,seed=1")[1]
    {'n': 512, 'seed': 1}
    >>> parse("mnist-binary:4-9")[1]
    {'a': 4, 'b': 9}
    """
    name, _, text = spec.partition(":")
    entry = lookup(name)
    settings: dict[str, Value] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        key, equals, value = part.partition("=")
        pairs = {key.strip(): value.strip()} if equals else _pair(entry, part)
        for key, value in pairs.items():
            if key in settings:
                raise ValueError(f"{spec!r} gives {key} twice: keep one.")
            settings[key] = convert(entry, key, value)
    return entry, settings


def convert(entry: CatalogueEntry, key: str, value: Value) -> Value:
    """Check the name of a setting and, if its value is text, read it as its default's type."""
    if key not in entry.settings and key not in entry.needs:
        known = ", ".join((*entry.needs, *entry.settings))
        raise ValueError(f"{entry.name} has no setting {key!r}: its settings are {known}.")
    default = entry.settings.get(key)
    if not isinstance(value, str) or isinstance(default, str):
        return value
    kind = _kind(entry, key)
    try:
        return _READERS[kind](value)
    except (ValueError, KeyError):
        raise ValueError(
            f"{entry.name}: {key} must be {kind}, found {value!r}: write e.g. "
            f"{key}={'4' if default is None else str(default).lower()}."
        ) from None


def _kind(entry: CatalogueEntry, key: str) -> str:
    match entry.settings.get(key):
        case bool():
            return "true or false"
        case float():
            return "a number"
        case None if key in entry.settings:
            return "an integer or none"
    return "an integer"


_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_READERS: dict[str, Callable[[str], Value]] = {
    "true or false": lambda text: _FLAGS[text.lower()],
    "a number": float,
    "an integer or none": lambda text: None if text.lower() == "none" else int(text),
    "an integer": int,
}


def _pair(entry: CatalogueEntry, part: str) -> dict[str, str]:
    words = part.split("-")
    if not entry.needs or len(words) != len(entry.needs):
        form = "key=value" + (" or a pair such as 4-9" if entry.needs else "")
        raise ValueError(
            f"settings of {entry.name} must be written {form}, found {part!r}: "
            f"its settings are {', '.join((*entry.needs, *entry.settings))}."
        )
    return dict(zip(entry.needs, words, strict=True))
