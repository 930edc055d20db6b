"""Every `fila` command that a page shows is one the command line understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from fila_cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def _commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for block in re.findall(r"^```(?:sh|console)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            lines = block.replace("\\\n", " ").splitlines()
            found += [(page.name, line.removeprefix("$ ")) for line in lines]
    return [(page, line) for page, line in found if line.startswith("fila ")]


def _words(line: str) -> list[str]:
    """The command's own words, up to a pipe, a redirection or a comment."""
    words = shlex.split(line, comments=True)
    ends = [i for i, word in enumerate(words) if word[0:1] in ("|", "<", ">", "&", ";")]
    return words[1 : min(ends, default=len(words))]


def _understand(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    context = command.make_context(command.name, list(words), parent=parent)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        _, inner, rest = command.resolve_command(context, rest)
        assert inner is not None
        _understand(inner, rest, context)


def test_the_command_lines_readme_has_every_command():
    rows = [
        row.split("|")[1]
        for row in (ROOT / "cli/README.md").read_text().splitlines()
        if row.startswith("| `")
    ]
    context = click.Context(main.fila)
    for name in main.fila.list_commands(context):
        command = main.fila.get_command(context, name)
        assert command is not None
        beside = " ".join(row for row in rows if re.search(rf"`{name}[ `]", row))
        inner = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
        missing = [word for word in (name, *inner) if not re.search(rf"(?<![\w-]){word}(?![\w-])", beside)]
        assert command.hidden or not missing, f"fila {name}"


def test_the_pages_show_commands():
    assert len(_commands()) > 20


@pytest.mark.parametrize(("page", "line"), _commands())
def test_a_command_on_a_page_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, line: str
):
    monkeypatch.chdir(tmp_path)
    words = _words(line)
    for word in words:
        if word.startswith("@"):
            Path(word[1:]).write_text("-- a script of the reader's")

    _understand(main.fila, words)


def _names() -> list[tuple[str, str]]:
    """Commands that a page names in passing, with or without what belongs to them."""
    pages = [*PAGES, ROOT / "cli/README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "sdks").glob("*/README.md")]
    found = {
        (page.name, line)
        for page in pages
        for line in re.findall(r"`(fila [a-z][^`\n]*)`", page.read_text())
        if "|" not in line and "..." not in line
    }
    return sorted(found)


@pytest.mark.parametrize(("page", "line"), _names())
def test_a_command_that_a_page_names_is_there_with_its_flags(page: str, line: str):
    command: click.Command = main.fila
    for word in _words(line):
        if isinstance(command, click.Group) and not word.startswith("-"):
            inner = command.get_command(click.Context(command), word)
            assert inner is not None, f"fila has no {word}"
            command = inner
        elif word.startswith("-"):
            flags = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
            assert word.partition("=")[0] in flags
