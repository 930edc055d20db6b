"""The names under which Fila is published are ours: no page, error or requirement sends anyone to a stranger's package.

`fila` on the Python registry and `fila-sdk` on the Rust one belong to other people.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from setuptools import find_packages

ROOT = Path(__file__).resolve().parents[2]
PARTS = {".": "fila-server", "sdks/python": "fila-mq", "cli": "fila-cli", "pipeline": "fila-spark"}
"""Where the pyproject.toml of each distribution is."""
OURS = ("fila-mq", "fila-server", "fila-cli", "fila-spark")
INSTALL = re.compile(
    r"\b(?:pip3?|uv|uvx|pipx|poetry|conda)\b[^\n#`]*?\b(?:install|add|download|wheel|run)\b([^\n#`]*)"
)
"""A line that installs, up to a comment or the end of its code span: the first group is what it names."""
STRANGERS = re.compile(r"(?<![\w./-])fila(?:\[[a-z]|\s*[=<>~!]=\s*\d)|fila[-_]sdk")
NOT_PUBLISHED = re.compile(
    r"npm (?:i|install|add) [^\n#`]*@fila-mq/|go get [^\n#`]*github\.com/fila-mq|cargo add fila|gem install fila"
)


def projects() -> dict[str, dict[str, Any]]:
    return {part: tomllib.loads((ROOT / part / "pyproject.toml").read_text()) for part in PARTS}


def pages() -> list[tuple[str, int, str]]:
    """Each line of every text that people wrote, but for this file."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = []
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if (
            not name
            or path == Path(__file__)
            or not path.is_file()
            or path.suffix in {".lock", ".sum", ".java"}
        ):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        lines += [(name, number, line) for number, line in enumerate(text.splitlines(), 1) if "fila" in line]
    return lines


def what_is_wrong_with(line: str) -> str:
    """Why a line must not be printed, or nothing."""
    if STRANGERS.search(line):
        return "this names a stranger's package"
    if NOT_PUBLISHED.search(line):
        return "nothing is published there yet: say how to install it from a checkout"
    for installed in INSTALL.finditer(line):
        named = [re.split(r"[\[=<>~!]", word.strip("\"'"))[0] for word in installed[1].split()]
        if "fila" in named:
            return "`fila` is a stranger's package: ours is fila-mq"
        if set(named) & set(OURS) and not {"--no-index", "--find-links"} <= set(named):
            return "nothing is published yet: this asks a registry for a name that anyone may take"
    return ""


def test_no_page_error_or_requirement_names_a_package_of_a_stranger_or_one_that_is_not_published():
    wrong = [
        f"{name}:{number}: {why}: {line.strip()}"
        for name, number, line in pages()
        if (why := what_is_wrong_with(line))
    ]

    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [
        "pip install fila",
        "run `pip install 'fila[opentelemetry]'` first",
        "/opt/x/bin/pip install --quiet fila",
        "pip install grpcio fila>=0.1",
        "uv add fila",
        '    "fila==0.1.0",',
        "fila[http]==0.1.0",
        "fila >= 0.1",
        "cargo add fila-sdk",
        "pip install fila-mq",
        "pip install 'fila-server[http]'",
        "pip install --find-links dist fila-server",
        "npm install @fila-mq/client",
        "go get github.com/fila-mq/fila/sdks/go",
    ],
)
def test_such_a_line_is_found(line: str):
    assert what_is_wrong_with(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install ./sdks/python ./cli '.[http]'",
        "/opt/fila/bin/pip install --no-index --find-links dist fila-server",
        "pip install dist/fila_mq-*.whl",
        "pip install httptools    # beside `fila`",
        "npm install ./sdks/js",
        "import fila",
    ],
)
def test_a_line_that_works_from_a_checkout_or_from_dist_is_not(line: str):
    assert not what_is_wrong_with(line)


def test_each_distribution_has_its_name_and_needs_none_of_a_stranger():
    for part, project in projects().items():
        about = project["project"]
        assert about["name"] == PARTS[part]
        lists = [about["dependencies"], *about.get("optional-dependencies", {}).values()]
        names = {Requirement(each).name for wanted in lists for each in wanted}
        assert "fila" not in names
        assert {name for name in names if name.startswith("fila")} <= set(OURS)


def test_the_parts_of_a_release_want_each_other_in_their_own_version():
    for project in projects().values():
        about = project["project"]
        for each in map(Requirement, about["dependencies"]):
            assert each.name not in OURS or str(each.specifier) == f"=={about['version']}"


def test_no_package_is_in_two_distributions():
    owners: dict[str, str] = {}
    for part, project in projects().items():
        for where in project["tool"]["setuptools"]["packages"]["find"]["where"]:
            for package in find_packages(str(ROOT / part / where)):
                assert owners.setdefault(package, part) == part, f"{package} is also in {owners[package]}"
    assert {
        owners[package] for package in ("fila", "fila_cli", "fila_server", "fila_console", "pyspark_fila")
    } == set(PARTS)


@pytest.mark.parametrize(
    ("printed_by", "part", "extra"),
    [
        ("cli/src/fila_cli/commands/http.py", "cli", "http"),
        ("cli/src/fila_cli/commands/console.py", ".", "console"),
        ("cli/src/fila_cli/commands/history.py", "cli", "history"),
        ("server/src/fila_server/start_checks.py", ".", "history"),
    ],
)
def test_an_error_names_the_libraries_of_its_extra(printed_by, part, extra):
    [said] = re.findall(r"pip install ([a-z0-9 ]+)", (ROOT / printed_by).read_text())
    wanted = projects()[part]["project"]["optional-dependencies"][extra]

    assert said.split() == sorted(Requirement(each).name for each in wanted)


def test_the_page_about_installing_has_a_line_for_every_package():
    page = (ROOT / "docs/install.md").read_text()
    table = {row.split("`")[1] for row in page.splitlines() if row.startswith("| `")}

    assert table >= {*OURS, "@fila-mq/client", "dev.fila:fila-client", "github.com/fila-mq/fila/sdks/go"}
