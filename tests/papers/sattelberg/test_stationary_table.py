"""Table 3.2 and the small figures of chapters 2 and 3, on hand-made records."""

import numpy as np
import pytest
import torch

from inscape.lab.store import Record
from inscape.papers.sattelberg import beginnings as figure_2_3
from inscape.papers.sattelberg import table_3_2
from inscape.papers.sattelberg._neuron import firing_rates


def record(init: str = "pytorch", reduction: str = "sum", **counts: int):
    names = {"dead": "---;---", "left": "---;--+", "right": "---;-+-", "good": "--+;-+-"}
    forms = {"dead": "---;---", "left": "---;--+", "right": "---;--+", "good": "--+;-+-"}
    losses = {"dead": 4.0, "left": 8 / 3, "right": 8 / 3, "good": 0.0}
    return Record(
        experiment="sattelberg/table-3.2",
        scale="smoke",
        key="",
        data="none",
        claims={},
        provenance={},
        settings={"init": init, "reduction": reduction, "runs": 100, "epochs": 1, "seed": 0},
        values={
            "counts": {names[k]: v for k, v in counts.items()},
            "forms": {names[k]: forms[k] for k in counts},
            "losses": {names[k]: losses[k] for k in counts},
            "levels": [
                sum(v for k, v in counts.items() if losses[k] == level)
                for level in table_3_2.LEVELS
            ],
            "histogram": [0] * 100,
            "diverged": 1,
        },
    )


def test_counts_are_summed_over_a_form_and_scaled_to_a_thousand():
    one = record(dead=10, left=30, right=20, good=35)
    found = table_3_2.analyse([record(init="he_normal", dead=99), one])
    assert found["form/---;--+"].value == pytest.approx(500)
    assert found["form/---;---"].value == pytest.approx(100)
    assert found["form/+++;+++"].value == 0
    assert found["near a level"].value == pytest.approx(0.95)
    assert found["distinct"].value == 4
    assert found["most common"].value == 0.0
    assert found["one unit"].value == 2
    assert table_3_2.analyse([record(init="he_normal", dead=99)]) == {}


def test_the_nearest_choice_is_named():
    near = record(init="he_normal", dead=6, left=13, right=13, good=10)
    said = table_3_2.conclude([record(dead=90), near])
    assert any(line.startswith("Nearest to the printed counts are he_normal") for line in said)


def test_printed_counts_are_those_of_the_table():
    printed = sum(sum(counts) for counts, _, _ in table_3_2.PRINTED.values())
    assert printed == 669 - 23 - 25 - 31  # without the form that is printed twice


@pytest.mark.parametrize(
    ("init", "scales"),
    [
        ("pytorch", (1 / 3, 1 / 3, 1 / 6, 1 / 6)),
        ("he_normal", (2.0, 0.0, 1.0, 0.0)),
        (table_3_2.MIXED, (2.0, 1 / 3, 1.0, 1 / 6)),
    ],
)
def test_first_weights_have_the_variances_they_should(init: str, scales: tuple[float, ...]):
    drawn = table_3_2.first_weights(init, 20_000, 0)
    assert drawn.shape == (20_000, 7)
    parts = np.split(drawn, [2, 4, 6], axis=1)
    assert [part.var() for part in parts] == pytest.approx(scales, rel=0.05)


def test_descent_is_that_of_pytorch():
    start = table_3_2.first_weights("pytorch", 5, 3)
    ours = table_3_2.descended(start, rate=0.1, epochs=20)
    x = torch.tensor([[-1.0], [0.0], [0.0], [1.0]]).double()
    y = torch.tensor([-1.0, 1.0, 1.0, -1.0]).double()
    for weights, end in zip(start, ours, strict=True):
        net = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
        torch.nn.utils.vector_to_parameters(torch.tensor(weights), net.double().parameters())
        steps = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(20):
            steps.zero_grad()
            ((net(x)[:, 0] - y) ** 2).sum().backward()
            steps.step()
        reached = torch.nn.utils.parameters_to_vector(net.parameters()).detach()
        torch.testing.assert_close(reached, torch.tensor(end))


def test_a_neuron_is_silent_without_current_and_fires_with_it():
    rates = firing_rates(np.array([0.0, 20.0]), milliseconds=150.0)
    assert rates[0] == 0
    assert 60 < rates[1] < 110


def test_forty_sigmoids_are_sine_by_twenty_rectangles():
    model = figure_2_3.network(20)
    assert model[0].out_features == 40
    middles = (torch.arange(20, dtype=torch.float64) + 0.5) * torch.pi / 10
    with torch.no_grad():
        torch.testing.assert_close(model(middles[:, None])[:, 0], torch.sin(middles))
