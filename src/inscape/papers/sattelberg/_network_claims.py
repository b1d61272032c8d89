"""What section 6.4 and chapter 7 say of image networks, as claims; written before any run.

Bounds are ours where the text gives none. Images of matrices without readable numbers are judged by
the sentences about them; the pretrained networks by a MobileNetV2, which stands for them.
"""

from collections.abc import Iterator
from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Claim, ScaleName, Value
from inscape.lab.published import entry

#: Test behind the intervals: a set is one column of table 7.1, trained anew.
SETS = "t interval over independent sets of networks"
COPIES = "paired t interval over copies of the networks"
ONLY_PAPER: tuple[ScaleName, ...] = ("paper",)
OURS: dict[str, Any] = {"origin": "ours"}
CURVED = ("dense", "simple", "complex")

# ---------------------------------------------------------------- section 6.4: active subspaces


def _directions(data: str, source: str) -> tuple[Claim, ...]:
    """Return the claims about how smooth the leading directions are."""
    return claims(
        {
            f"smooth-{net}: jagged/{net} > 0": f"On {data}, directions of SGD networks are "
            f"smoother than those of AdamW: {net}. | mean log ratio of total variation to size, "
            f"AdamW over SGD, over ten outputs; {COPIES}"
            for net in ("linear", *CURVED)
        },
        source=source,
    )


FIGURE_6_14 = (
    *_directions("MNIST", "section 6.4, figure 6.14"),
    *claims(
        {
            "dense-like-linear: dense - conv likeness > 0": "Dense networks have directions of "
            "shapes similar to the linear network's, convolutional ones less so. | absolute cosine "
            f"with the linear network's direction, dense less convolutional; {COPIES}",
        },
        source="section 6.4, figure 6.14",
    ),
)

FIGURE_6_15 = claims(
    {
        f"explains-{net}: explained/{net} > 0": "The first direction explains the outputs of SGD "
        f"networks better than those of AdamW networks: {net}. | share of the output's variance on "
        f"held-out points, SGD less AdamW, over ten outputs; {COPIES}"
        for net in CURVED
    },
    source="section 6.4, figure 6.15",
    kind="proportion",
)


def _values(data: str, figure: str) -> tuple[Claim, ...]:
    """Return the claims about singular values."""
    return claims(
        {
            **{
                f"rank-{optimizer}: exactly 128/dense/{optimizer} > 0.5": "Dense networks have "
                f"exactly 128 non-zero singular values: {name}, {data}. | share of networks in "
                "which all ten outputs do; Clopper-Pearson over copies"
                for optimizer, name in (("sgd", "SGD"), ("adamw", "AdamW"))
            },
            f"one-direction: dominance/dense > {DOMINANT}": "Dense networks have one important "
            f"direction, then a steep drop-off. | first singular value over the second; {COPIES}",
            "simple-steeper: tail/complex - simple > 0": "Simple convolutional networks have a "
            "steeper drop-off of singular values than complex ones. | log10 of the median singular "
            f"value over the first, complex less simple; {COPIES}",
        },
        source=f"section 6.4, {figure}",
        extra={
            "rank-sgd": {"kind": "proportion"},
            "rank-adamw": {"kind": "proportion"},
            "simple-steeper": {"kind": "decades"},
        },
    )


#: How many times the second singular value the first one is, if it is to be the important one.
DOMINANT = 1.5
FIGURE_6_16 = _values("MNIST", "figure 6.16")
FIGURE_6_17 = _directions("CIFAR-10", "section 6.4, figure 6.17")
FIGURE_6_18 = _values("CIFAR-10", "figure 6.18")
FIGURE_6_19 = claims(
    {
        **{
            f"little-{net}: explained by one/{net} < 0.5": "On CIFAR the first direction explains "
            f"little except for the linear network: {net}, both optimizers. | share of the "
            "output's variance on held-out points, mean over ten outputs; t interval over networks"
            for net in CURVED
        },
        "linear-all: explained by one/linear > 0.99": "For the linear network it explains all. "
        "| the same",
    },
    source="section 6.4, figure 6.19",
    kind="proportion",
    extra={"linear-all": {"by_construction": "a linear function has one gradient."}},
)

# ------------------------------------------------------------------------ section 7.2: compression


def _compression(data: str, figure: str, sgd_recovers: bool) -> tuple[Claim, ...]:
    """Return the claims about k-means on local maps."""
    recovered = {
        "recovered-dense: lost/dense < 5": "Values close to the original performance are attained "
        "by dense networks. | points lost at the largest k, both optimizers; " + COPIES,
        "not-recovered-adamw: lost/conv/adamw > 5": "They are not attained by convolutional "
        f"networks trained with AdamW. | the same; {COPIES}",
    }
    side = "recovered-sgd: lost/conv/sgd < 5" if sgd_recovers else "sgd-too: lost/conv/sgd > 5"
    word = "are attained" if sgd_recovers else "are not attained"
    recovered[side] = f"They {word} by those trained with SGD on {data}. | the same; {COPIES}"
    return claims(
        {
            **{
                f"one-drops-{net}: lost at one/{net} > 0": "With one cluster networks perform "
                f"poorly: {net} networks lose. | points lost at k = 1, both optimizers; {COPIES}"
                for net in CURVED
            },
            "dense-least: conv - dense at one > 0": "With one cluster dense networks fail less "
            f"than convolutional ones. | points lost at k = 1; {COPIES}",
            "sgd-better: adamw - sgd > 5": "Networks trained with SGD compress far better than "
            "those with AdamW. | points lost, mean over all k above 1 and convolutional networks, "
            f"AdamW less SGD; {COPIES}",
            **recovered,
            "unique-simple: shared/simple < 0.01": "Even simple networks have less than 1% of the "
            f"training inputs in a linear region with another one. | share of inputs; {COPIES}",
            "unique-complex: shared/complex < 0.01": "The same of complex networks. | the same",
        },
        source=f"section 7.2, {figure}",
        test=COPIES,
        kind="percentage",
        extra={f"unique-{net}": {"kind": "proportion"} for net in ("simple", "complex")},
    )


FIGURE_7_3 = _compression("MNIST", "figure 7.3", sgd_recovers=True)
FIGURE_7_4 = _compression("CIFAR-10", "figure 7.4", sgd_recovers=False)

# -------------------------------------------------------------------- section 7.3.1: mapped maps

FIGURE_7_6 = claims(
    {
        "close: residual < 0.1": "The mapped coefficients are very similar to those of the target. "
        "| norm of the difference over the norm of the target, 101 x 101 points; t interval over "
        "pairs of networks, both directions",
        "same-classes: agreement > 0.95": "The mapping is successful: the mapped function has the "
        "target's classes. | share of the points; t interval over pairs of networks",
        "discontinuous: jump > 0.01": "The resulting function is no longer continuous. | largest "
        "jump across an edge of the source's regions, over the range of the function; t interval "
        "over pairs of networks",
    },
    source="section 7.3.1, figure 7.6",
    extra={"same-classes": {"kind": "proportion"}},
)

FIGURE_7_7 = claims(
    {
        "match: correlation > 0.7": "Coefficients of the dense network are able to match those of "
        "a convolutional network well. | correlation of mapped and true coefficients of test "
        f"images, mean over outputs; {SETS}",
        "better: gain > 0": "They match them better than before the mapping. | the same less the "
        f"correlation of the dense network's own coefficients; {SETS}",
    },
    source="section 7.3.1, figure 7.7",
    kind="correlation",
)

FIGURE_7_8 = claims(
    {
        "keeps-most: kept/others > 0.8": "Mapping keeps most of the accuracy of the target, except "
        "towards dense networks trained with AdamW and pretrained ones. | accuracy over the "
        f"target's own, mean over sources and targets; {SETS}",
        "dense-adamw-hard: others - dense adamw > 0": "Towards the dense networks trained with "
        f"AdamW it keeps less. | the same, difference; {SETS}",
        "dense-sgd-easy: dense sgd - dense adamw > 0": "The dense networks trained with SGD are "
        f"easy to represent, those with AdamW are not. | the same, difference; {SETS}",
        "pretrained-hard: others - pretrained > 0": "Towards pretrained networks it keeps less. "
        f"| the same, difference; {SETS}",
        "pretrained-represents: from - towards pretrained > 0": "ResNet18 can represent the small "
        f"networks but not the reverse. | accuracy kept from it less accuracy kept towards it; "
        f"{SETS}",
    },
    source="section 7.3.1, figure 7.8",
    kind="proportion",
)

#: Points: copies of a network differ by up to 2 on CIFAR-10, settings left open are worth as much.
MAPPED = 5.0
_OWN = ("linear", "dense", "simple", "complex")


def short(name: str) -> str:
    """Return our name of a row or column of figure 7.9: ``dense 1 SGD`` or ``dense 1 AdamW``."""
    return name.replace("Adamw", "AdamW")


def usable_cells() -> Iterator[tuple[str, str, float]]:
    """Yield source, target and printed accuracy of the cells of figure 7.9 that can be used."""
    facts = entry("sattelberg", "figure-7.9")
    for source, marks, row in zip(
        facts["row_names"], facts["usable"], facts["accuracy"], strict=True
    ):
        for target, mark, number in zip(facts["columns"], marks, row, strict=True):
            own = all(name.startswith(_OWN) for name in (source, target))
            if mark == "1" and own and source != target:
                yield short(source), short(target), number


def _cells_of_figure_7_9() -> tuple[Claim, ...]:
    table = {
        f"{source} to {target}".replace(" ", "-").lower()
        + f": mapped/{source}/{target} = {number} ± {MAPPED}": f"Mapped from {source} to {target}, "
        f"the accuracy is {number}%. | {source} | {target}"
        for source, target, number in usable_cells()
    }
    return claims(table, source="figure 7.9, a usable cell", scales=ONLY_PAPER, kind="percentage")


FIGURE_7_9 = (
    *claims(
        {
            "dense-each-other: drop/dense sgd between 0 and 4": "Dense SGD networks map onto each "
            f"other with a loss of about 2 points. | {SETS}",
            "conv-each-other: drop/conv sgd between 2 and 8": "SGD convolutional networks map onto "
            f"each other within about 3 to 7 points. | mean over pairs; {SETS}",
        },
        source="section 7.3.1, figure 7.9",
        scales=ONLY_PAPER,
        kind="percentage",
    ),
    Value(
        name="linear-to-dense",
        says="Mapping the linear SGD network to dense SGD networks gives about 30%.",
        of="mapped/linear SGD/dense SGD",
        published=29.88,
        tolerance=3.0,
        at=("linear SGD", "dense SGD"),
        source="section 7.3.1, figure 7.9: mean of 30.17 and 29.59",
        scales=ONLY_PAPER,
        kind="percentage",
    ),
    *claims(
        {
            "dense-alike: conv to dense - dense to dense > 0": "Dense networks are similar to each "
            "other: they represent dense networks with a smaller loss than convolutional ones do. "
            f"| points lost, SGD; {SETS}",
            "conv-alike: dense to conv - conv to conv > 0": "SGD convolutional networks represent "
            f"each other better than dense ones represent them. | points lost, SGD; {SETS}",
            "linear-gains: linear to dense - linear > 0": "Mapping the linear SGD network to dense "
            "SGD networks gives more than the linear network has itself. | points of accuracy; "
            f"{SETS}",
            "adamw-worse: drop/conv adamw - conv sgd > 0": "AdamW convolutional networks represent "
            f"each other worse than SGD ones. | points lost; {SETS}",
        },
        source="section 7.3.1, figure 7.9",
        kind="percentage",
    ),
    *_cells_of_figure_7_9(),
)

# ------------------------------------------------------------------------- section 7.3.2: distance


def _distance(figure: str) -> tuple[Claim, ...]:
    return claims(
        {
            "nonlinear-alike: linear apart > 0": "There is a high degree of similarity among all "
            "the non-linear networks. | log10 of the mean distance between linear and non-linear "
            f"networks over that among non-linear ones; {SETS}",
            "pretrained-not-apart: separation < 0.75": "The distance does not tell the pretrained "
            "networks from the others. | chance that a pretrained network is farther from one of "
            f"ours than two of ours are from each other, 0.5 to 1; {SETS}",
        },
        source=f"section 7.3.2, {figure}",
        extra={
            "nonlinear-alike": {"kind": "decades"},
            "pretrained-not-apart": {"kind": "proportion"},
        },
    )


FIGURE_7_10 = _distance("figure 7.10")
FIGURE_7_11 = _distance("figure 7.11")

# ------------------------------------------------------------------------ section 7.3.3: alignment


def _debiased(table: dict[str, str], figure: str) -> tuple[Claim, ...]:
    """Return claims as printed, and the same without the bias of a small sample as ours."""
    ours = {
        condition.replace(": ", "-debiased: debiased ", 1): f"Debiased: {row}"
        for condition, row in table.items()
        if "pretrained" not in condition
    }
    source = f"section 7.3.3, {figure}"
    return (
        *claims(table, source=source, test=SETS, kind="correlation"),
        *claims(
            ours,
            source=f"{source}; the estimate without bias",
            test=SETS,
            kind="correlation",
            **OURS,
        ),
    )


_SGD_BLOCK = {
    "sgd-block: sgd conv block > 0": "SGD convolutional networks form a block. | alignment among "
    f"them less that with all other networks with hidden layers; {SETS}",
    "across-low: same - across > 0": "Similarity between SGD and AdamW networks is low. | "
    "alignment of networks of one family by one optimizer less that of one family by both; " + SETS,
}
FIGURE_7_12 = _debiased(
    {
        **_SGD_BLOCK,
        "adamw-distinct: sgd - adamw conv > 0": "AdamW networks are largely distinct. | alignment "
        f"among SGD convolutional networks less that among AdamW ones; {SETS}",
        "dense-alike-sgd: dense pair sgd > 0": "For SGD, the dense networks are similar. | "
        f"alignment of both less that with convolutional networks; {SETS}",
        "dense-alike-adamw: dense - conv adamw > 0": "Of AdamW networks, dense ones are similar. | "
        f"alignment of both dense networks less that among convolutional ones; {SETS}",
        "pretrained-across: pretrained across > 0": "Pretrained networks are similar to their "
        "version by the other optimizer. | alignment of both less that with our networks; " + SETS,
    },
    "figure 7.12",
)
FIGURE_7_13 = _debiased(
    {
        **_SGD_BLOCK,
        "dense-alike: dense across > 0": "Dense networks are similar regardless of the optimizer. "
        f"| alignment of dense SGD and dense AdamW less that of dense and convolutional; {SETS}",
        "complex-adamw: complex adamw > 0": "There is some similarity of complex networks trained "
        f"with AdamW. | alignment of both less that with all other networks; {SETS}",
    },
    "figure 7.13",
)

# -------------------------------------------------------------------- section 7.3.4: cross-entropy

FIGURE_7_14 = claims(
    {
        "pretrained-first: pretrained first > 0": "ResNet152 trained with SGD is so difficult to "
        "represent that its dissimilarity overwhelms all others. | log10 of the mean cross-entropy "
        f"from it over the largest such mean of another network; {SETS}",
    },
    source="section 7.3.4, figure 7.14",
    kind="decades",
)
FIGURE_7_16 = claims(
    {
        "linear-first: linear first > 0": "The linear network is difficult to represent. | log10 "
        "of the mean cross-entropy from the worse linear network over the largest such mean of "
        f"another network; {SETS}",
    },
    source="section 7.3.4, figure 7.16",
    kind="decades",
)


def _cross_entropy(figure: str) -> tuple[Claim, ...]:
    rows = {
        "adamw-less: adamw over sgd > 0": "Dense and convolutional networks are similar to "
        "themselves for SGD, less for AdamW. | log10 of the mean within families, AdamW over SGD; "
        + SETS,
        "across-less: across over sgd > 0": "They are less similar between SGD and AdamW. | log10 "
        f"of the mean between optimizers of a family over that within SGD; {SETS}",
        "families: families > 0": "Dense networks and convolutional networks are similar to "
        "themselves. | log10 of the mean between both families over that within them, SGD; " + SETS,
    }
    ours = {
        condition.replace(": ", "-divergence: divergence ", 1): f"Without the entropy of the "
        f"first network: {row}"
        for condition, row in rows.items()
    }
    source = f"section 7.3.4, {figure}"
    return (
        *claims(rows, source=source, kind="decades"),
        *claims(
            ours,
            source=f"{source}; the divergence, cross-entropy less entropy",
            kind="decades",
            **OURS,
        ),
    )


FIGURE_7_15 = _cross_entropy("figure 7.15")
FIGURE_7_17 = _cross_entropy("figure 7.17")
