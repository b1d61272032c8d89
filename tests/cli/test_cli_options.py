"""The texts of options are read, or refused with the right words, before anything loads."""

import pytest

from inscape.cli import options as opt


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
        with pytest.raises(ValueError, match=r"--seed must be a whole number from 0 to 2\^63 - 1"):
            opt.seed(wrong)


def test_instruments():
    assert opt.known_instruments(None) is None
    assert opt.known_instruments([]) is None
    assert opt.known_instruments(["path_length"]) == ["path_length"]
    with pytest.raises(ValueError, match="no instrument is called 'pth_length': did you mean path"):
        opt.known_instruments(["path_length", "pth_length"])
