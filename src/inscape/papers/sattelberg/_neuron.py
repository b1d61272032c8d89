"""The neuron of Hodgkin and Huxley (1952), simulated for many currents at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: Milliseconds of a step.
STEP = 0.05
#: A spike is a rise of the voltage through this many millivolts.
SPIKE = 0.0


def firing_rates(currents: Array, *, milliseconds: float, skipped: float = 50.0) -> Array:
    """Return spikes per second for constant currents in microamperes per square centimetre.

    Standard constants of the squid axon (resting potential -65 mV), fourth-order Runge-Kutta; the
    first ``skipped`` milliseconds, in which a switched-on current may fire once, do not count.
    """
    state = np.tile(_rest(-65.0)[:, None], len(currents))
    spikes = np.zeros(len(currents))
    for k in range(round(milliseconds / STEP)):
        before = state[0]
        state = _stepped(state, currents)
        spikes += (before < SPIKE) & (state[0] >= SPIKE) & (k * STEP > skipped)
    return spikes / (milliseconds - skipped) * 1000


def _rest(v: float) -> Array:
    a, b = _rates(np.array([v]))
    return np.concatenate([[v], (a / (a + b))[:, 0]])


def _rates(v: Array) -> tuple[Array, Array]:
    """Return the opening and closing rates of the gates m, h and n."""
    opening = np.stack(
        [_ratio(v + 40, 10), 0.07 * np.exp(-(v + 65) / 20), 0.1 * _ratio(v + 55, 10)]
    )
    closing = np.stack(
        [
            4 * np.exp(-(v + 65) / 18),
            1 / (1 + np.exp(-(v + 35) / 10)),
            0.125 * np.exp(-(v + 65) / 80),
        ]
    )
    return opening, closing


def _ratio(u: Array, scale: float) -> Array:
    """Return (u / s) / (1 - exp(-u / s)), which is 1 at zero, where a quotient is none."""
    z = u / scale
    safe = np.where(np.abs(z) < 1e-7, 1.0, z)
    return np.where(np.abs(z) < 1e-7, 1 + z / 2, safe / -np.expm1(-safe))


def _slope(state: Array, currents: Array) -> Array:
    v, gates = state[0], state[1:]
    m, h, n = gates
    opening, closing = _rates(v)
    sodium, potassium, leak = 120 * m**3 * h * (v - 50), 36 * n**4 * (v + 77), 0.3 * (v + 54.387)
    moved = currents - sodium - potassium - leak
    return np.concatenate([moved[None], opening * (1 - gates) - closing * gates])


def _stepped(state: Array, currents: Array) -> Array:
    a = _slope(state, currents)
    b = _slope(state + STEP / 2 * a, currents)
    c = _slope(state + STEP / 2 * b, currents)
    d = _slope(state + STEP * c, currents)
    return np.asarray(state + STEP / 6 * (a + 2 * b + 2 * c + d))
