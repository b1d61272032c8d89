"""Who may ask, and what nobody can ask for."""

import asyncio
import random

import pytest
from starlette.testclient import TestClient

from explorer.conftest import TOKEN
from inscape.explorer.app import explorer_app
from inscape.explorer.guard import BODY


@pytest.fixture
def stranger(session):
    return TestClient(explorer_app(session, token=TOKEN, hosts=frozenset({"testserver"})))


def test_the_page_needs_the_token(stranger):
    assert stranger.get("/").status_code == 403
    assert stranger.get("/?token=wrong").status_code == 403
    assert stranger.get(f"/?token={TOKEN}&token={TOKEN}").status_code == 403
    page = stranger.get(f"/?token={TOKEN}")
    assert page.status_code == 200
    assert "/static/main.js" in page.text


@pytest.mark.parametrize("path", ["/api/session", "/api/progress", "/api/cells", "/none"])
def test_nothing_is_answered_without_the_token(stranger, path):
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "the token is missing or wrong" in answer.text


@pytest.mark.parametrize("host", ["evil.example", "testserver.evil.example", "testserver:1", ""])
def test_a_foreign_host_is_refused(client, host):
    assert client.get("/api/session", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://testserver", ""])
def test_a_foreign_origin_is_refused(client, origin):
    assert client.get("/api/session", headers={"origin": origin}).status_code == 403
    assert client.get("/api/session", headers={"origin": "http://testserver"}).is_success


def test_a_request_from_another_site_is_refused(client):
    assert client.get("/api/session", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/api/session", headers={"sec-fetch-site": "same-origin"}).is_success


def test_every_answer_keeps_to_itself(client, stranger):
    for answer in (client.get("/api/session"), stranger.get("/"), stranger.get("/static/main.js")):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    [
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/app.py",
        "/etc/passwd",
        "vendor/../../app.py",
        "main.js%00",
    ],
)
def test_no_path_leaves_the_files_of_the_page(client, path):
    assert client.get(f"/static/{path}").status_code in (403, 404)


def test_what_is_too_long_is_refused(client):
    assert client.post("/api/cells", content=b"x" * (BODY + 1)).status_code == 413

    def parts():
        for _ in range(20):
            yield b" " * 8192

    assert client.post("/api/cells", content=parts()).status_code == 413  # without a length
    assert client.get("/api/session?" + "x" * 5000).status_code == 414
    assert client.request("DELETE", "/api/session").status_code == 405


BAD = {
    "centre": [["a", 1], [1], [float("1e300"), 0], None],
    "half": [[0, 1], [-1, 1], [1e-300, 1], [1e13, 1]],
    "regions": [0, 10**9, "x"],
    "seconds": [0, -1, 61],
    "rows": [[0, 1, 2, 3], [-1], [2**40]],
    "kind": ["whole plane", 3],
    "client": ["", "x" * 40, "../x"],
    "network": ["third"],
    "step": [-2],
    "further": [1],
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_out_of_bounds_is_refused_in_a_sentence(client, name):
    good = {"centre": [0, 0], "half": [1, 1]}
    assert client.post("/api/cells", json=good).is_success
    for value in BAD[name]:
        answer = client.post("/api/cells", json=good | {name: value})
        assert answer.status_code == 400, value
        error = answer.json()["error"]
        assert name in error
        assert error.endswith(".")


def test_expected_errors_are_sentences(client):
    refused = client.post("/api/plane", json={"kind": "whole"})
    assert refused.status_code == 400
    assert "the plane must be one of examples, components" in refused.json()["error"]
    refused = client.post("/api/plane", json={"kind": "examples", "rows": [0, 1, 10**6]})
    assert "examples must be numbers from 0 to 11, found 1000000" in refused.json()["error"]
    refused = client.post("/api/raster", json={
        "centre": [0, 0], "half": [1, 1], "width": 4, "height": 4, "step": 3})  # fmt: skip
    assert "step must be one of the 0 recorded steps, found 3" in refused.json()["error"]
    refused = client.post("/api/cell", json={"view": 10**9, "cell": 0})
    assert refused.status_code == 410
    assert "this window is forgotten by now" in refused.json()["error"]


def test_a_window_of_one_client_is_not_that_of_another(client, ask):
    facts, _ = ask("cells", centre=[0, 0], half=[1, 1], client="a")
    assert client.post(
        "/api/cell", json={"view": facts["view"], "cell": 0, "client": "a"}
    ).is_success
    other = client.post("/api/cell", json={"view": facts["view"], "cell": 0, "client": "b"})
    assert other.status_code == 410


def test_a_crash_of_one_request_does_not_end_the_server(session, monkeypatch, capsys):
    client = TestClient(
        explorer_app(session, token=TOKEN, hosts=frozenset({"testserver"})),
        headers={"x-inscape-token": TOKEN},
    )

    def crash(asked):
        yield
        raise RuntimeError("inside")

    monkeypatch.setattr(session, "plane", crash)
    answer = client.post("/api/plane", json={})
    assert answer.status_code == 500
    assert answer.json()["error"] == "unexpected RuntimeError: see the terminal."
    assert "inside" in capsys.readouterr().err
    assert client.get("/api/session").is_success


def test_a_web_socket_is_closed(session):
    app = explorer_app(session, token=TOKEN, hosts=frozenset({"testserver"}))
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(app({"type": "websocket", "headers": []}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_hostile_sequence_of_requests_ends_in_answers(client):
    """Random requests, half of them broken: every one is answered, none by a crash."""
    draw = random.Random(0)
    names = ["plane", "raster", "cells", "cell", "colours", "point", "segment", "examples"]
    numbers = [0, 1, -1, 0.5, 1e-30, -1e9, 1e300, 2**63, "1", None, True, [], {}, "NaN"]

    def pair():
        return [draw.choice(numbers[:6]), draw.choice(numbers[:6])]

    for _ in range(250):
        fields = {
            "centre": pair(), "half": [abs(x) or 1 for x in pair()], "at": pair(), "begin": pair(),
            "end": pair(), "width": draw.choice([1, 5, 40]), "height": draw.choice([1, 7]),
            "view": draw.randrange(50), "cell": draw.randrange(50), "by": "pattern",
            "rows": [draw.randrange(14) for _ in range(3)], "seed": draw.randrange(9),
            "kind": draw.choice(["examples", "components", "gradient", "random", "whole"]),
            "regions": 2000, "seconds": 1,
        }  # fmt: skip
        name = draw.choice(names)
        wanted = {
            "plane": ("kind", "rows", "seed"),
            "raster": ("kind", "rows", "seed", "centre", "half", "width", "height"),
            "cells": ("kind", "rows", "seed", "centre", "half", "regions", "seconds"),
            "cell": ("view", "cell"), "colours": ("view", "by"),
            "point": ("kind", "rows", "at"), "segment": ("kind", "rows", "begin", "end"),
            "examples": ("rows",),
        }[name]  # fmt: skip
        asked = {key: fields[key] for key in wanted}
        if draw.random() < 0.3:
            asked[draw.choice([*asked, "more"])] = draw.choice(numbers)
        answer = client.post(f"/api/{name}", json=asked)
        assert answer.status_code in (200, 400, 410, 503), (name, asked, answer.text)
    assert client.get("/api/session").is_success
