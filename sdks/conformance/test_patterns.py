"""The programs of docs/patterns, in every language: each prints what its page says."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from runner.broker import Broker
from runner.drivers import Language
from runner.suite import LANGUAGES, REPOSITORY, interpreted

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

PAGES = sorted(path for path in (REPOSITORY / "docs" / "patterns").glob("*.md") if path.name != "README.md")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_PROGRAMS = [
    pytest.param(language, id=language.name) for language in LANGUAGES if language.program is not None
]

MOVING_PAGES = [REPOSITORY / "docs/coming-from/bullmq.md"]
"""Each in the one language of those who come from there."""
MOVING = [
    pytest.param(page, language, id=page.stem)
    for page in MOVING_PAGES
    for language in LANGUAGES
    if language.program is not None and language.program.fence in dict(BLOCK.findall(page.read_text()))
]


@pytest.fixture(scope="module")
def broker_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker for all programs: each makes queues of its own."""
    broker = Broker(tmp_path_factory.mktemp("patterns"), {})
    with asyncio.Runner() as runner:
        runner.run(broker.start())
        yield broker.address
        runner.run(broker.kill())


@pytest.mark.parametrize("language", WITH_PROGRAMS)
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_pattern_prints_what_its_page_says(
    page: Path, language: Language, broker_address: str, tmp_path: Path
) -> None:
    _prints_what_it_says(page, language, broker_address, tmp_path)


@pytest.mark.parametrize(("page", "language"), MOVING)
def test_a_program_for_newcomers_prints_what_its_page_says(
    page: Path, language: Language, broker_address: str, tmp_path: Path
) -> None:
    _prints_what_it_says(page, language, broker_address, tmp_path)


def _prints_what_it_says(page: Path, language: Language, broker_address: str, tmp_path: Path) -> None:
    assert language.program is not None
    blocks = dict(BLOCK.findall(page.read_text()))
    assert language.program.fence in blocks, f"{page.name} has no {language.program.fence} program"
    file = tmp_path / language.program.file
    file.write_text(blocks[language.program.fence])
    command = [word.replace("$file", str(file)) for word in interpreted(language.program.command)]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "FILA_ADDR": broker_address},
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.stdout == blocks["text"], done.stderr
    assert done.returncode == 0, done.stderr
