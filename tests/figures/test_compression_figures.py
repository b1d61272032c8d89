import torch
from torch.testing import assert_close

from cases import dense, points
from inscape.compression import map_compression, region_sharing
from inscape.figures import caption, draw


def test_accuracy_stands_over_the_number_of_clusters_beside_the_network():
    f, x = dense(3, 12, 3), points(80, 3)
    result = map_compression(f, x, f(x).argmax(1), clusters=[1, 4, 16], wanted=0.9)
    ax = draw(result)
    curve = ax.containers[0].lines[0]
    assert curve.get_xdata().tolist() == result.clusters.tolist()
    assert_close(torch.as_tensor(curve.get_ydata()), result.accuracies)
    (bars,) = ax.containers[0].lines[2]
    low, high = (torch.tensor([s[k][1] for s in bars.get_segments()]).double() for k in (0, 1))
    assert_close(torch.stack([low, high], 1), result.ends)
    assert any(line.get_ydata()[0] == 1.0 for line in ax.lines)
    assert caption(result).startswith("The accuracy with so many clusters of local maps")


def test_fullest_regions_stand_first():
    result = region_sharing(dense(2, 6, 1), points(60, 2))
    ax = draw(result)
    heights = ax.lines[0].get_ydata().tolist()
    assert heights == sorted(torch.bincount(result.regions).tolist(), reverse=True)
    fraction = f"{result.summary().value:.1%}"
    assert ax.get_title() == f"{fraction} of 60 points lie with others in a region"
