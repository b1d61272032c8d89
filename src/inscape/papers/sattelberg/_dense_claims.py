"""What section 6.3 says of the regions of dense networks, for figures 6.10 and 6.11."""

from inscape.lab.experiment import Trend
from inscape.papers.sattelberg._sections import NAMES

CLAIMS = (
    *(
        Trend(
            name=f"many-{name}",
            says=f"Dense networks trained by {word} have hundreds to thousands of regions in the "
            "plane.",
            of=f"regions/{name}",
            side="between",
            bound=2,
            upper=4,
            test="mean of log10 of the number, t interval over networks",
            source="section 6.3",
        )
        for name, word in NAMES.items()
    ),
    Trend(
        name="sgd-more",
        says="The SGD networks have more regions than the AdamW networks.",
        of="sgd over adamw",
        side="above",
        test="mean log ratio of the numbers of regions, paired t interval over copies",
        source="section 6.3",
    ),
)
NOTES = (
    "Regions are counted exactly, in a box around the three images that is a tenth of its size "
    "wider on each side; the dissertation counts on a grid whose size it does not give.",
    "One trained network is one draw: the claims are about means over copies that differ in their "
    "first weights and shuffles. Two of each are drawn. White lines are where the class changes.",
)
