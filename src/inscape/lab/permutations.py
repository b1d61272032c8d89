"""Permute the setting that each claim's effect is of, 200 times, and keep how often it still holds.

``python -m inscape.lab.permutations`` writes ``results/permutations.json`` beside the records; the
tests read it. Claims without such a setting are turned about within their units instead.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inscape.files.atomic import write
from inscape.lab import catalogue
from inscape.lab.experiment import Claim, Experiment, claim_hash
from inscape.lab.experiment_outcome import stored_outcome
from inscape.lab.mutation import DRAWS, shares_of_permutations
from inscape.lab.store import Store
from inscape.lab.verdict import RULE_VERSION

FILE = "permutations.json"


def with_effect(experiment: Experiment) -> list[Claim]:
    """Return the claims that name the setting which their effect is of."""
    return [claim for claim in experiment.claims if claim.effect]


def permutation_shares(id: str, store: Store, *, draws: int = DRAWS) -> dict[str, Any]:
    """Return, for each claim with an effect, how often it holds when the setting is permuted.

    Args:
        id: The experiment.
        store: Where its records are.
        draws: How many permutations.
    """
    outcome = stored_outcome(id, store)
    experiment, analyse = outcome.experiment, outcome.experiment.analyse
    if analyse is None or not outcome.records:
        return {}
    shares: dict[str, float] = {}
    for effect in dict.fromkeys(claim.effect for claim in with_effect(experiment)):
        own = [claim for claim in experiment.claims if claim.effect == effect]
        shares |= shares_of_permutations(own, outcome.records, analyse, draws=draws)
    return {
        f"{id}/{claim.name}": {
            "claim": claim_hash(claim),
            "rule": RULE_VERSION,
            "effect": claim.effect,
            "draws": draws,
            "share": shares[claim.name],
        }
        for claim in with_effect(experiment)
    }


def read_shares(path: Path) -> Mapping[str, Any]:
    """Return what was kept of earlier permutations."""
    known: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return known


def write_shares(store: Store) -> Path:
    """Permute every claim with an effect and write the shares beside the records."""
    shares: dict[str, Any] = {}
    for listing in catalogue.experiments():
        if with_effect(catalogue.experiment(listing.id)):
            shares |= permutation_shares(listing.id, store)
    path = store.root / FILE
    write(path, (json.dumps(shares, indent=1) + "\n").encode())
    return path


if __name__ == "__main__":
    write_shares(Store("results", mends=False))
