import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from cases import dense, points
from inscape.similarity import output_cross_entropy


def test_agrees_with_torch_for_probabilities_as_targets():
    f, g, x = dense(2, 6, 3), dense(2, 6, 3, seed=1), points(12, 2)
    expected = cross_entropy(g(x), f(x).softmax(1), reduction="none")
    assert_close(output_cross_entropy(f, x, other=g).cross_entropies, expected.detach())


def test_of_a_network_with_itself_is_its_entropy():
    f, x = dense(2, 6, 3), points(12, 2)
    result = output_cross_entropy(f, x, other=f)
    entropy = torch.distributions.Categorical(logits=f(x)).entropy()
    assert_close(result.cross_entropies, entropy.detach())
    assert float(result.divergences.abs().max()) < 1e-15


def test_divergence_is_that_of_torch():
    f, g, x = dense(2, 6, 3), dense(2, 6, 3, seed=1), points(12, 2)
    p, q = (torch.distributions.Categorical(logits=net(x)) for net in (f, g))
    expected = torch.distributions.kl_divergence(p, q).detach()
    assert_close(output_cross_entropy(f, x, other=g).divergences, expected)


def test_certain_classes_stay_finite():
    sure = torch.tensor([[1e4, 0.0, -1e4]])
    f, g = (lambda z: z * sure), (lambda z: z * sure.flip(1))
    result = output_cross_entropy(f, torch.ones(2, 1), other=g)
    assert result.cross_entropies.tolist() == [2e4, 2e4]
    assert result.entropies.tolist() == [0.0, 0.0]


def test_single_output_does_not_apply():
    f = dense(2, 6, 1)
    status = output_cross_entropy(f, points(4, 2), other=f).status
    assert status.endswith("has no probabilities: give it a second logit of zero")
