"""All scenarios through one language's driver, beside each other; what came out of each, by its name."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from runner.broker import Broker
from runner.drivers import Driver, Language, languages
from runner.play import Stage
from runner.scenarios import Scenario, load

HERE = Path(__file__).parent.parent
REPOSITORY = HERE.parent.parent
AT_ONCE = 6

SCENARIOS = [
    scenario
    for scenario in load(HERE / "scenarios")
    if os.environ.get("SCENARIOS", "") in f"{scenario.file}: {scenario.name}"
]
_CHOSEN = os.environ.get("LANGUAGES")
LANGUAGES = [
    language
    for language in languages(HERE / "drivers.yaml")
    if not _CHOSEN or language.name in _CHOSEN.split(",")
]

Outcomes = dict[str, str | None]


def scenarios_of(language: Language) -> list[Scenario]:
    """Return the chosen scenarios that a language can play."""
    return [scenario for scenario in SCENARIOS if not scenario.needs & language.lacks]


async def play_all(language: Language, scenarios: list[Scenario], folder: Path) -> Outcomes:
    """Return what went wrong in each scenario; None where nothing did."""
    driver = await Driver.start(language, REPOSITORY, folder / "driver.log")
    shared = Broker(folder / "shared", {})
    await shared.start()
    stage = Stage(driver, shared, folder)
    places = asyncio.Semaphore(AT_ONCE)
    outcomes: Outcomes = {}

    async def one(scenario: Scenario) -> None:
        async with places:
            outcomes[scenario.name] = await stage.play(scenario)

    try:
        await asyncio.gather(*(one(scenario) for scenario in scenarios))
        exit_code = await driver.stop()
        outcomes["the driver ends by itself"] = None if exit_code == 0 else f"exit code {exit_code}"
    finally:
        await shared.kill()
    return outcomes


def play(language: Language, folder: Path) -> Outcomes:
    """Play what was chosen through a language's driver, which has been built."""
    command = tuple(sys.executable if word == "python" else word for word in language.command)
    return asyncio.run(play_all(Language(language.name, (), command), scenarios_of(language), folder))
