"""The documentation's site: what becomes of links, sections in several languages, and the index by question."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.site.check import faults
from tools.site.make import write_sources
from tools.site.pages import Pages, contents, tabbed

ROOT = Path(__file__).parents[2]
INDEX = "# Documentation\n\n## Start\n\n| question | page |\n|---|---|\n| Which? | [ideas](ideas.md) |\n"


def prepared(page: str, **more: str) -> tuple[Pages, dict[str, str]]:
    texts = {
        "README.md": "# Fila\n",
        "docs/README.md": INDEX,
        "docs/ideas.md": "# Ideas\n",
        "docs/page.md": page,
    }
    files = frozenset({"docs/deploy/alerts.yml", "docs/picture.png"})
    pages = Pages(texts | {name.replace("__", "/"): text for name, text in more.items()}, files)
    return pages, pages.prepared()


def test_a_link_to_a_folder_leads_to_its_readme() -> None:
    _, made = prepared("See [the SDK](../sdks/go).\n", **{"sdks/go/README.md": "# Go\n"})
    assert made["docs/page.md"] == "See [the SDK](../sdks/go/README.md).\n"


def test_a_link_to_a_folder_without_a_readme_leads_to_a_list_of_what_is_in_it() -> None:
    pages, made = prepared("See [deploy](deploy).\n")
    assert made["docs/page.md"] == "See [deploy](deploy/README.md).\n"
    assert made["docs/deploy/README.md"] == "# docs/deploy\n\n- [`alerts.yml`](alerts.yml)\n"
    assert pages.taken == {"docs/deploy/alerts.yml"}


def test_a_picture_goes_into_the_site() -> None:
    pages, _ = prepared("![waits](picture.png)\n")
    assert pages.taken == {"docs/picture.png"}


def test_a_link_that_leads_nowhere_is_named_with_its_page() -> None:
    with pytest.raises(ValueError, match=r"docs/page.md: the link to gone.md leads to nothing"):
        prepared("See [it](gone.md).\n")


def test_a_link_to_a_section_that_is_not_there_is_named() -> None:
    page = "See [it](ideas.md#gone).\n\n## A `key`, [a](b.md) limit\n"
    with pytest.raises(
        ValueError, match=r"docs/page.md: the link to ideas.md#gone leads to no section of docs/ideas.md"
    ):
        prepared(page)
    prepared("[here](#a-key-a-limit) and [there](#once-1)\n# Once\n## A `key`, a limit\n## Once\n")


def test_every_link_of_the_documentation_leads_to_a_page_a_file_or_a_section(tmp_path: Path) -> None:
    assert write_sources(tmp_path) > 50


def test_what_is_printed_in_a_block_is_no_link_and_no_heading() -> None:
    block = "```md\n## Go\n[it](gone.md)\n```\n"
    _, made = prepared(block)
    assert made["docs/page.md"] == block


def test_sections_named_after_languages_become_tabs_and_one_alone_stays_a_section() -> None:
    several = "# Fan-out\n\n## Python\n\none\n\n## Go\n\ntwo\n\n## What each prints\n\nthree\n"
    made = tabbed(several, "docs/fan-out.md")
    assert made.startswith("# Fan-out\n\n::::::{tab-set}\n:sync-group: language\n")
    assert ":::::{tab-item} Go\n:sync: go\n:name: docs-fan-out-go\n\ntwo\n\n:::::\n" in made
    assert made.endswith("::::::\n\n## What each prints\n\nthree\n")
    assert tabbed("# Page\n\n## Python\n\none\n", "page.md") == "# Page\n\n## Python\n\none\n"


def test_a_link_to_a_section_that_became_a_tab_leads_to_the_tab() -> None:
    both = "# Fan-out\n\nJump to [Go](#go).\n\n## Python\n\none\n\n## Go\n\ntwo\n"
    _, made = prepared("See [Go](fan-out.md#go).\n", **{"docs/fan-out.md": both})
    assert made["docs/page.md"] == "See [Go](#docs-fan-out-go).\n"
    assert "Jump to [Go](#docs-fan-out-go)." in made["docs/fan-out.md"]


def test_a_page_stands_in_the_chapter_that_names_it_first() -> None:
    index = (
        "# D\n\n## One\n\n[a](a.md) [b](b.md) [web](https://example.org)\n\n## Two\n\n[a](a.md#x) [c](c.md)\n"
    )
    assert contents(index, lambda to: to.partition("#")[0]) == [("One", ["a.md", "b.md"]), ("Two", ["c.md"])]


def test_every_page_has_its_place_beside_the_others() -> None:
    _, made = prepared("# Page\n")
    first = made["README.md"]
    assert ":caption: Start\n:titlesonly:\n\ndocs/ideas\n```" in first
    assert ":caption: More\n:titlesonly:\n\ndocs/page\n```" in first


@pytest.mark.parametrize(("typed", "page"), [("tomorrow at nine", "docs/scheduling.md")])
def test_what_people_type_into_the_search_finds_the_page_that_answers_it(typed: str, page: str) -> None:
    """A page is found that has each word, but for those that the search leaves out."""
    words = set(re.findall(r"\w+", (ROOT / page).read_text().lower()))
    assert {*typed.split()} - {"at"} <= words


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<a href='gone.html'>", "index.html links to gone.html: there is no gone.html"),
        ("<a href='#gone'>", "index.html links to #gone: index.html has no such place"),
        ("<script src='https://example.org/x.js'></script>", "index.html loads https://example.org/x.js"),
        ("<img src='//example.org/x.png'>", "index.html loads //example.org/x.png"),
    ],
)
def test_what_leads_nowhere_or_loads_from_elsewhere_is_a_fault(tmp_path: Path, page: str, said: str) -> None:
    (tmp_path / "index.html").write_text(page)
    found, _ = faults(tmp_path)
    assert len(found) == 1
    assert said in found[0]


def test_a_style_that_another_host_is_asked_for_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<a href='#top' id='top'>")
    (tmp_path / "a.css").write_text("@import 'https://example.org/font.css'; b { background: url(x.png) }")
    assert faults(tmp_path) == (["a.css loads https://example.org/font.css from another host"], 1)
