"""The lab: experiments of papers, run cell by cell, resumed where they stopped, and judged.

Nothing is imported before it is used, so that ``inscape list`` needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inscape.index import Listing
    from inscape.lab.catalogue import experiments, paper_facts, papers
    from inscape.lab.executors import Done, Executor, Failure, Task, executor
    from inscape.lab.experiment import Estimate, Experiment, Trend, Value, claim_hash
    from inscape.lab.planning import Plan, plan, recorded
    from inscape.lab.runner import Report, RunError, run
    from inscape.lab.staleness import Stale, stale
    from inscape.lab.store import Record, Store, StoreError

#: ``experiment`` itself is left to ``catalogue``: here it is the module of that name.
_HOMES = {
    "catalogue": ("Listing", "experiments", "paper_facts", "papers"),
    "executors": ("Done", "Executor", "Failure", "Task", "executor"),
    "experiment": ("Estimate", "Experiment", "Trend", "Value", "claim_hash"),
    "planning": ("Plan", "plan", "recorded"),
    "runner": ("Report", "RunError", "run"),
    "staleness": ("Stale", "stale"),
    "store": ("Record", "Store", "StoreError"),
}

__all__ = [
    "Done",
    "Estimate",
    "Executor",
    "Experiment",
    "Failure",
    "Listing",
    "Plan",
    "Record",
    "Report",
    "RunError",
    "Stale",
    "Store",
    "StoreError",
    "Task",
    "Trend",
    "Value",
    "claim_hash",
    "executor",
    "experiments",
    "paper_facts",
    "papers",
    "plan",
    "recorded",
    "run",
    "stale",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"inscape.lab.{module}"), name)
    raise AttributeError(f"module 'inscape.lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
