"""The rule of the verdicts, case by case, with its sentences."""

import math

import pytest

from inscape.lab.experiment import Estimate, Experiment, Trend, Value
from inscape.lab.verdict import RULE, VERDICTS, judge


def estimate(value, half=0.0, *, se=None, **more):
    more = {"n": 10} | more
    se = half / 2 if se is None else se
    return Estimate(value=value, low=value - half, high=value + half, se=se, **more)


def value(**more):
    return Value(name="v", says="It is 0.5.", of="q", published=0.5, **more)


def trend(**more):
    return Trend(name="t", says="It grows.", of="q", **({"side": "above"} | more))


def judged(claim, ours, scale="laptop", **more):
    experiment = Experiment(shows="Table 1", title="t", cell=dict, claims=(claim,))
    (found,) = judge(experiment, {} if ours is None else {"q": ours}, scale, **more)
    assert found.claim is claim
    assert found.ours is ours
    assert found.reason.endswith(".")
    assert found.verdict in VERDICTS
    return found.verdict, found.reason


def test_a_number_within_both_spreads():
    claim = value(published_se=0.03)
    assert judged(claim, estimate(0.59, se=0.04)) == (
        "reproduced",
        "ours 0.59 and the published 0.5 differ by 0.09, within 0.1 (2 sqrt(0.04² + 0.03²)).",
    )
    assert judged(claim, estimate(0.61, se=0.04)) == (
        "not reproduced",
        "ours 0.61 and the published 0.5 differ by 0.11, more than 0.1 (2 sqrt(0.04² + 0.03²)).",
    )


@pytest.mark.parametrize(("ours", "verdict"), [(0.6, "reproduced"), (0.4, "reproduced")])
def test_a_number_on_the_edge_of_its_tolerance(ours, verdict):
    assert abs(ours - 0.5) <= 0.1 * (1 + 1e-9)
    assert judged(value(tolerance=0.1), estimate(ours))[0] == verdict


def test_a_tolerance_counts_only_where_no_spread_is_published():
    far = estimate(0.59, se=5.0)  # our own spread does not widen a tolerance
    assert judged(value(tolerance=0.05), far)[0] == "not reproduced"
    near = estimate(0.55, se=0.0)
    assert judged(value(tolerance=0.1, published_se=0.01), near)[0] == "not reproduced"
    assert judged(value(tolerance=0.1), near) == (
        "reproduced",
        "ours 0.55 and the published 0.5 differ by 0.05, within 0.1 (the tolerance written "
        "before the run).",
    )


def test_a_missed_number_on_the_right_side_is_the_same_trend():
    claim = value(tolerance=0.1, side="above")
    assert judged(claim, estimate(0.8, 0.2)) == (
        "same trend",
        "ours 0.8 and the published 0.5 differ by 0.3, more than 0.1 (the tolerance written "
        "before the run), but interval 0.6 to 1 lies above 0.",
    )
    verdict, reason = judged(claim, estimate(0.1, 0.2))
    assert verdict == "not reproduced"
    assert reason.endswith("and interval -0.1 to 0.3 does not lie above 0.")
    below = value(tolerance=0.01, side="below", bound=1.0)
    assert judged(below, estimate(0.8, 0.1))[0] == "same trend"
    assert judged(below, estimate(0.8, 0.3))[0] == "not reproduced"


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (estimate(0.3, 0.2), "reproduced"),
        (estimate(0.1, 0.2), "same trend"),
        (estimate(0.2, 0.2), "same trend"),  # it touches the bound
        (estimate(-0.1, 0.2), "not reproduced"),
        (estimate(0.0, 0.2), "not reproduced"),
        (estimate(0.0, exact=True), "not reproduced"),
        (estimate(0.1, exact=True), "reproduced"),
        (estimate(0.1, math.inf), "same trend"),
    ],
)
def test_a_trend_above_and_its_mirror_below(ours, verdict):
    assert judged(trend(), ours)[0] == verdict
    mirror = Estimate(
        value=-ours.value, low=-ours.high, high=-ours.low, se=ours.se, n=10, exact=ours.exact
    )
    assert judged(trend(side="below"), mirror)[0] == verdict


def test_sentences_of_trends():
    assert judged(trend(), estimate(0.3, 0.2))[1] == "0.3, interval 0.1 to 0.5, all above 0."
    assert judged(trend(), estimate(0.1, 0.2))[1] == (
        "the estimate 0.1 is above 0, but interval -0.1 to 0.3 reaches beyond."
    )
    assert judged(trend(), estimate(-0.5, 0.2))[1] == (
        "-0.5, interval -0.7 to -0.3, is not above 0."
    )
    assert judged(trend(), estimate(2.0, exact=True))[1] == "2, exact, all above 0."
    assert judged(trend(), estimate(2.0, math.inf, n=1))[1] == (
        "the estimate 2 is above 0, but the endless interval of one value reaches beyond."
    )


def test_a_trend_between():
    claim = trend(side="between", bound=-0.3, upper=0.3)
    assert judged(claim, estimate(0.1, 0.1)) == (
        "reproduced",
        "0.1, interval 0 to 0.2, all between -0.3 and 0.3.",
    )
    assert judged(claim, estimate(0.25, 0.1))[0] == "same trend"
    assert judged(claim, estimate(0.5, 0.4))[0] == "not reproduced"


@pytest.mark.parametrize("upper", [None, -0.3])
def test_a_trend_between_needs_two_bounds(upper):
    with pytest.raises(ValueError, match=r"needs upper above bound, found .* and -0.3: correct"):
        trend(side="between", bound=-0.3, upper=upper)


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


def test_one_value_agrees_with_nothing_by_its_unknown_spread():
    result = estimate(99.0, math.inf, n=1)
    assert judged(value(published_se=0.1), result) == (
        "not run",
        "one value has no spread, and the rule needs one: run more seeds or data sets.",
    )
    assert judged(value(tolerance=0.1), result)[0] == "not reproduced"
    assert judged(value(tolerance=99.0), result)[0] == "reproduced"


@pytest.mark.parametrize("claim", [value(tolerance=1.0), value(published_se=1.0), trend()])
def test_no_number_is_no_agreement(claim):
    nan = Estimate(value=math.nan, low=math.nan, high=math.nan, se=math.nan, n=3, method="1 is bad")
    assert judged(claim, nan) == ("not reproduced", "our value is nan: 1 is bad.")


def test_every_claim_is_judged_in_order():
    claims = (value(tolerance=1.0), trend(), Trend(name="u", says="", of="r", side="below"))
    experiment = Experiment(shows="Table 1", title="t", cell=dict, claims=claims)
    result = judge(experiment, {"q": estimate(0.5, 0.1)}, "paper")
    assert [one.claim for one in result] == list(claims)
    assert [one.verdict for one in result] == ["reproduced", "reproduced", "not run"]


def test_the_rule_names_every_verdict():
    assert all(verdict in RULE for verdict in VERDICTS)
