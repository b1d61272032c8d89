import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import inscape
from cases import dense, points
from inscape.errors import BudgetError
from inscape.lab.statistics import paired_difference
from inscape.loaders import open_data
from inscape.report.comparison import session
from inscape.report.comparison.figures import dendrogram, pair_values, steps
from inscape.report.comparison.near_data import spacing
from inscape.report.comparison.page import page
from inscape.report.comparison.sentences import sentences
from inscape.report.comparison.terminal import compare_text
from inscape.similarity import (
    disagreement,
    layer_alignment,
    output_cross_entropy,
    slice_difference,
)
from inscape.smoothness import gradient_norm
from markup import Structure

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
QUICK = "similarity,gradient_norm"
F, G, X = dense(3, 8, 4).float(), dense(3, 6, 4, seed=1).float(), points(60, 3).float()
Y = torch.arange(60) % 4


@pytest.fixture(scope="module")
def two():
    return inscape.compare(F, G, X, Y, names=["f", "g"], only=QUICK, budget=300, quiet=True)


def test_every_measure_is_that_of_its_instrument(two):
    direct = disagreement(F, X, other=G)
    assert two.value("disagreement", "f", "g") == direct.summary().value
    assert {"layer_alignment", "procrustes_distance", "map_alignment"} <= set(two.measures)
    assert "map_transfer" in two.measures  # the family is asked for by name
    ways = [(p.first, p.second) for p in two.pairs if p.instrument == "output_cross_entropy"]
    assert ways == [("f", "g"), ("g", "f")]


def test_differences_of_ordinary_instruments_are_paired_by_example(two):
    (row,) = [d for d in two.sweep.differences("f", "g") if d.instrument == "gradient_norm"]
    sides = [gradient_norm(net, X).per_sample().numpy() for net in (F, G)]
    expected = paired_difference(*sides)
    assert row.difference.value == pytest.approx(expected.value)
    assert row.difference.low == pytest.approx(expected.low)
    assert row.difference.method.startswith("paired")


def test_most_disagreed_examples_stand_with_both_answers_and_gradients(two):
    direct = disagreement(F, X, other=G)
    assert [shown.example for shown in two.inputs] == direct.most(8).tolist()
    shown = two.inputs[0]
    x = X[shown.example].clone().requires_grad_()
    for net, answer in zip((F, G), shown.answers, strict=True):
        scores = net(x[None])[0]
        assert answer.text == str(int(scores.argmax()))
        assert answer.right == (answer.text == str(int(Y[shown.example])))
        (gradient,) = torch.autograd.grad(scores.max(), x)
        torch.testing.assert_close(answer.saliency, gradient)


def test_page_is_one_file_with_everything_on_it(two, tmp_path):
    text = two.save(tmp_path / "page.html").read_text()
    for words in ("How alike they are", "Where they differ most", "Between three examples",
                  "Layer by layer", "f minus g", "any invertible linear map"):  # fmt: skip
        assert words in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert json.loads(two.save(tmp_path / "page.json").read_text())["pairs"]
    assert two.save(tmp_path / "page.csv").read_text().startswith("instrument,first,second,value")


def test_a_network_and_itself_are_the_same_and_said_so():
    same = inscape.compare(F, F, X, Y, only="disagreement,layer_alignment,slice_difference",
                           budget=300, quiet=True)  # fmt: skip
    assert same.value("disagreement", *same.names) == 0
    assert same.value("slice_difference", *same.names) == 0
    assert same.value("layer_alignment", *same.names) == pytest.approx(1)
    assert sentences(same)[0].text.startswith("The networks give every example the same class")


def test_networks_may_take_the_same_numbers_in_another_shape():
    draws = torch.Generator().manual_seed(0)
    images = torch.rand(20, 1, 4, 4, generator=draws)
    flat = nn.Sequential(nn.Linear(16, 3)).eval()
    whole = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
    both = inscape.compare(flat, whole, images, torch.arange(20) % 3, budget=300, quiet=True,
                           only="disagreement,slice_difference,map_distance")  # fmt: skip
    expected = disagreement(flat, images.flatten(1), other=whole, other_x=images)
    assert both.value("disagreement", *both.names) == expected.summary().value
    assert set(both.measures) == {"disagreement", "slice_difference", "map_distance"}


def test_other_numbers_of_outputs_leave_the_layers(two):
    other = dense(3, 5, 2, seed=2).float()
    pair = inscape.compare(F, other, X, only="disagreement,layer_alignment", budget=300, quiet=True)
    status = pair.measurement("disagreement", *pair.names).status
    assert "not applicable: both networks must have the same number of outputs" in status
    assert pair.value("layer_alignment", *pair.names) is not None
    assert "Without a number" in page(pair)


def test_missing_labels_leave_out_what_needs_them():
    unlabelled = inscape.compare(F, G, X, only="disagreement,fisher_rao_norm", budget=300,
                                 quiet=True)  # fmt: skip
    assert "accuracy" not in unlabelled.sweep.instruments
    assert "it needs labels, the data have none" in page(unlabelled)


def test_several_networks_make_matrices_and_a_tree():
    nets = [dense(3, 8, 4, seed=seed).float() for seed in (0, 0, 1)]
    three = inscape.compare(nets[0], nets[1], X, Y, more=nets[2:], names=["a-1", "a-2", "a-3"],
                            only="disagreement,gradient_norm", budget=300, quiet=True)  # fmt: skip
    values = np.array(pair_values(three, "disagreement"))
    assert values[0, 1] == 0
    assert values[0, 2] == values[1, 2] == values[2, 0] > 0
    assert three.pair == ("a-1", "a-3")
    ax = dendrogram(three)
    assert ax.get_yticklabels()[0].get_text() == "3"
    assert steps(three.names) == [1.0, 2.0, 3.0]
    text = page(three)
    assert "Which are alike?" in text
    assert "Over the training" in text
    assert steps(("a-1", "b-2", "c-3")) is None


def test_time_that_is_over_leaves_out_and_lists():
    hurried = inscape.compare(F, G, X, Y, budget=1e-6, quiet=True)
    assert not hurried.measures
    assert "left out for time" in page(hurried)


def test_time_that_does_not_do_for_a_measure_is_no_failure(monkeypatch):
    def late(*args):
        raise BudgetError("the time must do for a window, but it is over: raise seconds.")

    monkeypatch.setattr("inscape.report.comparison.session.measured_pair", late)
    hurried = inscape.compare(F, G, X, Y, only="disagreement", quiet=True)
    assert not hurried.failed
    assert hurried.left_out == {"disagreement": 0.0}
    assert "left out for time: raise the budget" in page(hurried)


def test_names_of_networks_layers_and_classes_are_shown_and_not_obeyed(tmp_path):
    hostile = ("<script>alert(1)</script>\u202e", "'\"><b onmouseover=alert(1)>$x$\x1b[31m|`")
    nets = (dense(3, 8, 2).float(), dense(3, 6, 2, seed=1).float())
    for net, name in zip(nets, hostile, strict=True):  # as the keys of a hostile file would
        net._modules = {f"{name}{key}": layer for key, layer in net._modules.items()}
    data = open_data((X, np.array(hostile)[np.arange(60) % 2]))
    result = inscape.compare(*nets, data, names=list(hostile), only=QUICK, quiet=True)
    texts = [result.save(tmp_path / f"a{s}").read_text() for s in (".html", ".json", ".csv")]
    assert not any(CONTROL.search(text) for text in (*texts, repr(result), repr(result.sweep)))
    read = Structure(texts[0])
    assert not read.all("script")
    assert not any("onmouseover" in attributes for _, attributes in read.tags)
    assert "<script>alert(1)</script>\\u202e" in read.text


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="names must be one for each of the 2 networks, found 1"):
        inscape.compare(F, G, X, names=["f"])
    with pytest.raises(ValueError, match="needs at least two different networks, found 1"):
        inscape.compare("net.py:make", "net.py:make", X)
    broken = X.clone()
    broken[3, 0] = float("nan")
    with pytest.raises(ValueError, match=r"NaN|finite"):
        inscape.compare(F, G, broken)


def picture_nets():
    draws = torch.Generator().manual_seed(0)
    images = torch.rand(40, 1, 8, 8, generator=draws)
    flat = nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).eval()
    whole = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).eval()
    with torch.no_grad():
        for k, net in enumerate((flat, whole)):
            for parameter in net.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=draws) / (3 + 2 * k))
            net[-1].bias.sub_(net(images).mean(0))
    return flat, whole, images


def test_inputs_near_pictures_are_close_and_given_two_classes():
    flat, whole, images = picture_nets()
    both = inscape.compare(flat, whole, images, torch.arange(40) % 3, budget=300, quiet=True,
                           only="disagreement", names=["flat", "whole"])  # fmt: skip
    near = [shown for shown in both.inputs if shown.moved]
    assert near
    distances = torch.cdist(images.flatten(1), images.flatten(1)).fill_diagonal_(torch.inf)
    nearest = float(distances.amin(1).median())
    for shown in near:
        start = images[shown.example]
        assert float((shown.x - start).norm()) == pytest.approx(shown.moved, rel=1e-5)
        assert 0 < shown.moved <= nearest / 4 * (1 + 1e-5)
        assert images.min() <= shown.x.min() <= shown.x.max() <= images.max()
        answers = [net(shown.x[None]).detach().softmax(1)[0] for net in (flat, whole)]
        began = [net(start[None]).detach().softmax(1)[0] for net in (flat, whole)]
        assert int(answers[0].argmax()) != int(answers[1].argmax())
        assert int(began[0].argmax()) == int(began[1].argmax())
        apart, before = (float((a - b).abs().sum() / 2) for a, b in (answers, began))
        assert apart == pytest.approx(shown.distance, abs=1e-6)
        assert apart > before
    assert [shown.distance for shown in near] == sorted((s.distance for s in near), reverse=True)
    text = page(both)
    assert "Near the data" in text
    assert "moved by" in text


def test_inputs_near_pictures_are_none_for_a_network_and_itself_or_without_pictures(two):
    flat, _, images = picture_nets()
    same = inscape.compare(flat, flat, images, only="disagreement", budget=300, quiet=True)
    assert not [shown for shown in same.inputs if shown.moved]
    assert not [shown for shown in two.inputs if shown.moved]


def test_what_runs_out_of_time_is_left_out_and_has_not_failed(monkeypatch):
    def spent(*_, **__):
        raise BudgetError("the time must do for a window")

    monkeypatch.setattr(session, "_slice", spent)
    monkeypatch.setattr(session, "call", spent)
    hurried = inscape.compare(F, G, X, Y, budget=300, quiet=True,
                              only="disagreement,slice_difference,gradient_norm")  # fmt: skip
    assert not hurried.failed
    assert not hurried.sweep.failed
    assert not any(sentence.warning for sentence in sentences(hurried))
    for name in ("Slice difference", "Gradient norm"):
        assert f"<dt>{name}</dt><dd>left out for time: raise the budget" in page(hurried)


def test_sentences_count_only_what_no_other_sentence_says(two):
    (last,) = [s.text for s in sentences(two) if "tell" in s.text]
    (row,) = [d for d in two.sweep.differences("f", "g") if d.instrument == "gradient_norm"]
    assert last == f"The gradient norm {'tells' if row.distinct else 'does not tell'} them apart."


def test_pairs_that_disagree_as_often_are_not_said_to_be_alone():
    nets = [dense(3, 8, 4, seed=seed).float() for seed in (0, 0, 1)]
    three = inscape.compare(nets[0], nets[1], X, Y, more=nets[2:], names=["a", "b", "c"],
                            only="disagreement", budget=300, quiet=True)  # fmt: skip
    (said,) = [s.text for s in sentences(three) if "different classes" in s.text]
    assert said.endswith("and no other two more often.")


def test_an_exported_copy_has_the_layers_of_its_network(tmp_path):
    _, net, images = picture_nets()
    batch = torch.export.Dim("batch")
    program = torch.export.export(net, (images[:4],), dynamic_shapes=({0: batch},))
    torch.export.save(program, tmp_path / "copy.pt2")
    copy = inscape.loaders.open_model(tmp_path / "copy.pt2").model
    same = layer_alignment(net, images, other=net)
    found = layer_alignment(net, images, other=copy)
    assert found.layers == found.other_layers == ("1", "output")
    torch.testing.assert_close(found.values, same.values)
    assert found.summary().value == pytest.approx(1)


def test_outputs_are_compared_with_outputs_where_one_network_has_no_other_layer():
    _, net, images = picture_nets()
    found = layer_alignment(net, images, other=lambda x: net(x))
    assert found.other_layers == ("output",)
    assert found.summary().value == pytest.approx(1)
    assert found.headline == (1, 0)
    both = inscape.compare(net, nn.Sequential(nn.Flatten(), nn.Linear(64, 3)).eval(), images,
                           budget=300, quiet=True, only="layer_alignment")  # fmt: skip
    (said,) = [s.text for s in sentences(both) if "debiased CKA" in s.text]
    assert said.startswith("Their outputs have an alignment")


def test_a_slice_says_how_much_of_the_window_it_is_of():
    def slice_of(covered):
        real = session.instruments()["slice_difference"]

        def cut(*_, **__):
            whole = slice_difference(F, X, other=G)
            return replace(whole, covered=covered, exact=False)

        both = session.prepare([F, G], (X, Y), names=["f", "g"], only="slice_difference")
        measure = replace(real, function=cut)
        return replace(both, measures={"slice_difference": measure}).run(quiet=True)

    most = slice_of(0.9)
    (said,) = [s.text for s in sentences(most) if "plane" in s.text]
    assert "90% of which there was time for" in said
    assert "at most" not in said
    little = slice_of(0.25)
    assert little.value("slice_difference", "f", "g") is None
    assert "There is no slice: there was time for 25.0% of its window" in page(little)


def test_tree_and_table_of_several_networks_read_the_right_way():
    nets = [dense(3, 8, 4, seed=seed).float() for seed in (0, 1, 2)]
    names = ["a", "b", "c"]
    three = inscape.compare(nets[0], nets[1], X, Y, more=nets[2:], names=names, budget=300,
                            only="disagreement,output_cross_entropy", quiet=True)  # fmt: skip
    table = next(block for block in compare_text(three) if not isinstance(block, str))
    assert [row["networks"] for row in table.rows] == ["a, b", "a, c", "b, c"]
    (row,) = [row for row in table.rows if row["networks"] == "a, c"]
    there = output_cross_entropy(nets[0], X, other=nets[2]).summary().value
    back = output_cross_entropy(nets[2], X, other=nets[0]).summary().value
    assert row["output cross entropy"] == pytest.approx(there)
    assert row["output cross entropy, back"] == pytest.approx(back)
    ax = dendrogram(three)
    left, right = ax.get_xlim()
    assert left > right  # the distance falls to the right, where like networks are joined
    assert "joined further right give the same classes more often" in page(three)


def test_spacing_is_the_median_distance_of_the_nearest_other_example():
    draws = torch.Generator().manual_seed(1)
    x = torch.rand(60, 1, 20, 20, generator=draws)
    x[1] = x[0]  # not another one
    flat = x.flatten(1).double()
    nearest = [
        min(float((a - b).norm()) for b in flat if bool((a != b).any())) for a in flat
    ]  # fmt: skip
    assert spacing(x) == pytest.approx(float(torch.tensor(nearest).median()))
    assert spacing(x[:2]) == 0
