"""A small explored network, and the application that serves it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from cases import dense, points
from inscape.explorer.app import explorer_app
from inscape.explorer.session import Session
from inscape.explorer.subject import ExploredSubject, explored_subject
from inscape.explorer.wire import unpacked
from inscape.loaders import open_data
from inscape.report import prepare
from inscape.training import fit

TOKEN = "secret-of-the-tests"
Ask = Callable[..., tuple[dict[str, Any], dict[str, np.ndarray]]]


def explored_case(*widths: int, n: int = 12, other: bool = False, **more: Any) -> ExploredSubject:
    """Return a small dense classifier on Gaussian points."""
    model = dense(*widths, seed=3, **more)
    x = points(n, widths[0])
    with torch.no_grad():  # so that every class is the answer somewhere
        model[-1].bias -= model(x).mean(0)
    y = (torch.arange(n) % max(2, widths[-1])).long()
    data = open_data((x, y), labels="classes", dtype="float64")
    prepared = prepare(model, data, only="plane_regions", explain=(), page=False)
    second = (dense(*widths, seed=4, **more), "another", "") if other else None
    return explored_subject(prepared, code="", other=second)


def trained_case(other: bool = False) -> ExploredSubject:
    """Return a network 4-8-3 with its recorded training of six steps."""
    x = points(24, 4)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    run = fit(
        dense(4, 8, 3, seed=3), x, y, loss="cross_entropy", lr=0.3, epochs=6, record=1,
        progress=False,
    )  # fmt: skip
    data = open_data((x, y), labels="classes", dtype="float64")
    prepared = prepare(run.model, data, only="plane_regions", explain=(), page=False)
    second = (dense(4, 8, 3, seed=4), "another", "") if other else None
    return explored_subject(prepared, code="", trajectory=run.trajectory, other=second)


@pytest.fixture(scope="session")
def subject() -> ExploredSubject:
    """Return a network 4-8-8-3 with three classes, and another beside it."""
    return explored_case(4, 8, 8, 3, other=True)


@pytest.fixture(scope="session")
def session(subject: ExploredSubject) -> Session:
    """Return the session of that network."""
    return Session(subject)


@pytest.fixture(scope="session")
def trained() -> Session:
    """Return the session of a network 4-8-3 with its recorded training of six steps."""
    return Session(trained_case())


@pytest.fixture(scope="session")
def client(session: Session) -> TestClient:
    """Return a client that knows the token."""
    app = explorer_app(session, token=TOKEN, hosts=frozenset({"testserver"}))
    return TestClient(app, headers={"x-inscape-token": TOKEN})


@pytest.fixture(scope="session")
def ask(client: TestClient) -> Ask:
    """Return a function that asks and unpacks the answer."""

    def asked(name: str, **fields: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        answer = client.post(f"/api/{name}", json=fields)
        assert answer.status_code == 200, answer.text
        return unpacked(answer.content)

    return asked
