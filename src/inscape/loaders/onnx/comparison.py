"""An imported network is compared with ONNX's own reference, on random inputs."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inscape.errors import BudgetError, UnsupportedModelError
from inscape.loaders.files import short
from inscape.loaders.onnx.module import OnnxNetwork
from inscape.loaders.onnx.operators_shape import BOOL, FLOATS
from inscape.loaders.onnx.reader import OnnxGraph

#: Most multiplications for which the slow reference is run, and for which it runs on two examples.
PRODUCTS, FOR_TWO = 2_000_000_000, 200_000_000
#: A difference, as a fraction of the largest output, from which on the import is refused.
REFUSED = 1e-2
#: Sizes that are tried where the file names none.
TRIED = (32, 48, 64, 224, 8, 16, 128, 512)

Inputs = dict[str, Tensor]


def compared(net: OnnxNetwork, graph: OnnxGraph) -> tuple[str, ...]:
    """Return notes on the difference from the reference, and on the batch sizes that it accepts."""
    fixed = _is_fixed(net)
    first: UnsupportedModelError | None = None
    for inputs in _examples(net):
        try:
            outputs = _outputs(net, inputs)
        except UnsupportedModelError as error:
            first = first or error
            continue
        except BudgetError:
            if fixed:
                raise
            continue
        return (*_rows_note(net, inputs, outputs), _difference(net, graph, inputs, outputs))
    if fixed and first is not None:
        raise first
    return ("not compared with onnx.reference: the file does not say how large its input is",)


def _is_fixed(net: OnnxNetwork) -> bool:
    return all(size is not None for declared in net.inputs for size in declared.sizes[1:])


def _examples(net: OnnxNetwork) -> Iterator[Inputs]:
    """Yield random inputs, of each size that may be meant where the file says none."""
    for size in (TRIED[0],) if _is_fixed(net) else TRIED:
        draw = np.random.default_rng(0)
        yield {
            declared.name: _random(declared.kind, _sizes(declared.sizes, size), draw)
            for declared in net.inputs
        }


def _sizes(declared: tuple[int | None, ...], size: int) -> list[int]:
    rows = [2 if n is None else n for n in declared[:1]]
    return rows + [size if n is None else n for n in declared[1:]]


def _random(kind: int, sizes: list[int], draw: np.random.Generator) -> Tensor:
    if np.prod(np.array(sizes, dtype=object)) > 10**8:
        raise BudgetError(f"an input must have at most 100 million numbers, found {sizes}")
    if kind in FLOATS:
        numbers = torch.from_numpy(draw.standard_normal(sizes, dtype=np.float32))
        return numbers.double() if kind == 11 else numbers
    return torch.from_numpy(draw.integers(0, 2, sizes)).to(torch.bool if kind == BOOL else None)


@torch.no_grad()
def _outputs(net: OnnxNetwork, inputs: Inputs) -> dict[str, Tensor]:
    outputs = net(**inputs)
    return outputs if isinstance(outputs, dict) else {"": outputs}


def _rows_note(net: OnnxNetwork, inputs: Inputs, outputs: dict[str, Tensor]) -> tuple[str, ...]:
    """Say whether a file that was written for so many examples takes others."""
    rows = net.inputs[0].sizes[0] if net.inputs[0].sizes else None
    if rows is None or len(net.inputs) > 1:
        return ()
    try:
        more = _outputs(net, {name: torch.cat([x, x]) for name, x in inputs.items()})
    except UnsupportedModelError:
        more = {}
    same = more and all(
        single.ndim
        and len(more[name]) == 2 * len(single)
        and torch.allclose(torch.cat([single, single]), more[name], rtol=1e-3, atol=1e-4)
        for name, single in outputs.items()
    )
    if not same:
        return (f"written for {rows} examples at a time, and takes no others",)
    shapes = (
        f": {net.rewritten} shapes in it follow the number of examples" if net.rewritten else ""
    )
    return (f"written for {rows} example{'s' * (rows > 1)} at a time, takes any number{shapes}",)


def _difference(
    net: OnnxNetwork, graph: OnnxGraph, inputs: Inputs, outputs: dict[str, Tensor]
) -> str:
    """Say how far the outputs are from those of the reference."""
    products = net.watched(net.as_declared(inputs)).products
    if products > FOR_TWO and all(
        declared.sizes and declared.sizes[0] is None for declared in net.inputs
    ):
        inputs, products = {name: x[:1] for name, x in inputs.items()}, products // 2
        outputs = _outputs(net, inputs)
    if products > PRODUCTS:
        return f"not compared with onnx.reference, too slow for {products:.1e} products"
    try:
        expected = _reference(graph, inputs)
    except Exception as error:  # whatever the reference does not know
        return f"not compared with onnx.reference, which raised {short(error)}"
    pairs = list(zip(outputs.values(), expected, strict=True))
    if any(tuple(a.shape) != np.shape(b) for a, b in pairs):
        raise _differs("outputs of other shapes")
    largest = max((_largest(b) for _, b in pairs), default=0.0)
    difference = max((_largest(a.numpy().astype(np.float64) - b) for a, b in pairs), default=0.0)
    if not difference <= REFUSED * max(largest, 1e-3):
        raise _differs(f"a difference of {difference:.2g} where outputs are up to {largest:.2g}")
    return f"differs from onnx.reference by at most {difference:.1g} (outputs up to {largest:.2g})"


def _reference(graph: OnnxGraph, inputs: Inputs) -> list[Any]:
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    kinds = {
        declared.name: helper.tensor_dtype_to_np_dtype(declared.kind) for declared in graph.inputs
    }
    arrays = {name: x.numpy().astype(kinds[name]) for name, x in inputs.items()}
    with np.errstate(all="ignore"):
        outputs = ReferenceEvaluator(graph.proto, new_ops=_corrected(graph)).run(None, arrays)
    return [np.asarray(array).astype(np.float64) for array in outputs]


def _corrected(graph: OnnxGraph) -> list[Any]:
    """Return operators of the reference that are other ones than the file's version of them.

    ONNX has the batch normalisation of training before version 14, and Softmax over one axis before
    version 13, where it goes over all axes from there on.
    """
    from onnx.reference.op_run import OpRun

    class BatchNormalization(OpRun):
        op_domain = ""

        def _run(self, x: Any, *four: Any, epsilon: Any = 1e-5, **_: Any) -> Any:
            shape = (-1, *[1] * (x.ndim - 2))
            scale, bias, mean, variance = (part.reshape(shape) for part in four)
            normalised = scale * (x - mean) / np.sqrt(variance + epsilon) + bias
            return (normalised.astype(x.dtype),)

    class Softmax(OpRun):
        op_domain = ""

        def _run(self, x: Any, **_: Any) -> Any:  # its default axis is that of version 13
            axis = next((a.i for a in self.onnx_node.attribute if a.name == "axis"), 1)
            axes = tuple(range(axis % x.ndim, x.ndim))
            exponentials = np.exp(x - x.max(axis=axes, keepdims=True))
            return ((exponentials / exponentials.sum(axis=axes, keepdims=True)).astype(x.dtype),)

    class LogSoftmax(Softmax):
        def _run(self, x: Any, **_: Any) -> Any:
            return (np.log(super()._run(x)[0]),)

    version = graph.nodes[0].opset if graph.nodes else 0
    return [BatchNormalization, Softmax, LogSoftmax][: 3 if version < 13 else 1]


def _largest(array: Any) -> float:
    return float(np.max(np.abs(array))) if np.size(array) else 0.0


def _differs(difference: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"an imported network must agree with onnx.reference on random inputs, found {difference}: "
        "export the model another way, for example as .pt2."
    )
