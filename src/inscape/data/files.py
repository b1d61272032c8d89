"""The published files of each data set: names, hashes, sizes and mirrors; needs no torch."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["idx", "npz", "binary", "pickle"]


@dataclass(frozen=True, kw_only=True)
class Form:
    """A file format of a part, recognised by the hash of its unpacked bytes.

    ``sha256`` is ours, computed from a file with the published md5; empty where none was at hand.
    """

    kind: Kind
    names: tuple[str, ...]
    algorithm: str
    digest: str
    size: int = 0  # of the unpacked bytes; 0 if it is not published
    sha256: str = ""


@dataclass(frozen=True)
class DatasetPart:
    """One piece of a data set, such as the training images."""

    name: str
    forms: tuple[Form, ...]


@dataclass(frozen=True, kw_only=True)
class Remote:
    """One file on the mirrors, the parts that it brings and the folder that takes them."""

    name: str
    mirrors: tuple[str, ...]
    algorithm: str
    digest: str
    size: int
    sha256: str = ""  # beside a published md5
    parts: tuple[str, ...]
    folder: str
    members: tuple[str, ...] = ()  # of an archive: the member of each part


@dataclass(frozen=True, kw_only=True)
class FileSet:
    """All files of one data set and the folders in which people keep them."""

    name: str
    folders: tuple[str, ...]
    parts: tuple[DatasetPart, ...]
    remotes: tuple[Remote, ...]
    partial: bool = False  # whether some of the parts are of use without the others


_IDX = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
_IDX_PARTS = ("train-images", "train-labels", "test-images", "test-labels")
_IDX_SIZES = (47040016, 60008, 7840016, 10008)
_IDX_FOLDERS = ("", "mnist", "MNIST/raw", "fashion-mnist", "FashionMNIST/raw", "fashion")


def _idx_parts(algorithm: str, digests: tuple[str, ...], npz: str) -> tuple[DatasetPart, ...]:
    """Return the four parts; their unpacked bytes are hashed, however they were packed."""
    parts = []
    for part, idx, size, digest in zip(_IDX_PARTS, _IDX, _IDX_SIZES, digests, strict=True):
        unpacked = (f"{idx}-ubyte", f"{idx[:-5]}.{idx[-4:]}-ubyte")
        names = tuple(name + end for name in unpacked for end in ("", ".gz"))
        known = {"algorithm": algorithm, "digest": digest}
        forms = (
            Form(kind="idx", names=names, size=size, **known),
            Form(kind="npz", names=(npz,), size=size, **known),
        )
        parts.append(DatasetPart(part, forms))
    return tuple(parts)


def _idx_remotes(
    folder: str, mirrors: tuple[str, ...], known: tuple[tuple[int, str], ...]
) -> tuple[Remote, ...]:
    return tuple(
        Remote(
            name=f"{idx}-ubyte.gz",
            mirrors=mirrors,
            algorithm="sha256",
            digest=digest,
            size=size,
            parts=(part,),
            folder=folder,
        )
        for part, idx, (size, digest) in zip(_IDX_PARTS, _IDX, known, strict=True)
    )


_BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
_BINARY_MD5 = (
    "5dd7e06a14cb22eb9f671a540d1b7c25",
    "5ea93a67294ea407fff1d09f752e9692",
    "942cd6a4bcdd0dd3c604fbe906cb4421",
    "ae636b3ba5c66a11e91e8cb52e771fcb",
    "53f37980c15c3d472c316c40844f3f0d",
    "803d5f7f4d78ea53de84dbe85f74fb6d",
)
_BINARY_SHA256 = (
    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
)
_PICKLE_MD5 = (
    "c99cafc152244af753f735de768cd75f",
    "d4bba439e000b95fd0a9bffe97cbabec",
    "54ebc095f3ab1f0389bbae665268c751",
    "634d18415352ddfa80567beed471001a",
    "482c414d41f54cd18b22e5b47cb7c3cb",
    "40351d587109b95175f43aff81a1287e",
)


def _cifar_parts() -> tuple[DatasetPart, ...]:
    parts = []
    hashes = zip(_BATCHES, _BINARY_MD5, _BINARY_SHA256, _PICKLE_MD5, strict=True)
    for name, binary, sha256, pickle in hashes:
        forms = (
            Form(
                kind="binary",
                names=(f"{name}.bin",),
                algorithm="md5",
                digest=binary,
                size=30730000,
                sha256=sha256,
            ),
            Form(kind="pickle", names=(name,), algorithm="md5", digest=pickle),
        )
        parts.append(DatasetPart(name, forms))
    return tuple(parts)


def _cifar_remote(kind: str, folder: str, end: str, *, size: int, md5: str, sha256: str) -> Remote:
    return Remote(
        name=f"cifar-10-{kind}.tar.gz",
        mirrors=("https://www.cs.toronto.edu/~kriz/",),
        algorithm="md5",
        digest=md5,
        size=size,
        sha256=sha256,
        parts=_BATCHES,
        folder=folder,
        members=tuple(f"{folder}/{name}{end}" for name in _BATCHES),
    )


FILE_SETS = {
    "mnist": FileSet(
        name="mnist",
        folders=_IDX_FOLDERS,
        parts=_idx_parts(
            "sha256",
            (
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
            "mnist.npz",
        ),
        remotes=_idx_remotes(
            "mnist",
            (
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://storage.googleapis.com/cvdf-datasets/mnist/",
            ),
            (
                (9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
                (28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
                (1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
                (4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
            ),
        ),
    ),
    "fashion-mnist": FileSet(
        name="fashion-mnist",
        folders=_IDX_FOLDERS,
        parts=_idx_parts(
            "md5",
            (
                "f4a8712d7a061bf5bd6d2ca38dc4d50a",
                "9018921c3c673c538a1fc5bad174d6f9",
                "8181f5470baa50b63fa0f6fddb340f0a",
                "15d484375f8d13e6eb1aabb0c3f46965",
            ),
            "fashion-mnist.npz",
        ),
        remotes=_idx_remotes(
            "fashion-mnist",
            ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
            (
                (26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
                (29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
                (4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
                (5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
            ),
        ),
    ),
    "cifar10": FileSet(
        name="cifar10",
        folders=("", "cifar-10-batches-bin", "cifar-10-batches-py"),
        parts=_cifar_parts(),
        remotes=(
            _cifar_remote(
                "python",
                "cifar-10-batches-py",
                "",
                size=170498071,
                md5="c58f30108f718f92721af3b95e74349a",
                sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
            ),
            _cifar_remote(
                "binary",
                "cifar-10-batches-bin",
                ".bin",
                size=170052171,
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        partial=True,
    ),
}
