"""The setup of a toy training: every choice with its bounds."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

DataName = Literal[
    "disc", "annulus", "circle", "xor-circles", "spiral", "half-plane", "ball", "own"
]
Control = Literal["none", "length-scale", "norm-bias"]
PenaltyName = Literal[
    "none", "weight-decay", "gradient-norm", "path-length", "gradient-path-length",
    "weights-product",
]  # fmt: skip

#: Points of one's own, at most, and the largest coordinate.
OWN, FARTHEST = 1000, 1e6
Number = Annotated[float, Field(ge=-FARTHEST, le=FARTHEST, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Positive = Annotated[float, Field(gt=1e-6, le=1e4, allow_inf_nan=False)]
Coefficient = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class ToySetup(BaseModel):
    """Data, network, initialisation, training and controls.

    ``rows`` are points of one's own as (x1, x2, label). ``bias`` is the half width of the interval
    of initial biases around ``shift``; both 0 leave them as the initialisation draws them.
    ``batch`` 0 is all data at once. ``view`` is half the side of the window over the data's extent.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    data: DataName = "circle"
    target: Literal["addition", "multiplication"] = "addition"
    labels: Literal["classes", "numbers"] = "classes"
    rows: Annotated[tuple[tuple[Number, Number, Number], ...], Field(max_length=OWN)] = ()
    n: Annotated[int, Field(ge=4, le=1000)] = 200
    normalise: bool = False

    hidden: Annotated[
        tuple[Annotated[int, Field(ge=1, le=256)], ...], Field(max_length=6)
    ] = (8,)  # fmt: skip
    activation: Literal["relu", "leaky_relu", "tanh", "gelu", "identity"] = "relu"
    symmetric: bool = False
    init: Literal["pytorch", "glorot", "he_normal", "he_uniform"] = "pytorch"
    scale: Positive = 1.0
    shift: Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)] = 0.0
    bias: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0

    loss: Literal["auto", "mse"] = "auto"
    optimizer: Literal["adam", "sgd"] = "adam"
    momentum: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0
    lr: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] = 0.01
    batch: Annotated[int, Field(ge=0, le=1000)] = 0

    control: Control = "none"
    sigma: Positive = 1.0
    mu: Annotated[float, Field(ge=0, le=1e3, allow_inf_nan=False)] = 5.0
    strength: Coefficient = 0.005
    penalty: PenaltyName = "none"
    coefficient: Coefficient = 0.001

    seed: Seed = 0
    view: Annotated[float, Field(ge=0.5, le=5, allow_inf_nan=False)] = 1.15
