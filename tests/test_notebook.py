"""A notebook is executed, and its outputs are what a reader should see."""

import base64
import html
import io
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

pytestmark = pytest.mark.slow

CELLS = {
    "before": """
import torch, inscape
from inscape.smoothness import gradient_norm
net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
x, y = torch.randn(50, 2), torch.arange(50) % 2
result = gradient_norm(net, x)""",
    "plot": "result.plot()",
    "plot before other lines": "axes = result.plot()\nprint(type(axes).__name__)",
    "on axes of its own": """
from matplotlib.figure import Figure
result.plot(Figure().add_subplot())
None""",
    "result": "result",
    "progress": """
from inscape.runtime import progress
progress.PATIENCE = 0.0
with progress.progress(4, label="working") as bar:
    for _ in range(4):
        bar.advance()""",
    "look": "inscape.look(net, (x, y), budget=60, only='gradient_norm', quiet=True)",
    "sweep": "inscape.sweep([net, net], (x, y), only='gradient_norm', quiet=True)",
    "signature": """
import inspect
print(list(inspect.signature(gradient_norm).parameters)[:2], gradient_norm.__doc__[:20])""",
}


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[Any]]:
    """Return what the cells show, by name."""
    cells = [nbformat.v4.new_code_cell(code.strip()) for code in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


def pictures(shown: list[Any]) -> list[Image.Image]:
    found = [output.data["image/png"] for output in shown if "image/png" in output.get("data", {})]
    return [Image.open(io.BytesIO(base64.b64decode(image))) for image in found]


def test_a_sweep_is_a_table_with_its_figure(outputs):
    (output,) = [o for o in outputs["sweep"] if "text/html" in o.get("data", {})]
    page = output.data["text/html"]
    assert "<table" in page
    assert "gradient norm" in page
    assert "data:image/png;base64," in page


def test_plot_shows_one_picture_and_no_text(outputs):
    (picture,) = pictures(outputs["plot"])
    assert min(picture.size) > 200
    assert len(outputs["plot"]) == 1


def test_plot_shows_its_picture_wherever_it_stands(outputs):
    shown = outputs["plot before other lines"]
    assert len(pictures(shown)) == 1
    assert [output.text for output in shown if output.output_type == "stream"] == ["Axes\n"]


def test_axes_of_ones_own_are_left_alone(outputs):
    assert not outputs["on axes of its own"]


def test_a_result_is_a_table_with_its_figure(outputs):
    (shown,) = outputs["result"]
    text = shown.data["text/html"]
    assert "<table" in text
    assert 'src="data:image/png;base64,' in text


def test_progress_is_one_line_that_is_written_anew(outputs):
    (shown,) = outputs["progress"]
    assert shown.output_type == "display_data"
    assert "working 4/4 (100%)" in shown.data["text/html"]


def test_a_look_shows_its_page(outputs):
    (shown,) = outputs["look"]
    assert "<!doctype html>" in html.unescape(shown.data["text/html"]).lower()


def test_signatures_and_docstrings_survive(outputs):
    (shown,) = outputs["signature"]
    assert shown.text.startswith("['f', 'x']")
