"""Claims of three experiments of ours that go on where the paper ends; written before any run."""

from inscape.lab.claims import claims
from inscape.papers.goldblum._claims import OURS

REAL_MINIMA = claims(
    {
        "still-moving: moving > 0.5": "Most networks do not sit at a critical point when training "
        "stops: a short step still lowers the loss. | fraction of networks, Wilson's interval",
        "saddles: saddle > 0.5": "Polished until the gradient vanishes, most networks sit at "
        "saddles, as most believe. | fraction of networks, Wilson's interval",
        "minima: proved > 0": "Some polished networks are proved to sit at a local minimum. | "
        "fraction of networks, Wilson's interval",
        "smooth-minima: proved/tanh > 0.5": "Most small tanh networks are proved to. | fraction "
        "of networks, Wilson's interval",
    },
    source="beyond section 2",
    **OURS,
)
ADAPTIVE_SHARPNESS = claims(
    {
        "plain: plain/lemma-1 > 1": "The minimum of Lemma 1 is over ten times sharper than that of "
        "default training. | log10 of the ratio of largest eigenvalues, bootstrap over seeds | "
        "remark 2.2, at our size",
        "adaptive: adaptive/lemma-1 > 0": "It is sharper by adaptive sharpness, too. | log10 of "
        "the ratio, bootstrap over seeds",
        "filters: filters/lemma-1 > 0": "It is sharper relative to the filters, too. | log10 of "
        "the ratio, bootstrap over seeds",
        "alike: agreement > 0.5": "Plain and adaptive sharpness rank the five ends of training "
        "much alike. | Kendall's tau of the five within each seed, t interval",
        "trapped: adaptive/bias+20 < 0": "The end of training that is trapped by large biases is "
        "flatter than that of default training by adaptive sharpness. | log10 of the ratio, "
        "bootstrap over seeds",
    },
    source="beyond table 1",
    extra={name: {"kind": "decades"} for name in ("plain", "adaptive", "filters", "trapped")},
    **OURS,
)
RANK_SMOOTHNESS = claims(
    {
        "alike-rankmin: clean rankmin - plain between -2 and 2": "RankMin keeps the test accuracy "
        "within two points. | paired t interval over seeds, in points",
        "alike-rankmax: clean rankmax - plain between -2 and 2": "RankMax keeps the test accuracy "
        "within two points. | paired t interval over seeds, in points",
        "shorter: path rankmin over plain < 0": "Low rank shortens the function path length. | "
        "log10 of the ratio, bootstrap over seeds",
        "longer: path rankmax over plain > 0": "High rank lengthens it. | log10 of the ratio, "
        "bootstrap over seeds",
        "far-rankmin: far rankmin - plain between -5 and 5": "Low rank moves the error far from "
        "the data by less than five points. | paired t interval over seeds, in points",
        "far-rankmax: far rankmax - plain between -5 and 5": "High rank moves it by less than "
        "five points. | paired t interval over seeds, in points",
    },
    source="beyond section 5",
    extra={
        **{name: {"kind": "percentage"} for name in ("alike-rankmin", "alike-rankmax")},
        **{name: {"kind": "percentage"} for name in ("far-rankmin", "far-rankmax")},
        **{name: {"kind": "decades"} for name in ("shorter", "longer")},
    },
    **OURS,
)
