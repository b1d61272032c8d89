"""Sphinx: the pages, the reference and the gallery, readable from disk without a network."""

import os
import sys
from pathlib import Path

import inscape

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for mathml.py

# Gallery scripts say nothing on stderr, and use real data where they lie beside the clone.
os.environ.setdefault("INSCAPE_QUIET", "1")
BESIDE = HERE.parents[1] / "shared" / "data"
if BESIDE.is_dir():
    os.environ.setdefault("INSCAPE_DATA_DIR", str(BESIDE))

project = "Inscape"
author = "The Inscape founders"
version = release = inscape.__version__
copyright = "2026, the Inscape founders"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
# An annotation such as bytes is looked for among attributes of that name, too.
suppress_warnings = ["ref.python"]
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"Inscape {version}"
html_static_path = ["_static"]
html_css_files = ["inscape.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}

sphinx_gallery_conf = {
    "examples_dirs": "../gallery",
    "gallery_dirs": "gallery",
    "subsection_order": ["../gallery/tutorial", "../gallery/smoothness", "*"],
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "show_signature": False,
    # Times and memory differ from build to build; without them a rebuild gives the same files.
    "min_reported_time": 3600,
    "write_computation_times": False,
    "show_memory": False,
}
