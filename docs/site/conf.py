"""Sphinx's settings for the site; scripts/docs runs it."""
import os
import re

with open(os.path.join(os.path.dirname(__file__), "../../CMakeLists.txt"), encoding="utf-8") as file:
    version = re.search(r"project\(kiln VERSION ([0-9.]+)", file.read(), re.IGNORECASE).group(1)

project = "Kiln"
release = version
author = "The authors of Kiln"
project_copyright = "the authors of Kiln, Apache-2.0"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
# The other folders are there for links alone.
include_patterns = ["index.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**", "editors/**/*.md", "tutorial/*.md", "reference/**"]
# Fragments of PTX and MLIR are no whole programs, and Pygments knows no MLIR.
suppress_warnings = ["misc.highlighting_failure"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

highlight_language = "text"
pygments_style = "friendly"
pygments_dark_style = "monokai"

html_theme = "furo"
html_title = f"Kiln {version}"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
