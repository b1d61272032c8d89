"""What a look opens: the last weights of a recorded training, also of one with several outputs."""

import numpy as np
import torch
from torch import nn

import inscape
from inscape.report.look.opening import opened_subject
from inscape.report.look.recorded_training import _same_network

NETS = """
import torch


class TwoOutputs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, pixel_values):
        logits = self.layer(pixel_values)
        return {"logits": logits, "norm": logits.norm(dim=1)}
"""


class Returns(nn.Module):
    """The network of the file, as the training has it in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, pixel_values):
        logits = self.layer(pixel_values)
        return {"logits": logits, "norm": logits.norm(dim=1)}


def test_an_adapted_network_gets_the_last_weights_of_its_training(tmp_path):
    torch.manual_seed(0)
    x, y = torch.randn(20, 4), torch.arange(20) % 3
    model = Returns()
    net = inscape.adapt(model, take="logits")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = tmp_path / "run"
    with inscape.record_training(
        net, optimizer, loss="cross_entropy", data=(x, y), every=3, to=run
    ) as recording:
        for rows in torch.arange(20).split(4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
            recording.step(rows)
    (tmp_path / "nets.py").write_text(NETS)
    np.savez(tmp_path / "data.npz", x=x.numpy(), y=y.numpy())
    subject = opened_subject(
        f"{tmp_path / 'nets.py'}:TwoOutputs", str(tmp_path / "data.npz"), trajectory=run
    )
    assert "took the weights after the last of the 5 updates" in subject.model.notes[-1]
    for name, tensor in model.state_dict().items():
        assert torch.equal(subject.model.model.state_dict()[name], tensor)
    trained = inscape.adapt(subject.model.model, take="logits")
    _same_network(trained, subject.trajectory)  # or it raises
