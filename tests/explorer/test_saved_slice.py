"""A slice as one file: its answers beside those of the server, its policy, its size, its names."""

import gzip
import json
import os
import re
import shutil
import subprocess
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shapely import Polygon

from explorer.conftest import explored_case
from inscape._core.anytime import finished
from inscape.explorer import requests as asks
from inscape.explorer import saved_slice as saving
from inscape.explorer.bundle import bundled, source_hash
from inscape.explorer.saved_slice import saved_slice
from inscape.explorer.session import Session
from inscape.explorer.wire import unpacked

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@pytest.fixture(scope="module")
def page(session):
    return finished(saved_slice(session, asks.SavedRequest()))[0].decode()


def parts(page):
    data = re.search(r'id="saved">([^<]*)</script>', page)[1]
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    return data, style, script


def saved_parts(page):
    return unpacked(gzip.decompress(b64decode(parts(page)[0])))


def test_the_policy_allows_this_script_and_this_style_alone(page):
    _, style, script = parts(page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src {source_hash(script)};" in policy
    assert f"style-src {source_hash(style)};" in policy
    assert "unsafe" not in policy
    assert page.count("<script") == 2
    addresses = set(re.findall(r"https?://[^\"'\s)\\]+", page))
    assert all("www.w3.org" in each for each in addresses), addresses


def test_no_module_is_left_in_the_script():
    script = bundled("saved.js")
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    node = shutil.which("node")
    if node is not None:
        done = subprocess.run([node, "--check", "-"], input=script, text=True, timeout=60)
        assert done.returncode == 0


def polygons(arrays):
    vertices, at = arrays["vertices"].reshape(-1, 2).astype(float), 0
    for count in arrays["counts"]:
        yield vertices[arrays["corners"][at : at + count]]
        at += count


def answers(ask):
    """Yield what the server answers on the whole window and on ever smaller ones."""
    facts, _ = ask("plane")
    centre, half = np.array(facts["centre"]), np.array(facts["half"])
    for zoom in (1.0, 0.3, 0.02, 1e-6):
        middle = centre + (0 if zoom == 1.0 else 0.11 * half)
        window = {"centre": middle.tolist(), "half": (half * zoom).tolist()}
        cut, arrays = ask("cells", **window)
        areas = np.array([Polygon(places).area for places in polygons(arrays)])
        order = np.argsort(areas)
        pieces = arrays["pieceCells"].tolist()
        near = [
            sorted({int(arrays["classes"][i])} | {
                int(number) for cell, number in zip(pieces, arrays["pieceClasses"], strict=True)
                if cell == i
            })
            for i in order
        ]  # fmt: skip
        cell, _ = ask("cell", view=cut["view"], cell=min(1, cut["cells"] - 1))
        yield {
            "asked": window, "cells": cut["cells"], "areas": areas[order].tolist(),
            "classes": near, "boundary": cut["boundary"], "cell": cell,
            "at": middle.tolist(), "point": ask("point", at=middle.tolist())[0],
        }  # fmt: skip


def test_the_file_answers_as_the_server_does(page, ask, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the functions of the file are not tested")
    file = tmp_path / "saved.json"
    file.write_text(json.dumps({"saved": parts(page)[0], "answers": list(answers(ask))}))
    done = subprocess.run(
        [node, "--test", str(Path(__file__).parent / "js" / "saved.mjs")],
        capture_output=True, text=True, env={**os.environ, "INSCAPE_SAVED": str(file)}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_names_in_the_title_are_shown_and_not_obeyed(page):
    subject = explored_case(3, 5, 2)
    subject.title = "</script><script>alert(1)</script>\u202e&"
    saved = finished(saved_slice(Session(subject), asks.SavedRequest()))[0].decode()
    assert saved.count("<script") == page.count("<script")
    assert "\u202e" not in saved


def test_names_in_the_data_of_the_file_are_shown_and_not_obeyed():
    subject = explored_case(3, 5, 2)
    hostile = "\u202e<img src=x onerror=alert(1)>\ud800\x1b[31m</script>"
    subject.title, subject.other_title, subject.code = hostile, hostile, f"# {hostile}"
    subject.data = replace(subject.data, names=(hostile, hostile))
    session = Session(subject)
    facts, _ = saved_parts(finished(saved_slice(session, asks.SavedRequest()))[0].decode())
    text = json.dumps(facts, ensure_ascii=False)
    assert not CONTROL.search(text)
    assert "\\u202e<img src=x" in facts["session"]["title"]  # as it is; the page shows it as text
    assert facts["session"]["classes"][0].startswith("\\u202e<img")


def test_fewer_cells_are_kept_until_the_file_is_small_enough(session, monkeypatch):
    whole = finished(saved_slice(session, asks.SavedRequest()))
    script = len(bundled("saved.js"))
    monkeypatch.setattr(saving, "CELLS", (whole[1]["cells"], 4))
    monkeypatch.setattr(saving, "LIMIT", len(whole[0]) - 1)
    page, facts = finished(saved_slice(session, asks.SavedRequest()))
    assert script < len(page) < len(whole[0])
    assert facts["cells"] <= 4 < whole[1]["cells"]
    monkeypatch.setattr(saving, "LIMIT", 1000)
    with pytest.raises(ValueError, match=r"less than 1,000 bytes, found .* smaller window"):
        finished(saved_slice(session, asks.SavedRequest()))


def test_a_network_that_is_not_piecewise_linear_is_saved_as_a_raster():
    import torch

    session = Session(explored_case(3, 5, 2, act=torch.nn.Tanh))
    page, facts = finished(saved_slice(session, asks.SavedRequest()))
    assert facts["cells"] == 0
    kept, arrays = saved_parts(page.decode())
    assert kept["levels"] == []
    assert not kept["session"]["exact"]
    assert len(arrays["raster0/classes"]) == kept["rasters"][0]["width"] ** 2


def test_the_same_window_is_the_same_file(session, page):
    again = finished(saved_slice(session, asks.SavedRequest()))[0].decode()
    assert again == page
