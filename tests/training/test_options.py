"""Options of a training: one list, and the same for every trainer."""

import inspect
from dataclasses import fields
from typing import get_type_hints

import pytest
import torch

from inscape.ensembles import TinyKeywords, TinyOptions, fit_many, fit_tiny
from inscape.models import two_layer
from inscape.training import FitKeywords, FitOptions, cosine, fit, l2_norm


@pytest.mark.parametrize(
    ("options", "keywords"), [(FitOptions, FitKeywords), (TinyOptions, TinyKeywords)]
)
def test_type_checkers_see_every_option_with_its_type(options, keywords):
    assert get_type_hints(keywords) == get_type_hints(options)


@pytest.mark.parametrize(
    ("trainer", "options"), [(fit, FitOptions), (fit_many, FitOptions), (fit_tiny, TinyOptions)]
)
def test_help_shows_every_option_with_its_default(trainer, options):
    shown = inspect.signature(trainer).parameters
    assert {f.name: f.default for f in fields(options)}.items() <= {
        name: parameter.default for name, parameter in shown.items()
    }.items()


def test_docstring_of_fit_lists_every_default():
    for field in fields(FitOptions):
        shown = f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
        assert f"``{field.name}={shown}``" in fit.__doc__


def test_options_can_be_passed_on():
    x = torch.linspace(-1, 1, 8)[:, None]
    options = FitOptions(optimizer="adam", lr=0.1, batch=3, epochs=4, schedule=cosine(12))
    runs = [
        fit(two_layer(1, 4), x, x, seed=2, **vars(options)),
        fit(two_layer(1, 4), x, x, seed=2, optimizer="adam", lr=0.1, batch=3, epochs=4,
            schedule=cosine(12)),
    ]  # fmt: skip
    assert torch.equal(runs[0].losses, runs[1].losses)
    assert runs[0].settings == runs[1].settings == options.settings(seed=2)


def test_settings_name_functions():
    settings = FitOptions(loss=torch.dist, penalties=[(0.5, l2_norm)]).settings(record=7)
    assert (settings.loss, settings.penalties) == ("own:dist", ((0.5, "l2_norm"),))
    assert (settings.seed, settings.record) == (0, 7)


def test_unknown_option_is_refused():
    x = torch.zeros(2, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'learning_rate'"):
        fit(two_layer(1, 4), x, x, learning_rate=0.1)


def test_progress_is_the_opposite_of_quiet():
    assert FitOptions().quiet is None
    assert FitOptions(progress=True).quiet is False
    assert FitOptions(progress=False).quiet is True
