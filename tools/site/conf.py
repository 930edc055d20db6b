"""What Sphinx is told. It makes pages that ask no other host for anything: the theme brings its script and style, and
the search index is a file beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.release.versions import version as said

project = "Fila"
author = "The authors of Fila"
release = version = said()
html_title = f"Fila {release}"

extensions = ["myst_parser", "sphinx_design"]
root_doc = "README"
source_suffix = {".md": "markdown"}
exclude_patterns: list[str] = []

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
# A block may name a language that no lexer knows; it is shown plain.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

html_theme = "furo"
html_show_copyright = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
