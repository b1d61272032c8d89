"""The back end ``"lanes"``: small MLPs side by side, each in one lane of a SIMD register.

A lane does not depend on the others, so a member is reproducible bit for bit alone, among any other
members, in any lane and on any number of threads.
"""

from inscape.ensembles.lanes.support import reason_not
from inscape.ensembles.lanes.training import train

__all__ = ["reason_not", "train"]
