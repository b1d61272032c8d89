"""Serve the explorer on this machine."""

import secrets
import socket
from collections.abc import Callable

from inscape.explorer.session import Session
from inscape.runtime.extras import need

WHY = "the explorer in a browser"
EXTRA = "web"


def need_web() -> None:
    """Refuse to start without the packages of the extra."""
    need("starlette", extra=EXTRA, why=WHY)
    need("uvicorn", extra=EXTRA, why=WHY)


def hosts_of(host: str, port: int) -> frozenset[str]:
    """Return the values of the Host header under which the server is reached.

    >>> sorted(hosts_of("127.0.0.1", 8000))
    ['127.0.0.1:8000', '[::1]:8000', 'localhost:8000']
    """
    names = {"127.0.0.1", "localhost", "[::1]"} if is_loopback(host) else {host.lower()}
    return frozenset(f"{name}:{port}" for name in names)


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, which nobody else can reach."""
    return host in ("127.0.0.1", "localhost", "::1")


def serve(
    session: Session, *, host: str, port: int, ready: Callable[[str], None], token: str = ""
) -> None:
    """Serve a session until it is interrupted; ``ready`` is called with the address of the page.

    Args:
        session: Who answers.
        host: Where to listen.
        port: Port; 0 chooses a free one.
        ready: Called once the port is open.
        token: Secret in the address; a new one by default.
    """
    need_web()
    import uvicorn

    from inscape.explorer.app import explorer_app

    token = token or secrets.token_urlsafe(18)
    listening = _listening(host, port)
    port = listening.getsockname()[1]
    app = explorer_app(session, token=token, hosts=hosts_of(host, port))
    shown = f"[{host}]" if ":" in host else host
    ready(f"http://{shown}:{port}/?token={token}")
    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, date_header=False,
        lifespan="off", ws="none", timeout_keep_alive=30, limit_concurrency=64,
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        listening.close()


def _listening(host: str, port: int) -> socket.socket:
    """Return an open port, or say that it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ValueError(
            f"--host and --port must name a free port of this machine, found {host}:{port} "
            f"({(error.strerror or 'unknown reason').lower()}): choose another --port."
        ) from error
    return listening
