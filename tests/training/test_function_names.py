from functools import partial

import torch
from torch import nn

from inscape.training.function_names import is_own, name_of, own_name


def test_functions_objects_and_partials_have_names():
    assert name_of(torch.relu) == "relu"
    assert name_of(nn.HuberLoss(delta=0.5)) == "HuberLoss"
    assert name_of(partial(torch.optim.Adam, lr=0.1, amsgrad=True)) == "Adam(lr=0.1, amsgrad=True)"
    assert name_of(partial(max, 1, key=abs)) == "max(1, key=abs)"
    assert name_of(partial(print, torch.zeros(9))) == "print(Tensor)"


def test_own_functions_are_marked_and_words_are_not():
    assert own_name("mse") == "mse"
    assert own_name(nn.functional.mse_loss) == "own:mse_loss"
    assert not is_own("mse")
    assert is_own(own_name(max))
