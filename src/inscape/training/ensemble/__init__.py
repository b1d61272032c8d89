"""Many networks at once: stacks (torch, any module), lanes (compiled, small MLPs), or a loop."""

from inscape.training.ensemble.many import Choice, Members, fit_many
from inscape.training.ensemble.member import LostMembersError, Member

__all__ = ["Choice", "LostMembersError", "Member", "Members", "fit_many"]
