"""Networks as lanes: one number of each in one register, and small MLPs train side by side.

What a lane computes does not depend on the others, so a member has the same bits alone, in any
company, in any lane and on any number of threads.
"""

from inscape.ensembles.lanes.support import reason_not
from inscape.ensembles.lanes.training import train

__all__ = ["reason_not", "train"]
