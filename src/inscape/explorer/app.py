"""The routes of the explorer: parse, compute in a job, answer in bytes."""

import asyncio
import gzip
import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from inscape.errors import BudgetError
from inscape.escaping import visible
from inscape.explorer import requests as ask
from inscape.explorer.guard import Guard, TooLargeError
from inscape.explorer.jobs import Job, Jobs, OvertakenError, TimeSpentError
from inscape.explorer.page_files import page_files
from inscape.explorer.questions import Facts, Question, ViewRoutes
from inscape.explorer.routes import VIEWS
from inscape.explorer.session import Session
from inscape.explorer.wire import packed, visible_facts

Endpoint = Callable[[Request], Any]

#: Seconds that a request may compute beyond what it asks for.
SPARE = 30.0
#: Seconds between two looks at whether a client is still there, and between two events.
BETWEEN, EVENTS = 0.05, 0.2
#: Seconds that a stream of events is kept open.
LONGEST = 120.0
#: Answers above this many bytes are compressed.
LONG = 2048


def explorer_app(session: Session, *, token: str, hosts: frozenset[str]) -> Guard:
    """Return the application: the page, its files and what they ask for.

    Args:
        session: Who answers.
        token: Secret that a page must know.
        hosts: Names and ports under which the server is reached.
    """
    jobs = Jobs()
    views = [make(session) for make in VIEWS]
    questions = {name: question for view in views for name, question in view.questions.items()}
    routes = [
        Route("/", _page),
        Route("/static/{name:path}", _static),
        Route("/api/session", _session(jobs, session, views)),
        Route("/api/progress", _progress(jobs)),
        *(
            Route(f"/api/{name}", _computed(jobs, question), methods=["POST"])
            for name, question in questions.items()
        ),
        *(route for view in views for route in view.routes),
    ]
    app = Starlette(routes=routes)
    app.state.jobs = jobs
    return Guard(app=app, token=token, hosts=hosts)


async def _page(request: Request) -> Response:
    body, kind = page_files()["index.html"]
    return Response(body, media_type=kind)


async def _static(request: Request) -> Response:
    file = page_files().get(request.path_params["name"])
    if file is None:
        return Response("no such file.", status_code=404, media_type="text/plain")
    return Response(file[0], media_type=file[1])


def _session(jobs: Jobs, session: Session, views: Sequence[ViewRoutes]) -> Endpoint:
    def facts() -> Facts:
        return session.about() | {"views": {view.name: view.about() for view in views}}

    async def about(request: Request) -> Response:
        job, future = jobs.start("session", "session", _single(facts), seconds=60)
        return await _answered(
            request, job, future, lambda facts: JSONResponse(visible_facts(facts))
        )

    return about


def _json(facts: Facts) -> Response:
    return JSONResponse(visible_facts(facts))


def _single(function: Callable[[], Any]) -> Callable[[Job], Generator[None, None, Any]]:
    def steps(job: Job) -> Generator[None, None, Any]:
        yield
        return function()

    return steps


def _computed(jobs: Jobs, question: Question) -> Endpoint:
    """Return an endpoint that checks a request, computes in a job, and answers in bytes."""

    async def computed(request: Request) -> Response:
        try:
            query = question.request.model_validate_json(await request.body())
        except ValidationError as error:
            return _refused(400, ask.first_error(error))
        except TooLargeError:
            return _refused(413, "the request is too long.")
        except ClientDisconnect:
            return _refused(499, "the client is gone.")
        seconds = float(getattr(query, "seconds", 20.0)) + SPARE
        client = str(getattr(query, "client", ""))

        def steps(job: Job) -> Generator[None, None, bytes]:
            return packed(*(yield from question.answer(query, job)))

        job, future = jobs.start(
            client, question.kind, steps, seconds=seconds, thread=question.thread
        )
        accepts = "gzip" in request.headers.get("accept-encoding", "")
        return await _answered(request, job, future, lambda data: _binary(data, accepts=accepts))

    return computed


def _binary(data: bytes, *, accepts: bool) -> Response:
    headers = {}
    if accepts and len(data) > LONG:
        data, headers = gzip.compress(data, 1, mtime=0), {"content-encoding": "gzip"}
    return Response(data, media_type="application/octet-stream", headers=headers)


async def _answered(
    request: Request, job: Job, future: Any, respond: Callable[[Any], Response]
) -> Response:
    """Wait for a job and answer with its result; stop it where the client goes away."""
    waiting = asyncio.wrap_future(future)
    while not waiting.done():
        await asyncio.wait([waiting], timeout=BETWEEN)
        if not waiting.done() and await request.is_disconnected():
            job.stop()
    try:
        result = waiting.result()
        return await asyncio.to_thread(respond, result)
    except OvertakenError:
        return _refused(409, "a newer request has taken the place of this one.")
    except (TimeSpentError, BudgetError):
        return _refused(503, "this takes longer than a request may: zoom in, or choose less.")
    except LookupError as error:
        return _refused(410, str(error.args[0]) if error.args else "it is forgotten.")
    except (ValueError, TypeError) as error:
        return _refused(400, " ".join(str(error).split()))
    except (Exception, asyncio.CancelledError) as error:  # a crash of one does not end the server
        traceback.print_exception(error, file=sys.stderr)
        return _refused(500, f"unexpected {type(error).__name__}: see the terminal.")


def _refused(status: int, text: str) -> Response:
    return JSONResponse({"error": visible(text)}, status_code=status)


def _progress(jobs: Jobs) -> Endpoint:
    """Return an endpoint that tells how far the long job of a client has come, event by event."""

    async def events(client: str) -> AsyncIterator[bytes]:
        for _ in range(int(LONGEST / EVENTS)):
            job = jobs.latest(client)
            if job is None or job.finished:
                yield b'data: {"finished":true}\n\n'
                return
            facts = {"layer": job.layer, "done": job.done, "cells": job.cells}
            yield f"data: {json.dumps(facts)}\n\n".encode()
            await asyncio.sleep(EVENTS)

    async def progress(request: Request) -> Response:
        client = request.query_params.get("client", "")[:32]
        return StreamingResponse(events(client), media_type="text/event-stream")

    return progress
