"""Every scenario in every language. README.md tells how to run some of them, and how to write one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from runner.drivers import Language
from runner.faults import FAULTS, NO_FAULT
from runner.meddler import Fault
from runner.scenarios import Scenario
from runner.suite import ENDS_BY_ITSELF, LANGUAGES, Outcomes, scenarios_of

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.costly("the first test of a language plays all its scenarios"),
]

PAIRS = [
    pytest.param(scenario, language, id=f"{language.name}: {scenario.file}: {scenario.name}")
    for language in LANGUAGES
    for scenario in scenarios_of(language)
]
EACH_LANGUAGE = [pytest.param(language, id=language.name) for language in LANGUAGES]


@pytest.mark.parametrize(("scenario", "language"), PAIRS)
def test_a_scenario_comes_out_alike_in_every_language(
    scenario: Scenario, language: Language, outcomes_of: Callable[[Language], Outcomes]
) -> None:
    wrong = outcomes_of(language)[scenario.name]
    assert wrong is None, wrong


@pytest.mark.parametrize("language", EACH_LANGUAGE)
def test_a_driver_ends_by_itself_at_the_end_of_its_input(
    language: Language, outcomes_of: Callable[[Language], Outcomes]
) -> None:
    wrong = outcomes_of(language)[ENDS_BY_ITSELF]
    assert wrong is None, wrong


@pytest.mark.parametrize("language", EACH_LANGUAGE)
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_planted_fault_is_noticed_in_every_language(
    fault: Fault, language: Language, outcomes_with_faults: Callable[[Language], dict[str, Outcomes]]
) -> None:
    outcomes = outcomes_with_faults(language)[fault.name]
    assert outcomes, "no scenario of that name"
    assert any(wrong is not None for wrong in outcomes.values()), (
        "every scenario came out as if nothing were wrong"
    )


@pytest.mark.parametrize("language", EACH_LANGUAGE)
def test_without_a_fault_what_plants_them_goes_unnoticed(
    language: Language, outcomes_with_faults: Callable[[Language], dict[str, Outcomes]]
) -> None:
    outcomes = outcomes_with_faults(language)[NO_FAULT.name]
    wrong = {name: text for name, text in outcomes.items() if name != ENDS_BY_ITSELF and text is not None}
    assert not wrong
