"""Training of many networks at once.

``fit_many`` trains any list of modules, each as ``inscape.training.fit`` would. Three back ends do
the work, and ``backend="auto"`` takes the first that supports an architecture:

- *lanes* (:mod:`inscape.ensembles.lanes`): small MLPs, compiled by numba; each network is one lane
  of a SIMD register, 16 of them in single precision.
- *stacks* (:mod:`inscape.ensembles.stacks`): any module whose update is a fixed list of tensor
  operations; the weights of up to 32 networks are stacked, and each operation runs once for all.
- *loop* (:mod:`inscape.ensembles.loop`): everything else; ``fit``, one network after the other.

``fit_tiny`` trains thousands of MLPs with one output that are given and returned as arrays. Its
back end, *tiles* (:mod:`inscape.ensembles.tiles`), has the networks in lanes too, and computes
their matrix products in blocks (tiles) that stay in the registers.

In all of them a member is reproducible bit for bit from its data, seed and options: it does not
depend on the other members.
"""

from inscape.ensembles.fit_many import Choice, Members, fit_many
from inscape.ensembles.fit_tiny import Tiny, fit_tiny, tiny_order, tiny_weights
from inscape.ensembles.member import LostMembersError, Member
from inscape.ensembles.tiles.options import TinyKeywords, TinyOptions

__all__ = [
    "Choice",
    "LostMembersError",
    "Member",
    "Members",
    "Tiny",
    "TinyKeywords",
    "TinyOptions",
    "fit_many",
    "fit_tiny",
    "tiny_order",
    "tiny_weights",
]
