"""Plays all scenarios through a language's driver once; each test then asks how its scenario went."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from runner.drivers import Language
from runner.suite import REPOSITORY, Outcomes, play


@pytest.fixture(scope="session")
def outcomes_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Language], Outcomes]:
    """Play a language's scenarios when its first test asks."""
    played: dict[str, Outcomes] = {}

    def outcomes(language: Language) -> Outcomes:
        if language.name not in played:
            if language.build:
                subprocess.run(language.build, cwd=REPOSITORY, check=True, timeout=600)
            played[language.name] = play(language, tmp_path_factory.mktemp(f"conformance-{language.name}"))
        return played[language.name]

    return outcomes
