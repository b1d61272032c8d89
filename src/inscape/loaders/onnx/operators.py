"""Which operators of ONNX are known, and which of their inputs are sizes and settings."""

from inscape.loaders.onnx.operators_layers import LAYERS
from inscape.loaders.onnx.operators_pointwise import POINTWISE, Operator
from inscape.loaders.onnx.operators_recurrent import RECURRENT
from inscape.loaders.onnx.operators_resize import RESIZING
from inscape.loaders.onnx.operators_shape import SHAPING
from inscape.loaders.onnx.shape_arithmetic import HOST

#: What each operator makes of tensors.
OPERATORS: dict[str, Operator] = {**POINTWISE, **LAYERS, **SHAPING, **RESIZING, **RECURRENT}

#: Those that a file may name.
KNOWN = frozenset({*OPERATORS, *HOST, "Constant", "Shape", "Size"})

#: Those that are told the network's own precision and device.
TOLD = frozenset({"Cast", "ConstantOfShape"})

#: At which places an operator is given sizes or settings, which no row may change.
SETTINGS_AT: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("Reshape", "Expand", "Tile", "Unsqueeze", "Squeeze", "Split"), (1,)),
    **dict.fromkeys((name for name in POINTWISE if name.startswith("Reduce")), (1,)),
    **dict.fromkeys(("Clip", "Dropout"), (1, 2)),
    "ConstantOfShape": (0,),
    "Pad": (1, 2, 3),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Upsample": (1,),
}
