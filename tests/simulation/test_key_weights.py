"""What the model takes for a key's weight while answers are on their way: refusals come frame by frame, in order."""

import pytest

from tests.simulation.model import Entry, KeyModel, QueueModel

QUEUE = QueueModel("q", {})


def enqueued(key: KeyModel, *weights: int) -> list[Entry]:
    """As many enqueues, none of which is answered yet."""
    entries = [Entry(i, QUEUE, {}, "bee", weight, 1000, frozenset()) for i, weight in enumerate(weights)]
    for entry in entries:
        entry.may_be_none = True
        key.enqueued(entry)
    return entries


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_when_the_newest_were_refused_the_last_that_was_stored_counts_in_whatever_order_it_is_told(
    order: tuple[int, int],
) -> None:
    key = KeyModel()
    entries = enqueued(key, 3, 1, 7)
    entries[0].may_be_none = False

    for refused in order:
        key.was_none(entries[refused])

    assert (key.due_weight, key.is_sure) == (3, True)


def test_an_older_refusal_leaves_the_newest_ones_weight() -> None:
    key = KeyModel()
    older, newest = enqueued(key, 3, 7)

    key.was_none(older)
    newest.may_be_none = False

    assert (key.due_weight, key.is_sure) == (7, True)


def test_a_redrive_counts_though_an_enqueue_before_it_is_refused_later() -> None:
    key = KeyModel()
    [enqueue] = enqueued(key, 3)
    key.weigh(5)

    key.was_none(enqueue)

    assert (key.due_weight, key.is_sure) == (5, True)


def test_a_weight_is_not_sure_until_an_enqueue_that_brings_another_is_answered() -> None:
    key = KeyModel()
    [same, other] = enqueued(key, 1, 4)
    assert not key.is_sure

    same.may_be_none = False
    assert not key.is_sure

    other.may_be_none = False
    assert key.is_sure


def test_enqueues_that_all_bring_the_weight_there_was_leave_no_doubt() -> None:
    key = KeyModel()
    enqueued(key, 1, 1)

    assert key.is_sure
