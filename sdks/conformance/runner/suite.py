"""All scenarios through one language's driver, beside each other; what came out of each, by its name."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from runner.broker import Broker
from runner.certificates import make as make_certificates
from runner.drivers import Driver, Language, languages
from runner.meddler import Fault
from runner.play import Stage
from runner.scenarios import Scenario, load

HERE = Path(__file__).parent.parent
REPOSITORY = HERE.parent.parent
AT_ONCE = 6
IMPATIENT_MS = 5_000
ATTEMPTS = 4
"""At a scenario that counts frames. How many a client sends depends on the pace as well: one that says too much does so
each time, and a machine that stood still for a moment does not."""

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
ENDS_BY_ITSELF = "the driver ends by itself"


def scenarios_of(language: Language) -> list[Scenario]:
    """Return the chosen scenarios that a language can play."""
    return [scenario for scenario in SCENARIOS if not scenario.needs & language.lacks]


def impatient(scenario: Scenario) -> Scenario:
    """Return a scenario that waits for what it expects a few seconds at most: with a fault planted it waits in vain."""
    steps = [
        dataclasses.replace(step, within_ms=min(step.within_ms, IMPATIENT_MS)) if step.within_ms else step
        for step in scenario.steps
    ]
    return dataclasses.replace(scenario, steps=tuple(steps))


@dataclass(frozen=True)
class Part:
    """Scenarios to play with one fault planted, or with none."""

    scenarios: list[Scenario]
    fault: Fault | None = None


async def play_all(language: Language, parts: list[Part], folder: Path) -> list[Outcomes]:
    """Return, part by part, what went wrong in each scenario; None where nothing did."""
    driver = await Driver.start(language, REPOSITORY, folder / "driver.log")
    shared = Broker(folder / "shared", {})
    certificates = folder / "certificates"
    make_certificates(certificates)
    await shared.start()
    places = asyncio.Semaphore(AT_ONCE)
    outcomes: list[Outcomes] = [{} for _ in parts]

    async def one(number: int, scenario: Scenario) -> None:
        async with places:
            stage = Stage(driver, shared, folder, certificates, parts[number].fault)
            wrong = await stage.play(scenario)
            left = ATTEMPTS - 1 if scenario.counts_frames and stage.fault is None else 0
            while wrong is not None and left > 0:
                wrong, left = await stage.play(scenario), left - 1
            outcomes[number][scenario.name] = wrong

    try:
        await asyncio.gather(
            *(one(number, scenario) for number, part in enumerate(parts) for scenario in part.scenarios)
        )
        exit_code = await driver.stop()
        outcomes[0][ENDS_BY_ITSELF] = None if exit_code == 0 else f"exit code {exit_code}"
    finally:
        await shared.kill()
    return outcomes


def play(language: Language, parts: list[Part], folder: Path) -> list[Outcomes]:
    """Play scenarios through a language's driver, which has been built."""
    started = dataclasses.replace(language, command=interpreted(language.command))
    return asyncio.run(play_all(started, parts, folder))


def interpreted(command: tuple[str, ...]) -> tuple[str, ...]:
    """Replace `python` by the interpreter that runs the suite."""
    return tuple(sys.executable if word == "python" else word for word in command)
