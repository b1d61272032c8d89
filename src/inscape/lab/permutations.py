"""Permute the setting that each claim's effect is of, 200 times, and keep how often it still holds.

``python -m inscape.lab.permutations`` writes ``results/permutations.json`` beside the records, for
all experiments or for those that are named; the tests read it. Claims without such a setting are
turned about within their units instead.
"""

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from inscape.files.atomic import write
from inscape.lab import catalogue
from inscape.lab.experiment import Claim, Estimate, Experiment, Trend, claim_hash
from inscape.lab.experiment_outcome import stored_outcome
from inscape.lab.mutation import DRAWS, absent, shares_of_permutations
from inscape.lab.quantities import Comparison, Quantities
from inscape.lab.records import Records
from inscape.lab.store import Store
from inscape.lab.verdict import RULE_VERSION

FILE = "permutations.json"

Analysis = Callable[[Records], Mapping[str, Estimate]]


def effect_of(experiment: Experiment, claim: Claim) -> str:
    """Return the setting that a claim's effect is of: permuted among the records, it must fail.

    It is the one that the claim names, or else the one in which the columns of its quantity differ.
    Claims of absence have none, and neither have numbers.
    """
    if claim.effect or not isinstance(claim, Trend):
        return claim.effect
    named = experiment.analyse.named if isinstance(experiment.analyse, Quantities) else {}
    groups: tuple[str, ...] = getattr(named.get(claim.of), "groups", ())
    null = claim.null or 0.0
    inside = claim.upper is not None and claim.bound < null < claim.upper
    absence = inside if claim.side == "between" else absent(claim)
    settled = claim.struck or claim.by_construction or absence
    return "" if settled or len(groups) != 1 else groups[0]


def levels_of(experiment: Experiment, claim: Claim) -> tuple[Any, ...]:
    """Return the two values of its setting that a claim compares; none where it is about all."""
    named = experiment.analyse.named if isinstance(experiment.analyse, Quantities) else {}
    quantity, effect = named.get(claim.of), effect_of(experiment, claim)
    if not isinstance(quantity, Comparison):
        return ()
    sides = (quantity.first.settings, quantity.second.settings)
    return tuple(side[effect] for side in sides) if all(effect in s for s in sides) else ()


def with_effect(experiment: Experiment) -> dict[tuple[str, tuple[Any, ...]], list[Claim]]:
    """Return the claims about each setting, and values of it, that can be permuted."""
    claims: dict[tuple[str, tuple[Any, ...]], list[Claim]] = {}
    for claim in experiment.claims:
        if effect := effect_of(experiment, claim):
            claims.setdefault((effect, levels_of(experiment, claim)), []).append(claim)
    return claims


def permutation_shares(id: str, store: Store, *, draws: int = DRAWS) -> dict[str, Any]:
    """Return, for each claim with an effect, how often it holds when the setting is permuted.

    Args:
        id: The experiment.
        store: Where its records are.
        draws: How many permutations.
    """
    outcome = stored_outcome(id, store)
    experiment, records = outcome.experiment, outcome.records
    if experiment.analyse is None or not records:
        return {}
    rows = {}
    for (effect, levels), claims in with_effect(experiment).items():
        analyse = only(experiment.analyse, claims)
        shares = shares_of_permutations(claims, records, analyse, effect, levels, draws=draws)
        for claim in claims:
            rows[f"{id}/{claim.name}"] = {
                "claim": claim_hash(claim),
                "rule": RULE_VERSION,
                "effect": effect,
                "draws": draws,
                "share": shares[claim.name],
            }
    return {
        name: rows[name] for claim in experiment.claims if (name := f"{id}/{claim.name}") in rows
    }


def only(analyse: Analysis, claims: Sequence[Claim]) -> Analysis:
    """Return an analysis that gives no more than what claims are about, where it can be told."""
    if not isinstance(analyse, Quantities):
        return analyse
    wanted = {claim.of for claim in claims}
    if not wanted <= set(analyse.named):
        return analyse
    return Quantities({name: of for name, of in analyse.named.items() if name in wanted})


def read_shares(path: Path) -> Mapping[str, Any]:
    """Return what was kept of earlier permutations."""
    known: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return known


def write_shares(store: Store, ids: Collection[str] = ()) -> Path:
    """Permute every claim with an effect and write the shares beside the records.

    Args:
        store: Where the records are.
        ids: Experiments that are permuted anew, the others keeping their shares; all by default.
    """
    path = store.root / FILE
    earlier = read_shares(path) if ids and path.is_file() else {}
    shares: dict[str, Any] = {}
    for listing in catalogue.experiments():
        names = [
            f"{listing.id}/{claim.name}"
            for claims in with_effect(catalogue.experiment(listing.id)).values()
            for claim in claims
        ]
        if names and (not ids or listing.id in ids):
            shares |= permutation_shares(listing.id, store)
        else:
            shares |= {name: earlier[name] for name in earlier if name in names}
    write(path, (json.dumps(shares, indent=1) + "\n").encode())
    return path


if __name__ == "__main__":
    write_shares(Store("results", mends=False), sys.argv[1:])
