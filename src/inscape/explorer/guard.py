"""Guard: who may ask. Every request passes here before anything is read or computed."""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Header that carries the token of a request.
TOKEN = "x-inscape-token"
#: Bytes of a request's body, at most.
BODY = 64 * 1024
#: Characters of an address, at most.
ADDRESS = 4096

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class TooLargeError(Exception):
    """The body of a request is longer than any request needs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Guard:
    """Lets through what comes from the page itself: its Host, its Origin and the token.

    Files of the page (under ``/static/``) hold nothing of the user's, and need no token.
    """

    app: App
    token: str
    hosts: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks WebSocket
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self.refusal(scope)
        if refused is not None:
            await _answer(send, *refused)
            return
        await self.app(scope, _bounded(receive), _protected(send))

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return status and reason if a request is refused."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host = headers.get("host", [])
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return 421, "this server answers only at the address that it printed."
        own = {f"http://{name}" for name in self.hosts}
        if any(origin.lower() not in own for origin in headers.get("origin", [])):
            return 403, "requests from other pages are refused."
        if headers.get("sec-fetch-site", ["none"])[0] not in ("same-origin", "none"):
            return 403, "requests from other pages are refused."
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > ADDRESS:
            return 414, f"an address has at most {ADDRESS} characters."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "only GET and POST are answered."
        length = headers.get("content-length", ["0"])[0]
        if not (length.isascii() and length.isdigit()) or int(length[:12]) > BODY:
            return 413, f"a request has at most {BODY} bytes."
        if not scope["path"].startswith("/static/") and not self._knows_token(scope, headers):
            return 403, "the token is missing or wrong: open the address that inscape printed."
        return None

    def _knows_token(self, scope: Scope, headers: dict[str, list[str]]) -> bool:
        tokens = headers.get(TOKEN, [])
        if scope["path"] == "/":
            query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=20)
            tokens = query.get("token", [])
        return len(tokens) == 1 and hmac.compare_digest(tokens[0].encode(), self.token.encode())


def _bounded(receive: Receive) -> Receive:
    """Return a body of which no more is read than any request needs."""
    read = 0

    async def bounded() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > BODY:
            raise TooLargeError
        return message

    return bounded


def _protected(send: Send) -> Send:
    """Return a sender that adds the headers which keep the page to itself."""

    async def protected(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await send(message)

    return protected


async def _answer(send: Send, status: int, text: str) -> None:
    body = text.encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
