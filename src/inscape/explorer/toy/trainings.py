"""The trainings of all clients: one each, forgotten when too many others have begun."""

from collections import OrderedDict
from collections.abc import Generator
from dataclasses import dataclass
from threading import Lock
from typing import Annotated

from pydantic import Field

from inscape.explorer.requests import AnyRequest, Extent, Pair
from inscape.explorer.session import Session
from inscape.explorer.toy.run import Frame, ToyRun
from inscape.explorer.toy.setup import ToySetup

#: Trainings that are kept, and updates of one at most.
KEPT, LONGEST = 40, 100_000


class TrainRequest(AnyRequest):
    """A training: its setup, how far it shall go, and after how many updates it is shown.

    ``until`` is the update at which it ends, however many were made before; ``fresh`` begins anew.
    The window is that of the setup where none is given.
    """

    setup: ToySetup = ToySetup()
    until: Annotated[int, Field(ge=0, le=LONGEST)] = 0
    interval: Annotated[int, Field(ge=1, le=500)] = 10
    fresh: bool = False
    centre: Pair | None = None
    half: tuple[Extent, Extent] | None = None


@dataclass(eq=False)
class Training:
    """The training of one client; ``turn`` counts who has it: only the last may go on."""

    run: ToyRun
    turn: int = 0


class Trainings:
    """The trainings of all clients."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Training] = OrderedDict()
        self._turns = 0
        self._lock = Lock()

    def begin(self, query: TrainRequest) -> Generator[None, None, Training]:
        """Return the training of a client, a new one if another setup is asked for."""
        known = self._known.get(query.client)
        if known is None or query.fresh or known.run.setup != query.setup:
            yield
            known = Training(ToyRun(query.setup))
        elif known.run.step > query.until:
            yield
            known = Training(ToyRun(query.setup))  # back to an earlier update: from the start
        with self._lock:
            self._turns += 1
            known.turn = self._turns
            self._known[query.client] = known
            self._known.move_to_end(query.client)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return known

    def go_on(
        self, query: TrainRequest, training: Training, turn: int
    ) -> Generator[None, None, Frame | None]:
        """Train to the next frame and return it; None if another request has this training now."""
        if training.turn != turn:
            return None
        run = training.run
        updates = min(query.interval, query.until - run.step)
        if updates > 0:
            yield from run.advance(updates)
        window = None
        if query.centre is not None and query.half is not None:
            window = (query.centre, query.half)
        return (yield from run.frame(query.client, window))

    def session(self, client: str) -> Session:
        """Return the session about the network of a client, as it was at the last frame."""
        training = self._known.get(client)
        if training is None:
            raise LookupError("this training is forgotten by now: start it anew.")
        return training.run.session
