"""The repository's pages as a site's sources.

A page of the site is a Markdown page of the repository, at the same path, with three changes. A link to a folder leads
to the folder's README, or to a list of its files. Sections that say the same in several languages become tabs. The
first page gets the table of contents, which follows from the index by question (docs/README.md).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

LANGUAGES = ("Python", "Go", "JavaScript", "Java")
LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]*\]\((?P<to>[^)\s]+)\)")
HEADING = re.compile(r"^(?P<marks>#{1,6}) (?P<text>.+?)\s*$")
ID = re.compile(r"<a (?:id|name)=[\"']([^\"']+)")
INDEX = "docs/README.md"
FIRST = "README.md"


@dataclass
class Pages:
    """What the site is made of. `texts` holds the pages by their path in the repository, `files` every other tracked
    file's path; `taken` are those of the files that a page links to or shows, which go into the site as they are."""

    texts: dict[str, str]
    files: frozenset[str]
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._folders = {parent for path in (*self.texts, *self.files) for parent in _parents(path)}

    def prepared(self) -> dict[str, str]:
        """All pages as the generator reads them. ValueError names the page and the link that leads nowhere."""
        done: dict[str, str] = {}
        left = list(self.texts)
        while left:
            path = left.pop()
            linked = each_line(self.texts[path], partial(self._with_links, path))
            done[path] = tabbed(linked, path)
            left += [path for path in self.texts if path not in done and path not in left]
        done[FIRST] += "\n" + tables_of_contents(contents(self.texts[INDEX], self._target), self.texts)
        return done

    def _with_links(self, page: str, line: str) -> str:
        for found in IMAGE.finditer(line):
            self._target(found["to"], page)
        return LINK.sub(lambda found: f"[{found['text']}]({self._leads_to(found['to'], page)})", line)

    def _leads_to(self, to: str, page: str) -> str:
        if is_elsewhere(to):
            return to
        _, mark, anchor = to.partition("#")
        target = self._target(to, page) if not to.startswith("#") else page
        if anchor in map(str.lower, LANGUAGES) and tabs_of(self.texts[target]):
            return f"#{tab_name(target, anchor)}"
        if anchor and target in self.texts and anchor not in places_of(self.texts[target]):
            raise ValueError(f"{page}: the link to {to} leads to no section of {target}")
        if to.startswith("#"):
            return to
        return posixpath.relpath(target, posixpath.dirname(page) or ".") + mark + anchor

    def _target(self, to: str, page: str = INDEX) -> str:
        """The path of the page or file that a link of `page` leads to."""
        if is_elsewhere(to):
            return to
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), to.partition("#")[0]))
        if path in self._folders:
            path = posixpath.join(path, "README.md")
            if path not in self.texts:
                self.texts[path] = self._listing(posixpath.dirname(path))
        if path in self.files:
            self.taken.add(path)
        elif path not in self.texts:
            raise ValueError(f"{page}: the link to {to} leads to nothing in the repository")
        return path

    def _listing(self, folder: str) -> str:
        inside = sorted(path for path in (*self.texts, *self.files) if path.startswith(f"{folder}/"))
        lines = []
        for path in inside:
            title = (
                title_of(self.texts[path]) if path in self.texts else f"`{path.removeprefix(folder + '/')}`"
            )
            lines.append(f"- [{title}]({path.removeprefix(folder + '/')})\n")
        return f"# {folder}\n\n{''.join(lines)}"


def _parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def is_elsewhere(to: str) -> bool:
    """Whether a link leads out of the repository."""
    return bool(re.match(r"[a-z][a-z0-9+.-]*:", to))


def title_of(text: str) -> str:
    """A page's first heading."""
    return next((found["text"] for line in text.splitlines() if (found := HEADING.match(line))), "Untitled")


def places_of(text: str) -> set[str]:
    """What a link's `#` may say of a page: each heading's text as GitHub makes a name of it, and the ids it has."""
    found: set[str] = set()

    def see(line: str) -> str:
        found.update(ID.findall(line))
        if heading := HEADING.match(line):
            words = re.sub(r"[^\w\- ]", "", LINK.sub(r"\g<text>", heading["text"]).lower()).replace(" ", "-")
            name, times = words, 0
            while name in found:
                times += 1
                name = f"{words}-{times}"
            found.add(name)
        return line

    each_line(text, see)
    return found


def each_line(text: str, change: Callable[[str], str]) -> str:
    """The text with every line changed that is no part of a fenced block."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _fence_of(line)
        if fence:
            fence = "" if mark.startswith(fence) and line.strip() == mark else fence
            lines.append(line)
        else:
            fence = mark
            lines.append(line if mark else change(line))
    return "".join(lines)


def _fence_of(line: str) -> str:
    found = re.match(r"\s*(`{3,}|~{3,})", line)
    return found[1] if found else ""


def sections(text: str) -> list[tuple[str, str]]:
    """A page cut at its headings of the second level: each heading's text, and all that stands under it. What is before
    the first has no heading."""
    cut: list[tuple[str, list[str]]] = [("", [])]

    def see(line: str) -> str:
        found = HEADING.match(line)
        return f"\0{found['text']}\n" if found and found["marks"] == "##" else line

    for line in each_line(text, see).splitlines(keepends=True):
        if line.startswith("\0"):
            cut.append((line[1:].strip(), []))
        else:
            cut[-1][1].append(line)
    return [(heading, "".join(lines)) for heading, lines in cut]


def tabs_of(text: str) -> bool:
    """Whether a page has sections that become tabs."""
    headings = [heading for heading, _ in sections(text)]
    return any(one in LANGUAGES and other in LANGUAGES for one, other in pairwise(headings))


def tab_name(page: str, language: str) -> str:
    """What a link to one tab of a page says: names are of the whole site."""
    return re.sub(r"[^a-z0-9]+", "-", f"{page.removesuffix('.md')}-{language}".lower())


def tabbed(text: str, page: str) -> str:
    """The page with each run of sections that are named after languages as one set of tabs. A reader who chose a
    language sees it in every set."""
    made: list[str] = []
    run: list[tuple[str, str]] = []

    def close() -> None:
        if len(run) > 1:
            made.append(_tab_set(run, page))
        else:
            made.extend(f"## {heading}\n{body}" for heading, body in run)
        run.clear()

    for heading, body in sections(text):
        if heading in LANGUAGES:
            run.append((heading, body))
            continue
        close()
        made.append(f"## {heading}\n{body}" if heading else body)
    close()
    return "".join(made)


def _tab_set(run: Sequence[tuple[str, str]], page: str) -> str:
    lines = ["::::::{tab-set}\n:sync-group: language\n\n"]
    for heading, body in run:
        named = f":sync: {heading.lower()}\n:name: {tab_name(page, heading)}\n"
        lines.append(f":::::{{tab-item}} {heading}\n{named}\n{body.strip()}\n\n:::::\n\n")
    return "".join(lines) + "::::::\n\n"


def contents(index: str, target: Callable[[str], str]) -> list[tuple[str, list[str]]]:
    """The index by question as chapters: each with its heading and its pages, every page where it is named first."""
    seen: set[str] = {INDEX}
    chapters: list[tuple[str, list[str]]] = []
    for heading, body in sections(index):
        found = [target(link["to"]) for link in LINK.finditer(body)]
        pages = [path for path in dict.fromkeys(found) if path.endswith(".md") and path not in seen]
        seen.update(pages)
        if heading and pages:
            chapters.append((heading, pages))
    return chapters


def tables_of_contents(chapters: Iterable[tuple[str, list[str]]], pages: Iterable[str]) -> str:
    """What the first page ends with: a table of contents a chapter, shown beside every page. Pages of a folder stand
    below the folder's own page."""
    chosen = {path for _, some in chapters for path in some} | {FIRST, INDEX}
    rest = sorted(path for path in pages if path not in chosen)
    made = [_toctree("Index by question", [INDEX])]
    for heading, some in chapters:
        with_their_own = []
        for path in some:
            folder = posixpath.dirname(path) + "/"
            own = [
                each
                for each in rest
                if path.endswith("/README.md") and each.startswith(folder) and "/" in folder[:-1]
            ]
            with_their_own += [path, *own]
            rest = [each for each in rest if each not in own]
        made.append(_toctree(heading, with_their_own))
    return "\n".join([*made, _toctree("More", rest)])


def _toctree(caption: str, paths: Sequence[str]) -> str:
    entries = "".join(f"{path.removesuffix('.md')}\n" for path in paths)
    return f"```{{toctree}}\n:hidden:\n:caption: {caption}\n:titlesonly:\n\n{entries}```\n"
