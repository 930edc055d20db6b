"""The catalogue of faults that can be planted keeps up with the code it changes."""

from __future__ import annotations

import pytest

from tests.faults.catalogue import FAULTS
from tests.faults.fault import Fault
from tests.faults.plant import CORE, ROOT, Found, planted


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_still_has_its_one_place_in_the_core(fault: Fault) -> None:
    source = (ROOT / CORE / fault.module).read_text()
    assert planted(fault, source) != source


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_tests_that_find_a_fault_are_still_there(fault: Fault) -> None:
    assert fault.found_by
    for test in fault.found_by:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / "tests" / path).read_text() or not name


def test_a_fault_whose_place_is_gone_or_not_the_only_one_is_told() -> None:
    fault = Fault("nowhere", "structures/ring.pyx", "a line", "another", ())
    with pytest.raises(ValueError, match="nowhere: its text stands 0 times"):
        planted(fault, "nothing of the kind")
    with pytest.raises(ValueError, match="stands 2 times"):
        planted(fault, "a line\na line\n")


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 25


def test_a_fault_is_found_by_two_tests_or_by_taking_the_run_down() -> None:
    assert not Found(["one"], "").is_enough
    assert Found(["one", "two"], "").is_enough
    assert Found([], "the tests' process ended with -11").is_enough
