"""Routes of the toy lab: a training as a stream of frames, and questions about its network."""

import asyncio
import base64
import json
import sys
import traceback
from collections.abc import AsyncIterator, Generator
from functools import partial
from typing import Any

import numpy as np
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from inscape.errors import BudgetError
from inscape.explorer import requests as ask
from inscape.explorer.guard import TooLargeError
from inscape.explorer.jobs import Jobs, OvertakenError, TimeSpentError
from inscape.explorer.questions import Facts, Question, ViewRoutes
from inscape.explorer.session import Session
from inscape.explorer.toy.points import ToyPoints
from inscape.explorer.toy.presets import presets
from inscape.explorer.toy.setup import ToySetup
from inscape.explorer.toy.trainings import Training, Trainings, TrainRequest
from inscape.explorer.wire import Array, packed
from inscape.runtime.deadline import Deadline

#: Seconds that one frame may take, and that a stream of them is kept open.
FRAME, STREAM = 20.0, 300.0
#: Seconds between two frames, at least.
BETWEEN = 0.04


def toy_routes(session: Session) -> ViewRoutes:
    """Return what the toy lab asks; it does not depend on what is explored."""
    trainings = Trainings()
    return ViewRoutes(
        name="toy",
        about=_about,
        questions=_questions(trainings),
        routes=(Route("/api/toy/train", _train(trainings), methods=["POST"]),),
    )


def _about() -> Facts:
    return {
        "presets": [preset.facts() for preset in presets()],
        "start": ToySetup().model_dump(),
    }


def _questions(trainings: Trainings) -> dict[str, Question]:
    """Return the questions of a slice, asked about the network of the client's training."""

    def of(query: ask.AnyRequest) -> Session:
        return trainings.session(query.client)

    return {
        "toy/raster": Question(
            request=ask.RasterRequest, kind="toy quick", answer=lambda a, job: of(a).raster(a)
        ),
        "toy/cells": Question(
            request=ask.CellsRequest, kind="toy long", thread="long",
            answer=lambda a, job: of(a).cells(a, job),
        ),
        "toy/cell": Question(
            request=ask.CellRequest, kind="toy hover", answer=lambda a, job: of(a).cell(a)
        ),
        "toy/figure": Question(
            request=ask.FigureRequest, kind="figure", thread="long",
            answer=lambda a, job: of(a).figure(a),
        ),
        "toy/colours": Question(
            request=ask.ColoursRequest, kind="toy colour", answer=lambda a, job: of(a).colours(a)
        ),
    }  # fmt: skip


def _train(trainings: Trainings) -> Any:
    """Return the endpoint that trains and sends a frame every few updates, as events."""

    async def train(request: Request) -> Response:
        try:
            query = TrainRequest.model_validate_json(await request.body())
        except ValidationError as error:
            return JSONResponse({"error": ask.first_error(error)}, status_code=400)
        except TooLargeError:
            return JSONResponse({"error": "the request is too long."}, status_code=413)
        jobs: Jobs = request.app.state.jobs
        return StreamingResponse(_frames(jobs, trainings, query), media_type="text/event-stream")

    return train


async def _frames(jobs: Jobs, trainings: Trainings, query: TrainRequest) -> AsyncIterator[bytes]:
    """Yield a frame after every few updates; whoever stops listening stops the training."""
    clock = Deadline.after(STREAM)
    try:
        training = await _job(jobs, query.client, lambda job: trainings.begin(query))
        turn, first = training.turn, True
        while not clock.passed():
            begun = asyncio.get_running_loop().time()
            work = partial(_frame, trainings, query, training, turn, first)
            content = await _job(jobs, query.client, lambda job, work=work: work())
            if content is None:
                yield _event({"overtaken": True})
                return
            yield _event({"frame": base64.b64encode(content).decode()})
            if training.run.step >= query.until:
                break
            first = False
            spent = asyncio.get_running_loop().time() - begun
            await asyncio.sleep(max(0.0, BETWEEN - spent))
        yield _event({"finished": training.run.step >= query.until})
    except OvertakenError:
        yield _event({"overtaken": True})
    except (TimeSpentError, BudgetError):
        yield _event({"error": "a frame takes too long: choose a smaller network."})
    except (ValueError, TypeError) as error:
        yield _event({"error": " ".join(str(error).split())})
    except Exception as error:  # a crash of one does not end the server
        traceback.print_exception(error, file=sys.stderr)
        yield _event({"error": f"unexpected {type(error).__name__}: see the terminal."})


def _event(facts: Facts) -> bytes:
    return f"data: {json.dumps(facts, separators=(',', ':'))}\n\n".encode()


async def _job(jobs: Jobs, client: str, steps: Any) -> Any:
    """Return what a job returns; the job is stopped where nobody waits for it any more."""
    job, future = jobs.start(client, "toy", steps, seconds=FRAME, thread="lab")
    try:
        return await asyncio.wrap_future(future)
    finally:
        job.stop()


def _frame(
    trainings: Trainings,
    query: TrainRequest,
    training: Training,
    turn: int,
    is_first: bool,
) -> Generator[None, None, bytes | None]:
    """Return the next frame in bytes; the first shows what is there, and the training points."""
    if is_first:
        query = query.model_copy(update={"until": training.run.step})
    frame = yield from trainings.go_on(query, training, turn)
    if frame is None:
        return None
    facts, arrays = frame
    if is_first:
        facts |= _facts_of(training)
        arrays |= _arrays_of(training.run.points)
    return packed(facts, arrays)


def _facts_of(training: Training) -> Facts:
    points = training.run.points
    (u, v), half = training.run.window
    return {
        "names": list(points.names),
        "window": {"centre": [u, v], "half": list(half)},
        "parameters": sum(p.numel() for p in training.run.model.parameters()),
    }


def _arrays_of(points: ToyPoints) -> dict[str, Array]:
    """Return the training points, as far as they are drawn."""
    labels = points.y.flatten().double().numpy()
    return {
        "pointU": points.x[:, 0].numpy(),
        "pointV": points.x[:, 1].numpy(),
        "pointLabel": labels.astype(np.float32),
    }
