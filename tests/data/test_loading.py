import pytest
import torch

from inscape.data import disc, gaussian_process, load, names
from inscape.data.catalogue import lookup
from inscape.errors import DataError

MADE = [name for name in names() if not lookup(name).files]


@pytest.mark.parametrize("name", MADE)
def test_a_set_can_be_loaded_again_from_what_it_says_of_itself(name):
    spec = f"{name}:3-8" if lookup(name).needs else name
    data = load(spec, seed=5, dtype=torch.float64)
    assert data.name == name
    assert data.x.dtype == torch.float64
    again = load(data.name, **data.settings)
    assert again.hash == data.hash
    assert again.settings == data.settings
    assert set(data.settings) == {*lookup(name).settings, *lookup(name).needs}


def test_files_too(mnist, cifar, tmp_path):
    mnist.write(tmp_path)
    cifar.write(tmp_path)
    for spec in ("mnist:n=9", "mnist-binary:9-4,n=3,flat=no", "cifar10:dtype=float64"):
        data = load(spec, data_dir=tmp_path)
        again = load(data.name, data_dir=tmp_path, **data.settings)
        assert again.hash == data.hash
        assert set(data.settings) == {*lookup(data.name).settings, *lookup(data.name).needs}


def test_names_and_keywords_lead_to_the_same_data():
    assert load("disc:n=20,seed=1").hash == load("disc", n=20, seed="1").hash
    assert load("disc:n=20,seed=1").hash == disc(n=20, seed=1).hash
    assert load("gp:seed=3").hash == gaussian_process(seed=3).hash


def test_download_is_passed_on(mnist):
    assert len(load("mnist", download=True).x) == 30


@pytest.mark.parametrize(
    ("name", "settings", "text"),
    [
        ("mnits", {}, "no data set is called 'mnits': did you mean mnist"),
        ("disc", {"size": 3}, "disc has no setting 'size'"),
        ("disc:n=3", {"n": 4}, "n is given in 'disc:n=3' and again as n=4: keep one"),
        ("mnist-binary", {}, "mnist-binary needs a and b: write e.g. mnist-binary:4-9"),
        ("mnist-binary", {"a": 3}, "mnist-binary needs b"),
        ("disc:dtype=double_trouble", {}, "dtype must be float32 or float64, found 'double_troubl"),
        ("disc:dtype=Tensor", {}, "dtype must be float32 or float64, found 'Tensor'"),
    ],
)
def test_wrong_requests_say_what_is_wrong(name, settings, text):
    with pytest.raises(ValueError, match=text):
        load(name, **settings)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("disc:target=division", "target must be one of 'addition', 'multiplication', found 'divi"),
        ("noisy-sine:noise_is=loud", "noise_is must be one of 'variance', 'deviation'"),
        ("gp:order=random", "rule must be one of 'gap', 'distance', found 'random'"),
        ("gp:draw=mine", "draw must be one of 'inscape', 'thesis', found 'mine'"),
        ("half-plane:labels=none", "labels must be one of 'regression', 'classes', found 'none'"),
    ],
)
def test_wrong_words_are_answered_with_the_right_ones(spec, text):
    with pytest.raises(ValueError, match=text):
        load(spec)


def test_digits_stand_in_where_mnist_is_missing_and_say_so(mnist, tmp_path):
    with pytest.raises(DataError, match="mnist needs 4 files"):
        load("mnist-binary:4-9")
    data = load("mnist-binary:4-9,n=8192,flat=no", stand_in=True)
    assert data.x.shape[1:] == (1, 8, 8)
    assert data.notes == (
        "stands in for mnist-binary: its files are missing or bad (run 'inscape data fetch mnist')",
    )
    few = load("mnist:n=100", stand_in=True)
    assert few.name == "digits"
    assert len(few.x) == 100
    assert few.notes[0].startswith("stands in for mnist:")
    mnist.write(tmp_path)
    assert load("mnist", stand_in=True, data_dir=tmp_path).notes == ()


def test_nothing_stands_in_for_photographs(cifar):
    with pytest.raises(DataError, match="cifar10 needs 6 files"):
        load("cifar10", stand_in=True)
