"""What fuzzing found to reach something means today what it meant then; and inputs are changed within their bound."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.run import INPUT_BYTES_MAX, corpus, mutated
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_that_ever_reached_something_breaks_anything(name: str) -> None:
    target = TARGETS[name]()
    for data in (*target.begin, *corpus(name)):
        target.run(data)
        target.judge(data)


def test_an_input_is_changed_and_never_longer_than_the_bound() -> None:
    chance = random.Random(1)
    data = bytes(range(100))
    changed = [mutated(chance, data, b"another input") for _ in range(2_000)]
    long = [mutated(chance, bytes(INPUT_BYTES_MAX), data) for _ in range(200)]

    assert len(set(changed)) > 1_000
    assert any(b"another" in found for found in changed)
    assert max(map(len, long)) == INPUT_BYTES_MAX
    assert mutated(chance, b"", b"") is not None
