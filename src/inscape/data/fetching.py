"""Fetch the files that a data set lacks: download, check, unpack into the cache."""

import tarfile
import zlib
from pathlib import Path

from inscape.data.download import disk_error, download
from inscape.data.files import Remote
from inscape.data.places import cache_dir, roots
from inscape.data.store import DataFile, file_set, find, mismatch, search, set_aside
from inscape.errors import DataError
from inscape.files.atomic import write
from inscape.runtime.progress import progress


def fetch(
    name: str,
    *,
    data_dir: str | Path | None = None,
    to: str | Path | None = None,
    mirrors: tuple[str, ...] = (),
    timeout: float = 30.0,
    pause: float = 1.0,
) -> list[DataFile]:
    """Download what is missing or bad of a data set and return the state of its files.

    Files that are already there, in ``data_dir`` (or INSCAPE_DATA_DIR) or in the cache, are not
    fetched again; an interrupted download goes on where it stopped. Every file is checked
    against its published hash, whichever mirror gave it, and no more than its published size is
    received. Plain http is used only where a sha256 is known.

    Args:
        name: A data set of the catalogue.
        data_dir: Where to look before the cache.
        to: Folder that receives the files; the user's cache if not given.
        mirrors: Base addresses (http or https) to try before the published ones.
        timeout: Seconds without a byte after which a connection counts as broken.
        pause: Seconds between two tries of a broken transfer.
    """
    files = file_set(name)
    if files is None:
        return []
    for mirror in mirrors:
        if not mirror.startswith(("http://", "https://")):
            raise ValueError(f"a mirror must start with http:// or https://, found {mirror!r}.")
    target = Path(to).expanduser() if to is not None else cache_dir()
    folders = roots(data_dir) if to is None else (*roots(data_dir), target)
    lacking = _lacking([set_aside(row) for row in search(files, folders)])
    failures: list[str] = []
    for i, remote in enumerate(files.remotes):
        if lacking.isdisjoint(remote.parts):
            continue
        try:
            _obtain(remote, folders, target, mirrors, timeout=timeout, pause=pause)
            lacking -= set(remote.parts)
        except ConnectionError as error:
            failures.append(str(error))
            others = files.remotes[i + 1 :]
            if not any(set(remote.parts) <= set(other.parts) for other in others):
                raise ConnectionError(" ".join(failures)) from error
    fetched = find(name, data_dir if to is None else target)
    if wrong := _lacking(fetched):
        raise DataError(
            f"{files.name} must be whole after fetching, found {', '.join(sorted(wrong))} missing "
            f"or bad in {target}: remove what is there and fetch again."
        )
    return fetched


def _lacking(rows: list[DataFile]) -> set[str]:
    good = {row.part for row in rows if row.state == "ok"}
    return {row.part for row in rows} - good


def _obtain(
    remote: Remote,
    folders: tuple[Path, ...],
    target: Path,
    mirrors: tuple[str, ...],
    *,
    timeout: float,
    pause: float,
) -> None:
    """Download one remote file, or use its archive where a searched folder has it."""
    if remote.members:
        for root in folders:
            at_hand = root / remote.name
            if at_hand.is_file() and _is_whole(at_hand, remote):
                _unpack(at_hand, remote, target)
                return
    place = target if remote.members else target / remote.folder
    path = download(
        tuple(f"{base.rstrip('/')}/{remote.name}" for base in (*mirrors, *remote.mirrors)),
        place / remote.name,
        remote,
        timeout=timeout,
        pause=pause,
    )
    if remote.members:
        _unpack(path, remote, target)
        path.unlink()


def _is_whole(path: Path, remote: Remote) -> bool:
    return path.stat().st_size == remote.size and not mismatch(path.read_bytes(), remote)


def _unpack(archive: Path, remote: Remote, target: Path) -> None:
    """Write the named members, if they are plain files, to names of our own; nothing else."""
    folder = target / remote.folder
    label = f"unpacking {archive.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            archive.open("rb") as packed,
            tarfile.open(fileobj=packed, mode="r:gz") as tar,
            progress(archive.stat().st_size, label=label, in_bytes=True) as meter,
        ):
            for member in tar:
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None and member.name in remote.members:
                    write(folder / member.name.rpartition("/")[2], file.read())
                meter.advance(packed.tell() - meter.done)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(
            f"{archive} must be a whole tar.gz archive, found a damaged one ({error}): fetch it "
            "again."
        ) from error
    except OSError as error:
        raise disk_error(error, folder / remote.name) from error
