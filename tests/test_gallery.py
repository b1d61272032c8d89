"""Every script of the gallery runs, is short, draws the same twice and tells a true story."""

import ast
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from inscape.index import entries
from inscape.runtime.kernel_cache import root

GALLERY = Path(__file__).parents[1] / "gallery"
SCRIPTS = {path.stem: path for path in sorted(GALLERY.rglob("plot_*.py"))}
TUTORIAL = "plot_is_my_network_smooth"
SHORT = [name for name in SCRIPTS if name != TUTORIAL]
LINES = 40
#: Scripts beside those of the instruments.
OTHERS = {
    "plot_constructions",
    "plot_curvature",
    "plot_fourier",
    "plot_gaussian_process",
    "plot_length_scale",
    "plot_penalties",
    "plot_stationary",
    "plot_swaps",
    "plot_sweep",
    TUTORIAL,
}

#: What each script claims, in its own names; ``numbers(ax)`` are those in the texts of a legend.
STORIES = {
    "plot_boolean_function": "found.number == '23' and found.swaps == 1 != before.number",
    "plot_tangent_kernel": "gaps[1] > 1.5 * gaps[0] > 0",
    "plot_path_kernel": "closes < 1e-6 and split.samples.abs().sum() > 10 * abs(added)",
    "plot_gaussian_process": "abs(processes[0].predict(at[:1, None])[0]).max() < 0.1"
    " and processes[1].predict(at[-1:, None])[0].abs().max() > 2"
    " > processes[2].predict(at[-1:, None])[0].abs().max()",
    "plot_neighbours": "right[0] > right[1] + 0.03 and 0.5 < result.summary().value < 0.9",
    "plot_kernel_drift": "law.change[0] > 4 * law.change[-1] and law.high < -0.4",
    "plot_sweep": "tau['gradient_norm'].value < -0.8 and not result.failed",
    "plot_swaps": "[swaps(f).swaps for f in functions.values()] == [1, 4, 5, 5]",
    "plot_fourier": "fourier(functions['bent']).entropy == 4"
    " and fourier(functions['parity']).entropy == 0",
    "plot_effective_length_scale": "all(a < b for a, b in zip(values, values[1:]))",
    "plot_extrapolation": "error['outside', 'network'] > 5 * error['hull', 'network']"
    " and error['hull', 'network'] > 5 * error['domain', 'network']"
    " and error['outside', 'gaussian_process'] < error['outside', 'network']",
    "plot_local_minimum": "[found[name].is_proved for name in nets] == [True, False, False]"
    " and found['trained'].losses[0] < 0.1 * found['embedded'].losses[0]",
    "plot_curvature": "abs(forms.rescaled[1] / forms.values[1] - 1) < 0.01"
    " and forms.rescaled[0] > 2 * forms.values[0] and ends.negative"
    " and density.summary().value < 0.2",
    "plot_interpolation": "results[1].barrier < 0.2 * results[0].barrier",
    "plot_loss_surface": "results[0].off_fraction > 0.9 > 0.1 > results[1].off_fraction and"
    " all(r.curvatures[1] > 10 * r.plane_curvatures.abs().max() for r in results)"
    " and all(r.minimum_loss < r.loss_at_model for r in results)",
    "plot_map_compression": "result.accuracies[0] < 0.75 < 0.95 < result.accuracies[-1]",
    "plot_active_subspace": "result.explained[0, 0] > 0.9 and result.turns[0] < 0.3",
    "plot_saliency": "result.residual < 1e-9 and result.outputs.tolist() == [0, 3, 4, 7, 9]",
    "plot_slice_difference": "result.exact and 0.002 < result.summary().value < 0.1",
    "plot_length_scale": "all(curves[k].diff().abs().sum() > 1.5 * curves[10 * k].diff().abs()"
    ".sum() for k in (0.1, 1.0))",
    "plot_lipschitz": "found.lower <= min(found.bounds) < 0.8 * max(found.bounds)",
    "plot_robustness": "[c.accuracy[-1].item() for c in curves.values()]"
    " == sorted((c.accuracy[-1].item() for c in curves.values()), reverse=True)",
    "plot_node_pruning": "tuned.summary().value < 0.6 * plain.summary().value",
    "plot_magnitude_pruning": "tuned.summary().value < 0.6 * plain.summary().value",
    "plot_exhaustive_pruning": "found.good.tolist()[:2] == [0, 0] and len(found.sizes) == 3",
    "plot_channel_pruning": "small[3].out_channels < 8 and found.summary().value < 0.5",
    "plot_constructions": "represents(wide, function) and represents(narrow, function)"
    " and found.swaps == 5",
    "plot_stationary": "[str(v) for v in found.levels] == ['0', '8/3', '4'] and len(minima) == 41",
    "plot_local_maps": "different > 200 and alike[same].mean() > 0.9 and alike[~same].mean() < 0.1",
    "plot_region_at": "inside == 0 and region.ball < 0.05 * nearest and region.status == 'ok'",
    "plot_grid_regions": "exact == 490 and missed == sorted(missed, reverse=True)"
    " and missed[-1] > 0 and grids[-1].count > exact",
    "plot_tropical": "apart < 1e-12",
    "plot_closed_regions": "sorted(networks) == ['expanded simplex', 'hyperoctahedron'] and"
    " all(((net(data.x) > 0) == (y > 0.5)).sum() == 400 for net in networks.values())",
    "plot_region_bounds": "all(a.count <= a.upper for a in bounds)"
    " and bounds[-1].lower > 1000 * bounds[-1].count",
    "plot_plane_regions": "regions.complete and regions.cells > 1000 >= regions.regions / 2",
    "plot_boundary": "regions.cells > 3000 and length > 10",
    "plot_region_evolution": "evolution.settled[0] <= evolution.settled[1] < evolution.settled[2]"
    " and float(evolution.lengths[-1]) > 7",
    "plot_line_regions": "kinds[1][2].cells[0] > kinds[0][2].cells[0]"
    " and kinds[1][2].variation[0] > 1.9",
    "plot_gradient_norm": "everywhere[(grid.norm(dim=1) - 0.6).abs() < 0.05].mean() > 4 * mean",
    "plot_path_length": "numbers(ax)[0][0] < 1.1 and numbers(ax)[1][0] > 2",
    "plot_gradient_path_length": "summaries[4][1].low > 3 * summaries[0][1].high"
    " and summaries[4][0].low < summaries[0][0].high"
    " and summaries[0][0].low < summaries[4][0].high",
    "plot_weights_product": "abs(inside[-1] - bound) < 1e-5 * bound and inside[-2] < inside[-1]",
    "plot_total_variation": "result.exact and result.summary().value > 1.1 * shortest",
    "plot_slope_variation": "numbers(left) == [[2.0], [3.0]] and numbers(right) == [[2.0], [2.0]]",
    "plot_gradient_deflection": "summaries[1].low > 4 * summaries[0].high",
    "plot_rugosity": "summaries[-1].low > 5 * summaries[0].high"
    " and all(a.value < b.value for a, b in zip(summaries, summaries[1:]))",
    "plot_spectral_norm": "all(b > 1.4 * s for b, s in zip(bounds, steepest))"
    " and bounds == sorted(bounds)",
    "plot_effective_rank": "rank.ranks.tolist() == sorted(rank.ranks.tolist(), reverse=True)"
    " and abs(float(rank.ranks[0]) - 16) < 1e-9 and float(spectrum.largest[2]) < 1 + 1e-6",
    "plot_distance_from_init": "moved == sorted(moved, reverse=True) and began == sorted(began)"
    " and moved[-1] < 0.05 * began[-1]",
    "plot_fisher_rao_norm": "products[-1] > 3 and max(abs(lengths - 1)) < 1e-5",
    "plot_penalties": "numbers(ax)[1][0] < 0.85 * numbers(ax)[0][0]"
    " and 0.9 * numbers(ax)[0][1] < numbers(ax)[2][1] < numbers(ax)[0][1]",
    TUTORIAL: "numbers_of('gradient_norm')[2] < 0.7 * min(numbers_of('gradient_norm')[:2])"
    " and numbers_of('weights_product')[0] < 0.5 * min(numbers_of('weights_product')[1:])"
    " and numbers_of('gradient_path_length')[0] < 0.8 * min(numbers_of('gradient_path_length')[1:])"
    " and max(numbers_of('path_length')) < 1.15 * min(numbers_of('path_length'))"
    " and next(m for m in looked.measurements if m.name == 'gradient_norm')"
    ".reference('linear').value > max(numbers_of('gradient_norm'))"
    " and looked.scores[3].loss > looked.scores[1].loss",
}

#: Imports once what scripts need, which takes longer than most of them, and forks: each script has
#: a process of its own. What was imported is shared: neither collected nor taken down in each.
RUNNER = """
import gc, hashlib, io, json, os, re, runpy, signal, sys, time

import matplotlib.pyplot as plt
import pandas, scipy.stats, sklearn.datasets, torch._dynamo, torch.export
from numba.core.registry import cpu_target

import inscape.figures, inscape.training
from inscape.runtime.deadline import clock

def tell(script, story):
    with clock(lambda: 60 * time.process_time()):  # a look of five minutes takes five seconds
        names = runpy.run_path(script)

    def numbers(ax):
        texts = [text.get_text().split(":")[-1] for text in ax.get_legend().get_texts()]
        return [[float(found) for found in re.findall(r"[0-9.]+", text)] for text in texts]

    def numbers_of(measure):
        return [names["found"][measure, name].value for name in names["networks"]]

    def picture(number):
        out = io.BytesIO()
        plt.figure(number).savefig(out, format="png")
        return hashlib.sha256(out.getvalue()).hexdigest()

    true = eval(story, {**names, "numbers": numbers, "numbers_of": numbers_of})
    print(json.dumps({"true": bool(true), "pictures": [picture(n) for n in plt.get_fignums()]}))

cpu_target.target_context.refresh()  # as the first kernel of a process would, for a second
gc.freeze()
for line in sys.stdin:
    script, story, said, environment = json.loads(line)
    if os.fork() == 0:
        signal.alarm(1800)
        os.environ.update(environment)
        for stream in (1, 2):
            os.dup2(os.open(f"{said}.{stream}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        tell(script, story)
        sys.stdout.flush()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@cache
def runner() -> "subprocess.Popen[str]":
    """Return a process that runs scripts as a user would, but every warning is an error."""
    warnings = ["-W", "error", "-W", "ignore:FigureCanvasAgg is non-interactive"]
    return subprocess.Popen(
        [sys.executable, *warnings, "-c", RUNNER],
        env={**os.environ, "MPLBACKEND": "agg", "INSCAPE_QUIET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(name: str, **environment: str) -> tuple[dict[str, object], str]:
    """Run a script in a process of its own; return what it claims and what it said."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [str(SCRIPTS[name]), STORIES[name], f"{folder}/said", environment]
        process = runner()
        assert process.stdin
        assert process.stdout
        print(json.dumps(asked), file=process.stdin, flush=True)
        code = process.stdout.readline().strip()
        assert code == "0", Path(f"{folder}/said.2").read_text(encoding="utf-8")
        *said, last = Path(f"{folder}/said.1").read_text(encoding="utf-8").splitlines()
    return json.loads(last), "\n".join(said)


@cache
def first_run(name: str) -> dict[str, object]:
    return run(name)[0]


@pytest.mark.parametrize("name", SHORT)
def test_script_tells_a_true_story_in_one_figure(name):
    found = first_run(name)
    assert found["true"], STORIES[name]
    assert len(found["pictures"]) == 1


@pytest.mark.parametrize("name", ["plot_path_length", "plot_total_variation"])
def test_figures_are_the_same_when_drawn_again(name):
    assert run(name)[0]["pictures"] == first_run(name)["pictures"]


@pytest.mark.data
def test_tutorial_on_mnist(data_dir):
    found, said = run(TUTORIAL, INSCAPE_DATA_DIR=str(data_dir))
    assert "Dataset(mnist-binary: 256 x 784 -> 1 real, 1991 test examples)" in said
    assert found["true"], said


def test_tutorial_on_the_embedded_digits(tmp_path):
    """Without the user's cache, but for the compiled kernels: the time is that of a look."""
    root().mkdir(parents=True, exist_ok=True)
    (tmp_path / "inscape").mkdir()
    (tmp_path / "inscape" / "kernels").symlink_to(root())
    found, said = run(TUTORIAL, INSCAPE_DATA_DIR=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert "stands in for mnist-binary" in said
    assert found["true"], said


def test_each_script_has_the_name_of_an_instrument():
    known = {f"{entry.family}/plot_{entry.name}.py" for entry in entries()}
    scripts = [path for path in SCRIPTS.values() if path.stem not in OTHERS]
    assert {path.relative_to(GALLERY).as_posix() for path in scripts} <= known
    assert len(list(GALLERY.rglob("plot_*.py"))) == len(SCRIPTS), "two scripts share a name"


def test_each_script_claims_something():
    assert STORIES.keys() == SCRIPTS.keys()


@pytest.mark.parametrize("name", SHORT)
def test_script_is_short(name):
    assert len(SCRIPTS[name].read_text(encoding="utf-8").splitlines()) <= LINES


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_begins_with_a_title_and_a_sentence(name):
    said = ast.get_docstring(ast.parse(SCRIPTS[name].read_text(encoding="utf-8"))) or ""
    title, line, empty, *sentence = said.splitlines()
    assert line == "=" * len(title)
    assert not empty
    assert sentence[-1].endswith(".")
