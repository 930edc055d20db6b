"""Rules of the house that no linter knows: lengths, names, addresses, generated code, numbers kept twice."""

import ast
import gc
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import grpc
import pytest

from fila_server.core.protocol import commands

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "server/src/fila_server/core"

NOT_OURS = {"build", "data", "dist", "history", "node_modules", "target", "__pycache__"}
PYTHON = {".py", ".pyx", ".pxd"}
SOURCES = PYTHON | {".pyi", ".proto", ".go", ".js", ".ts", ".java", ".lua", ".sh", ".c"}
TEXTS = SOURCES | {
    ".cfg",
    ".html",
    ".in",
    ".json",
    ".md",
    ".mod",
    ".toml",
    ".txt",
    ".xml",
    ".yaml",
    ".yml",
    "",
}

GENERATED = [
    line.split()[0]
    for line in (ROOT / ".gitattributes").read_text().splitlines()
    if "linguist-generated=true" in line
]
GENERATED_MARK = re.compile(
    r"^(#|//) (Code |@)?generated (from proto/|by )",
    re.MULTILINE | re.IGNORECASE,
)

LINES_MAX = 500
COLUMNS_MAX = 110
FUNCTION_LINES_MAX = 60
BANNED_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
ADDRESSES = re.compile(
    r"/work/|/root/|/home/\w|/Users/\w"
    r"|pypi\.org|pythonhosted|npmjs\.(org|com)|proxy\.golang\.org|repo1?\.maven|crates\.io"
)
CLOCKS_AND_DICE = re.compile(
    r"clock_gettime|gettimeofday|getrandom|urandom|\brand\(|^\s*(c?import|from) (time|posix\.time|random|secrets)\b",
    re.MULTILINE,
)
# Where real time touches the core: the thread that tells it the time in a server, and the mailbox, whose wait needs
# a deadline. Tests run everything else without either.
NEAR_THE_CLOCK = {"mailbox", "scheduler_thread"}


def files(suffixes: set[str]) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(ROOT):
        hidden = (name for name in folders if name.startswith(".") and name != ".ci")
        folders[:] = sorted(set(folders) - NOT_OURS - set(hidden))
        # In a linked worktree .git is a file, and names the machine.
        paths = (Path(folder, name) for name in names if name != ".git")
        found += [path for path in paths if path.suffix in suffixes and not is_compiler_output(path)]
    return sorted(found)


def is_compiler_output(path: Path) -> bool:
    return path.suffix == ".c" and path.with_suffix(".pyx").exists()


def is_generated(path: Path) -> bool:
    """Whether .gitattributes says so: one list for git, for people and for these tests."""
    name = path.relative_to(ROOT).as_posix()
    return any(fnmatch(name, pattern) for pattern in GENERATED)


def named(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def test_no_module_is_longer_than_anybody_reads():
    ours = [path for path in files(SOURCES) if not is_generated(path) and path.suffix != ".proto"]
    too_long = [path for path in ours if len(path.read_text().splitlines()) > LINES_MAX]
    assert not named(too_long), f"more than {LINES_MAX} lines: look for the missing noun"


def test_nobody_elses_packages_are_in_the_repository():
    """They come from where they are published, at set-up, by version and hash."""
    assert not named(files({".whl", ".jar", ".egg", ".deb", ".tgz"}))


def test_compiled_code_keeps_to_110_columns():
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files({".pyx", ".pxd"})
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > COLUMNS_MAX
    ]
    assert not wide


def test_compiled_functions_are_no_longer_than_a_screen():
    found = {
        f"{path.relative_to(ROOT)} {function}": length
        for path in files({".pyx"})
        for function, length in functions(path.read_text())
        if length > FUNCTION_LINES_MAX
    }
    assert not found


def test_python_functions_are_no_longer_than_a_screen(request: pytest.FixtureRequest):
    gc.disable()  # the trees have no circles, and looking for them takes longer than parsing
    request.addfinalizer(gc.enable)
    texts = ((path, path.read_text()) for path in files({".py"}) if not is_generated(path))
    found = {
        f"{path.relative_to(ROOT)} {node.name}": length
        for path, text in texts
        if text.count("\n") >= FUNCTION_LINES_MAX
        for node in statements(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert not found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All of them, however deep; an expression, which is most of a tree, has none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from statements(child)


def functions(text: str) -> list[tuple[str, int]]:
    """Name and length of each function of a .pyx, methods too: up to the next line that is not indented more."""
    lines = text.splitlines()
    found = []
    for first, line in enumerate(lines):
        begin = re.match(r"( *)(?:cdef|cpdef|def|async def) (?!class )[^=(]*?(\w+)\(", line)
        if not begin:
            continue
        inside = re.compile(rf" {{{len(begin[1]) + 1},}}\S|\s*$|{begin[1]}\)")
        end = next((n for n in range(first + 1, len(lines)) if not inside.match(lines[n])), len(lines))
        while not lines[end - 1].strip():
            end -= 1
        found.append((begin[2], end - first))
    return found


def test_no_module_has_a_name_that_says_nothing():
    vague = [path for path in files(SOURCES) if path.stem in BANNED_NAMES or path.parent.name in BANNED_NAMES]
    assert not named(vague), "a module is named after what it holds"


def test_every_compiled_module_opens_with_why_it_exists():
    """A .pyx says how it keeps what its .pxd promises, where that takes words."""
    silent = [
        path
        for path in files({".pyx", ".pxd"})
        if not re.match(r'(\s*#[^\n]*\n|\s*\n)*"""', path.read_text()) and path.read_text().strip()
    ]
    promised = [path for path in silent if path.suffix == ".pyx" and path.with_suffix(".pxd").exists()]
    assert not named(sorted(set(silent) - set(promised)))


def test_no_file_names_a_machine_or_a_registry():
    ours = [path for path in files(TEXTS) if path != Path(__file__).resolve()]
    leaking = [path for path in ours if ADDRESSES.search(path.read_text(errors="replace"))]
    assert not named(leaking), "the repository must build anywhere, from any registry"


def test_lock_files_hold_hashes_and_no_addresses():
    requirements = sorted((ROOT / "requirements").glob("*.txt"))
    packages = [path for path in files({".json"}) if path.name == "package-lock.json"]
    assert requirements
    assert packages
    for path in requirements:
        assert "--hash=sha256:" in path.read_text(), named([path])
    for path in requirements + packages:
        assert "://" not in path.read_text(), named([path])


def test_the_core_never_reads_a_clock_or_throws_dice():
    core = [path for path in files(PYTHON) if path.is_relative_to(CORE) and path.stem not in NEAR_THE_CLOCK]
    assert not named([path for path in core if CLOCKS_AND_DICE.search(path.read_text())])


def test_python_and_compiled_code_agree_on_every_command_number():
    in_python = {name: value for name, value in vars(commands).items() if name.isupper()}
    in_core = {
        name: int(value)
        for name, value in re.findall(
            r"^ +(\w+) = (\d+)$", (CORE / "protocol/commands.pxd").read_text(), re.MULTILINE
        )
    }
    status_codes = {code.name: code.value[0] for code in grpc.StatusCode}
    assert in_python.items() <= in_core.items()
    assert in_core.items() <= (in_python | status_codes).items()


def test_no_two_commands_have_one_number():
    """Two branches that each take the next free number would merge without a conflict."""
    enums = re.findall(
        r"cdef enum (\w+):\n((?: +.*\n)+)", (CORE / "protocol/commands.pxd").read_text() + "\n"
    )
    numbers = {name: re.findall(r"^ +\w+ = (\d+)$", body, re.MULTILINE) for name, body in enums}
    assert len(numbers["CommandKind"]) > 50
    for name, given in numbers.items():
        assert [n for n in given if given.count(n) > 1] == [], f"{name} gives these numbers twice"


def test_generated_code_says_so_to_people_and_to_git():
    code = files(SOURCES)
    marked = [path for path in code if GENERATED_MARK.search(path.read_text()[:2000])]
    generated = [path for path in code if is_generated(path)]
    assert generated
    assert set(named(generated)) == set(named(marked))


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "Pipfile.lock"])
def test_no_lock_file_that_records_addresses_is_kept(name):
    assert not (ROOT / name).exists()


def test_the_glossary_gives_each_word_one_meaning():
    """And the words that had several are no names in the core any more."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## One word, one meaning")[2].partition("## ")[0]
    words = [
        word.strip() for row in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE) for word in row.split(",")
    ]
    assert len(words) > 20
    assert sorted(words) == sorted(set(words))
    core = "\n".join(path.read_text() for path in files({".pyx", ".pxd"}) if path.is_relative_to(CORE))
    assert not re.findall(
        r"cdef struct (?:Waiting|Waits|Held|KeptLease|Decided)\b|\bmirror_(?:update|heal)\b", core
    )
