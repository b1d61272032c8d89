"""The pages say what is so: examples run, imports exist, nothing public is left out."""

import ast
import re
import runpy
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

import inscape
from doc_blocks import DOCS, PAGES, ROOT, blocks
from inscape.index import entries, families, question
from inscape.lab import Store, stored_outcome

FORMULA = re.compile(r"\.\. math:: (.*?)\n *\n", re.DOTALL)
IN_LINE = re.compile(r":math:`([^`]+)`")
#: The parts of Inscape that a user imports.
PARTS = [name for name in inscape.__all__ if isinstance(getattr(inscape, name), ModuleType)]


def test_the_page_of_smoothness_has_examples():
    assert len(blocks("smoothness.md", "pycon")) >= 3


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CONTRIBUTING.md"])
def test_what_a_page_imports_exists(page):
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block.text)):
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


@pytest.mark.parametrize("part", PARTS)
def test_the_reference_lists_every_public_name_once(part):
    text = PAGES["api.md"].read_text(encoding="utf-8")
    section = text.split(f".. currentmodule:: inscape.{part}\n")[1].partition("```")[0]
    listed = re.findall(r"^\.\. auto\w+:: (?:inscape\.\w+\.)?(\w+)$", section, re.MULTILINE)
    module = import_module(f"inscape.{part}")
    above = {name for name in inscape.__all__ if getattr(inscape, name) is vars(module).get(name)}
    assert sorted(listed) == sorted(set(module.__all__) - above)


def test_the_reference_lists_what_inscape_itself_has():
    text = PAGES["api.md"].read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto\w+:: inscape\.(\w+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(set(inscape.__all__) - {*PARTS, "__version__"})


def test_the_readme_has_a_row_for_each_family_with_its_instruments():
    rows = [
        f"| {question(family)} | [{family}](docs/{family}.md) | "
        + ", ".join(f"`{entry.name}`" for entry in entries() if entry.family == family)
        + " |"
        for family in families()
    ]
    text = PAGES["README.md"].read_text(encoding="utf-8")
    shown = re.findall(r"^\| .*\]\(docs/\w+\.md\) \| .*\|$", text, re.MULTILINE)
    assert sorted(shown) == sorted(rows)


def test_the_table_in_the_readme_is_what_the_records_say():
    outcome = stored_outcome("volhejn/table-4.1", Store(ROOT / "results"), "paper")
    judgements = {judged.claim.name: judged for judged in outcome.judgements}
    text = PAGES["README.md"].read_text(encoding="utf-8")
    for measure in ("GN", "PL0", "PL1", "WP"):
        cells = [
            f"{number:.2f}"
            for kind in ("tau", "polynomial")
            for number in (
                judgements[f"{kind}-{measure}"].claim.published,
                judgements[f"{kind}-{measure}"].ours.value,
            )
        ]
        assert f"(`{measure}`) | {' | '.join(cells)} |" in text
        verdicts = {judgements[f"{kind}-{measure}"].verdict for kind in ("tau", "polynomial")}
        assert verdicts == {"reproduced"}


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = PAGES["README.md"].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert "docs/_static/report.png" in links
    assert not [link for link in links if not (ROOT / link).exists()]


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
    for block in blocks("api.md", "{eval-rst}"):
        after = block.text.partition(".. automodule::")[2]
        assert ".. autofunction::" not in after
        assert ".. autoclass::" not in after


def test_the_site_takes_every_folder_of_the_gallery():
    said = re.search(r'"subsection_order": (\[.*\])', (DOCS / "conf.py").read_text())
    assert said
    assert "*" in ast.literal_eval(said[1])
