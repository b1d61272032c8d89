"""``sweep``: many models measured with the same instruments, through the runner of the lab."""

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inscape._core import checks
from inscape.lab.executors import Executor
from inscape.lab.executors import executor as executor_of
from inscape.lab.runner import RunError, RunReport
from inscape.lab.runner import run as run_plan
from inscape.lab.store import Store
from inscape.loaders import OpenedData, open_data
from inscape.report.sweeps.cells import SHELF
from inscape.report.sweeps.columns import UserColumns, read_columns
from inscape.report.sweeps.models import entries
from inscape.report.sweeps.planning import SweepPlan, plan_sweep
from inscape.report.sweeps.table import Sweep
from inscape.report.sweeps.tabulation import tabulated
from inscape.selection import selected_instruments


@dataclass(frozen=True, eq=False, kw_only=True)
class PreparedSweep:
    """A sweep before it runs: its plan, where its records go, and who runs it."""

    plan: SweepPlan
    store: Store
    executor: Executor
    columns: UserColumns
    command: str | None
    temporary: bool

    @property
    def seconds(self) -> float:
        """Return the seconds that the missing cells are expected to take."""
        return self.plan.plan.wall(self.executor.jobs)

    def run(self, *, quiet: bool | None = None) -> Sweep:
        """Measure what is missing, and return the table of all."""
        since = time.monotonic()
        try:
            report = self._report(quiet)
            records = {record.key: record for record in self.plan.plan.records(self.store)}
        finally:
            SHELF.clear()
            if self.temporary:
                shutil.rmtree(self.store.root, ignore_errors=True)
        return tabulated(
            self.plan,
            records,
            report,
            columns=self.columns,
            seconds=time.monotonic() - since,
            command=self.command,
        )

    def _report(self, quiet: bool | None) -> RunReport:
        """Run the missing cells; those that fail are part of the report."""
        try:
            return run_plan(self.plan.plan, store=self.store, executor=self.executor, quiet=quiet)
        except RunError as error:
            return error.report


def sweep(
    models: object,
    data: object,
    *,
    only: str | Sequence[str] | None = None,
    measures: str | Sequence[str] | None = None,
    model: object = None,
    columns: object = None,
    budget: float | None = None,
    limit: int | None = None,
    seed: int = 0,
    executor: str | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    take: str | int | None = None,
    trust: bool = False,
    device: str = "cpu",
    dtype: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    fresh: bool = False,
    quiet: bool | None = None,
) -> Sweep:
    """Measure many models with the same instruments, on the same samples, and compare them.

    Work is fixed, not time: every model is measured on the same examples with the same draws, so
    that two models can be compared sample by sample. A model that cannot be opened or measured has
    a row that says why, and does not stop the others. With ``out`` every number is written to disk
    as soon as it is computed: the same call after a kill measures only what is missing.

    Args:
        models: Paths of models or checkpoints, folders or patterns of them, modules, scikit-learn
            models; a list, or a dictionary by name.
        data: What ``inscape.look`` takes: ``(x, y)``, a data set, a path or the name of one.
        only: Names of instruments, or families of them; by default those of a look.
        measures: Another name of ``only``.
        model: Builds the network of files that hold weights alone: ``FILE.py:FACTORY``,
            ``package.module:factory`` or a function.
        columns: Numbers of your own for each model, such as its test accuracy: the path of a CSV
            with a column of models, a data frame, or a dictionary of lists or dictionaries.
        budget: Seconds per model: chooses how many examples are measured, the same for all models,
            and leaves out what does not fit.
        limit: Examples of each split to keep, drawn with seed 0.
        seed: Seed of every draw.
        executor: ``serial``, ``joblib``, ``ray`` or ``slurm``; processes of this machine by
            default, this process where models or data are objects in memory.
        jobs: Cells at a time; all cores by default.
        out: Folder of the records; by default they are kept in memory alone.
        take: Which output to measure where a model returns several.
        trust: Allow files that run code of their own when they are opened.
        device: Where to compute.
        dtype: ``float32`` or ``float64``; None keeps each model's own.
        data_options: Further arguments of ``inscape.loaders.open_data``.
        fresh: Measure again what is there.
        quiet: True shows no progress, False does; None asks the environment.
    """
    prepared = prepare(
        models, data, only=only, measures=measures, model=model, columns=columns, budget=budget,
        limit=limit, seed=seed, executor=executor, jobs=jobs, out=out, take=take, trust=trust,
        device=device, dtype=dtype, data_options=data_options, fresh=fresh,
    )  # fmt: skip
    return prepared.run(quiet=quiet)


def prepare(
    models: object,
    data: object,
    *,
    only: str | Sequence[str] | None = None,
    measures: str | Sequence[str] | None = None,
    model: object = None,
    columns: object = None,
    budget: float | None = None,
    limit: int | None = None,
    seed: int = 0,
    executor: str | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    take: str | int | None = None,
    trust: bool = False,
    device: str = "cpu",
    dtype: str | None = None,
    max_size: int | None = None,
    data_options: Mapping[str, Any] | None = None,
    fresh: bool = False,
    keeps: bool = True,
    command: str | None = None,
) -> PreparedSweep:
    """Open and check what a sweep needs, and lay out its cells.

    Arguments are those of :func:`sweep`; ``keeps=False`` writes nothing, ``max_size`` bounds what
    a file unpacks to, and ``command`` is what repeats the sweep.
    """
    _check(only, measures, budget, seed)
    chosen = selected_instruments(measures if only is None else only, usual_of_families=True)
    options = {"take": take, "trust": trust, "device": device, "dtype": dtype, "max_size": max_size}
    listed = entries(models, factory=model, options=options)
    user_columns = read_columns(columns, listed)
    about = {**(data_options or {}), "limit": limit, "device": device, "max_size": max_size}
    source = data_settings(data, {key: _plain(value) for key, value in about.items()})
    local = "object" in source or any(entry.in_memory for entry in listed)
    runs = _executor(executor, jobs, local=local)
    store = Store(_temporary() if out is None else out)
    plan = plan_sweep(
        listed, chosen, source, seed=seed, budget=budget, store=store, fresh=fresh, keeps=keeps
    )
    return PreparedSweep(
        plan=plan,
        store=store,
        executor=runs,
        columns=user_columns,
        command=command,
        temporary=out is None,
    )


def _check(
    only: str | Sequence[str] | None,
    measures: str | Sequence[str] | None,
    budget: float | None,
    seed: int,
) -> None:
    checks.seed(seed)
    if only is not None and measures is not None:
        raise ValueError("only and measures are two names of one argument: give one of them.")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be a positive number of seconds, found {budget:g}.")


def _temporary() -> Path:
    """Return a folder that is made with the first record."""
    return Path(tempfile.gettempdir()) / f"inscape-sweep-{secrets.token_hex(8)}"


def _plain(value: Any) -> Any:
    """Return an option as a record can hold it; workers may be in another folder."""
    return str(value.expanduser().absolute()) if isinstance(value, Path) else value


def data_settings(data: object, about: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of cells that open the data; an object is kept for this process."""
    if isinstance(data, str | Path):
        path = Path(data).expanduser()
        return {"spec": str(path.absolute()) if path.exists() else str(data), **about}
    opened = data if isinstance(data, OpenedData) else open_data(data, **{**about, "limit": None})
    digest = f"{opened.hash}-{len(opened.x)}"
    SHELF.objects[digest] = opened
    return {"object": digest, "limit": about["limit"]}


def _executor(name: str | None, jobs: int | None, *, local: bool) -> Executor:
    """Return where cells run: in this process where only it has the models or the data."""
    if jobs is not None:
        checks.at_least(1, jobs=jobs)
    if local:
        if name not in (None, "serial"):
            raise ValueError(
                f"models and data in memory must be measured in this process, found "
                f"executor={name!r}: leave it out, or save them and give their paths."
            )
        return executor_of("serial")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    count = cores if jobs is None else jobs
    return executor_of(name or ("joblib" if count > 1 else "serial"), count)
