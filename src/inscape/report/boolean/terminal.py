"""What a terminal shows of a look at a Boolean function."""

from collections.abc import Iterator

from inscape.report.boolean.summary import BooleanLook, description
from inscape.report.boolean.trials import EarlierTrial, Trial
from inscape.report.text_table import Block, TextTable, wrapped


def function_text(look: BooleanLook) -> Iterator[Block]:
    """Yield what was found: the function's numbers, known networks, trained networks."""
    yield wrapped(description(look)) + "\n"
    yield TextTable(list(look.rows()))
    yield ""
    yield TextTable(
        [
            {
                "network": network.size,
                "weights": network.parameters,
                "from": network.how,
                "checked": "for its class" if network.checked is None else network.checked,
            }
            for network in look.networks
        ]
    )
    yield ""
    yield TextTable([_rate(trial) for trial in look.trials])
    if look.earlier:
        yield ""
        rows = [_rate(record) for record in look.earlier]
        yield TextTable(rows, title="smallest in figure 3.5's records")
    if look.left_out:
        yield f"\nleft out for time: {', '.join(look.left_out)}"


def _rate(trial: Trial | EarlierTrial) -> dict[str, object]:
    return {
        "trained": trial.size,
        "units": trial.activation,
        "learned it": f"{trial.solved} of {trial.networks}",
        "fraction": trial.fraction,
        "95% interval": f"{trial.low:.3f} to {trial.high:.3f}",
    }
