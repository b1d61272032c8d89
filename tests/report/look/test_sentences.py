from dataclasses import replace

from inscape.report.look.sentences import definition, introduction
from inscape.report.sources import citation


def test_introduction_says_what_was_measured(seen):
    assert introduction(seen).startswith(
        "This Sequential maps 3 inputs to 1 output with 26 parameters. It was measured on the 20 "
        "test examples of steps, where its loss (mse) is "
    )


def test_introduction_of_a_classifier_tells_how_many_are_right(classified):
    text = introduction(classified)
    right = classified.scores[0].accuracy
    assert f"on all 50 examples of quarters, of which it classifies {right:.1%} correctly." in text


def test_introduction_tells_how_many_examples_were_scored(classified, seen):
    few = tuple(replace(score, n=20) for score in classified.scores)
    text = introduction(replace(classified, scores=few))
    right = classified.scores[0].accuracy
    assert f"examples of quarters, and classifies {right:.1%} of 20 of them correctly." in text
    few = tuple(replace(score, n=5) for score in seen.scores)
    assert ", on 5 of which its loss (mse) is " in introduction(replace(seen, scores=few))


def test_introduction_without_scores_and_measures(seen):
    text = introduction(replace(seen, scores=(), measurements=()))
    assert text.endswith("on the 20 test examples of steps. Nothing was measured.")


def test_definition_is_read_from_the_docstring():
    doc = r"""Measure it.

    .. math:: GN(f) = \mathbb{E}_x \,
              \lVert x \rVert

    Exact for ``a < b`` and :math:`f'`, see :func:`other`; *always*.
    Second line.

    Args:
        f: Not shown.

    >>> 1
    """
    result = definition(doc)
    assert result.formula.startswith('<svg class="formula"')
    assert r"\mathbb{E}_x \, \lVert x \rVert" in result.formula
    (text,) = result.paragraphs
    assert text.startswith("Exact for <code>a &lt; b</code> and <svg")
    assert text.endswith("see <code>other</code>; <em>always</em>. Second line.")


def test_formula_that_is_too_hard_is_shown_as_it_was_written():
    result = definition("Do.\n\n.. math:: \\unheardof{x} < 1")
    assert result.formula == "<code>\\unheardof{x} &lt; 1</code>"
    assert definition("Do.").formula is None


def test_every_formula_of_ours_is_drawn(seen, classified):
    for measured in (*seen.measurements, *classified.measurements):
        assert definition(measured.doc).formula.startswith("<svg"), measured.name


def test_unknown_sources_are_cited_as_they_are():
    assert citation("nobody2020, p. 3") == "nobody2020, p. 3"
