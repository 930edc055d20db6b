"""Finds sentences that are too long on the pages that a reader meets first.

    python tools/sentences.py                 checks every page of PAGES
    python tools/sentences.py docs/http.md    checks the named pages

The exit code is 1 if a sentence has more than WORDS_MAX words: such a sentence has to be read twice. Pictures are
not prose, and neither are code blocks, fenced or indented by four spaces. A heading, a list item and a table's cell
each end a sentence, with or without a full stop.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
WORDS_MAX = 35
PAGES = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "cli/README.md",
    "docs/coming-from/*.md",
    "docs/README.md",
    "docs/beyond-one-machine.md",
    "docs/channels.md",
    "docs/concepts.md",
    "docs/configuration.md",
    "docs/console.md",
    "docs/durability.md",
    "docs/events.md",
    "docs/fairness.md",
    "docs/history.md",
    "docs/http.md",
    "docs/install.md",
    "docs/lua-patterns.md",
    "docs/message-sizes.md",
    "docs/operations/*.md",
    "docs/order.md",
    "docs/patterns/*.md",
    "docs/prefetch.md",
    "docs/redis.md",
    "docs/scheduling.md",
    "docs/security.md",
    "docs/sinks.md",
    "docs/telemetry.md",
    "docs/tutorials/*.md",
    "docs/watching.md",
    "sdks/*/CHANGELOG.md",
    "sdks/go/README.md",
    "sdks/java/README.md",
    "sdks/js/README.md",
    "sdks/python/README.md",
)

_FENCE = re.compile(r" *(`{3,}|~{3,})")
_TABLE_RULE = re.compile(r"[ |:-]+$")
_CELL_END = re.compile(r"(?<!\\)\|")
_BLOCK_START = re.compile(r" *(?:#{1,6} |[-*+] |\d+[.)] )")
# A reader takes inline code as one word, and does not read a comment, a picture, a link's address or markup.
_ONE_WORD = re.compile(r"`+[^`]+`+")
_NO_WORD = re.compile(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)|(?<=\])\([^)]*\)|</?\w[^>]*>|[*_\[\]]+", re.DOTALL)
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|No)\.", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?][)\"'\u201d\u2019]*\s+")


class Sentence(NamedTuple):
    """A sentence of a page: the line where its paragraph, item or row begins, and its words."""

    line: int
    text: str

    @property
    def words(self) -> int:
        return sum(any(letter.isalnum() for letter in word) for word in self.text.split())


def pages() -> list[Path]:
    """Return the pages that must have short sentences."""
    return sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})


def long_sentences(markdown: str, words_max: int = WORDS_MAX) -> list[Sentence]:
    """Return the sentences of a Markdown text that have more than `words_max` words."""
    return [sentence for sentence in sentences(markdown) if sentence.words > words_max]


def sentences(markdown: str) -> Iterator[Sentence]:
    """Yield every sentence of a Markdown text, in order."""
    for line, block in _blocks(markdown):
        prose = _NO_WORD.sub("", _ONE_WORD.sub("code", block))
        prose = _ABBREVIATION.sub(r"\1", prose)
        for text in _SENTENCE_END.split(prose):
            if text.strip():
                yield Sentence(line, " ".join(text.split()))


def _blocks(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each paragraph, heading, list item and table cell."""
    first, block = 0, list[str]()
    fence = ""
    for number, line in enumerate(markdown.splitlines(), 1):
        mark = _FENCE.match(line)
        is_code = bool(fence or mark)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
            fence = ""
        is_row = line.lstrip().startswith("|")
        start = _BLOCK_START.match(line)
        if block and (is_code or is_row or start or not line.strip()):
            yield first, "\n".join(block)
            block = []
        is_code = is_code or (not block and not start and line.startswith("    "))
        if is_row and not is_code and not _TABLE_RULE.match(line):
            yield from ((number, cell) for cell in _CELL_END.split(line))
        elif line.strip() and not is_code and not is_row:
            first = first if block else number
            block.append(line[start.end() :] if start else line)
    if block:
        yield first, "\n".join(block)


def main() -> int:
    """Print a line for each sentence that is too long."""
    chosen = [Path(name).resolve() for name in sys.argv[1:]] or pages()
    found = [(page, sentence) for page in chosen for sentence in long_sentences(page.read_text())]
    for page, sentence in found:
        begin = " ".join(sentence.text.split()[:8])
        print(f"{page.relative_to(ROOT)}:{sentence.line}: {sentence.words} words: {begin} ...")
    if found:
        print(f"Split what has more than {WORDS_MAX} words: one idea a sentence.", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
