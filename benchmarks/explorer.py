"""How fast the explorer answers, beside the work that an answer cannot do without.

    python benchmarks/explorer.py              # everything
    python benchmarks/explorer.py --only server

The server part asks the application itself, as a page does: request, job, arrays, compression.
Processor time is compared, not time by the clock, so that a busy machine does not decide; each bar
is a ratio: the time of the answer over the time that the bar allows for it.

Bars: the first raster of a 784-128x3-10 slice with at least 20,000 regions in at most twice the
forward pass of its pixels plus 100 ms; all its exact regions in at most 1.5 times ``plane_regions``
plus 300 ms; a zoom step at 100,000 regions in at most 1.3 times ``plane_regions`` of that window;
at most 24 bytes a vertex on the wire; a place picked in under 5 ms; the page itself under 250 kB.

The browser part needs Playwright and Chromium, and is left out with a word where they are not. It
draws by software (SwiftShader), on the processor: a graphics card is many times faster.
"""

import argparse
import gzip
import shutil
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import uvicorn
from bars import bar
from starlette.testclient import TestClient
from torch import Tensor, nn

from inscape.explorer.app import explorer_app
from inscape.explorer.page_files import page_files
from inscape.explorer.requests import PlaneRequest
from inscape.explorer.serve import hosts_of
from inscape.explorer.session import Session
from inscape.explorer.subject import explored_subject
from inscape.explorer.wire import unpacked
from inscape.loaders import open_data
from inscape.regions import Frame, plane_regions
from inscape.report import prepare

TOKEN, ROUNDS = "benchmark", 5
#: Pixels of the first raster, as the page asks for them.
PIXELS = 200
#: Arrays that are geometry: the others are colours.
GEOMETRY = ("vertices", "corners", "counts")


def network(*hidden: int, spread: float) -> tuple[nn.Sequential, Tensor, Tensor]:
    """Return a network 784-...-10 as initialised, and three groups of points far apart."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    inputs = 784
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    x = spread * torch.randn(60, 784)
    return nn.Sequential(*layers, nn.Linear(inputs, 10)).eval(), x, torch.arange(60) % 10


def session_of(model: nn.Module, x: Tensor, y: Tensor) -> Session:
    """Return a session about a network."""
    data = open_data((x, y), labels="classes")
    prepared = prepare(model, data, only="plane_regions", explain=(), page=False)
    return Session(explored_subject(prepared, code=""))


def client_of(session: Session) -> TestClient:
    """Return a client of the application, without a network between them."""
    app = explorer_app(session, token=TOKEN, hosts=frozenset({"testserver"}))
    return TestClient(app, headers={"x-inscape-token": TOKEN})


def spent(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the median processor time of a work, after one that is not counted."""
    work()
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def asked(client: TestClient, name: str, **fields: Any) -> bytes:
    """Return an answer; it is on the wire as a browser has it, compressed."""
    answer = client.post(f"/api/{name}", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.content


def window_of(client: TestClient, factor: float = 1.0) -> dict[str, Any]:
    """Return the first window of the plane, made larger."""
    facts, _ = unpacked(asked(client, "plane"))
    return {"centre": facts["centre"], "half": [factor * half for half in facts["half"]]}


def cut_of(session: Session, window: dict[str, Any]) -> Callable[[], Any]:
    """Return the instrument's own call for a window, in the same coordinates."""
    plane = session.plane_of(PlaneRequest())
    centre = torch.tensor([window["centre"]], dtype=torch.float64)
    frame = Frame(origin=plane.frame.at(centre)[0], axes=plane.frame.axes)
    a, b = window["half"]
    domain = torch.tensor([[-a, -b], [a, -b], [a, b], [-a, b]], dtype=torch.float64)
    subject = session.subject
    return lambda: plane_regions(subject.subject.model, subject.x[:3], plane=frame, domain=domain)


def server() -> None:
    """Measure the answers to a raster, to all regions, and to a step of the zoom."""
    model, x, y = network(128, 128, 128, spread=10.0)
    session = session_of(model, x, y)
    client = client_of(session)
    window = window_of(client)
    facts, arrays = unpacked(asked(client, "cells", **window))
    print(f"784-128x3-10: {facts['cells']} regions in the first window, exact: {facts['complete']}")
    assert facts["cells"] >= 20_000
    pixels = torch.randn(PIXELS**2, 784)
    with torch.no_grad():
        forward = spent(lambda: [model(part) for part in torch.split(pixels, 1024)])
    size = {"width": PIXELS, "height": PIXELS, "seconds": 10}
    raster = spent(lambda: asked(client, "raster", **window, **size))
    print(f"raster {raster:.3f} s, forward pass of its pixels {forward:.3f} s of processor time")
    bar("first raster over twice its forward pass plus 100 ms", raster / (2 * forward + 0.1),
        at_most=1)  # fmt: skip
    cut = spent(cut_of(session, window))
    cells = spent(lambda: asked(client, "cells", **window))
    print(f"cells {cells:.3f} s, plane_regions {cut:.3f} s of processor time")
    bar("all exact regions over 1.5 x plane_regions plus 300 ms", cells / (1.5 * cut + 0.3),
        at_most=1)  # fmt: skip
    wire(arrays)
    zoom()


def wire(arrays: dict[str, Any]) -> None:
    """Report the bytes that a vertex takes on the wire, geometry and all, compressed or not."""
    vertices = len(arrays["vertices"]) / 2
    geometry = b"".join(arrays[name].tobytes() for name in GEOMETRY)
    whole = b"".join(array.tobytes() for array in arrays.values())
    for name, data in (("geometry", geometry), ("everything", whole)):
        packed = len(gzip.compress(data, 1)) / vertices
        print(f"{name}: {len(data) / vertices:.1f} bytes a vertex, {packed:.1f} on the wire")
    bar("bytes a vertex on the wire, geometry", len(gzip.compress(geometry, 1)) / vertices,
        at_most=24, unit="bytes")  # fmt: skip


def zoom() -> None:
    """Measure a step of the zoom at about 100,000 regions."""
    session = session_of(*network(320, 320, 320, spread=10.0))
    client = client_of(session)
    window = window_of(client)
    facts, _ = unpacked(asked(client, "cells", **window))
    print(f"784-320x3-10: {facts['cells']} regions in the first window")
    step = {"centre": window["centre"], "half": [half * 0.95 for half in window["half"]]}
    cut, answer = cut_of(session, step), lambda: asked(client, "cells", **step)
    taken = spent(answer, 3) / spent(cut, 3)
    bar(f"a zoom step at {facts['cells']} regions over plane_regions", taken, at_most=1.3)


def page() -> None:
    """Report what the page itself weighs, before compression."""
    size = sum(len(body) for name, (body, _) in page_files().items() if not name.endswith("txt"))
    bar("the page itself", size / 1000, at_most=250, unit="kB")


@contextmanager
def served(session: Session) -> Iterator[str]:
    """Serve a session on this machine within the block."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    app = explorer_app(session, token=TOKEN, hosts=hosts_of("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none")
    run = uvicorn.Server(config)
    thread = threading.Thread(target=run.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/?token={TOKEN}"
    finally:
        run.should_exit = True
        thread.join(20)
        listening.close()


#: Picks at places all over the canvas, and draws frames, each waited for by reading a pixel.
PICKS = """() => { const { renderer, size } = globalThis.explorer; const times = [];
  for (let k = 0; k < 60; k += 1) { const begin = performance.now();
    renderer.pick(size.width * ((k * 0.618) % 1), size.height * ((k * 0.414) % 1));
    times.push(performance.now() - begin); }
  return times.slice(10).sort((a, b) => a - b)[25]; }"""
FRAMES = """() => { const pane = globalThis.explorer; const times = [];
  for (let k = 0; k < 12; k += 1) { pane.window = { ...pane.window, h: pane.window.h * 0.999 };
    const begin = performance.now(); pane.drawNow(); pane.renderer.pick(5, 5);
    times.push(performance.now() - begin); }
  return times.sort((a, b) => a - b)[6]; }"""


def browser() -> None:
    """Measure picking and frames in Chromium with software GL."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("no Playwright or no Chromium: picking and frames are not measured")
        return
    arguments = ["--no-sandbox", "--use-angle=swiftshader", "--headless"]
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=arguments)
        for hidden in ((128, 128, 128), (320, 320, 320)):
            with served(session_of(*network(*hidden, spread=10.0))) as address:
                opened = started.new_page(viewport={"width": 1280, "height": 900})
                opened.set_default_timeout(240_000)
                opened.goto(address)
                status = opened.locator("#status", has_text="linear regions")
                status.wait_for()
                count = status.inner_text().split(" ")[0]
                picking, frame = opened.evaluate(PICKS), opened.evaluate(FRAMES)
                opened.close()
            name = f"at {count} polygons, software GL"
            bar(f"a place picked {name}, by the clock", picking, at_most=5, unit="ms")
            bar(f"a frame {name}, by the clock", frame, unit="ms")
        started.close()


PARTS = {"server": server, "page": page, "browser": browser}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    torch.set_num_threads(1)
    for name in parser.parse_args().only:
        PARTS[name]()


if __name__ == "__main__":
    main()
