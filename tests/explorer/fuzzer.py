"""A fuzzer of all routes of the explorer: requests are drawn from what each route accepts.

    PYTHONPATH=tests python -m explorer.fuzzer --requests 5000 --seed 1

Every question of every view is found by itself, so that a new one is fuzzed from its first day.
About half of the requests keep to the bounds (so that something is computed), the others break
one thing: a value, a name, the body, the path, the method, or who asks.
"""

import argparse
import json
import random
import re
import string
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from explorer.conftest import TOKEN, explored_case
from inscape.explorer.app import explorer_app
from inscape.explorer.routes import VIEWS
from inscape.explorer.session import Session

#: What an answer may be; 500 and no answer at all are faults.
ALLOWED = {200, 400, 403, 404, 405, 409, 410, 413, 414, 421, 503}
#: Requests that keep to the bounds keep to these as well, so that each is soon answered.
CAPS = {
    "regions": 3000, "seconds": 1, "width": 32, "height": 32, "networks": 3, "depth": 2,
    "until": 12, "interval": 6, "n": 40, "hidden": 6, "steps": 2, "pixels": 90, "rows": 9,
    "view": 40, "cell": 30, "step": 6, "batch": 20, "lr": 0.1, "scale": 4, "bits": 4,
}  # fmt: skip
#: A step and examples that there are, and the planes of the network that is fuzzed.
PLAIN, KINDS = {"step": -1, "rows": [0, 1, 2]}, ("examples", "components", "gradient", "random")
#: Strings for fields with a pattern: ``{pattern: choices}``.
WORDS = {
    r"^[a-z0-9]{1,32}$": ("page", "a", "b7"),
    r"^[01]{2,32}$": ("01", "0110", "00010111"),
    r"^[A-Za-z0-9][A-Za-z0-9.\-]*$": ("klindt", "volhejn", "table-1", "figure-12", "nothing"),
}
#: What is never right.
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 10**400, 1e308, -1e308, 1e-320, "NaN", "", "../../etc/passwd", "\0",
    "\ud800", "a" * 3000, [], [[]] * 50, {}, {"a": {"b": []}}, [1, 2, 3], "0", "<script>", "%2e%2e",
)  # fmt: skip
#: Whoever asks wrongly: headers beside the right ones, and the status that each must have.
STRANGERS = (
    ({"host": "evil.example"}, 421),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"x-inscape-token": "wrong"}, 403),
    ({"x-inscape-token": ""}, 403),
)
PATHS = (
    "/", "/static/main.js", "/static/views/toy.js", "/static/../app.py", "/static/%2e%2e/app.py",
    "/static//etc/passwd", "/api/session", "/api/progress", "/api/progress?client=a", "/api/none",
    "/api/toy", "/docs", "/openapi.json", "/%00", "/static/vendor", "/api//cells",
)  # fmt: skip
#: Nothing of the machine may be told.
SECRETS = re.compile(r"Traceback|File \"|/(home|root|usr|work|tmp)/|site-packages")


class Fuzzer:
    """Draws requests, sends them, and keeps what went wrong."""

    def __init__(self, client: TestClient, session: Session, seed: int) -> None:
        self.client = client
        self.draw = random.Random(seed)
        self.models = {
            name: question.request.model_json_schema()
            for view in (make(session) for make in VIEWS)
            for name, question in view.questions.items()
        }
        from inscape.explorer.toy.trainings import TrainRequest

        self.models["toy/train"] = TrainRequest.model_json_schema()
        self.seen: Counter[tuple[str, int]] = Counter()
        self.faults: list[str] = []

    def run(self, count: int) -> None:
        """Send so many requests."""
        for _ in range(count):
            self._one()

    def _one(self) -> None:
        kind = self.draw.random()
        if kind < 0.06:
            self._elsewhere()
            return
        name = self.draw.choice([*self.models])
        asked = self._value(self.models[name], self.models[name], "")
        if self.draw.random() < 0.9:  # of a plane and a step that there are
            asked |= {key: PLAIN[key] for key in PLAIN if key in asked}
            if "kind" in asked:
                asked["kind"] = "whole" if name.startswith("toy/") else self.draw.choice(KINDS)
        headers, wanted = {}, None
        if kind < 0.12:
            headers, wanted = self.draw.choice(STRANGERS)
        elif kind < 0.4:
            self._break(asked)
        content: Any = _dumped(asked)
        if 0.4 < kind < 0.46:
            content = self.draw.choice(
                (b"", b"{", b"\xff\xfe", b"[" * 5000, b"null", b'"x"', content[: len(content) // 2],
                 b" " * 70_000, b"{}" * 10)
            )  # fmt: skip
        self._send("POST", f"/api/{name}", content, headers, wanted)

    def _elsewhere(self) -> None:
        method = self.draw.choice(("GET", "GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"))
        path = self.draw.choice(PATHS)
        if self.draw.random() < 0.2:
            path = "/" + "".join(self.draw.choices(string.printable[:90], k=12))
        if self.draw.random() < 0.1:
            path += "?" + "x=" * 3000
        self._send(method, path, b"", {}, None)

    def _send(
        self, method: str, path: str, content: bytes, headers: Mapping[str, str], wanted: int | None
    ) -> None:
        told = f"{method} {path[:60]} {content[:300]!r} {dict(headers)}"
        try:
            answer = self.client.request(method, path, content=content, headers=headers)
        except Exception as error:  # what the server raises, or an address that httpx refuses
            if type(error).__name__ not in ("InvalidURL", "LocalProtocolError"):
                self.faults.append(f"{told}: raised {type(error).__name__}: {error}")
            return
        route = path.partition("?")[0] if path.startswith("/api/") else "other"
        self.seen[route, answer.status_code] += 1
        self.faults += [f"{told}: {fault}" for fault in _faults(answer, wanted)]

    # ----- values

    def _break(self, asked: Any) -> None:
        """Spoil one value somewhere in a request, leave it out, or add another."""
        if not isinstance(asked, dict):
            return
        choice = self.draw.random()
        if choice < 0.1:
            asked[self.draw.choice(("more", "__class__", "constructor", ""))] = 1
        elif asked:
            name = self.draw.choice([*asked])
            if isinstance(asked[name], dict) and asked[name] and self.draw.random() < 0.8:
                self._break(asked[name])
            elif choice < 0.2:
                del asked[name]
            else:
                asked[name] = self.draw.choice(HOSTILE)

    def _value(self, schema: Mapping[str, Any], root: Mapping[str, Any], name: str) -> Any:
        if "$ref" in schema:
            return self._value(root["$defs"][schema["$ref"].rpartition("/")[2]], root, name)
        if "anyOf" in schema:
            return self._value(self.draw.choice(schema["anyOf"]), root, name)
        if "enum" in schema:
            return self.draw.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        match schema.get("type"):
            case "object":
                required = schema.get("required", ())
                return {
                    key: self._value(part, root, key)
                    for key, part in schema.get("properties", {}).items()
                    if key in required or self.draw.random() < 0.5
                }
            case "array":
                return self._array(schema, root, name)
            case "integer":
                return self.draw.randint(*map(int, self._bounds(schema, name)))
            case "number":
                low, high = self._bounds(schema, name)
                return self.draw.choice((low, high, self.draw.uniform(low, high)))
            case "boolean":
                return self.draw.random() < 0.5
            case "string":
                return self.draw.choice(WORDS.get(schema.get("pattern", ""), ("x1 xor x2", "")))
        return None

    def _array(self, schema: Mapping[str, Any], root: Mapping[str, Any], name: str) -> list[Any]:
        if "prefixItems" in schema:
            return [self._value(part, root, name) for part in schema["prefixItems"]]
        least, most = schema.get("minItems", 0), min(schema.get("maxItems", 3), 4)
        count = self.draw.randint(least, max(least, most))
        return [self._value(schema["items"], root, name) for _ in range(count)]

    def _bounds(self, schema: Mapping[str, Any], name: str) -> tuple[float, float]:
        low = schema.get("minimum", schema.get("exclusiveMinimum", -9))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 9))
        low += 1e-6 if "exclusiveMinimum" in schema else 0
        high -= 1 if "exclusiveMaximum" in schema and schema.get("type") == "integer" else 0
        if name in ("centre", "half", "at", "begin", "end") and self.draw.random() < 0.9:
            return (1e-3, 3.0) if name == "half" else (-3.0, 3.0)
        high = min(high, CAPS.get(name, high))
        return low, max(low, high * (1 - 1e-9) if schema.get("type") == "number" else high)


def _dumped(asked: Any) -> bytes:
    return json.dumps(asked).encode("utf-8", "surrogatepass")


def _faults(answer: Any, wanted: int | None) -> list[str]:
    """Return what is wrong with an answer, as sentences."""
    faults = []
    if answer.status_code not in ALLOWED or (wanted is not None and answer.status_code != wanted):
        faults.append(f"answered {answer.status_code}, expected {wanted or 'another'}")
    if not answer.headers.get("content-security-policy", "").startswith("default-src 'none'"):
        faults.append("has no policy")
    if "access-control-allow-origin" in answer.headers:
        faults.append("is open to other origins")
    kind = answer.headers.get("content-type", "")
    if answer.status_code >= 400 and ("json" in kind or "text/plain" in kind):
        if SECRETS.search(answer.text):
            faults.append(f"tells of the machine: {answer.text[:200]}")
        if "json" in kind and not str(answer.json().get("error", "")).strip():
            faults.append("gives no reason")
    if "event-stream" in kind and "unexpected" in answer.text:
        faults.append(f"crashed in a stream: {answer.text[:200]}")
    return faults


def fuzzed(requests: int, seed: int, results: Path = Path("results")) -> Fuzzer:
    """Return a fuzzer that has sent so many requests to a small session."""
    session = Session(explored_case(4, 5, 5, 3, other=True), results=results)
    app = explorer_app(session, token=TOKEN, hosts=frozenset({"testserver"}))
    client = TestClient(app, headers={"x-inscape-token": TOKEN}, raise_server_exceptions=True)
    fuzzer = Fuzzer(client, session, seed)
    fuzzer.run(requests)
    if not client.get("/api/session").is_success:
        fuzzer.faults.append("the server did not answer after the last request")
    return fuzzer


def main() -> None:
    """Fuzz from the command line; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    fuzzer = fuzzed(arguments.requests, arguments.seed)
    for (route, status), count in sorted(fuzzer.seen.items()):
        print(f"{count:6} {status} {route}")  # noqa: T201
    for fault in fuzzer.faults:
        print("FAULT", fault)  # noqa: T201
    raise SystemExit(bool(fuzzer.faults))


if __name__ == "__main__":
    main()
