"""Questions: what a page can ask of the server, and the routes of one view of the page."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from starlette.routing import BaseRoute

from inscape.explorer.jobs import Job, Thread
from inscape.explorer.wire import Array

Facts = dict[str, Any]
Answer = Generator[None, None, tuple[Facts, Mapping[str, Array]]]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A request that is checked, then answered by a job in steps.

    A newer question of the same ``kind`` and client stops an older one. The ``thread`` is where it
    is computed: one question at a time in each.
    """

    request: type[BaseModel]
    answer: Callable[[Any, Job], Answer]
    kind: str
    thread: Thread = "quick"


@dataclass(frozen=True, kw_only=True)
class ViewRoutes:
    """What one view of the page asks: its questions by path below ``/api/``, and other routes.

    ``about`` are facts that the view needs at the start; the page has them as
    ``session.views[name]``.
    """

    name: str
    questions: Mapping[str, Question]
    about: Callable[[], Facts] = dict
    routes: tuple[BaseRoute, ...] = field(default=())
