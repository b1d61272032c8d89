"""Many networks at once: stacks (torch, any module), lanes (compiled, small MLPs), or a loop.

And very many tiny ones, given and returned as arrays.
"""

from inscape.ensembles.fit_many import Choice, Members, fit_many
from inscape.ensembles.fit_tiny import Tiny, fit_tiny, tiny_order, tiny_weights
from inscape.ensembles.member import LostMembersError, Member

__all__ = [
    "Choice",
    "LostMembersError",
    "Member",
    "Members",
    "Tiny",
    "fit_many",
    "fit_tiny",
    "tiny_order",
    "tiny_weights",
]
