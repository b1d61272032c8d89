"""The page's own functions: run by node where it is installed."""

import base64
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import inscape
from inscape.explorer.colours import class_colour
from inscape.explorer.wire import packed

STATIC = Path(inscape.__file__).parent / "explorer" / "static"


def test_pure_functions_of_the_page(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the functions of the page are not tested")
    arrays = {
        "bytes": np.array([1, 2, 3], np.uint8),
        "numbers": np.array([0.5, -2], np.float32),
        "places": np.array([0.0, 1e-300]),
    }
    file = tmp_path / "packed"
    file.write_text(base64.b64encode(packed({"cells": 3, "text": "ä"}, arrays)).decode())
    folder = Path(__file__).parent / "js"
    scripts = [folder / "labs.test.mjs", folder / "pure.test.mjs"]
    done = subprocess.run(
        [node, "--test", *map(str, scripts)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "INSCAPE_PACKED": str(file),
            "INSCAPE_COLOURS": json.dumps([class_colour(k) for k in range(200)]),
        },
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_loads_nothing_from_elsewhere():
    for path in STATIC.rglob("*.*"):
        text = path.read_text()
        if path.name in ("LICENSES.txt", "preact-htm.js"):
            continue
        addresses = re.findall(r"https?://[^\"'\s)]+", text)
        assert all(address == "http://www.w3.org/2000/svg" for address in addresses), path


def test_the_page_is_small():
    code = [p for p in STATIC.rglob("*") if p.suffix in (".js", ".css", ".html")]
    assert sum(path.stat().st_size for path in code) < 250_000
    assert (STATIC / "vendor" / "LICENSES.txt").is_file()
