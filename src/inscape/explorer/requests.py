"""What a page may ask: each request with its bounds, checked before anything is computed."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inscape.explorer.planes import Kind

Coordinate = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Extent = Annotated[float, Field(gt=1e-120, le=1e12, allow_inf_nan=False)]
Row = Annotated[int, Field(ge=0, lt=2**31)]
Client = Annotated[str, Field(pattern=r"^[a-z0-9]{1,32}$")]
Pair = tuple[Coordinate, Coordinate]


class AnyRequest(BaseModel):
    """What every request holds: who asks; fields that are not known are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    client: Client = "page"


class PlaneRequest(AnyRequest):
    """A plane, and the network that is seen in it."""

    kind: Kind = "examples"
    rows: Annotated[tuple[Row, ...], Field(max_length=3)] = ()
    seed: Row = 0
    network: Literal["first", "other"] = "first"
    step: Annotated[int, Field(ge=-1, lt=2**31)] = -1


class WindowRequest(PlaneRequest):
    """A window of a plane."""

    centre: Pair
    half: tuple[Extent, Extent]


class RasterRequest(WindowRequest):
    """A window in pixels."""

    width: Annotated[int, Field(ge=1, le=512)]
    height: Annotated[int, Field(ge=1, le=512)]
    seconds: Annotated[float, Field(gt=0, le=10)] = 0.3


class CellsRequest(WindowRequest):
    """A window in exact regions."""

    regions: Annotated[int, Field(ge=1, le=1_000_000)] = 300_000
    seconds: Annotated[float, Field(gt=0, le=60)] = 30.0


class CellRequest(AnyRequest):
    """A cell of a window that was cut before."""

    view: Annotated[int, Field(ge=0)]
    cell: Annotated[int, Field(ge=0, lt=2**31)]


class ColoursRequest(AnyRequest):
    """The colours of a window that was cut before."""

    view: Annotated[int, Field(ge=0)]
    by: Literal["pattern", "map"]


class PointRequest(PlaneRequest):
    """A point of a plane."""

    at: Pair


class SegmentRequest(PlaneRequest):
    """A segment of a plane."""

    begin: Pair
    end: Pair


class ExamplesRequest(AnyRequest):
    """Examples, by number."""

    rows: Annotated[tuple[Row, ...], Field(min_length=1, max_length=96)]
    train: bool = False


def first_error(error: ValidationError) -> str:
    """Return the first thing that is wrong with a request, in a sentence."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the request"
    return f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}."
