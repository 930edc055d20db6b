"""What a burst took in memory goes back to the system once it is over, and no sooner."""

from tests.core.driven_engine import DrivenEngine
from tests.core.test_bounded_work import count


def rounds(engine: DrivenEngine, number: int) -> int:
    """How often free memory was given back in so many rounds of upkeep."""
    before = count(engine, "trims")
    for _ in range(number):
        engine.core.upkeep()
    return count(engine, "trims") - before


def test_free_memory_is_given_back_once_after_a_second_without_a_write(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q")

    assert rounds(engine, 1) == 0, "something was written since the last round"
    assert rounds(engine, 1) == 1
    assert rounds(engine, 60) == 0, "nothing was written since"


def test_free_memory_is_given_back_at_most_every_ten_seconds(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    trims = 0
    for _ in range(20):
        engine.enqueue("q")
        trims += rounds(engine, 3)

    assert trims == 6


def test_while_messages_flow_no_memory_is_given_back(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for _ in range(30):
        engine.enqueue("q")
        assert rounds(engine, 1) == 0
