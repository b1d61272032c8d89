"""What a page may ask: each request with its bounds, checked before anything is computed."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inscape.explorer.planes import Kind

Coordinate = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Extent = Annotated[float, Field(gt=1e-120, le=1e12, allow_inf_nan=False)]
Row = Annotated[int, Field(ge=0, lt=2**31)]
Client = Annotated[str, Field(pattern=r"^[a-z0-9]{1,32}$")]
Pair = tuple[Coordinate, Coordinate]
FigureFormat = Literal["pdf", "svg", "png"]


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
    side: Annotated[float, Field(gt=1e-6, le=1)] = 1.0


class CellRequest(AnyRequest):
    """A cell of a window that was cut before."""

    view: Annotated[int, Field(ge=0)]
    cell: Annotated[int, Field(ge=0, lt=2**31)]


class ColoursRequest(AnyRequest):
    """The colours of a window that was cut before, perhaps on the scale of another."""

    view: Annotated[int, Field(ge=0)]
    by: Literal["pattern", "map"]
    like: Annotated[int, Field(ge=0)] | None = None


class PointRequest(PlaneRequest):
    """A point of a plane."""

    at: Pair


class MadeByRequest(PointRequest):
    """A point of a plane, whose answer is to be split among the training examples."""

    seconds: Annotated[float, Field(gt=0, le=300)] = 180.0


class SegmentRequest(PlaneRequest):
    """A segment of a plane."""

    begin: Pair
    end: Pair


class PairFigureRequest(AnyRequest):
    """A figure of two networks in a window that was cut before."""

    view: Annotated[int, Field(ge=0)]
    format: FigureFormat = "pdf"


class FigureRequest(PairFigureRequest):
    """A figure of a window that was cut before."""

    colour: Literal["class", "confidence", "pattern", "map"] = "class"
    edges: Literal["plain", "layer", "none"] = "plain"


class CurvesRequest(AnyRequest):
    """The training at some of its recorded steps."""

    steps: Annotated[tuple[Row, ...], Field(min_length=1, max_length=8)]


class FilmRequest(WindowRequest):
    """A moving picture of a window, with at most so many steps."""

    format: Literal["gif", "webp", "mp4"] = "gif"
    colour: Literal["class", "confidence", "pattern", "map"] = "class"
    edges: Literal["plain", "layer", "none"] = "plain"
    steps: Annotated[int, Field(ge=1, le=60)] = 40
    pixels: Annotated[int, Field(ge=80, le=800)] = 480
    seconds: Annotated[float, Field(gt=0, le=600)] = 300.0


class SavedRequest(PlaneRequest):
    """A window as one file to send; the first of its plane if none is named."""

    centre: Pair | None = None
    half: tuple[Extent, Extent] | None = None
    start: Annotated[str, Field(max_length=2000)] = ""
    seconds: Annotated[float, Field(gt=0, le=600)] = 240.0


class PairRequest(AnyRequest):
    """The examples on which both networks disagree."""


class ExamplesRequest(AnyRequest):
    """Examples, by number."""

    rows: Annotated[tuple[Row, ...], Field(min_length=1, max_length=96)]
    train: bool = False


def first_error(error: ValidationError) -> str:
    """Return the first thing that is wrong with a request, in a sentence."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the request"
    return f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}."
