"""What is installed here, what works and what is missing: the facts of ``inscape doctor``."""

from pathlib import Path

from inscape.environment import installation

Facts = dict[str, object]

__all__ = ["Facts", "examine"]


def examine(
    data_dir: Path | None = None, results: Path = Path("results")
) -> tuple[Facts, list[str]]:
    """Return all facts, and a sentence about each needed thing that does not work.

    Args:
        data_dir: Folder of data sets to look into before the cache.
        results: Folder of records to look into.
    """
    packages = list(installation.packages())
    devices = installation.devices()
    broken = [
        f"{fact['package']} {fact['needs']} is needed, found {fact['found'] or 'none'}: "
        "install inscape again."
        for fact in packages
        if fact["state"] != "ok"
    ]
    facts: Facts = {
        "system": installation.system(),
        "packages": packages,
        "extras": list(installation.extras()),
        "devices": devices,
        "instruments": installation.instruments(),
    }
    if devices["state"] != "ok":
        return facts, [*broken, f"{devices['state']}: install torch again."]
    return facts, [*broken, *_with_torch(facts, data_dir, results)]


def _with_torch(facts: Facts, data_dir: Path | None, results: Path) -> list[str]:
    """Add what cannot be examined without torch, and return what is broken."""
    from inscape.data import cache_dir
    from inscape.environment import stored_files
    from inscape.environment.processor import processor

    broken: list[str] = []
    facts["processor"] = processor()
    facts["cache"] = stored_files.folder(cache_dir())
    try:
        facts["data"] = list(stored_files.datasets(data_dir))
    except ValueError as error:
        broken.append(str(error))
    try:
        facts["records"], damaged = stored_files.records(results)
        broken += damaged
    except ValueError as error:
        broken.append(str(error))
    return broken
