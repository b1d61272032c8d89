"""The page in a real browser: Chromium without a window, driven by Playwright.

Both are large, and no test environment must have them: ``.ci/browser`` installs them where it can,
elsewhere this file is skipped with a word. Ids and texts are asserted, never pixels.
"""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from explorer.conftest import TOKEN, trained_case
from inscape.explorer.app import explorer_app
from inscape.explorer.serve import hosts_of
from inscape.explorer.session import Session

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: the page is not driven"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
if CHROMIUM is None:
    pytest.skip("chromium is not installed: the page is not driven", allow_module_level=True)

#: Milliseconds that anything on the page may take, on a machine that is busy.
PATIENCE = 300_000
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Yield the address of a running server."""
    import socket

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    session = Session(trained_case(other=True), results=RESULTS)
    app = explorer_app(session, token=TOKEN, hosts=hosts_of("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="error", lifespan="off", ws="none",
                            timeout_graceful_shutdown=1)  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{port}/?token={TOKEN}"
    server.should_exit = True
    thread.join(30)
    listening.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Yield a browser."""
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--use-angle=swiftshader", "--headless"]
        started = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


def is_fault(said: Any) -> bool:
    """Tell whether a line of the console is an error; overtaken requests (409) are none."""
    return said.type == "error" and "status of 409" not in said.text


@pytest.fixture
def page(browser, address) -> Iterator[Any]:
    """Yield a page that fails the test if anything on it fails, or asks elsewhere."""
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    opened, wrong = context.new_page(), []
    context.set_default_timeout(PATIENCE)
    origin = address.partition("/?")[0]
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda said: wrong.append(said.text) if is_fault(said) else None)
    opened.on(
        "request",
        lambda asked: (
            None
            if asked.url.startswith((origin, "data:", "blob:"))
            else wrong.append(f"asked elsewhere: {asked.url}")
        ),
    )
    yield opened
    context.close()
    assert not wrong


def text_of(page, selector, contains=""):
    """Return the text of an element once it contains something."""
    element = page.locator(selector, has_text=contains) if contains else page.locator(selector)
    element.first.wait_for()
    return element.first.inner_text()


def test_the_slice_is_cut_hovered_zoomed_and_goes_back(page, address):
    page.goto(address)
    status = text_of(page, "#status", "linear regions")
    assert "exact." in status
    canvas = page.locator("#pane .overlay")
    canvas.hover(position={"x": 200, "y": 200})
    assert "in float64" in text_of(page, "#cell-error")
    canvas.press("+")
    page.wait_for_url("**h=*")
    page.locator("#home").click()
    assert text_of(page, "#status", status.split(" linear")[0])
    page.go_back()
    page.wait_for_url("**h=*")


def test_numbers_of_a_region_go_with_the_cut_that_they_are_of(page, address):
    page.goto(address)
    text_of(page, "#status", "linear regions")
    canvas = page.locator("#pane .overlay")
    canvas.hover(position={"x": 200, "y": 200})
    text_of(page, "#cell-area")
    page.locator("#plane").select_option("components")
    page.wait_for_url("**kind=components")
    page.locator("#cell").wait_for(state="detached")
    page.go_back()
    canvas.hover(position={"x": 210, "y": 200})
    area = text_of(page, "#cell-area")
    canvas.press("+")  # the same pointer is in another region, or the same one cut by the window
    page.wait_for_url("**h=*")
    page.wait_for_function("before => document.querySelector('#cell-area')?.innerText !== before",
                           arg=area)  # fmt: skip


def test_keys_alone_move_describe_and_go_home(page, address):
    page.goto(address)
    first = text_of(page, "#status", "linear regions")
    canvas = page.locator("#pane .overlay")
    canvas.focus()
    assert "Arrows move" in canvas.get_attribute("aria-label")
    for key in ("ArrowLeft", "ArrowUp", "+", "-"):
        canvas.press(key)
    page.wait_for_url("**u=*")
    canvas.press("Enter")
    page.wait_for_url("**at=*")
    assert text_of(page, "#point-facts")
    canvas.press("0")
    assert text_of(page, "#status", first.split(" linear")[0])
    unnamed = """[...document.querySelectorAll('button, select, input, [role=img]')]
      .filter((each) => !(each.innerText || each.ariaLabel || each.title || each.labels?.length
          || each.querySelector('[aria-label], [title]')))"""
    assert page.evaluate(f"{unnamed}.map((each) => each.outerHTML.slice(0, 90))") == []


def test_two_networks_are_cut_together_and_drawn(page, address):
    page.goto(f"{address}#tab=pair")
    assert "They disagree on" in text_of(page, "#status-both", "cells of both")
    page.locator("#pane-first .overlay").hover(position={"x": 90, "y": 90})
    assert "in this cell" in text_of(page, "#pointed-facts")
    with page.expect_download() as saved:
        page.locator("#pair-pdf").click()
    assert Path(saved.value.path()).read_bytes().startswith(b"%PDF")


def test_a_training_is_played_step_by_step(page, address):
    page.goto(f"{address}#tab=training&step=0")
    text_of(page, "#status", "exact.")
    assert text_of(page, "#step-text") == "step 0 of 6"
    page.locator("#step").press("ArrowRight")
    page.wait_for_url("**step=1")
    text_of(page, "#curves ~ p", "7 of 7 steps measured")
    page.locator("#play").click()
    page.wait_for_url("**step=6")
    page.locator("#play").click()


def test_one_file_opens_from_disk_and_asks_nobody(page, address, tmp_path, browser):
    page.goto(address)
    status = text_of(page, "#status", "linear regions")
    with page.expect_download() as saved:
        page.locator("#save-file").click()
    file = tmp_path / "slice.html"
    saved.value.save_as(file)
    assert file.stat().st_size < 5_000_000
    context = browser.new_context(viewport={"width": 1100, "height": 800}, offline=True)
    context.set_default_timeout(PATIENCE)
    opened, asked = context.new_page(), []
    opened.on("request", lambda each: asked.append(each.url))
    opened.goto(file.as_uri())
    assert text_of(opened, "#status", "linear regions").split(" ")[0] == status.split(" ")[0]
    opened.locator("#pane .overlay").hover(position={"x": 200, "y": 200})
    text_of(opened, "#cell-area")
    assert [each for each in asked if not each.startswith(("data:", "blob:"))] == [file.as_uri()]
    context.close()


def test_a_training_starts_stops_and_comes_back_from_its_address(page, address):
    page.goto(f"{address}#tab=toy&preset=xor-2&toy=seed:2")
    text_of(page, "#toy-status", "Update 0")
    assert "Two units are enough" in text_of(page, "#toy-sentence")
    page.locator("#toy-step").click()
    page.wait_for_url("**update=6")
    stepped = text_of(page, "#toy-status", "Update 6")
    assert "linear regions, exact" in stepped
    page.reload()
    assert text_of(page, "#toy-status", "Update 6:") == stepped  # the same loss, to the digit
    page.locator("#toy-hidden").fill("3-2")
    page.locator("#toy-hidden").press("Enter")
    assert "2-3-2-1" in text_of(page, "#toy-size", "2-3-2-1")
    assert "toy=" in page.url
    page.locator("#toy-reset").click()
    text_of(page, "#toy-status", "Update 0")


def test_points_are_set_by_hand_and_by_csv(page, address):
    page.goto(f"{address}#tab=toy&preset=xor-2")
    text_of(page, "#toy-status", "Update 0")
    page.locator("#toy-pane .overlay").click(position={"x": 30, "y": 40})
    page.wait_for_url("**own=*")
    assert len(page.url.partition("own=")[2].partition("&")[0].split("_")) == 15
    page.go_back()
    page.wait_for_url(lambda url: "own=" not in url)
    page.go_forward()
    page.wait_for_url("**own=*")
    rows = "\n".join(f"{k},{k * k % 7},{'ab'[k % 2]}" for k in range(12))
    content = {"name": "mine.csv", "mimeType": "text/csv", "buffer": rows.encode()}
    page.locator("#toy-file").set_input_files(content)
    assert "12 points from mine.csv" in text_of(page, "#toy-said", "12 points")


def test_a_truth_table_is_clicked_and_written(page, address):
    page.goto(f"{address}#tab=boolean")
    assert text_of(page, "#boolean-number", "6 of 2")
    page.locator("#truth button").nth(3).click()
    assert text_of(page, "#boolean-number", "7 of 2 inputs")
    assert "1, along" in text_of(page, "#boolean-swaps", "1, along")
    page.locator("#boolean-formula").fill("x1 xor x2 xor x3")
    page.locator("#boolean-formula").press("Enter")
    assert "105 of 3" in text_of(page, "#boolean-number", "105")
    assert "right at all inputs" in text_of(page, "#boolean-built")
    page.locator("#boolean-train").click()
    assert page.locator("#boolean-trials tbody tr").first.wait_for() is None


def test_a_paper_shows_its_figure_from_records(page, address):
    page.goto(f"{address}#tab=papers&paper=klindt&item=figure-12")
    assert "tanh network" in text_of(page, "#item-title", "tanh")
    assert "scale paper" in text_of(page, "#item-state")
    figure = page.locator("#item-figure")
    figure.wait_for()
    assert figure.get_attribute("src").startswith("blob:")
    assert (
        figure.evaluate("async (image) => { await image.decode(); return image.naturalWidth; }")
        > 100
    )
    page.locator("#items button", has_text="Table 1").first.click()
    assert "item=table-1" in page.url


@pytest.mark.parametrize("tab", ["slice", "training", "pair", "toy", "boolean", "papers"])
def test_nothing_is_wider_than_a_phone(page, address, tab):
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{address}#tab={tab}")
    text_of(page, "#title")
    page.wait_for_timeout(400)
    # Of a drawing itself, not of what is in it, which it clips: there the width means nothing.
    wider = (
        "[...document.querySelectorAll('main *')]"
        ".filter((each) => !each.ownerSVGElement && each.clientWidth > 400)"
    )
    assert page.evaluate(f"{wider}.map((each) => each.outerHTML.slice(0, 80))") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
