"""The texts of options are read, or refused with the right words, before anything loads."""

import pytest

from inscape import index
from inscape.cli import options as opt
from inscape.selection import selected


def test_numbers():
    assert opt.at_least_one("--limit", None) is None
    assert opt.at_least_one("--limit", 1) == 1
    with pytest.raises(ValueError, match="--limit must be at least 1, found -5: raise it"):
        opt.at_least_one("--limit", -5)
    assert opt.seconds(0.5) == 0.5
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="--budget must be a positive number of seconds"):
            opt.seconds(wrong)
    assert opt.seed(2**63 - 1) == 2**63 - 1
    for wrong in (-1, 2**63):
        with pytest.raises(ValueError, match=r"--seed must be an integer from 0 to 2\^63 - 1"):
            opt.seed(wrong)


def test_instruments():
    assert selected("path_length") == ("path_length",)
    assert selected(["path_length", "gradient_norm,path_length"]) == (
        "path_length",
        "gradient_norm",
    )
    assert selected("attribution", also=("attribution",)) == ("attribution",)
    unknown = "no instrument or family is called 'pth_length': did you mean path"
    with pytest.raises(ValueError, match=unknown):
        selected(["path_length", "pth_length"])
    with pytest.raises(ValueError, match="must be names of instruments or families separated by"):
        selected("path_length,,rugosity")


def test_families():
    smooth = [entry.name for entry in index.entries() if entry.family == "smoothness"]
    assert selected("smoothness") == tuple(smooth)
    assert selected("kernels") == ("neighbours", "tangent_kernel")  # the others read trainings
    assert selected(["path_length", "smoothness"])[0] == "path_length"
    refused = "'similarity' has no instrument that measures one network and its data: name one"
    with pytest.raises(ValueError, match=refused):
        selected("similarity")
