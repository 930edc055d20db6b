"""What many seeds come to: a broken one, or an oracle with too little to judge, fails them all."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.oracles import Broken
from tests.simulation.seeds import ENOUGH_SEEDS, USUAL, run_seeds, too_little


@pytest.fixture(autouse=True)
def usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(USUAL, "dice", {"sixes": 4, "sevens": 0.5})
    monkeypatch.delenv("FILA_SIM_JUDGED", raising=False)


def test_half_of_what_is_usual_is_enough_and_less_is_too_little() -> None:
    assert too_little("dice", Counter(sixes=60, sevens=8), 30) == {}
    assert too_little("dice", Counter(sixes=59, sevens=7), 30) == {"sixes": 59, "sevens": 7}
    assert too_little("dice", Counter(sixes=60), 30) == {"sevens": 0}


def test_an_oracle_that_is_asked_for_next_to_nothing_has_to_judge_once() -> None:
    assert too_little("dice", Counter(sixes=36, sevens=1), 18) == {}
    assert too_little("dice", Counter(sixes=36), 18) == {"sevens": 0}
    assert too_little("dice", Counter(sixes=40, sevens=1), 20) == {"sevens": 1}


def test_an_oracle_that_nobody_expected_is_told() -> None:
    assert too_little("dice", Counter(sixes=60, sevens=8, eights=3), 30) == {"eights": 3}


@pytest.mark.parametrize(("sixes", "code"), [(2, 0), (1, 1)])
def test_seeds_in_which_an_oracle_judged_too_little_fail(sixes: int, code: int) -> None:
    assert run_seeds("dice", lambda _: Counter(sixes=sixes, sevens=1), ["1", str(ENOUGH_SEEDS)]) == code


def test_of_a_few_seeds_nobody_says_that_they_are_too_few() -> None:
    assert run_seeds("dice", lambda _: Counter(), ["1", str(ENOUGH_SEEDS - 1)]) == 0


def test_a_seed_that_breaks_fails_all_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    def simulate(seed: int) -> Counter[str]:
        if seed == 7:
            raise Broken("seed 7: a message is lost\nand its trace")
        return Counter(sixes=4, sevens=1)

    assert run_seeds("dice", simulate, ["1", "30"]) == 1
    told = capsys.readouterr().out
    assert "seed 7: a message is lost\nagain: the same with 1 7, if 7 alone is good\n30 seeds, 1 bad" in told
