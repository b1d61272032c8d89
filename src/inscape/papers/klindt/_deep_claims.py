"""What the paper says of deep networks, and what theory lets one expect; written before any run."""

from inscape.lab.claims import claims

NAMES = {"tanh": "tanh", "relu": "ReLU"}
SPEARMAN = "Spearman's correlation, t interval over networks"
PAIRED = "paired t interval over networks"
FITTED = "share of knobs, t interval over networks"
HOMOGENEOUS = "ReLU(a z) = a ReLU(z)"
WORDS = {
    "shared": "The length scale shared out over the hidden layers",
    "first": "The length scale of the first layer alone",
    "activation": "Activation normalisation",
    "jacobian": "The allowance of a Jacobian penalty",
}
PAPER = claims(
    {
        "order-1: rank/hidden/tanh/1 < -0.9": "With one hidden layer of tanh units the length "
        f"scale falls as sigma grows. | {SPEARMAN} | section 3.3",
        "law-1: slope/hidden/tanh/1 between -1.25 and -0.75": "With one hidden layer of tanh units "
        "the length scale is in proportion to 1/sigma. | slope in logarithms, t interval over "
        "networks | section 3.3",
        **{
            f"fails-{depth}: off/hidden/tanh/{depth} > 0.25": "The law 1/sigma does not generalise "
            f"to {depth} hidden layers with one sigma for all: the slope is off by more than 0.25. "
            "| distance of the slope from -1, t interval over networks | section 4"
            for depth in (3, 4, 6)
        },
        **{
            f"no-transfer-{depth}: gain/hidden/tanh/{depth} < 0.05": f"With {depth} hidden layers "
            "the paper's control gains no robustness without a loss of clean accuracy: less than 5 "
            f"points. | {PAIRED} | section 4, A.2.4"
            for depth in (3, 6)
        },
        "robust-1: robust rank/hidden/tanh/1 < 0": "With one hidden layer of tanh units robust "
        f"accuracy falls as sigma grows. | {SPEARMAN} | section 3.5",
    }
)
THEORY = claims(
    {
        "start-1: start/hidden/tanh/1 between -1.0 and -0.7": "Before training one hidden layer of "
        "tanh units has a slope between -1 and -0.7. | | kernel of infinitely wide tanh networks: "
        "-0.85",
        "start-6: start/hidden/tanh/6 < -1.2": "Before training six hidden layers of tanh units "
        "have a slope below -1.2. | | kernel of infinitely wide tanh networks: -1.53",
        "relu-free-1: start/hidden/relu/1 between -0.01 and 0.01": "Before training sigma changes "
        "nothing in a ReLU network with one hidden layer.",
        "relu-learned-1: slope/hidden/relu/1 between -0.25 and 0.25": "Nor does it matter much "
        "after training: the slope is within 0.25 of zero.",
        "relu-activation-6: start/activation/relu/6 between -0.01 and 0.01": "Before training the "
        "scale of activations changes nothing in a ReLU network, however deep.",
        "unlearned-6: fitted/hidden/tanh/6 < 0.9": "With six hidden layers of tanh units and one "
        f"sigma for all, some sweeps do not fit: signals shrink as sigma^6. | {FITTED} | product "
        "of the layers' scales",
        "learned-6: fitted/first/tanh/6 > 0.9": "With sigma on the first layer alone six hidden "
        f"layers fit at nearly every sigma. | {FITTED} | one factor instead of six",
        "shared-alike: deeper/shared/tanh between -0.25 and 0.25": "Shared out, the knob has "
        f"nearly the same slope with six layers as with three. | {PAIRED} | product of the layers' "
        "scales",
    },
    source=HOMOGENEOUS,
    test="t interval over networks",
)


def _guesses(activation: str, name: str) -> dict[str, str]:
    """Return our guesses about networks of one activation."""
    return {
        f"some-control-{activation}: law/{activation} < 0.25": "One of the seven controls keeps "
        f"the law 1/knob for {name} networks with 3, 4 and 6 hidden layers: slope within 0.25 of "
        "-1. | distance at the worst depth of the best control, bootstrap over networks | what "
        "section 4 asks for",
        f"smooth-is-robust-{activation}: together/{activation} > 0.5": f"Among deep {name} "
        "networks that classify well, those with longer length scales are more robust, whatever "
        f"the control. | {SPEARMAN}",
        **{
            f"jacobian-robust-{activation}-{depth}: gain/jacobian/{activation}/{depth} > 0.05": (
                f"The Jacobian penalty makes {name} networks with {depth} hidden layers more "
                f"robust by 5 points or more at the same clean accuracy. | {PAIRED}"
            )
            for depth in (3, 6)
        },
    }


GUESSES = claims(
    {
        **{
            f"follows-{control}-{activation}: worst rank/{control}/{activation} < -0.9": (
                f"{WORDS[control]} orders the length scales of deep {NAMES[activation]} networks: "
                "rank correlation below -0.9 with 3, 4 and 6 hidden layers. | Spearman's "
                "correlation at the worst depth, t interval over networks"
            )
            for control, activation in [*((name, "tanh") for name in WORDS), ("jacobian", "relu")]
        },
        **_guesses("tanh", "tanh"),
        **_guesses("relu", "ReLU"),
    },
    source="our guess before the run",
)

CLAIMS = PAPER + THEORY + GUESSES
