"""The lab: experiments of papers, run cell by cell, resumed where they stopped, and judged.

Nothing is imported before it is used, so that ``inscape list`` needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inscape.index import Listing
    from inscape.lab.catalogue import experiments, paper_facts, papers
    from inscape.lab.executors import CellTask, Executor, Failure, TaskOutcome, executor
    from inscape.lab.experiment import Estimate, Experiment, Trend, Value, claim_hash
    from inscape.lab.experiment_outcome import ExperimentOutcome, stored_outcome
    from inscape.lab.planning import RunPlan, plan, recorded
    from inscape.lab.reproduction import Reproduction, reproduce
    from inscape.lab.reproduction_plan import ReproductionPlan, plan_reproduction
    from inscape.lab.runner import RunError, RunReport, run
    from inscape.lab.staleness import StaleRecord, stale_records
    from inscape.lab.store import Record, Store, StoreError

#: ``experiment`` itself is left to ``catalogue``: here it is the module of that name.
_HOMES = {
    "catalogue": ("Listing", "experiments", "paper_facts", "papers"),
    "executors": ("TaskOutcome", "Executor", "Failure", "CellTask", "executor"),
    "experiment": ("Estimate", "Experiment", "Trend", "Value", "claim_hash"),
    "experiment_outcome": ("ExperimentOutcome", "stored_outcome"),
    "planning": ("RunPlan", "plan", "recorded"),
    "reproduction": ("Reproduction", "reproduce"),
    "reproduction_plan": ("ReproductionPlan", "plan_reproduction"),
    "runner": ("RunReport", "RunError", "run"),
    "staleness": ("StaleRecord", "stale_records"),
    "store": ("Record", "Store", "StoreError"),
}

__all__ = [
    "CellTask",
    "Estimate",
    "Executor",
    "Experiment",
    "ExperimentOutcome",
    "Failure",
    "Listing",
    "Record",
    "Reproduction",
    "ReproductionPlan",
    "RunError",
    "RunPlan",
    "RunReport",
    "StaleRecord",
    "Store",
    "StoreError",
    "TaskOutcome",
    "Trend",
    "Value",
    "claim_hash",
    "executor",
    "experiments",
    "paper_facts",
    "papers",
    "plan",
    "plan_reproduction",
    "recorded",
    "reproduce",
    "run",
    "stale_records",
    "stored_outcome",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"inscape.lab.{module}"), name)
    raise AttributeError(f"module 'inscape.lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
