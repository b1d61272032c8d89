"""The rule of the verdicts, case by case, with its sentences."""

import math
from dataclasses import replace

import pytest

from inscape.lab.experiment import Estimate, Experiment, Trend, Value
from inscape.lab.verdict import FEWEST, MANY, RULE, RULE_VERSION, VERDICTS, judge


def estimate(value, half=0.0, *, se=None, **more):
    more = {"n": 10, "interval": "studentised"} | more
    se = half / 2 if se is None else se
    return Estimate(value=value, low=value - half, high=value + half, se=se, **more)


def exact(value):
    return estimate(value, exact=True, interval="exact", n=1)


def value(published=0.5, **more):
    return Value(name="v", says="It is.", of="q", published=published, **more)


def trend(**more):
    return Trend(name="t", says="It grows.", of="q", **({"side": "above"} | more))


def judgement(claim, ours, scale="laptop", *, outside=None, others=None, **more):
    experiment = Experiment(
        shows="Table 1", title="t", cell=dict, claims=(claim,), outside=outside or {}
    )
    quantities = {} if ours is None else {"q": ours}
    (one,) = judge(experiment, quantities | (others or {}), scale, **more)
    assert one.claim is claim
    assert one.ours is ours or one.ours.units == ours.units  # equal ones get another interval
    assert one.reason.endswith(".")
    assert one.verdict in VERDICTS
    assert one.rule == RULE_VERSION
    return one


def judged(*args, **more):
    one = judgement(*args, **more)
    return one.verdict, one.reason


@pytest.mark.parametrize(
    ("off", "half", "verdict"),
    [
        (0.0, 0.09, "reproduced"),
        (0.05, 0.049, "reproduced"),
        (0.0, 0.1, "reproduced"),  # it touches the margin from within
        (0.05, 0.06, "inconclusive"),
        (0.0, 5.0, "inconclusive"),  # noise is not rewarded
        (0.15, 0.06, "inconclusive"),
        (0.2, 0.09, "not reproduced"),
        (-0.2, 0.09, "not reproduced"),
        (-0.05, 0.01, "reproduced"),
    ],
)
def test_the_interval_lies_within_the_margin_or_beyond_it_or_across(off, half, verdict):
    claim = value(tolerance=0.1)
    assert judged(claim, estimate(0.5 + off, half))[0] == verdict
    assert judged(claim, estimate(0.5 - off, half))[0] == verdict


def test_sentences_of_a_number():
    assert judged(value(tolerance=0.1), estimate(0.55, 0.04))[1] == (
        "ours 0.55, published 0.5: the difference 0.05 (95% interval 0.01 to 0.09, our interval "
        "alone) lies within the margin of 0.1."
    )
    assert judged(value(tolerance=0.1), estimate(0.8, 0.04))[1] == (
        "ours 0.8, published 0.5: the difference 0.3 (95% interval 0.26 to 0.34, our interval "
        "alone) lies wholly beyond the margin of 0.1."
    )
    open_ended = judgement(value(tolerance=0.1), estimate(0.55, 0.08, se=0.04))
    assert open_ended.reason == (
        "ours 0.55, published 0.5: the difference 0.05 (95% interval -0.03 to 0.13, our interval "
        "alone) reaches across it; about 26 units would decide at the margin of 0.1."
    )
    assert open_ended.seeds == 26


def test_no_number_of_runs_is_promised_where_sets_of_a_given_size_are_judged():
    sets = estimate(0.5, 0.3, se=0.2, n=40, interval="resampled")
    number = judgement(value(tolerance=0.1), sets)
    assert (number.verdict, number.seeds) == ("inconclusive", None)
    assert "another 40 runs may land on either side of the margin of 0.1." in number.reason
    side = judgement(trend(bound=0.4), sets)
    assert (side.verdict, side.seeds) == ("inconclusive", None)
    assert side.reason.endswith(
        "reaches across the bound; another 40 runs may land on either side."
    )
    assert judged(trend(bound=0.4), replace(sets, low=0.45))[0] == "reproduced"


def test_both_errors_count():
    alone = value(tolerance=0.1)
    both = value(tolerance=0.1, published_se=0.04)
    assert judged(alone, estimate(0.5, 0.08))[0] == "reproduced"
    assert judged(both, estimate(0.5, 0.08))[0] == "inconclusive"
    assert judgement(both, estimate(0.5, 0.08)).difference.high == pytest.approx(
        math.hypot(0.08, 1.959964 * 0.04), rel=1e-6
    )


def test_a_published_number_may_be_too_uncertain_for_any_run():
    claim = value(tolerance=0.1, published_se=0.0511)
    one = judgement(claim, estimate(0.5, 0.01))
    assert (one.verdict, one.seeds) == ("inconclusive", None)
    assert "the published number is too uncertain for any run to decide at the margin" in one.reason
    assert judged(claim, estimate(0.9, 0.01))[0] == "not reproduced"  # far away is far away
    assert judged(value(tolerance=0.1, published_se=0.05), estimate(0.5, 0.0001))[0] == "reproduced"


def test_margins_follow_from_the_kind():
    near = estimate(0.515, 0.004)
    assert judged(value(kind="proportion"), near)[0] == "reproduced"
    assert judged(value(kind="proportion"), estimate(0.53, 0.004))[0] == "not reproduced"
    assert judged(value(kind="correlation"), estimate(0.58, 0.01))[0] == "reproduced"
    assert judged(value(), estimate(0.53, 0.01))[0] == "reproduced"  # 10% of 0.5
    assert judged(value(), estimate(0.57, 0.01))[0] == "not reproduced"


def test_exact_numbers_have_no_interval():
    assert judged(value(0.87), exact(0.866)) == (
        "reproduced",
        "ours 0.866, published 0.87: the exact difference -0.004 lies within the margin of 0.005.",
    )
    assert judged(value(0.87), exact(0.8649))[0] == "not reproduced"
    assert judged(value(5), exact(5.0))[0] == "reproduced"
    assert judged(value(5), exact(6.0))[0] == "not reproduced"
    assert judged(value(5, tolerance=0), exact(5.0))[0] == "reproduced"


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (estimate(0.3, 0.2), "reproduced"),
        (estimate(0.1, 0.2), "inconclusive"),
        (estimate(0.2, 0.2), "inconclusive"),  # it touches the bound
        (estimate(-0.1, 0.2), "inconclusive"),
        (estimate(-0.2, 0.2), "not reproduced"),
        (estimate(-0.3, 0.2), "not reproduced"),
        (exact(0.0), "not reproduced"),
        (exact(0.1), "reproduced"),
    ],
)
def test_a_trend_above_and_its_mirror_below(ours, verdict):
    assert judged(trend(), ours)[0] == verdict
    mirror = Estimate(
        value=-ours.value, low=-ours.high, high=-ours.low, se=ours.se, n=10, exact=ours.exact,
        interval="studentised",
    )  # fmt: skip
    assert judged(trend(side="below"), mirror)[0] == verdict


def test_sentences_of_trends():
    assert judged(trend(), estimate(0.3, 0.2))[1] == "0.3, interval 0.1 to 0.5, all above 0."
    assert judged(trend(), estimate(0.1, 0.2, se=0.1))[1] == (
        "0.1, but interval -0.1 to 0.3 reaches across the bound; about 40 units would decide."
    )
    assert judged(trend(), estimate(-0.5, 0.2))[1] == "-0.5, interval -0.7 to -0.3, not above 0."
    assert judged(trend(), exact(2.0))[1] == "2, exact, all above 0."


def test_a_trend_between_is_equivalence():
    claim = trend(side="between", bound=-0.3, upper=0.3)
    assert judged(claim, estimate(0.1, 0.1)) == (
        "reproduced",
        "0.1, interval 0 to 0.2, all between -0.3 and 0.3.",
    )
    assert judged(claim, estimate(0.25, 0.1))[0] == "inconclusive"
    assert judged(claim, estimate(0.5, 0.4))[0] == "inconclusive"
    assert judged(claim, estimate(0.5, 0.1))[0] == "not reproduced"
    assert judged(claim, estimate(-0.5, 0.1))[0] == "not reproduced"


@pytest.mark.parametrize("upper", [None, -0.3])
def test_a_trend_between_needs_two_bounds(upper):
    with pytest.raises(ValueError, match=r"needs upper above bound, found .* and -0.3: correct"):
        trend(side="between", bound=-0.3, upper=upper)


@pytest.mark.parametrize(
    ("interval", "needed"),
    [(kind, FEWEST.get(kind, MANY)) for kind in ("t", "studentised", "sign", "permutation")]
    + [("percentile", 20), ("normal", 20), ("", 20)],
)
@pytest.mark.parametrize("claim", [trend(), value(0.6, tolerance=0.5)])
def test_too_few_units_decide_nothing(claim, interval, needed):
    few = judgement(claim, estimate(0.6, 0.1, n=needed - 1, interval=interval))
    assert (few.verdict, few.seeds) == ("inconclusive", needed)
    assert f"over {needed} independent units or more is needed, found {needed - 1}" in few.reason
    assert judged(claim, estimate(0.6, 0.1, n=needed, interval=interval))[0] == "reproduced"


def test_the_fewest_units_are_those_of_the_issue():
    assert [FEWEST[kind] for kind in ("t", "studentised", "sign", "permutation")] == [5, 5, 6, 6]
    assert MANY == 20


def test_one_value_decides_nothing():
    one = Estimate(
        value=0.5, low=-math.inf, high=math.inf, se=math.inf, n=1, interval="none", units=(0.5,)
    )
    for claim in (trend(), value(tolerance=9.0), value(kind="proportion")):
        assert judged(claim, one) == (
            "inconclusive",
            "an interval over 5 independent units or more is needed, found 1.",
        )


def test_equal_units_show_no_spread():
    same = estimate(1.0, interval="t", n=8, units=(1.0,) * 8)
    for claim in (trend(), value(1.0, tolerance=0.0), trend(bound=0.4)):
        assert judged(claim, same) == (
            "inconclusive",
            "all units or draws give 1: they show no spread.",
        )
    assert judged(trend(), estimate(1.0, interval="percentile", n=50))[0] == "inconclusive"


def test_equal_units_of_a_proportion_have_the_interval_of_clopper_and_pearson():
    same = estimate(1.0, interval="t", n=8, units=(1.0,) * 8)
    low = 0.025 ** (1 / 8)  # 0.63
    assert judged(trend(kind="proportion", bound=low - 0.01), same)[0] == "reproduced"
    assert judged(trend(kind="proportion", bound=low + 0.01), same)[0] == "inconclusive"
    assert judged(trend(kind="proportion", side="below", bound=0.5), same)[0] == "not reproduced"
    none = estimate(0.0, interval="t", n=200, units=(0.0,) * 200)
    assert judged(value(0.0, kind="proportion"), none)[0] == "reproduced"
    assert judged(trend(kind="proportion"), estimate(0.5, interval="t"))[0] == "inconclusive"


def test_counts_compare_as_proportions():
    ours = estimate(0.02, 0.02, n=4000, interval="binomial")
    claim = value(0.02, kind="proportion", published_of=4000)
    assert judgement(claim, ours).verdict == "reproduced"
    assert "Newcombe's interval" in judgement(claim, ours).reason
    few = value(0.02, kind="proportion", published_of=100)
    one = judgement(few, ours)
    assert one.verdict == "inconclusive"
    count = value(2, kind="count", published_of=100)
    scaled = estimate(2.0, 2.0, n=4000, interval="binomial")
    two = judgement(count, scaled)
    assert two.difference.low == pytest.approx(100 * one.difference.low)
    assert two.difference.margin == pytest.approx(100 * one.difference.margin)


def test_a_heavy_tail_is_judged_by_the_logarithm_of_its_mean():
    units = tuple(1e-6 * (1 + k / 50) for k in range(10))
    ours = estimate(sum(units) / 10, interval="t", se=1e-8, units=units)
    claim = value(1.1e-6, kind="heavy-tailed", published_se=1e-7)
    verdict, reason = judged(claim, ours)
    assert verdict == "reproduced"
    assert "the ratio 0.9909 (95% interval" in reason
    assert reason.endswith(
        "studentised bootstrap of the log of the mean) lies within the margin of a factor 2."
    )
    assert judged(value(1e-5, kind="heavy-tailed", published_se=1e-7), ours)[0] == "not reproduced"


def test_a_vague_heavy_tail_gives_no_verdict():
    ours = estimate(2.0, interval="t", se=0.1, units=(1.9, 2.0, 2.0, 2.05, 2.05))
    claim = value(2.0, kind="heavy-tailed", published_se=1.01)
    one = judgement(claim, ours)
    assert (one.verdict, one.otherwise) == ("no verdict", "inconclusive")
    assert one.reason == (
        "the published 2 has a standard error of 1.01, more than half of itself: only the order "
        "of rows is judged."
    )
    few = estimate(2.0, interval="t", se=0.1, units=(1.9, 2.1))
    assert (
        "at least five units, found 2"
        in judged(value(2.0, kind="heavy-tailed"), estimate(2.0, se=0.1, units=few.units))[1]
    )
    bad = estimate(2.0, interval="t", se=0.1, units=(-1.0, 3.0, 2.0, 3.0, 3.0))
    assert judged(value(2.0, kind="heavy-tailed"), bad)[0] == "inconclusive"


def test_the_same_trend_is_a_second_mark():
    claim = value(tolerance=0.1, side="above", bound=0.0)
    missed = judgement(claim, estimate(0.8, 0.1))
    assert (missed.verdict, missed.same_trend) == ("not reproduced", True)
    undecided = judgement(claim, estimate(0.55, 0.2))
    assert (undecided.verdict, undecided.same_trend) == ("inconclusive", True)
    assert not judgement(claim, estimate(0.1, 0.2)).same_trend
    assert not judgement(claim, estimate(0.5, 0.05)).same_trend  # reproduced needs no second mark
    assert not judgement(value(tolerance=0.1), estimate(0.8, 0.1)).same_trend


def test_data_sets_that_are_shared_are_compared_in_pairs():
    theirs = (0.1, 0.5, 0.9, 0.3, 0.7, 0.2)
    units = tuple(one + 0.01 * (-1) ** k for k, one in enumerate(theirs))
    ours = estimate(0.45, 0.3, n=6, interval="t", se=0.13, units=units)
    alone = value(0.45, kind="correlation", published_se=0.13)
    assert judged(alone, ours)[0] == "inconclusive"
    paired = value(0.45, kind="correlation", published_se=0.13, published_units=theirs)
    verdict, reason = judged(paired, ours)
    assert verdict == "reproduced"
    assert "paired t interval over 6 data sets" in reason


@pytest.mark.parametrize("claim", [value(tolerance=1.0), trend()])
def test_not_run(claim):
    good = estimate(0.5, 0.1)
    assert judged(claim, None) == ("not run", "the records give no 'q'.")
    assert judged(claim, good, "smoke") == (
        "not run",
        "the smoke scale only shows that the code runs.",
    )
    assert judged(claim, good, changed=("width", "seeds")) == (
        "not run",
        "settings were changed by hand: width, seeds.",
    )
    for scale in ("laptop", "paper"):
        assert judged(claim, good, scale)[0] == "reproduced"


@pytest.mark.parametrize(
    "claim", [value(tolerance=1.0, scales=("paper",)), trend(scales=("paper",))]
)
def test_a_claim_about_another_scale(claim):
    assert judged(claim, estimate(0.5, 0.1)) == (
        "not run",
        "the claim is about the settings of scale paper, and these are of laptop.",
    )
    assert judged(claim, estimate(0.5, 0.1), "paper")[0] == "reproduced"


@pytest.mark.parametrize("good", [0.5, -0.5])
def test_no_verdict_for_passing_and_failing_claims_alike(good):
    ours, plain = estimate(good, 0.1), judged(trend(), estimate(good, 0.1))[0]
    far = judgement(trend(), ours, outside={"laptop": "8 of 64 filters."})
    assert (far.verdict, far.otherwise) == ("no verdict", plain)
    assert far.reason == "the settings lie outside of the paper's range: 8 of 64 filters."
    assert judged(trend(), ours, "paper", outside={"laptop": "8 of 64 filters."})[0] == plain

    chance = trend(baseline="net", chance=0.1)
    weak = judgement(chance, ours, others={"net": estimate(0.139, 0.01)})
    assert (weak.verdict, weak.otherwise) == ("no verdict", plain)
    assert weak.reason == "the baseline 'net' is 0.139, within two margins of chance (0.1)."
    assert judged(chance, ours, others={"net": estimate(0.141, 0.01)})[0] == plain

    turned = judgement(trend(), ours, "paper", smaller={"q": estimate(-good, 0.1)})
    assert (turned.verdict, turned.otherwise) == ("no verdict", plain)
    assert turned.reason.startswith("the sign changes between our two largest scales: ")
    assert judged(trend(), ours, "paper", smaller={"q": estimate(good / 9, 0.1)})[0] == plain

    struck = judgement(trend(struck="it passes without data."), ours)
    assert (struck.verdict, struck.otherwise) == ("no verdict", plain)
    assert struck.reason == "struck out: it passes without data."


def test_what_holds_by_construction_is_not_counted_unless_it_fails():
    claim = trend(by_construction="the mean of both orders is symmetric.")
    one = judgement(claim, exact(1.0))
    assert (one.verdict, one.reason) == (
        "by construction",
        "the mean of both orders is symmetric.",
    )
    assert judged(claim, exact(-1.0))[0] == "not reproduced"


@pytest.mark.parametrize("claim", [value(tolerance=1.0), value(published_se=1.0), trend()])
def test_no_number_is_no_verdict_on_a_number(claim):
    nan = Estimate(value=math.nan, low=math.nan, high=math.nan, se=math.nan, n=3, method="1 is bad")
    assert judged(claim, nan) == ("inconclusive", "our value is nan: 1 is bad.")


def test_a_corrected_number_is_judged_by_its_correction():
    claim = value(10, corrected=0.0759, erratum="S1")
    assert judged(claim, exact(0.0759))[0] == "reproduced"
    assert judged(claim, exact(10.0))[0] == "not reproduced"


def test_the_chance_of_a_wrong_verdict_is_that_of_one_tail():
    assert judgement(trend(), estimate(0.3, 0.2)).by_chance == 0.025
    assert judgement(trend(), estimate(0.1, 0.2)).by_chance == 0.0
    assert judgement(trend(), exact(1.0)).by_chance == 0.0


def test_every_claim_is_judged_in_order():
    claims = (value(tolerance=1.0), trend(), Trend(name="u", says="", of="r", side="below"))
    experiment = Experiment(shows="Table 1", title="t", cell=dict, claims=claims)
    result = judge(experiment, {"q": estimate(0.5, 0.1)}, "paper")
    assert [one.claim for one in result] == list(claims)
    assert [one.verdict for one in result] == ["reproduced", "reproduced", "not run"]


def test_the_rule_names_every_verdict():
    text = RULE.lower()
    assert all(verdict in text for verdict in VERDICTS)
    assert "same trend" in text
