"""What is explored: networks, the data around them, and what their outputs mean."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import UnsupportedModelError
from inscape._core.checks import Function
from inscape.functional.jacobians import MEMORY, probe
from inscape.functional.precision import in_precision
from inscape.functional.substitution import checked_copy
from inscape.loaders import OpenedData
from inscape.piecewise.graph.network import Piecewise, piecewise
from inscape.regions.plane_windows import PlaneWindows
from inscape.report import Prepared
from inscape.report.look.subject import Subject, seconds_per_row
from inscape.similarity.slice_difference import BothNetworks
from inscape.training import Trajectory
from inscape.training.trajectory import stand_at

#: Checkpoints of a training whose networks are kept ready.
KEPT = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class ExploredNetwork:
    """A network, as a function and as a piecewise-linear graph where it is one.

    ``refusal`` says why there are no exact regions where ``windows`` is None. A ``pace`` is the
    seconds that one input takes.
    """

    name: str
    f: Function
    dtype: torch.dtype
    device: torch.device
    windows: PlaneWindows | None
    refusal: str
    batch: int
    pace: float

    @property
    def net(self) -> Piecewise | None:
        """Return the graph of the network in float64, if it is piecewise linear."""
        return None if self.windows is None else self.windows.net

    @torch.no_grad()
    def outputs(
        self, x: Float64[Tensor, "n *d"], *, double: bool = False
    ) -> Float64[Tensor, "n c"]:
        """Return the outputs at some inputs, in the network's own precision or in float64."""
        if double and self.net is not None:
            return self.net.values(x)
        y: Tensor = self.f(x.to(device=self.device, dtype=self.dtype))
        return y.reshape(len(x), -1).double().cpu()


def explored_network(model: nn.Module, x: Float[Tensor, "n *d"], name: str) -> ExploredNetwork:
    """Return a network ready to be explored, or ready but for its regions, with the reason."""
    sample = x[:3]
    probed = probe(model, sample)
    try:
        windows, refusal = PlaneWindows(piecewise(model, sample)), ""
    except UnsupportedModelError as error:
        windows, refusal = None, str(error)
    return ExploredNetwork(
        name=name,
        f=probed.f,
        dtype=x.dtype,
        device=x.device,
        windows=windows,
        refusal=refusal,
        batch=probed.rows(MEMORY),
        pace=seconds_per_row(model, x, most=min(64, probed.rows(MEMORY))),
    )


@dataclass(eq=False, kw_only=True)
class ExploredSubject:
    """Everything that the explorer shows: model, data, perhaps another network and a training.

    ``code`` are lines of Python that open ``model``, ``x`` and ``y`` as they are here.
    """

    title: str
    subject: Subject
    data: OpenedData
    code: str
    other: nn.Module | None = None
    other_title: str = ""
    other_code: str = ""
    trajectory: Trajectory | None = None
    _networks: dict[tuple[str, int], ExploredNetwork] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def x(self) -> Tensor:
        """Return the examples."""
        return self.subject.x

    @property
    def y(self) -> Tensor | None:
        """Return the labels of the examples, if there are any."""
        return self.subject.y

    @property
    def task(self) -> str:
        """Return what the labels are: classes, regression or unlabelled."""
        return self.subject.task

    @cached_property
    def flat(self) -> Float64[Tensor, "n D"]:
        """Return the first examples as rows of numbers, as many as are drawn in a plane."""
        most = max(3, min(len(self.x), 2000, 20_000_000 // self.x[0].numel()))
        return self.x[:most].detach().flatten(1).double().cpu()

    @property
    def is_competing(self) -> bool:
        """Tell whether the largest output is the answer: of classes, or of unlabelled outputs."""
        outputs = self.subject.probe.outputs
        return self.task == "classes" or (self.task == "unlabelled" and outputs > 1)

    @property
    def steps(self) -> list[int]:
        """Return the recorded steps of the training."""
        return [] if self.trajectory is None else self.trajectory.checkpoints.tolist()

    def network(self, which: str = "first", step: int = -1) -> ExploredNetwork:
        """Return a network: the first, the other, both as one, or the first at a recorded step."""
        if which != "first" and self.other is None:
            raise ValueError(
                "the other network must be given at the start, found none: run inscape explore "
                "--with OTHER."
            )
        if step >= 0 and step not in self.steps:
            raise ValueError(
                f"step must be one of the {len(self.steps)} recorded steps, found {step}: give "
                "--trajectory, or choose one that is recorded."
            )
        key = (which, step)
        known = self._networks.get(key)
        if known is not None:
            return known
        opened = self._opened(which, step)
        with self._lock:  # another thread may have opened it meanwhile
            while len(self._networks) >= KEPT:
                del self._networks[next(k for k in self._networks if k[1] >= 0)]
            return self._networks.setdefault(key, opened)

    def _opened(self, which: str, step: int) -> ExploredNetwork:
        if which == "other":
            assert self.other is not None
            return explored_network(self.other, self.x.to(_dtype(self.other)), self.other_title)
        if which == "both":
            return self._both()
        if step < 0:
            return explored_network(self.subject.model, self.x, self.title)
        assert self.trajectory is not None
        body = checked_copy(self.subject.model, self.x)
        stand_at(body, self.trajectory, step)
        return explored_network(body, self.x, f"step {step}")

    def _both(self) -> ExploredNetwork:
        """Return both networks as one, whose regions are the refinement of theirs."""
        assert self.other is not None
        first, wide, _ = in_precision(self.subject.model, self.x, "float64")
        second, _, _ = in_precision(self.other, self.x, "float64")
        return explored_network(BothNetworks(first, second).eval(), wide, "both")

    def class_name(self, number: int) -> str:
        """Return what a class, or an output of no known meaning, is called."""
        if self.task != "classes":
            return f"output {number}"
        names = self.data.names
        return str(names[number]) if number < len(names) else str(number)

    def label(self, row: int) -> str:
        """Return the label of an example in words, empty where there is none."""
        if self.y is None or self.task == "unlabelled":
            return ""
        values = self.y[row].flatten()
        if self.task == "classes":
            return self.class_name(int(values[0]))
        return f"{float(values[0]):.3g}" if len(values) == 1 else ""

    def scores(self, outputs: Float64[Tensor, "n c"]) -> Float64[Tensor, "n k"]:
        """Return the scores that compete: of a single output, its negative and itself."""
        if self.is_competing and outputs.shape[1] == 1:
            ahead = outputs - (0.5 if self.subject.probability else 0.0)
            return torch.cat([-ahead, ahead], 1)
        return outputs

    def confidence(self, outputs: Float64[Tensor, "n c"]) -> Float64[Tensor, " n"]:
        """Return the probability of the answer; of unlabelled outputs, that of their softmax."""
        if outputs.shape[1] == 1:
            p = outputs[:, 0] if self.subject.probability else outputs[:, 0].sigmoid()
            return torch.maximum(p, 1 - p)
        sums = outputs.sum(1)
        known = bool((outputs >= 0).all()) and bool((sums - 1).abs().max() < 1e-4)
        return (outputs if known else outputs.softmax(1)).amax(1)


def explored_subject(
    prepared: Prepared,
    *,
    code: str,
    trajectory: Trajectory | None = None,
    other: tuple[nn.Module, str, str] | None = None,
    title: str = "",
) -> ExploredSubject:
    """Return what a prepared look would measure, to be explored.

    Args:
        prepared: Model and data.
        code: Lines of Python that open them.
        trajectory: The recorded training of the model.
        other: A second network, its title, and lines of Python that open it.
        title: What the model is called; where it is from, if not given.
    """
    model = prepared.subject.model
    if other is not None:
        _check_other(other[0], prepared.subject)
    return ExploredSubject(
        title=title or prepared.opened.source,
        subject=prepared.subject,
        data=prepared.data,
        code=code,
        other=None if other is None else other[0],
        other_title="" if other is None else other[1],
        other_code="" if other is None else other[2],
        trajectory=_fitting(model, trajectory),
    )


def _check_other(other: nn.Module, subject: Subject) -> None:
    """Refuse a second network whose inputs or outputs are others."""
    x = subject.x[:3].to(_dtype(other))
    try:
        outputs = probe(other, x).outputs
    except (RuntimeError, ValueError, TypeError) as error:
        shape = "x".join(map(str, x.shape[1:]))
        fault = str(error).partition("\n")[0]
        raise ValueError(
            f"the network of --with must have the same inputs, found that it fails on those of "
            f"shape {shape} ({fault:.200}): pass one that reads the same data."
        ) from error
    if outputs != subject.probe.outputs:
        raise ValueError(
            f"both networks must have as many outputs, found {subject.probe.outputs} and "
            f"{outputs}: pass one with the same classes to --with."
        )


def _dtype(model: nn.Module) -> torch.dtype:
    """Return the precision of a network's parameters."""
    own = (p.dtype for p in model.parameters() if p.is_floating_point())
    return next(own, torch.float32)


def _fitting(model: nn.Module, trajectory: Trajectory | None) -> Trajectory | None:
    """Return a training whose checkpoints are weights of the model; none if they are not."""
    if trajectory is None:
        return None
    own: Mapping[str, Tensor] = model.state_dict()
    end = trajectory.at(trajectory.steps)
    same = {k: t.shape for k, t in own.items()} == {k: t.shape for k, t in end.items()}
    return trajectory if same else None
