"""Walks the site that is in dist/site: `make site-check`.

Every link leads to a page and a place in it that are there, and no page loads anything from another host. Links that a
reader may follow to other hosts are counted, not asked: the check needs no network."""

from __future__ import annotations

import posixpath
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from tools.site.make import SITE

LOADS = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
}
STYLE_LOADS = re.compile(r"""url\(\s*["']?((?:https?:)?//[^)"']+)|@import\s+["']?((?:https?:)?//[^"';]+)""")
INFORMS = ("canonical", "license", "author")
"""Relations of a `link` that a browser does not load."""


class Page(HTMLParser):
    """What one page links to, what it loads, and what in it can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See one element."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "form" and "action" in given:
            self.links.append(given["action"])
        loaded = given.get(LOADS.get(tag, ""), "")
        if loaded and not (tag == "link" and given.get("rel") in INFORMS):
            self.loads.append(loaded)


def faults(site: Path) -> tuple[list[str], int]:
    """A sentence for each link that leads nowhere and each thing that another host would be asked for; and how many
    links were walked."""
    pages = {path.relative_to(site).as_posix(): Page(path.read_text()) for path in site.rglob("*.html")}
    found: list[str] = []
    walked = 0
    for name, page in pages.items():
        for to in page.links + page.loads:
            if re.match(r"[a-z][a-z0-9+.-]*:|//", to):
                if to in page.loads and not to.startswith("data:"):
                    found.append(f"{name} loads {to} from another host")
                continue
            walked += 1
            path, _, place = unquote(to.split("?")[0]).partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if not (site / target).is_file():
                found.append(f"{name} links to {to}: there is no {target}")
            elif place and target in pages and place not in pages[target].places:
                found.append(f"{name} links to {to}: {target} has no such place")
    for style in site.rglob("*.css"):
        loaded = [one[1] or one[2] for one in STYLE_LOADS.finditer(style.read_text())]
        found += [f"{style.relative_to(site)} loads {one} from another host" for one in loaded]
    return found, walked


def main() -> int:
    found, walked = faults(SITE)
    print(*found, f"{walked} links walked, {len(found)} faults", sep="\n")
    return 1 if found or not walked else 0


if __name__ == "__main__":
    sys.exit(main())
