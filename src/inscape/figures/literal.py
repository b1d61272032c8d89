"""Names in figures as they stand: no formulas begin at a dollar, no control character is obeyed."""

from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.category import StrCategoryFormatter
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, Formatter, FuncFormatter

from inscape.escaping import figure_label, visible_block

#: Formatters whose labels are names; those of numbers may write powers of ten as formulas.
_OF_NAMES = (FixedFormatter, FuncFormatter, StrCategoryFormatter)


class _LiteralFormatter(FuncFormatter):
    """Labels of ticks as another formatter writes them, drawn as they stand."""

    def __init__(self, names: Formatter) -> None:
        super().__init__(lambda x, pos=None: figure_label(names(x, pos)))


def literal(drawn: Artist) -> None:
    """Let every text of a figure or of axes be drawn as it stands, but for ticks of numbers."""
    ticks = set()
    for axis in drawn.findobj(Axis):
        assert isinstance(axis, Axis)
        ticks |= {id(text) for text in axis.findobj(Text) if text is not axis.label}
        formatter = axis.get_major_formatter()
        if isinstance(formatter, _OF_NAMES) and not isinstance(formatter, _LiteralFormatter):
            axis.set_major_formatter(_LiteralFormatter(formatter))
    for text in drawn.findobj(Text):
        assert isinstance(text, Text)
        if id(text) not in ticks:
            text.set_text(visible_block(text.get_text()))
            text.set_parse_math(False)
