"""Many networks at once: stacks (torch, any module), lanes (compiled, small MLPs), or a loop.

And very many tiny ones, given and returned as arrays.
"""

from inscape.training.ensemble.many import Choice, Members, fit_many
from inscape.training.ensemble.member import LostMembersError, Member
from inscape.training.ensemble.tiny import Tiny, fit_tiny, tiny_order, tiny_weights

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
