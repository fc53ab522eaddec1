"""The documentation site: Sphinx with MyST and Furo, all from Debian. `scripts/docs` builds it."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

project = "CEEMS in C++"
copyright = "the CEEMS in C++ authors, Apache-2.0"  # noqa: A001: Sphinx calls it so
version = release = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
root_doc = "docs/index"
include_patterns = ["docs/**.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/RESULTS.md"]
exclude_patterns = ["build", "**/node_modules"]  # what is built may be large, and would be searched
extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nitpicky = True

html_theme = "furo"
html_title = "CEEMS in C++ " + release
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
highlight_language = "none"


CONTENTS = {root_doc: r"(?m)^(?=## )", "docs/reference/README": r"(?m)^(?=- \[)", "docs/runbooks/README": r"(?m)^(?=\| Page)"}


def add_contents(app, docname, source):
    """Pages of lists of links: each list becomes a part of the navigation, in the order of the page."""
    if docname not in CONTENTS:
        return
    head, *parts = re.split(CONTENTS[docname], source[0])
    if docname != root_doc:
        parts = ["".join(parts)]
    out = [head]
    for part in parts:
        title = re.match(r"## (.*)", part)
        pages = re.findall(r"\]\(([^)#:]+\.md)\)", part)
        out.append(part + "\n\n```{toctree}\n:hidden:\n%s\n%s\n```\n\n" % (":caption: %s\n" % title.group(1) if title else "", "\n".join(pages)))
    source[0] = "".join(out)


def setup(app):
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
