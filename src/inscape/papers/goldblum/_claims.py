"""What the paper says, as claims of each entry; written before any run.

Bounds are ours where the paper prints none. Printed numbers are those of ``published.json``.
"""

from typing import Any

from inscape.lab.claims import claims
from inscape.lab.experiment import Claim, ScaleName
from inscape.lab.published import printed

PAPER = "goldblum"
ONLY_PAPER: tuple[ScaleName, ...] = ("paper",)
OURS: dict[str, Any] = {"origin": "ours"}

#: Beginnings of table 1 as they are printed, by our name.
MLP_STARTS = {
    "default": "Default",
    "lemma-1": "Lemma 1",
    "bias+20": "Bias+20",
    "bias-50": "Bias in U(-50,50)",
    "bias-10, no momentum": "Bias in U(-10,10) NM",
}
#: The same of table 2.
RESNET_STARTS = {
    "default": "Default",
    "zero": "Zero",
    "bias+10": "Bias+10",
    "bias+20": "Bias+20",
    "bias-10": "Bias in U(-10,10) RM",
    "bias-50": "Bias in U(-50,50) RM",
}
#: Networks of tables 3 and 4 as they are printed.
NETWORKS = {
    "resnet": "ResNet",
    "densenet": "DenseNet",
    "mobilenet": "MobileNetV2",
    "fixup": "ResNet Fixup",
    "mlp": "MLP",
}
UN_NORMALISED = ("resnet", "densenet", "mobilenet")
REGULARISERS = ("none", "weight_decay", "norm_bias")
#: Architectures of figure 1.
KERNEL_NETWORKS = ("mlp-2", "mlp-4", "conv", "wide-resnet")

LEMMA_1 = claims(
    {
        "exact: deviation < 1e-9": "The construction reproduces the affine map exactly on the "
        "data. | largest deviation relative to the largest output, float64",
        "positive: least > 0.5": "All activations of all points are positive. | least "
        "pre-activation over layers, points and units",
    },
    source="lemma 1, A.1; corrected by G1",
)

THEOREM_1 = claims(
    {
        "minimum: certified > 0.99": "The linear problem's minimum is a local minimum of the MLP. "
        "| fraction of cells certified by theorem 1 in float64",
        "equal: gap < 1e-9": "The MLP has the loss of the linear minimum there. | largest "
        "difference of both losses",
        "suboptimal: below > 0": "The network has lower points, so the minimum is suboptimal. | "
        "loss of the linear minimum less that after default training, t interval over seeds",
        "linear-global: linear below < 1e-6": "Without ReLUs the same point is a global minimum. | "
        "the same of a deep linear network, t interval over seeds | remark 2.1",
    },
    source="theorem 1, A.2",
)


def _tables_1_and_2(entry: str, starts: dict[str, str]) -> tuple[Claim, ...]:
    """Return the printed numbers of a table of beginnings; each was found in a single run."""
    rows = {row["init"]: row for row in printed(PAPER, entry)}
    table, extra = {}, {}
    for start, title in starts.items():
        for column, number in rows[title].items():
            if column == "init":
                continue
            name = f"{column}-{start}".replace(", ", "-")
            allowed = max(0.05, abs(number) / 10)
            table[f"{name}: {column}/{start} = {number:.7f} ± {allowed:g}"] = (
                f"{title}: {column} is {number:g}. | {title} | {column}"
            )
            if start == "lemma-1" and column.startswith("min_ev"):
                extra[name] = {"corrected": 0.0, "erratum": "G8"}
    return claims(table, source=entry.replace("-", " "), extra=extra, scales=ONLY_PAPER)


TABLE_1 = (
    *_tables_1_and_2("table-1", MLP_STARTS),
    *claims(
        {
            "default-learns: loss_final/default < 0.1": "Default initialisation trains to a loss "
            "near zero. | mean over seeds, t interval | section 2, table 1",
            "lemma-stays: fall/lemma-1 between -0.02 and 0.02": "From Lemma 1 the loss stays at "
            "that of the linear classifier. | loss before less loss after, t interval over seeds",
            "lemma-positive: least/lemma-1 > 0": "All activations are positive for the whole "
            "training set after training. | least pre-activation, t interval over seeds",
            "trapped-bias+20: loss_final/bias+20 > 2.2": "Biases of +20 end near or above log 10.",
            "trapped-bias-50: loss_final/bias-50 > 2.2": "Biases from U(-50, 50) end near or above "
            "log 10.",
            "still-bias+20: grad_final/bias+20 < 0.05": "Its gradient is tiny: +20.",
            "still-bias-50: grad_final/bias-50 < 0.05": "Its gradient is tiny: U(-50, 50).",
            "curved-bias+20: min_ev_final/bias+20 > -0.01": "The smallest eigenvalue of the "
            "Hessian is not negative: +20. | mean over seeds, t interval; the bound is ours",
            "curved-bias-50: min_ev_final/bias-50 > -0.01": "The smallest eigenvalue of the "
            "Hessian is not negative: U(-50, 50). | mean over seeds, t interval; the bound is ours",
            "no-momentum: loss_final/bias-10, no momentum > 0.1": "Without momentum a bias from "
            "U(-10, 10) already gives a sub-par optimum.",
            "sharper: sharper/lemma-1 > 1": "The suboptimal minimum is much sharper than that of "
            "default training: by more than a factor of 10. | log10 of the ratio of largest "
            "eigenvalues, bootstrap over seeds | remark 2.2; the factor is ours",
            "linear-loss: linear loss = 1.57 ± 0.005": "The linear classifier has a loss of 1.57. "
            "| linear classifier | loss",
            "linear-accuracy: linear accuracy = 40.53 ± 2": "The linear classifier has a test "
            "accuracy of 40.53%. | linear classifier | test accuracy",
        },
        source="section 2, table 1",
        test="mean over seeds, t interval",
        extra={
            "sharper": {"kind": "decades"},
            "linear-loss": {"scales": ONLY_PAPER},
            "linear-accuracy": {"scales": ONLY_PAPER},
        },
    ),
    *claims(
        {
            "decay-moves: grad_init/lemma-1, decay > 0.02": "With weight decay in it, the gradient "
            "at the Lemma-1 point is not near zero (G5). | t interval over seeds | G5",
            "lemma-stays-no-decay: fall/lemma-1, no decay between -0.02 and 0.02": "Without weight "
            "decay in training the loss stays as well (G5). | loss before less loss after, t "
            "interval over seeds | G5",
            "lemma-stays-small: fall/lemma-1, small steps between -0.02 and 0.02": "At a rate "
            "below the inverse of the largest eigenvalue the loss stays. | loss before less loss "
            "after, t interval over seeds | theorem 1, G11",
            "lemma-positive-small: least/lemma-1, small steps > 0": "All activations stay positive "
            "at such a rate. | least pre-activation, t interval over seeds | theorem 1, G11",
            "momentum-frees: freed/bias-10 > 0": "With momentum the same biases end lower. | "
            "paired t interval over seeds | section 2, our reading of already",
        },
        **OURS,
    ),
)

TABLE_2 = (
    *_tables_1_and_2("table-2", RESNET_STARTS),
    *claims(
        {
            "default-learns: loss_final/default < 0.1": "Default initialisation trains to a loss "
            "near zero.",
            **{
                f"trapped-{start}: loss_final/{start} between 2.25 and 2.35": f"{title} ends at "
                "the loss log 10. | mean over seeds, t interval; 0.05 each way is ours"
                for start, title in RESNET_STARTS.items()
                if start != "default"
            },
            "escapes-50: loss_final/bias-50, momentum 0.9 < 1": "Standard momentum of 0.9 escapes "
            "from biases from U(-50, 50).",
            "escapes-10: loss_final/bias-10, momentum 0.9 < 1": "Standard momentum of 0.9 escapes "
            "from biases from U(-10, 10).",
        },
        source="section 2, table 2",
        test="mean over seeds, t interval",
    ),
)


def _accuracies(entry: str, networks: tuple[str, ...]) -> tuple[Claim, ...]:
    rows = {row["model"]: row for row in printed(PAPER, entry)}
    table = {
        f"{rule}-{net}: {rule}/{net} = {rows[NETWORKS[net]][rule]} "
        f"({rows[NETWORKS[net]][rule + '_se'] or 0.005})": f"{NETWORKS[net]}, "
        f"{rule.replace('_', ' ')}: {rows[NETWORKS[net]][rule]}%. | {NETWORKS[net]} | {rule}"
        for net in networks
        for rule in REGULARISERS
    }
    return claims(
        table, source=entry.replace("-", " "), scales=ONLY_PAPER, kind="percentage", published_n=10
    )


PAIRED = "paired t interval over seeds, in points"
TABLE_3 = (
    *_accuracies("table-3", UN_NORMALISED),
    *claims(
        {
            **{
                f"bias-beats-decay-{net}: norm_bias - weight_decay/{net} > 0": "Norm-bias "
                f"generalises better than weight decay: {NETWORKS[net]}."
                for net in UN_NORMALISED
            },
            **{
                f"decay-beats-none-{net}: weight_decay - none/{net} > 0": "Weight decay "
                f"generalises better than no regulariser: {NETWORKS[net]}."
                for net in ("resnet", "densenet")
            },
            "decay-ties-none-mobilenet: weight_decay - none/mobilenet between -0.5 and 0.5": "With "
            "and without weight decay MobileNetV2 is equal, against the text (G6). | paired t "
            "interval over seeds; half a point is ours | table 3, G6",
        },
        source="section 3, table 3",
        test=PAIRED,
        kind="percentage",
    ),
)
TABLE_4 = (
    *_accuracies("table-4", tuple(NETWORKS)),
    *claims(
        {
            **{
                f"bias-matches-{net}: norm_bias - weight_decay/{net} > -0.5": "Norm-bias at least "
                f"matches weight decay: {NETWORKS[net]}. | paired t interval over seeds; half a "
                "point is ours"
                for net in NETWORKS
            },
            "fixup-fails: none/fixup < 20": "Fixup without regularisation does not train. | mean "
            "over seeds, t interval; twice chance is ours",
            "larger-norm: norm norm_bias - weight_decay/fixup > 0": "Norm-bias ends at a larger "
            "norm of the parameters. | paired t interval over seeds | A.4",
            "better: norm_bias - weight_decay/fixup > 0": "Norm-bias generalises better in spite "
            "of the larger norm. | paired t interval over seeds, in points | A.4",
        },
        source="section 3, table 4",
        test=PAIRED,
        extra={f"bias-matches-{net}": {"kind": "percentage"} for net in NETWORKS},
    ),
    *claims(
        {
            "norm-decay: norm weight_decay/fixup = 24.51 ± 2.451": "The norm with weight decay is "
            "24.51. | Fixup | weight decay",
            "norm-bias: norm norm_bias/fixup = 31.62 ± 3.162": "The norm with norm-bias is 31.62. "
            "| Fixup | norm-bias",
            "negative: negative/resnet > 90": "Negative weight decay leads ResNet-18 above 90%. | "
            "mean over seeds, t interval",
        },
        source="A.4",
        scales=ONLY_PAPER,
    ),
    *claims(
        {
            "negative-blows-up: norm negative - none/resnet > 0": "Negative weight decay blows the "
            "norm of the parameters up. | paired t interval over seeds",
        },
        source="A.4",
    ),
    *claims(
        {
            "negative-keeps: negative over none/resnet > 0.96": "It keeps 96% of the accuracy "
            "without regulariser, as 90% is of 93.4%. | mean ratio, t interval over seeds",
        },
        source="A.4, in proportion",
        scales=("laptop",),
        **OURS,
    ),
)

FIGURE_1 = (
    *claims(
        {
            "conv-rises: tau correlation/conv > 0": "For the ConvNet the correlation rises with "
            "width.",
            "conv-near-one: widest correlation/conv > 0.9": "It rises towards 1: above 0.9 in the "
            "widest. | mean over seeds, t interval; the bound is ours",
            "mlp-2-rises: tau correlation/mlp-2 > 0": "For the 2-layer MLP the correlation rises "
            "over most widths.",
            "mlp-4-rises: tau correlation/mlp-4 > 0": "For the 4-layer MLP the correlation rises "
            "over most widths.",
            "wide-resnet-falls: tau correlation/wide-resnet < 0": "For WideResNets the correlation "
            "decreases with width.",
            "conv-change: power change/conv > 0": "The relative change rises with width: ConvNet.",
            "wide-resnet-change: power change/wide-resnet > 0": "The relative change rises with "
            "width: WideResNet.",
            "conv-rescaling: widest rescaled/conv > 0.5": "Most of the change is a rescaling: "
            "ConvNet. | fraction of the squared change, t interval over seeds",
            "wide-resnet-rescaling: widest rescaled/wide-resnet > 0.5": "Most of the change is a "
            "rescaling: WideResNet. | fraction of the squared change, t interval over seeds",
        },
        source="section 4, figure 1",
        test="Kendall's tau or slope with width within each seed, t interval over seeds",
    ),
    *claims(
        {
            f"{net}-drops: drop correlation/{net} < 0": f"The correlation drops at the end: {net}. "
            "| widest network less the best, paired t interval over seeds"
            for net in ("mlp-2", "mlp-4")
        },
        source="section 4, figure 1",
        scales=ONLY_PAPER,
    ),
)
FIGURE_3 = claims(
    {
        f"early-{net}: early/{net} > 0.5": f"Most change of the kernel happens in the first tenth "
        f"of the epochs: {net}. | share of the fall of the correlation, t interval over seeds"
        for net in KERNEL_NETWORKS
    },
    source="A.5, figure 3; the tenth is ours",
)
FIGURE_5 = claims(
    {
        f"less-{net}: power moved/{net} < 0": f"The average change per parameter decreases with "
        f"width: {net}. | slope of logarithms within each seed, t interval over seeds"
        for net in KERNEL_NETWORKS
    },
    source="A.5, figure 5",
)

TABLE_5 = (
    *claims(
        {
            f"{column}-{name}: {column}/{name} = {row[column]} ± 2": f"{row['method']}: {column} "
            f"is {row[column]}%. | {row['method']} | {column}"
            for row in printed(PAPER, "table-5")
            for name in [row["method"].replace(" ", "-").lower()]
            for column in ("train", "clean", "robust_8_255", "robust_1_255")
        },
        source="table 5",
        scales=ONLY_PAPER,
    ),
    *claims(
        {
            **{
                f"alike-{name}: clean {name} - natural between -2 and 2": f"{name} generalises "
                "like the network without it. | paired t interval over seeds, in points; two are "
                "ours"
                for name in ("rankmin", "rankmax")
            },
            "low-rank-below-base: robust rankminadv - adversarial < 0": "Low rank does not improve "
            "robustness: RankMinAdv is less robust than adversarial training alone.",
            "low-rank-below-high: robust rankminadv - rankmaxadv < 0": "RankMinAdv is less robust "
            "than RankMaxAdv.",
            "adversarial-rank: rank adversarial over natural > 0.9": "Adversarial training does "
            "not imply low rank. | ratio of mean effective ranks, t interval over seeds; 0.9 is "
            "ours",
        },
        source="section 5, table 5",
        test="paired t interval over seeds, in points of accuracy at 8/255",
    ),
)
FIGURE_2 = claims(
    {
        f"{name}-{kind}: rank {name} - {kind} {side}": f"{says}: {kind}."
        for kind in ("natural", "adversarial")
        for name, side, says in (
            ("rankmin", "< 0", "RankMin lowers the effective rank"),
            ("rankmax", "> 0", "RankMax raises the effective rank"),
            ("untrained", "> 0", "Networks at initialisation have a higher effective rank"),
        )
    },
    source="section 5, figure 2",
    test="mean over the 16 filters, paired t interval over seeds",
)
