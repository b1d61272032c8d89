"""What the paper says of deep networks, and what theory lets one expect; written before any run."""

from inscape.lab.experiment import Claim, Trend

NAMES = {"tanh": "tanh", "relu": "ReLU"}
SEEDS = "t interval over networks"
SECTION = "section 4"
THEORY = "kernel of infinitely wide tanh networks"
HOMOGENEOUS = "ReLU(a z) = a ReLU(z)"
WORDS = {
    "shared": "The length scale shared out over the hidden layers",
    "first": "The length scale of the first layer alone",
    "activation": "Activation normalisation",
    "jacobian": "The allowance of a Jacobian penalty",
}


def _paper() -> list[Claim]:
    found: list[Claim] = [
        Trend(
            name="order-1",
            says="With one hidden layer of tanh units the length scale falls as sigma grows.",
            of="rank/hidden/tanh/1",
            side="below",
            bound=-0.9,
            test=f"Spearman's correlation, {SEEDS}",
            source="section 3.3",
        ),
        Trend(
            name="law-1",
            says="With one hidden layer of tanh units the length scale is in proportion to "
            "1/sigma.",
            of="slope/hidden/tanh/1",
            side="between",
            bound=-1.25,
            upper=-0.75,
            test=f"slope in logarithms, {SEEDS}",
            source="section 3.3",
        ),
    ]
    found += [
        Trend(
            name=f"fails-{depth}",
            says=f"The law 1/sigma does not generalise to {depth} hidden layers with one sigma "
            "for all: the slope is off by more than 0.25.",
            of=f"off/hidden/tanh/{depth}",
            side="above",
            bound=0.25,
            test=f"distance of the slope from -1, {SEEDS}",
            source=SECTION,
        )
        for depth in (3, 4, 6)
    ]
    found += [
        Trend(
            name=f"no-transfer-{depth}",
            says=f"With {depth} hidden layers the paper's control gains no robustness without "
            "a loss of clean accuracy: less than 5 points.",
            of=f"gain/hidden/tanh/{depth}",
            side="below",
            bound=0.05,
            test="paired t interval over networks",
            source=f"{SECTION}, A.2.4",
        )
        for depth in (3, 6)
    ]
    found.append(
        Trend(
            name="robust-1",
            says="With one hidden layer of tanh units robust accuracy falls as sigma grows.",
            of="robust rank/hidden/tanh/1",
            side="below",
            test=f"Spearman's correlation, {SEEDS}",
            source="section 3.5",
        )
    )
    return found


def _theory() -> list[Claim]:
    found: list[Claim] = [
        Trend(
            name="start-1",
            says="Before training one hidden layer of tanh units has a slope between -1 and -0.7.",
            of="start/hidden/tanh/1",
            side="between",
            bound=-1.0,
            upper=-0.7,
            test=SEEDS,
            source=f"{THEORY}: -0.85",
        ),
        Trend(
            name="start-6",
            says="Before training six hidden layers of tanh units have a slope below -1.2.",
            of="start/hidden/tanh/6",
            side="below",
            bound=-1.2,
            test=SEEDS,
            source=f"{THEORY}: -1.53",
        ),
        Trend(
            name="relu-free-1",
            says="Before training sigma changes nothing in a ReLU network with one hidden layer.",
            of="start/hidden/relu/1",
            side="between",
            bound=-0.01,
            upper=0.01,
            test=SEEDS,
            source=HOMOGENEOUS,
        ),
        Trend(
            name="relu-learned-1",
            says="Nor does it matter much after training: the slope is within 0.25 of zero.",
            of="slope/hidden/relu/1",
            side="between",
            bound=-0.25,
            upper=0.25,
            test=SEEDS,
            source=HOMOGENEOUS,
        ),
        Trend(
            name="relu-activation-6",
            says="Before training the scale of activations changes nothing in a ReLU network, "
            "however deep.",
            of="start/activation/relu/6",
            side="between",
            bound=-0.01,
            upper=0.01,
            test=SEEDS,
            source=HOMOGENEOUS,
        ),
        Trend(
            name="unlearned-6",
            says="With six hidden layers of tanh units and one sigma for all, some sweeps do not "
            "fit: signals shrink as sigma^6.",
            of="fitted/hidden/tanh/6",
            side="below",
            bound=0.9,
            test=f"share of knobs, {SEEDS}",
            source="product of the layers' scales",
        ),
        Trend(
            name="learned-6",
            says="With sigma on the first layer alone six hidden layers fit at nearly every sigma.",
            of="fitted/first/tanh/6",
            side="above",
            bound=0.9,
            test=f"share of knobs, {SEEDS}",
            source="one factor instead of six",
        ),
        Trend(
            name="shared-alike",
            says="Shared out, the knob has nearly the same slope with six layers as with three.",
            of="deeper/shared/tanh",
            side="between",
            bound=-0.25,
            upper=0.25,
            test="paired t interval over networks",
            source="product of the layers' scales",
        ),
    ]
    return found


def _guesses() -> list[Claim]:
    follows = [(control, "tanh") for control in WORDS] + [("jacobian", "relu")]
    found: list[Claim] = [
        Trend(
            name=f"follows-{control}-{activation}",
            says=f"{WORDS[control]} orders the length scales of deep {NAMES[activation]} networks: "
            "rank correlation below -0.9 with 3, 4 and 6 hidden layers.",
            of=f"worst rank/{control}/{activation}",
            side="below",
            bound=-0.9,
            test=f"Spearman's correlation at the worst depth, {SEEDS}",
            source="our guess before the run",
        )
        for control, activation in follows
    ]
    for activation, name in NAMES.items():
        found += [
            Trend(
                name=f"some-control-{activation}",
                says=f"One of the seven controls keeps the law 1/knob for {name} networks with 3, "
                "4 and 6 hidden layers: slope within 0.25 of -1.",
                of=f"law/{activation}",
                side="below",
                bound=0.25,
                test="distance at the worst depth of the best control, bootstrap over networks",
                source=f"what {SECTION} asks for",
            ),
            Trend(
                name=f"smooth-is-robust-{activation}",
                says=f"Among deep {name} networks that classify well, those with longer length "
                "scales are more robust, whatever the control.",
                of=f"together/{activation}",
                side="above",
                bound=0.5,
                test=f"Spearman's correlation, {SEEDS}",
                source="our guess before the run",
            ),
        ]
        found += [
            Trend(
                name=f"jacobian-robust-{activation}-{depth}",
                says=f"The Jacobian penalty makes {name} networks with {depth} hidden layers more "
                "robust by 5 points or more at the same clean accuracy.",
                of=f"gain/jacobian/{activation}/{depth}",
                side="above",
                bound=0.05,
                test="paired t interval over networks",
                source="our guess before the run",
            )
            for depth in (3, 6)
        ]
    return found


CLAIMS: tuple[Claim, ...] = (*_paper(), *_theory(), *_guesses())
