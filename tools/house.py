"""The house's rules that take more than one file to see; each breach is a line.

    python tools/house.py        fails when there is a breach

- the rooms of the compiled core, in order and without a circle (core_rooms.py);
- no compiled module so small that its one user could hold it;
- no `.pxd` of storage/ and threads/ that most modules read, so that a touch of it compiles them all;
- no number of a field of the wire outside `core/protocol`: the generated names stand there;
- no word that CONTRIBUTING's table has replaced, in an identifier or a module's name of the server;
- one edge;
- no path to a file that does not exist, in pages, tools, benchmarks and the catalogue of planted faults;
- no sentence that has to be read twice, on the pages that a reader meets first (sentences.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import core_rooms, sentences

ROOT = Path(__file__).resolve().parents[1]
SERVER = "server/src/fila_server"

LINES_OF_ONE_USER = 60
SMALL_AND_RIGHT = {
    "core.runtime.engine_numbers": "engine.pyx would be longer than 500 lines with it",
    "core.runtime.settings": "engine.pyx would be longer than 500 lines with it",
    "core.state.shared": "state.pxd would be longer than 500 lines with it",
}

# How many modules a touch of a room's `.pxd` may compile, and those that are everybody's subject.
TOUCH_MAX = {"storage": 40, "threads": 30}
TOUCHED_BY_NATURE = {"rocksdb", "mailbox", "locks"}

NUMBERS = {
    "a field by its number": re.compile(r"\bfield == \d"),
    "a text by its number": re.compile(r"(?<!error)\.text\[\d"),
    "a field written by its number": re.compile(r"\bput_\w+\((?:[^()\n]|\([^()\n]*\))*?,\s*\d+,"),
}

# Parts of an identifier that say it all, wherever they stand.
STRUCK_PARTS = {
    "desk": "admin",
    "holdings": "index",
    "doors": "threads, requests",
    "door": "admission",
    "bury": "dead-letter",
    "buried": "dead-letter",
    "burial": "dead-letter",
    "told": "reported, notified",
    "outlook": "forecast",
    "pace": "key rate limit",
    "paced": "key rate limit",
}
# Words that mean something else elsewhere: where they are struck, and as which identifiers.
STRUCK_NAMES = (
    ("core/(scheduling|state|index)/", r"(?!prefetch)(Lines?|lines?|line_\w+|\w+_lines?)", "waiters"),
    ("core/admin/", r"Looks|looks|looks_\w+|may_look", "step budget"),
    ("core/", r"kept_\w+|late_\w+|(KEPT|LATE)_(CHANGE|READ|PAGE)", "operation record, waiting longest"),
    ("", r"Places", "call limits"),
    ("edge/(io|grpc|redis)/.*p[xy][dx]$", r"Slot|slots?|slot_\w+", "token entry"),
)
STRUCK_MODULES = (
    set(STRUCK_PARTS) | {"care", "drive", "turns", "life", "edges", "late", "looks", "kept", "places"}
) - {"told"}
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

GONE_ROOMS = {"wire", "doors", "desk", "care", "drive", "turns", "holdings", "life", "edges"}
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**/*.md")
SCRIPTS = (
    "tests/faults/*.py",
    "tests/fuzz/**/*.py",
    "tests/threads.py",
    "tools/**/*.py",
    "bench/**/*.py",
)
# From where a page names files: `core/...`, `lifecycle/...`, `commands/...`.
BASES = (
    "",
    SERVER,
    f"{SERVER}/core",
    f"{SERVER}/edge",
    "tests",
    "cli/src",
    "cli/src/fila_cli",
    "sdks/python/src/fila",
    "console/src/fila_console",
    "pipeline/src/fila_pipeline",
    "bench",
    "bench/fila_bench",
)
PATH_IN_TEXT = re.compile(
    r"(?<![\w./:*{<-])((?:[\w-]+/)+[\w-]+)(\.(?:py|pyx|pxd|pyi|lua|proto))?(?![\w/{*<-])"
)
MODULE_IN_TEXT = re.compile(r"\bfila_server((?:\.\w+)+)")
QUOTED_IN_PAGE = re.compile(r"`([^`\n]+)`")


def code(path: Path) -> str:
    """A source file without comments and without what stands in quotes."""
    return core_rooms.stripped(path.read_text())


def sources(*suffixes: str) -> list[Path]:
    return sorted(path for path in (ROOT / SERVER).rglob("*") if path.suffix in suffixes)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / SERVER).with_suffix("").as_posix().replace("/", ".")


def small() -> Iterator[str]:
    """Compiled modules of few lines that one module knows: a name and a file more, and nothing apart."""
    lines: dict[str, int] = {}
    users: dict[str, set[str]] = {}
    for path in [*sources(".pyx", ".pxd", ".py"), *(ROOT / "tests/native").glob("*.pyx")]:
        inside = path.is_relative_to(ROOT / SERVER)
        name = name_of(path) if inside else path.name
        if path.suffix != ".py":
            lines[name] = lines.get(name, 0) + len(path.read_text().splitlines())
        for module, what in core_rooms.taken(code(path)):
            known = module.removeprefix("fila_server.")
            for each in (known, f"{known}.{what}"):
                users.setdefault(each, set()).add(name)
    for name, length in sorted(lines.items()):
        others = users.get(name, set()) - {name}
        if length < LINES_OF_ONE_USER and len(others) == 1 and name not in SMALL_AND_RIGHT:
            yield f"{name} has {length} lines and one user, {others.pop()}: let that hold it"


def numbered() -> Iterator[str]:
    for path in sources(".pyx", ".pxd"):
        if "core/protocol/" in path.as_posix():
            continue
        for number, line in enumerate(code(path).splitlines(), 1):
            for what, pattern in NUMBERS.items():
                if pattern.search(line):
                    yield f"{path.relative_to(ROOT)}:{number} names {what}; core/protocol/v1.pxd has its name"


def costs() -> Iterator[tuple[str, int]]:
    """Of each `.pxd` in storage/ and threads/: how many modules are compiled again when it is touched."""
    knows: dict[Path, set[Path]] = {}
    for path in sources(".pyx", ".pxd"):
        files = {
            ROOT / "server/src" / f"{module.replace('.', '/')}.pxd"
            for module, _ in core_rooms.taken(code(path))
        }
        files |= {
            ROOT / "server/src" / f"{f'{m}.{n}'.replace('.', '/')}.pxd"
            for m, n in core_rooms.taken(code(path))
        }
        knows[path] = {file for file in files | {path.with_suffix(".pxd")} if file.exists() and file != path}
    modules = [path for path in knows if path.suffix == ".pyx"]

    def reads(path: Path, seen: set[Path]) -> set[Path]:
        for other in knows[path] - seen:
            seen.add(other)
            reads(other, seen)
        return seen

    read = [reads(module, set()) for module in modules]
    for path in sorted(knows):
        room = path.parent.name
        if path.suffix == ".pxd" and room in TOUCH_MAX and path.stem not in TOUCHED_BY_NATURE:
            yield f"core.{room}.{path.stem}", sum(path in files for files in read)


def dear() -> Iterator[str]:
    for name, count in costs():
        most = TOUCH_MAX[name.split(".")[1]]
        if count > most:
            yield f"{name}.pxd is read by {count} modules; {most} are the end: hold its struct by pointer"


def struck() -> Iterator[str]:
    for path in sources(".py", ".pyx", ".pxd", ".pyi"):
        within = path.relative_to(ROOT / SERVER).as_posix()
        for word in sorted(STRUCK_MODULES & set(re.split(r"[/_.]", within.rpartition(".")[0]))):
            yield f"{SERVER}/{within} has a name that is struck: {word}"
        for name in sorted(set(IDENTIFIER.findall(code(path)))):
            parts = {part.lower() for part in PART.findall(name)}
            for word in sorted(parts & set(STRUCK_PARTS)):
                yield f"{SERVER}/{within}: {name}: for {word} the word is {STRUCK_PARTS[word]}"
            for where, pattern, instead in STRUCK_NAMES:
                if re.match(where, within) and re.fullmatch(pattern, name):
                    yield f"{SERVER}/{within}: {name}: the word is {instead}"


def second_edge() -> Iterator[str]:
    for name in ("stream", "pulls"):
        if (ROOT / SERVER / "broker" / f"{name}.py").exists():
            yield f"{SERVER}/broker/{name}.py: streams are the edge's"
    for pattern in ("*.md", "server/src/**/*.py", "tests/**/*.py", "bench/**/*.py", "docs/**/*.md"):
        for path in sorted(ROOT.glob(pattern)):
            # What was decided stays as it was told.
            if path.parent.name != "adr" and re.search(r'\bedge = "python"', path.read_text()):
                yield f"{path.relative_to(ROOT)} names an edge to choose; there is one"


def exists(text: str, beside: Path) -> bool:
    """Whether a page's path is there: a module may stand without its suffix, and with a name of its own."""
    module = text.partition(".")[0]
    for base in (*(ROOT / base for base in BASES), beside):
        if (base / text).exists():
            return True
        if any((base / f"{module}{suffix}").exists() for suffix in (".py", ".pyx", ".pxd")):
            return True
    return False


def names_a_file(text: str, suffix: str, page: Path) -> bool:
    """Whether it is meant as a path: a source file, or a module of a room."""
    first = text.partition("/")[0]
    if page.parent.name == "adr" and "/test_" in text:
        return False  # it says where a test was
    rooms = {*core_rooms.ROOMS, "core", "edge"} | (GONE_ROOMS if page.suffix == ".md" else set())
    return bool(suffix) or (first in rooms and text.count("/") == 1)


def dead_paths() -> Iterator[str]:
    files = [path for pattern in (*PAGES, *SCRIPTS) for path in sorted(ROOT.glob(pattern))]
    for path in files:
        if path.name == "house.py" or "_pb2" in path.name:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            pieces = QUOTED_IN_PAGE.findall(line) if path.suffix == ".md" else [line]
            for piece in pieces:
                for text, suffix in PATH_IN_TEXT.findall(piece):
                    if names_a_file(text, suffix, path) and not exists(text + suffix, path.parent):
                        yield f"{path.relative_to(ROOT)}:{number} names {text}{suffix}, which does not exist"
                for dotted in MODULE_IN_TEXT.findall(piece):
                    if not module_exists(dotted.strip(".").split(".")):
                        yield f"{path.relative_to(ROOT)}:{number} names fila_server{dotted}, which does not exist"


def module_exists(names: list[str]) -> bool:
    """A module or package below the server, or something in it."""
    at = ROOT / SERVER
    if names[0] == "libs":
        return True  # what auditwheel adds to a wheel
    for name in names:
        if (at / name).is_dir():
            at /= name
        else:
            return (
                any((at / f"{name}{suffix}").exists() for suffix in (".py", ".pyx", ".pxd"))
                or name[:1].isupper()
            )
    return True


def wordy() -> Iterator[str]:
    for page in sentences.pages():
        for sentence in sentences.long_sentences(page.read_text()):
            yield f"{page.relative_to(ROOT)}:{sentence.line} has a sentence of {sentence.words} words; split it"


def breaches() -> Iterator[str]:
    yield from core_rooms.faults()
    yield from small()
    yield from numbered()
    yield from dear()
    yield from struck()
    yield from second_edge()
    yield from dead_paths()
    yield from wordy()


if __name__ == "__main__":
    found = list(breaches())
    for breach in found:
        print(breach)
    sys.exit(bool(found))
