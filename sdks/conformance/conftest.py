"""Plays all scenarios through a language's driver once; each test then asks how its scenario went."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable

import pytest
from runner.drivers import Language
from runner.faults import FAULTS, NO_FAULT
from runner.suite import REPOSITORY, Outcomes, Part, impatient, play, scenarios_of

Play = Callable[[Language, list[Part]], list[Outcomes]]


@pytest.fixture(scope="session")
def play_in(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Build a language's driver when it is first asked for, and play scenarios through it."""
    built: set[str] = set()

    def play_in(language: Language, parts: list[Part]) -> list[Outcomes]:
        if language.build and language.name not in built:
            subprocess.run(language.build, cwd=REPOSITORY, check=True, timeout=600)
        built.add(language.name)
        return play(language, parts, tmp_path_factory.mktemp(f"conformance-{language.name}"))

    return play_in


@pytest.fixture(scope="session")
def outcomes_of(play_in: Play) -> Callable[[Language], Outcomes]:
    """Play a language's scenarios when its first test asks."""

    @functools.cache
    def outcomes(language: Language) -> Outcomes:
        return play_in(language, [Part(scenarios_of(language))])[0]

    return outcomes


@pytest.fixture(scope="session")
def outcomes_with_faults(play_in: Play) -> Callable[[Language], dict[str, Outcomes]]:
    """Play, for each planted fault, the scenarios that must notice it."""

    @functools.cache
    def outcomes(language: Language) -> dict[str, Outcomes]:
        playable = scenarios_of(language)
        noticing = tuple(name for fault in FAULTS for name in fault.noticed_by)
        parts = [Part([one for one in playable if one.name.startswith(noticing)], NO_FAULT)]
        parts += [
            Part([impatient(one) for one in playable if one.name.startswith(fault.noticed_by)], fault)
            for fault in FAULTS
        ]
        names = [NO_FAULT.name, *(fault.name for fault in FAULTS)]
        return dict(zip(names, play_in(language, parts), strict=True))

    return outcomes
