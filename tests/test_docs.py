"""The pages say what is so: examples run, imports exist, nothing public is left out."""

import ast
import doctest
import re
import runpy
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import inscape
from inscape.index import entries

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {path.name: path for path in (ROOT / "README.md", *sorted(DOCS.glob("*.md")))}
FENCE = re.compile(r"^```(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r"\.\. math:: (.*?)\n *\n", re.DOTALL)
IN_LINE = re.compile(r":math:`([^`]+)`")
FAMILIES = (
    *("smoothness", "spectra", "report", "intake", "models", "training", "lab", "data", "figures"),
)


def blocks(page: str, language: str) -> list[tuple[int, str]]:
    """Return the blocks of a page in one language, each with the number of its first line."""
    text = PAGES[page].read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [(text[: m.start(2)].count("\n"), m[2]) for m in found if m[1] == language]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "pycon")])
def test_examples_print_what_the_page_says(page):
    shared: dict[str, object] = {}
    for line, block in blocks(page, "pycon"):
        example = doctest.DocTestParser().get_doctest(block, shared, page, page, line)
        complaints: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        failed, tried = runner.run(example, out=complaints.append, clear_globs=False)
        shared.update(example.globs)
        assert tried
        assert not failed, "".join(complaints)


def test_the_page_of_smoothness_has_examples():
    assert len(blocks("smoothness.md", "pycon")) >= 3


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_imports_exists(page):
    for _, block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            match node:
                case ast.Import(names=names):
                    for name in names:
                        import_module(name.name)
                case ast.ImportFrom(module=str(module), names=names):
                    for name in names:
                        assert hasattr(import_module(module), name.name), f"{module}.{name.name}"


def test_each_family_has_a_page_that_names_its_instruments():
    for entry in entries():
        assert f"`{entry.name}`" in PAGES[f"{entry.family}.md"].read_text(encoding="utf-8")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reference_lists_every_public_name_once(family):
    text = PAGES["api.md"].read_text(encoding="utf-8")
    part = text.split(f".. currentmodule:: inscape.{family}\n")[1].partition("```")[0]
    listed = re.findall(r"^\.\. auto\w+:: (\w+)$", part, re.MULTILINE)
    module = import_module(f"inscape.{family}")
    above = {name for name in inscape.__all__ if getattr(inscape, name) is vars(module).get(name)}
    assert sorted(listed) == sorted(set(module.__all__) - above)


def test_every_page_is_in_the_contents():
    contents = PAGES["index.md"].read_text(encoding="utf-8").partition("{toctree}")[2].split()
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert pages == set(contents) & pages


def docstrings() -> Iterator[str]:
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def test_formulas_of_docstrings_can_be_shown():
    mathml = runpy.run_path(str(DOCS / "mathml.py"))["mathml"]
    text = "\n\n".join(docstrings())
    formulas = FORMULA.findall(text)
    assert len(formulas) > 20
    for formula in formulas:
        assert mathml(formula, block=True).startswith("<math")
    for formula in IN_LINE.findall(text):
        assert mathml(formula, block=False).startswith("<math")


def test_an_index_after_a_hat_stays_an_index():
    mathml = runpy.run_path(str(DOCS / "mathml.py"))["mathml"]
    shown = mathml(r"\widehat{TV}_{[a,b]}(f)", block=True)
    assert "<msub>" in shown
    assert "munderover" not in shown


def test_modules_come_last_in_a_part_of_the_reference():
    """What follows a module would be looked for in it."""
    for _, block in blocks("api.md", "{eval-rst}"):
        after = block.partition(".. automodule::")[2]
        assert ".. autofunction::" not in after
        assert ".. autoclass::" not in after


def test_the_site_takes_every_folder_of_the_gallery():
    said = re.search(r'"subsection_order": (\[.*\])', (DOCS / "conf.py").read_text())
    assert said
    assert "*" in ast.literal_eval(said[1])
