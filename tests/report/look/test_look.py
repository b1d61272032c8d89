import json
from math import ceil

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from inscape import landscape, smoothness
from inscape._core import Instrument, UnsupportedModelError, instruments
from inscape._core.result import ALIKE
from inscape.loaders import OpenedModel, open_data
from inscape.models import mlp
from inscape.report import look
from inscape.report.look.baselines import at_initialisation
from inscape.report.look.page import page
from inscape.report.look.schedule import TaskSchedule
from inscape.report.look.session import prepare
from inscape.report.look.subject import seconds_per_row
from inscape.report.look.tasks import MeasurementTasks
from inscape.report.look.window import rectangle, slice_window
from inscape.report.look.work import WorkCounts
from inscape.runtime.deadline import clock

#: What applies to a two-layer ReLU network with several inputs.
MEASURED = [
    "region_sharing",
    "extrapolation",
    "local_minimum",
    "boundary",
    "line_regions",
    "plane_regions",
    "region_at",
    "active_subspace",
    "saliency",
    "effective_length_scale",
    "gradient_deflection",
    "gradient_norm",
    "gradient_path_length",
    "path_length",
    "rugosity",
    "weights_product",
    "effective_rank",
    "fisher_rao_norm",
    "parameter_norm",
    "spectral_norm",
]


#: What is taken without being asked for.
USUAL = {
    name
    for name, instrument in instruments().items()
    if instrument.by_default and instrument.reads not in ("trajectory", "pair")
}


def by_name(found):
    return {measured.name: measured for measured in found.measurements}


def test_numbers_are_those_of_the_instruments_on_the_test_rows(seen, network, regression):
    result = by_name(seen)
    assert list(result) == MEASURED
    for name, measured in result.items():
        x, y, more = regression.x_test, regression.y_test, {}
        if instruments()[name].wants_queries:  # the training rows are known, the test rows asked
            more = {"queries": x, "answers": y}
            x, y = regression.x, regression.y
        if instruments()[name].of_training:
            x, y, more = regression.x, regression.y, {"loss": "mse"}
        if name in ("boundary", "plane_regions"):  # in the plane of the slice
            frame, _, window = slice_window(x, y, classes=False)
            more = {"plane": frame, "domain": rectangle(window)}
        again = instruments()[name].measure(network, x, y, **more)
        assert measured.summary == again.summary()
        ours, theirs = list(measured.result.rows()), list(again.rows())
        if name == "saliency":  # what its numbers miss is rounding, which batches of others move
            misses = [row.pop("residual") for row in (*ours, *theirs)]
            assert max(map(abs, misses)) < 1e-14
        assert ours == theirs


def test_a_minimum_is_that_of_the_loss_and_the_data_of_the_training(network, regression):
    """The test set has another gradient; labels of classes take the form of the squared error."""
    only = {"only": "stationarity,local_minimum", "quiet": True, "work": "batch=64"}
    found = by_name(look(network, regression, **only))
    again = landscape.stationarity(network, regression.x, regression.y)
    assert found["stationarity"].result.total == again.total
    assert found["stationarity"].rows == "on 40 training examples"
    assert found["local_minimum"].meaning.startswith("It does not sit at a minimum of the loss on ")
    assert "on its training data: a step" in found["local_minimum"].meaning
    numbers = torch.arange(40) % 2
    classes = open_data((regression.x, numbers), loss="mse", dtype=torch.float64)
    net = mlp(3, 4, 2, dtype=torch.float64)
    (squared,) = look(net, classes, **{**only, "only": "stationarity"}).measurements
    own = landscape.stationarity(net, regression.x, nn.functional.one_hot(numbers).double())
    assert (squared.result.total, squared.result.loss, squared.rows) == (own.total, "mse", "")


def test_seed_is_passed_on(classified, classifier, classes):
    again = smoothness.path_length(classifier, classes.x, seed=3)
    assert by_name(classified)["path_length"].summary == again.summary()


def test_linear_reference_has_the_closed_form_of_its_weights(seen, regression):
    x, y = regression.x, regression.y
    result = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)
    weights = torch.linalg.solve(result.T @ result, result.T @ y)[:3, 0]
    reference = by_name(seen)["gradient_norm"].reference("linear")
    assert_close(reference.value, float(weights.norm()))
    bent = by_name(seen)["gradient_path_length"].reference("linear")
    assert abs(bent.value) < 1e-12
    assert reference.label == "the linear model (least squares)"


def test_initial_reference_is_the_mean_and_range_of_three_draws(seen, network, regression):
    draws = [at_initialisation(network, seed=seed) for seed in range(3)]
    values = [smoothness.gradient_norm(draw, regression.x_test).summary().value for draw in draws]
    reference = by_name(seen)["gradient_norm"].reference("initialisation")
    assert reference.value == pytest.approx(sum(values) / 3)
    assert (reference.low, reference.high) == (min(values), max(values))
    assert reference.note == "mean and range of 3 draws by reset_parameters"


def test_bound_is_of_the_labels_of_the_measured_rows(seen, classified, regression):
    y = regression.y_test
    bound = by_name(seen)["path_length"].reference("bound")
    assert_close(bound.value, float((y - y.T).abs().mean()))
    assert by_name(seen)["gradient_norm"].reference("bound") is None
    assert by_name(classified)["path_length"].reference("bound").value is None


def test_linear_model_has_no_weights_product_and_says_so(seen):
    reference = by_name(seen)["weights_product"].reference("linear")
    assert reference.value is None
    assert reference.reason.startswith("not applicable: the model is not a two-layer ReLU network")


def test_what_does_not_apply_is_listed_with_its_reason(seen, classified):
    reasons = {skipped.name: skipped.reason for skipped in seen.not_applicable}
    assert reasons.pop("distance_from_init").startswith("where training began is not known: pass")
    assert reasons.pop("robustness") == "the labels are real numbers, not classes"
    assert reasons == dict.fromkeys(
        ("slope_variation", "total_variation"),
        "it needs one input dimension, the model has 3",
    )
    assert "weights_product" in {skipped.name for skipped in classified.not_applicable}
    assert not seen.failed
    assert not seen.left_out


def test_meaning_has_the_number_in_it(seen):
    measured = by_name(seen)["path_length"]
    assert "{value}" not in measured.meaning
    assert f"{measured.summary.value:.4g}" in measured.meaning


def test_scores_of_network_and_linear_model(seen, classified, network, regression):
    own = [score for score in seen.scores if score.who == "the network"]
    assert [(score.rows, score.n) for score in own] == [
        ("training examples", 40),
        ("test examples", 20),
    ]
    loss = nn.functional.mse_loss(network(regression.x_test), regression.y_test).item()
    assert own[1].loss == pytest.approx(loss)
    assert own[1].accuracy is None
    linear = [score for score in seen.scores if score.who != "the network"]
    assert {score.who for score in linear} == {"the linear model (least squares)"}
    assert linear[0].loss < 0.2
    assert classified.scores[0].accuracy is not None
    assert classified.scores[-1].who == "logistic regression"


def test_model_data_and_random_state_are_left_as_they_were(network, regression):
    before = [tensor.clone() for tensor in network.state_dict().values()]
    x, state = regression.x.clone(), torch.get_rng_state()
    look(network, regression, only="gradient_norm", quiet=True)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(x, regression.x)
    for old, new in zip(before, network.state_dict().values(), strict=True):
        assert torch.equal(old, new)
    assert all(parameter.grad is None for parameter in network.parameters())


def test_no_time_means_commands_instead_of_numbers(network, regression):
    report = look(network, regression, budget=0.0, quiet=True, command="inscape look a:b --out c")
    assert report.measurements == ()
    late = {late.name: late for late in report.left_out if late.name != "attribution"}
    assert set(late) == USUAL
    budgets = {name: max(10, ceil(1.5 * one.seconds)) for name, one in late.items()}
    assert budgets["gradient_norm"] == 10 < budgets["region_at"]
    for name, one in late.items():
        assert one.command == f"inscape look a:b --only {name} --budget {budgets[name]}"
    rows = list(report.rows())
    assert rows[0]["status"].startswith("left out for time: inscape look a:b --only ")


def test_a_look_is_repeated_by_the_work_that_it_took(network, regression):
    only = ["gradient_norm", "path_length", "extrapolation", "rugosity"]
    short = look(network, regression, budget=0.5, only=only, quiet=True)
    again = look(network, regression, only=only, quiet=True, work=short.work)
    assert again.work == short.work
    assert short.command == f"inscape.look(model, data, seed=0, work={short.work!r})"
    for one, two in zip(short.measurements, again.measurements, strict=True):
        assert (one.name, one.summary) == (two.name, two.summary)
        for held, twice in zip(one.references, two.references, strict=True):
            assert (held.value, held.low, held.high) == (twice.value, twice.low, twice.high)


def test_a_longer_look_extends_a_shorter_one(network, regression):
    only = ["path_length", "gradient_norm"]
    few = look(network, regression, only=only, quiet=True, work="batch=10,path_length=2/2/2/2/2")
    more = look(network, regression, only=only, quiet=True, work="batch=10,path_length=4/4/4/4/4")
    short, long = by_name(few)["path_length"].result, by_name(more)["path_length"].result
    assert 0 < len(short.lengths) < len(long.lengths)
    assert torch.equal(short.lengths, long.lengths[: len(short.lengths)])
    assert short.summary().high - short.summary().low > long.summary().high - long.summary().low


class Hands:
    """What a clock shows that the test drives: a copy of a network goes by the same clock."""

    def __init__(self):
        self.now = 0.0

    def __deepcopy__(self, memo):
        return self


class Slow(nn.Module):
    """A network whose rows take a declared time of a clock that the test drives."""

    def __init__(self, net, seconds):
        super().__init__()
        self.net, self.seconds, self.hands = net, seconds, Hands()

    @property
    def now(self):
        return self.hands.now

    def forward(self, x):
        self.hands.now += self.seconds * len(x)
        return self.net(x)


#: What needs but few passes of a slow network for a first answer.
SAMPLED = ["gradient_deflection", "gradient_norm", "path_length", "rugosity", "fisher_rao_norm"]


@pytest.mark.parametrize("seconds", [1e-4, 0.01, 0.05, 0.2])
def test_a_slow_network_is_measured_within_the_budget(seconds, network, regression):
    slow = Slow(network, seconds).eval()
    with clock(lambda: slow.now):
        report = look(slow, regression, budget=60.0, only=SAMPLED, quiet=True)
        assert slow.now <= 60 * 1.1
    assert [m.name for m in report.measurements] == SAMPLED
    known = [m.summary for m in report.measurements if not m.summary.basis.endswith(ALIKE)]
    assert all(summary.high > summary.low for summary in known)
    assert all(
        summary in known for summary in (m.summary for m in report.measurements) if summary.value
    )
    assert not report.failed


def test_what_should_take_a_moment_is_measured_first(network, regression):
    prepared = prepare(network, regression, only=["local_minimum", "gradient_norm", "spectra"])
    tasks = MeasurementTasks(prepared.subject, prepared.chosen, WorkCounts())
    order = [task.name for task in tasks.own_tasks()]
    assert sorted(order) == sorted(prepared.chosen) != order
    assert order.index("parameter_norm") < order.index("gradient_norm")


def test_baselines_of_what_was_quick_come_first(network, regression):
    prepared = prepare(network, regression, only=["gradient_norm", "path_length", "rugosity"])
    tasks = MeasurementTasks(prepared.subject, prepared.chosen, WorkCounts())
    for name, seconds in (("gradient_norm", 3.0), ("path_length", 1.0), ("rugosity", 2.0)):
        tasks.own[name].seconds = seconds
        tasks.own[name].answer = prepared.chosen[name].measure(network, regression.x, regression.y)
    names = [task.name for task in tasks.baseline_tasks()]
    assert names == ["path_length", "rugosity", "gradient_norm"]  # no linear model is fitted


def test_a_first_slice_of_a_baseline_is_shorter_than_that_of_the_network(
    network, regression, monkeypatch
):
    slices, first = {}, TaskSchedule.first

    def noted(self, tasks, seconds=None):
        for task in tasks:
            slices[task.name, task.role] = self.slice if seconds is None else seconds
        first(self, tasks, seconds)

    monkeypatch.setattr(TaskSchedule, "first", noted)
    look(network, regression, only=["gradient_norm", "parameter_norm"], budget=10.0, quiet=True)
    own = slices["gradient_norm", "network"]
    assert 0 < slices["gradient_norm", "initialisation 0"] < own / 2


def test_nothing_passes_all_rows_before_the_time_runs(network):
    x = torch.randn(5000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    slow = Slow(network, 0.05).eval()
    with clock(lambda: slow.now):
        prepared = prepare(slow, (x, x[:, :1]), budget=60.0)
        assert slow.now - prepared.subject.clock.start < 5.0
        prepared.run(quiet=True)
        assert slow.now <= 60 * 1.1


def test_an_instrument_that_fails_does_not_stop_the_rest(network, regression, monkeypatch):
    def refine(self, model, x, y, **settings):
        if self.name == "path_length":
            raise RuntimeError("out of memory\nsomewhere")
        if self.name == "gradient_norm":
            raise UnsupportedModelError("layer 'a' is unknown")
        yield self.function(model, x, **settings)

    monkeypatch.setattr(Instrument, "refine", refine)
    report = look(
        network, regression, only=["path_length", "gradient_norm", "weights_product"], quiet=True
    )
    assert [measured.name for measured in report.measurements] == ["weights_product"]
    assert [(s.name, s.reason) for s in report.failed] == [
        ("path_length", "RuntimeError: out of memory")
    ]
    assert [(s.name, s.reason) for s in report.not_applicable] == [
        ("gradient_norm", "layer 'a' is unknown")
    ]
    statuses = [row["status"] for row in report.rows()]
    assert statuses[1:] == [
        "not applicable: layer 'a' is unknown",
        "failed: RuntimeError: out of memory",
    ]


class Gain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * x[:, :1]


def test_network_that_cannot_be_drawn_anew_is_still_measured(regression):
    (measured,) = look(Gain().eval(), regression, only="gradient_norm", quiet=True).measurements
    assert measured.summary.value == 2.0
    assert measured.reference("initialisation").reason == (
        "not available: parameter 'gain' belongs to no module with reset_parameters"
    )


class Written(nn.Module):
    """The network of the fixture as somebody else would write it."""

    def __init__(self, net: nn.Sequential) -> None:
        super().__init__()
        self.b, self.a = net[2], net[0]
        self.drop = nn.Dropout(0.9)
        self.register_buffer("unused", torch.ones(3))

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = nn.functional.relu_(self.drop(self.a(inputs)))
        return self.b(hidden)


def test_same_function_written_otherwise_gives_the_same_numbers(seen, network, regression):
    other = look(Written(network).eval(), regression, quiet=True, work="batch=1600")
    assert other.failed == ()
    assert other.failed == ()
    for one, two in zip(other.measurements, seen.measurements, strict=True):
        assert one.name == two.name
        # The matrices of the layers are found in another way, to the last bit but one.
        assert one.summary.value == pytest.approx(two.summary.value, rel=1e-14)
        assert (one.summary.kind, one.summary.basis) == (two.summary.kind, two.summary.basis)


def test_opened_model_brings_its_source_and_notes(network, regression):
    opened = OpenedModel(model=network, source="net.py:make", notes=("was training",))
    report = look(opened, regression, only="gradient_norm", quiet=True)
    assert (report.model.source, report.model.notes) == ("net.py:make", ("was training",))


def test_pair_of_tensors_will_do():
    x = torch.linspace(-1, 1, 20)[:, None]
    report = look(mlp(1, 4, 1), (x, x.abs()), quiet=True)
    not_here = {"boundary", "distance_from_init", "plane_regions", "robustness"}
    assert {m.name for m in report.measurements} == USUAL - not_here
    bounds = {m.name: m.reference("bound") for m in report.measurements}
    assert bounds["total_variation"].value == pytest.approx(2.0, abs=0.2)
    assert bounds["slope_variation"].value == pytest.approx(2.0)


def test_points_without_labels_are_measured_without_scores(network, regression):
    report = look(network, regression.x, quiet=True, only=["gradient_norm", "path_length"])
    assert report.scores == ()
    assert report.data.task == "unlabelled"
    for measured in report.measurements:
        assert measured.reference("linear").reason == "not available: the data have no labels"
        assert measured.reference("initialisation").value is not None
    assert report.measurements[1].reference("bound").reason == "the data have no labels"
    assert "The data have no labels to compare with." in page(report)


def test_measure_that_needs_labels_does_not_apply_without(network, regression, monkeypatch):
    monkeypatch.setattr(Instrument, "wants_labels", True)
    report = look(network, regression.x, quiet=True, only="gradient_norm")
    assert [s.reason for s in report.not_applicable] == ["it needs labels, the data have none"]


def test_data_follow_the_precision_of_the_model(regression):
    report = look(mlp(3, 4, 1), (regression.x, regression.y), only="gradient_norm", quiet=True)
    assert report.provenance.dtype == "float32"
    report = look(nn.Identity().eval(), regression.x[:, :1], only="gradient_norm", quiet=True)
    assert report.provenance.dtype == "float64"
    assert report.measurements[0].summary.value == 1.0


def test_peers_know_the_training_rows_and_are_asked_about_the_test_rows(seen, classified):
    held_out = by_name(seen)["extrapolation"].result
    assert (held_out.known, held_out.folds, len(held_out.errors)) == (40, 0, 20)
    assert held_out.warnings == ()
    all_rows = by_name(classified)["extrapolation"].result
    assert all_rows.folds == 5
    assert "if the network was trained on them" in all_rows.warnings[0]
    assert all_rows.warnings[0] in page(classified)


def test_a_sigmoid_at_the_end_is_a_probability(regression):
    y = (regression.x[:, 0] > 0).long()
    result = nn.Linear(3, 1).double()
    result.weight.data, result.bias.data = (
        torch.tensor([[9.0, 0, 0]]).double(),
        torch.zeros(1).double(),
    )
    only = ["extrapolation", "effective_length_scale"]
    model = nn.Sequential(result, nn.Sigmoid()).eval()
    report = look(model, (regression.x, y), only=only, quiet=True)
    assert report.scores[0].accuracy == 1.0
    assert report.scores[1].accuracy > 0.9
    measured = by_name(report)["extrapolation"]
    assert measured.summary.value == 0
    assert measured.reference("linear").value < 0.2
    scale = by_name(report)["effective_length_scale"].reference("linear").value
    assert scale < 20  # of a straight line it would be ten times the size of the data


def test_one_logit_for_two_classes_is_scored_and_compared(regression):
    y = (regression.x[:, 0] > 0).long()
    report = look(mlp(3, 4, 1, dtype=torch.float64), (regression.x, y), only="path_length")
    assert {score.loss_name for score in report.scores} == {"bce_logits"}
    assert report.scores[1].accuracy > 0.9
    assert report.measurements[0].reference("linear").label == "logistic regression"


def test_dictionary_can_be_written_as_json(seen, classified):
    for found in (seen, classified):
        again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert again["model"]["parameters"] == found.model.parameters
        names = [measured.name for measured in found.measurements]
        first = again["measurements"][names.index("gradient_norm")]
        assert first["summary"]["value"] == by_name(found)["gradient_norm"].summary.value
        assert first["settings"]["seed"] == found.provenance.seed
        assert [r["name"] for r in first["references"]][:2] == ["initialisation", "linear"]


def test_rows_have_what_a_table_needs(seen):
    row = next(iter(seen.rows()))
    measured = seen.measurements[0]
    assert row["instrument"] == MEASURED[0]
    assert row["value"] == measured.summary.value
    assert row["linear"] == measured.reference("linear").value
    assert row["bound"] is None
    assert row["status"] == "ok"
    assert repr(seen) == f"Look(Sequential on steps: {', '.join(MEASURED)})"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"budget": -1.0}, r"budget must be at least 0, found -1\.0: raise budget"),
        ({"budget": float("nan")}, "budget must be at least 0, found nan"),
        ({"only": "glitter"}, "no instrument or family is called 'glitter': choose from "),
        ({"only": ["path_length", "glitter"]}, "is called 'glitter': choose from .*robustness"),
        ({"only": "path_kernel"}, "found 'path_kernel', which needs a recorded training"),
    ],
)
def test_bad_settings_are_refused(settings, text, network, regression):
    with pytest.raises(ValueError, match=text):
        look(network, regression, quiet=True, **settings)


def test_training_mode_is_refused_before_the_model_is_run(regression):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 1)).double().train()
    with pytest.raises(ValueError, match=r"must be in eval mode.*call model\.eval\(\) first"):
        look(model, regression, quiet=True)
    assert model[1].num_batches_tracked.item() == 0


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_module_is_refused(regression):
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module, found function: open it"):
        look(lambda x: x, regression)


def test_one_call_that_waited_for_the_processor_does_not_tell_the_pace(network, regression):
    waits = iter([0.5, 0.001, 0.3, 0.004] + [0.0] * 100)
    slow = Slow(network, 1e-5).eval()

    def wait(module, inputs):
        slow.hands.now += next(waits)

    slow.register_forward_pre_hook(wait)
    with clock(lambda: slow.now):
        pace = seconds_per_row(slow, regression.x, most=4096)
    assert pace == pytest.approx(1e-5, rel=0.1)
