"""Networks in stacks: the weights of many side by side, and one update for all of them.

Any module will do whose update can be written down as a list of tensor operations. The members of
a stack walk through their epochs in step; who has finished leaves, and who waits takes its slot.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from inscape._core.progress import progress as progress_bar
from inscape.ensembles.grouping import groups, mark
from inscape.ensembles.member import LostMembersError, Member, Orders
from inscape.ensembles.program import Program
from inscape.ensembles.stack import Stack, Walk
from inscape.training.checks import check_end
from inscape.training.function_names import is_own
from inscape.training.losses import loss_function
from inscape.training.optimizers import build_optimizer
from inscape.training.schedules import Schedule
from inscape.training.update import DivergedError, Update

#: Measured on two cores: the loop is as fast where one member's update writes more than this.
MANY_NUMBERS = 2**19

#: Said where a trial has failed on this processor, although no operation rounds by place.
OTHER_BITS = "the kernels of this machine give a member other bits in other slots of a stack"

#: What is known of members of a kind, for as long as their orders live: it takes a while to learn.
_KNOWN: WeakKeyDictionary[Orders, dict[Hashable, Program | str]] = WeakKeyDictionary()


def reason_not(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor], settings: Orders
) -> str | None:
    """Say why these networks cannot be trained in a stack, or return None if they can."""
    if is_own(settings.optimizer):
        return "the optimizer is a function of your own, and a stack knows sgd, adam and adamw"
    if settings.optimizer not in ("sgd", "adam", "adamw"):
        return f"a stack knows sgd, adam and adamw, found {settings.optimizer!r}"
    schedule = settings.schedule_given
    if isinstance(schedule, Schedule) and schedule.listens:
        return "the schedule listens to the losses of a training of its own"
    kinds = len(groups(models, xs, ys))
    if kinds > 1:
        return f"a stack holds networks of one kind on data of one shape, found {kinds} kinds"
    if any(_hooked(model) for model in models):
        return "a module has hooks, which a stack would not call"
    program = _program(models[0], xs[0], ys[0], settings)
    if isinstance(program, str):
        return program
    try:
        admitted = program.admits(program.widths[0])
    except Exception as error:  # whatever the code of a user may raise; the loop says it again
        return _unwritten(error)
    if admitted:
        return None
    names = program.uneven(program.widths[0])
    return f"{OTHER_BITS} ({', '.join(names)} may round by place)" if names else OTHER_BITS


def train(
    models: Sequence[nn.Module],
    xs: Sequence[Tensor],
    ys: Sequence[Tensor],
    settings: Orders,
    seeds: Sequence[int],
) -> Iterator[Member]:
    """Train networks of one kind in a stack, and yield each when it leaves.

    A model is as it was until its member leaves. One whose loss diverges stays so, in eval mode;
    when all others are done, :class:`LostMembersError` says what happened.
    """
    program = _program(models[0], xs[0], ys[0], settings)
    if isinstance(program, str):
        raise ValueError(f"these networks cannot be trained in a stack: {program}.")
    stack = Stack(program, models, xs, ys, seeds)
    waiting = deque(range(len(models)))
    per_epoch, lost = len(program.sizes), dict[int, DivergedError]()
    total = len(models) * settings.epochs * per_epoch
    label = f"training {len(models)} networks"
    with progress_bar(total, label=label, quiet=settings.quiet) as bar:
        while stack.seat(waiting):
            stack.epoch(bar)
            for walk in [w for w in stack.busy if w.ended(settings.epochs, settings.stop_loss)]:
                bar.advance((settings.epochs - walk.epochs) * per_epoch)
                update = _update(stack.leave(walk), settings, seeds[walk.member], per_epoch)
                try:
                    member = _member(walk, update, settings)
                except DivergedError as error:
                    lost[walk.member] = error
                else:
                    yield member
    if lost:
        raise LostMembersError(lost)


def slower(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor], settings: Orders
) -> str | None:
    """Say why a stack would be slower than the loop, or return None if it would not be."""
    program = _program(models[0], xs[0], ys[0], settings)
    if isinstance(program, Program) and program.numbers > MANY_NUMBERS:
        return (
            f"an update of one network writes {program.numbers:,} numbers, and above "
            f"{MANY_NUMBERS:,} a stack no longer fits the caches and is slower than the loop"
        )
    return None


def _program(model: nn.Module, x: Tensor, y: Tensor, orders: Orders) -> Program | str:
    """Return how members of this kind are trained in a stack, or why they cannot be."""
    known, kind = _KNOWN.setdefault(orders, {}), mark(model, x, y)
    if kind not in known:
        known[kind] = _tried(model, x, y, orders)
    return known[kind]


def _tried(model: nn.Module, x: Tensor, y: Tensor, orders: Orders) -> Program | str:
    try:
        return Program(model, x, y, orders)
    except Exception as error:  # as above
        return _unwritten(error)


def _unwritten(error: Exception) -> str:
    lines = str(error).splitlines() or ["no text"]
    return (
        "the update cannot be written as tensor operations for a stack "
        f"({type(error).__name__}: {lines[0]})"
    )


def _hooked(model: nn.Module) -> bool:
    """Tell whether any module calls functions before or after its own."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(part, kind) for part in model.modules() for kind in kinds)


def _update(model: nn.Module, orders: Orders, seed: int, per_epoch: int) -> Update:
    """Return the update that the loop would have made, which knows how to speak of faults."""
    return Update(
        model,
        loss_function(orders.loss_given),
        build_optimizer(orders.optimizer_given, model, orders),
        orders.penalties_given,
        seed=seed,
        per_epoch=per_epoch,
    )


def _member(walk: Walk, update: Update, orders: Orders) -> Member:
    if walk.fault is not None:
        raise update.diverged(walk.steps, update._listed(walk.fault))
    check_end(update, walk.steps - 1)
    return Member(
        index=walk.member,
        model=update.model,
        loss=walk.loss,
        epochs=walk.epochs,
        steps=walk.steps,
        stopped="loss" if walk.stopped(orders.stop_loss) else "epochs",
    )
