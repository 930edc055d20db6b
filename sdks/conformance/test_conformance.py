"""Every scenario in every language. README.md tells how to run some of them, and how to write one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from runner.drivers import Language
from runner.scenarios import Scenario
from runner.suite import LANGUAGES, Outcomes, scenarios_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PAIRS = [
    pytest.param(scenario, language, id=f"{language.name}: {scenario.file}: {scenario.name}")
    for language in LANGUAGES
    for scenario in scenarios_of(language)
]


@pytest.mark.parametrize(("scenario", "language"), PAIRS)
def test_a_scenario_comes_out_alike_in_every_language(
    scenario: Scenario, language: Language, outcomes_of: Callable[[Language], Outcomes]
) -> None:
    wrong = outcomes_of(language)[scenario.name]
    assert wrong is None, wrong


@pytest.mark.parametrize("language", LANGUAGES, ids=[language.name for language in LANGUAGES])
def test_a_driver_ends_by_itself_at_the_end_of_its_input(
    language: Language, outcomes_of: Callable[[Language], Outcomes]
) -> None:
    wrong = outcomes_of(language)["the driver ends by itself"]
    assert wrong is None, wrong
