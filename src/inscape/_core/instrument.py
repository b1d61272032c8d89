"""The register of instruments: pure functions that each measure one quantity of a network."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from torch import Tensor

from inscape._core.anytime import refinements
from inscape._core.arguments import accepting
from inscape._core.inference import outside_inference

Reads = Literal["function", "parameters", "trajectory", "pair", "data"]
Cost = Literal["instant", "seconds", "minutes", "hours"]
Better = Literal["larger", "smaller", "neither"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Bound:
    """A value that no function with a stated property goes below."""

    value: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """An entry of the register: the function and what it declares about itself.

    Attributes:
        name: Name of the function.
        family: The package that it belongs to.
        function: The function itself.
        reads: What the instrument may look at; ``"function"`` promises that permuting or
            rescaling hidden units changes nothing, and the contract test holds it to that.
        cost: Class of its time at default settings on a 784-256-1 network and 2 cores.
        work: ``(n, c) -> passes``: how many single-input forward passes it needs at default
            settings on ``n`` points and ``c`` outputs (a backward pass counts as two).
        setup: Seconds beside those passes, whatever the model (e.g. for an export).
        samples: Name of the setting that counts samples; the report draws fewer of them where the
            time does not suffice for all.
        meaning: One plain sentence for the report; ``{value}`` stands for the number.
        cites: Where the quantity is defined.
        bound: ``(x, y) -> Bound``: a value that no function fitting the labels goes below.
        example: ``(model, x, y) -> arguments`` beyond the defaults, for contract and report.
        exempt: Fields of the result that name neurons and so may change under permutation.
        by_default: Whether ``look`` measures it without being asked for it by name.
        least_rows: How many samples it needs.
        discrete: Whether it needs only outputs, and gradients by the parameters, at the samples
            themselves: it may then be measured at token ids.
        of_training: Whether it measures the loss that training lowers: ``look`` calls it with the
            training set and its loss.
        better: Which number is better, a ``"larger"`` or a ``"smaller"`` one, or ``"neither"``.
        larger: What a larger number means, in a few words: "rougher".
    """

    name: str
    family: str
    function: Callable[..., Any]
    reads: Reads
    cost: Cost
    work: Callable[[int, int], float]
    setup: float
    samples: str
    meaning: str
    cites: str
    bound: Callable[[Tensor, Tensor], Bound | None] | None
    example: Callable[[Any, Tensor, Tensor], dict[str, Any]]
    exempt: tuple[str, ...]
    by_default: bool
    least_rows: int
    discrete: bool
    of_training: bool
    better: Better
    larger: str

    @property
    def title(self) -> str:
        """Return the first line of the docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def wants_labels(self) -> bool:
        """Tell whether the function has an argument ``y`` after ``x``."""
        return "y" in inspect.signature(self.function).parameters

    @property
    def wants_queries(self) -> bool:
        """Tell whether the function has arguments ``queries`` and ``answers`` beside the data."""
        return {"queries", "answers"} <= set(inspect.signature(self.function).parameters)

    def measure(self, model: Any, x: Tensor, y: Tensor, **settings: Any) -> Any:
        """Return the result of the instrument, called with its example arguments."""
        settings = {**self.example(model, x, y), **settings}
        data = (x, y) if self.wants_labels else (x,)
        return self.function(model, *data, **settings)

    def refine(self, model: Any, x: Tensor, y: Tensor, **settings: Any) -> Iterator[Any]:
        """Yield ever better results, or the only one of an instrument that cannot improve."""
        settings = {**self.example(model, x, y), **settings}
        data = (x, y) if self.wants_labels else (x,)
        return refinements(self.function, model, *data, **settings)


_REGISTER: dict[str, Instrument] = {}


def instrument(
    *,
    reads: Reads,
    cost: Cost,
    work: Callable[[int, int], float],
    meaning: str,
    cites: str,
    setup: float = 0.0,
    samples: str = "",
    bound: Callable[[Tensor, Tensor], Bound | None] | None = None,
    example: Callable[[Any, Tensor, Tensor], dict[str, Any]] = lambda model, x, y: {},
    exempt: tuple[str, ...] = (),
    by_default: bool = True,
    least_rows: int = 1,
    discrete: bool = False,
    of_training: bool = False,
    better: Better = "neither",
    larger: str = "",
) -> Callable[[F], F]:
    """Register a function as an instrument and return it, ready for inputs of any mode.

    Inference tensors, which autograd refuses, are copied, and tensors of the caller's graph
    (``requires_grad``) detached; see ``outside_inference``. NumPy arrays, pandas frames and models
    in half precision are accepted as well; see ``accepting``.

    The arguments are the fields of :class:`Instrument`, where each is explained.
    """

    def register(function: F) -> F:
        own = reads in ("parameters", "trajectory") or ".landscape." in function.__module__
        function = outside_inference(accepting(function, discrete=discrete, real=own))
        name = function.__name__
        _REGISTER[name] = Instrument(
            name=name,
            family=function.__module__.split(".")[-2],
            function=function,
            reads=reads,
            cost=cost,
            work=work,
            setup=setup,
            samples=samples,
            meaning=meaning,
            cites=cites,
            bound=bound,
            example=example,
            exempt=exempt,
            by_default=by_default,
            least_rows=least_rows,
            discrete=discrete,
            of_training=of_training,
            better=better,
            larger=larger,
        )
        return function

    return register


def instruments() -> dict[str, Instrument]:
    """Return all instruments by name, loading the families that hold them."""
    from importlib import import_module

    from inscape.index import families

    for family in families():
        import_module(f"inscape.{family}")
    return dict(sorted(_REGISTER.items(), key=lambda item: (item[1].family, item[0])))
