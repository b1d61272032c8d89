"""A soak: requests to every route for minutes, and how much memory the server holds meanwhile.

    PYTHONPATH=tests python -m explorer.soak --minutes 60

The requests are those of the fuzzer, server and client in one process. Memory is what the system
says is resident; growth is fitted over the second half, when caches are full.
"""

import argparse
import threading
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

from explorer.conftest import TOKEN, explored_case
from explorer.fuzzer import Fuzzer
from inscape.explorer.app import explorer_app
from inscape.explorer.session import Session
from inscape.report.look.watch import resident
from inscape.runtime.deadline import Deadline

#: Requests between two looks at the memory, and the growth that is taken for a leak.
BETWEEN, LEAK = 100, 10.0


def main() -> None:
    """Soak and print; the exit code is 1 if anything was wrong or memory grows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    session = Session(explored_case(4, 5, 5, 3, other=True), results=Path("results"))
    app = explorer_app(session, token=TOKEN, hosts=frozenset({"testserver"}))
    client = TestClient(app, headers={"x-inscape-token": TOKEN})
    fuzzer = Fuzzer(client, session, arguments.seed)
    clock, sizes = Deadline.after(60 * arguments.minutes), []
    while not clock.passed():
        fuzzer.run(BETWEEN)
        sizes.append(resident() / 2**20)
        print(f"{len(sizes) * BETWEEN} requests: {sizes[-1]:.0f} MB", flush=True)  # noqa: T201
    late = sizes[len(sizes) // 2 :]
    slope = float(np.polyfit(np.arange(len(late)) * BETWEEN / 1000, late, 1)[0])
    threads = threading.active_count()
    print(f"{slope:+.2f} MB per 1000 requests in the second half, {threads} threads")  # noqa: T201
    for fault in fuzzer.faults:
        print("FAULT", fault)  # noqa: T201
    raise SystemExit(bool(fuzzer.faults) or slope > LEAK)


if __name__ == "__main__":
    main()
