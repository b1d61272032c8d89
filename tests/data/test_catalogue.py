import inspect
import subprocess
import sys

import pytest
import torch

from inscape.data import catalogue, loading
from inscape.data.catalogue import ENTRIES, describe, lookup, names, parse


def test_every_set_has_one_line():
    assert names() == [entry.name for entry in ENTRIES]
    assert list(describe()) == names()
    for line in describe().values():
        assert 10 < len(line) < 90
        assert "\n" not in line


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_catalogue_agrees_with_the_functions(entry):
    """The table is written by hand so that it needs no torch: here it is held to the truth."""
    parameters = inspect.signature(loading.maker(entry)).parameters
    defaults = {
        name: str(p.default).removeprefix("torch.") if name == "dtype" else p.default
        for name, p in parameters.items()
        if name not in ("data_dir", "download") and p.default is not p.empty
    }
    assert dict(entry.settings) == defaults
    assert {key: type(value) for key, value in entry.settings.items()} == {
        key: type(value) for key, value in defaults.items()
    }
    assert entry.needs == tuple(n for n, p in parameters.items() if p.default is p.empty)
    assert bool(entry.files) == ("download" in parameters)


def test_where_data_come_from():
    sources = {entry.name: entry.source for entry in ENTRIES}
    assert (sources["disc"], sources["digits"], sources["mnist-binary"]) == (
        "made",
        "embedded",
        "files",
    )


@pytest.mark.parametrize(
    ("spec", "name", "settings"),
    [
        ("disc", "disc", {}),
        ("disc:", "disc", {}),
        ("disc:n=512,seed=1", "disc", {"n": 512, "seed": 1}),
        ("Noisy_Sine: noise = 0.5 , noise_is=deviation", "noisy-sine", None),
        ("gaussian-process:seed=3", "gp", {"seed": 3}),
        ("CIFAR-10:flat=yes", "cifar10", {"flat": True}),
        ("mnist-binary:4-9", "mnist-binary", {"a": 4, "b": 9}),
        ("mnist-binary:4-9,n=64", "mnist-binary", {"a": 4, "b": 9, "n": 64}),
        ("mnist-binary:a=4,b=9,n=none", "mnist-binary", {"a": 4, "b": 9, "n": None}),
        ("circle-versus-annulus:normalise=false", "circle-versus-annulus", {"normalise": False}),
        ("disc:dtype=float64", "disc", {"dtype": "float64"}),
    ],
)
def test_specs_are_read(spec, name, settings):
    entry, found = parse(spec)
    assert entry.name == name
    assert found == ({"noise": 0.5, "noise_is": "deviation"} if settings is None else settings)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mnits", "did you mean mnist"),
        ("fashion-minst", "did you mean fashion-mnist"),
        ("circle", "did you mean"),
        ("qqqq", "choose from disc, annulus, noisy-sine, gp"),
    ],
)
def test_unknown_names_are_answered_with_near_ones(name, hint):
    with pytest.raises(ValueError, match=f"no data set is called '{name}': {hint}"):
        lookup(name)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            "disc:size=3",
            "disc has no setting 'size': its settings are n, n_test, target, seed, dty",
        ),
        ("disc:n=many", "disc: n must be an integer, found 'many': write e.g. n=128"),
        ("disc:n=1.5", "disc: n must be an integer, found '1.5'"),
        ("gp:length_scale=x", "gp: length_scale must be a number, found 'x': write e.g. .*=0.5"),
        ("mnist:flat=maybe", "mnist: flat must be true or false, found 'maybe': .* flat=true"),
        ("mnist:n=all", "mnist: n must be an integer or none, found 'all': write e.g. n=4"),
        ("disc:n=3,n=4", "'disc:n=3,n=4' gives n twice"),
        ("mnist-binary:4-9,a=4", "gives a twice"),
        ("disc:5", "settings of disc must be written key=value, found '5'"),
        ("mnist-binary:4", "must be written key=value or a pair such as 4-9, found '4'"),
        ("mnist-binary:4-x", "mnist-binary: b must be an integer, found 'x'"),
    ],
)
def test_wrong_specs_say_what_is_wrong(spec, text):
    with pytest.raises(ValueError, match=text):
        parse(spec)


def _modules_after(code: str) -> set[str]:
    show = f"import sys\n{code}\nprint(*sys.modules)"
    return set(subprocess.check_output([sys.executable, "-c", show], text=True).split())


def test_the_catalogue_needs_no_torch():
    loaded = _modules_after("import inscape.data.catalogue, inscape.data.places")
    assert "inscape.data.catalogue" in loaded
    assert not loaded & {"torch", "numpy", "sklearn", "pandas", "rich", "matplotlib"}


def test_the_check_above_can_fail():
    assert "torch" in _modules_after("import inscape.data; inscape.data.Dataset")


def test_the_package_offers_every_name_and_no_other():
    import inscape.data

    assert dir(inscape.data) == sorted(inscape.data.__all__)
    for name in inscape.data.__all__:
        assert getattr(inscape.data, name) is not None
        assert not inspect.ismodule(getattr(inscape.data, name))
    with pytest.raises(AttributeError, match=r"module 'inscape.data' has no attribute 'nothing'"):
        inscape.data.nothing  # noqa: B018
    assert catalogue.names is inscape.data.names
    assert torch.is_floating_point(inscape.data.disc(n=1, n_test=0).x)
