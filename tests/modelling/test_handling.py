"""What consumers do in a model: as recorded of the same delivery, else as of others of its key."""

from typing import Any

import pyarrow as pa

from fila_server.history_files import columns
from fila_server.modelling.handling import Handling, How


def handling(*rows: dict[str, Any], slowness: float = 1.0) -> Handling:
    plain = {
        "pass": 1,
        "queue": "q",
        "channel": "default",
        "fairness_key": "acme",
        "offsets": [1],
        "attempts": [0],
    }
    found = Handling(seed=1, slowness=slowness)
    schema = columns.SCHEMAS[columns.DECISIONS]
    found.take(pa.Table.from_pylist([plain | row for row in rows], schema=schema))
    return found


def of(found: Handling, offset: int = 1, attempt: int = 0, key: str = "acme"):
    return found.of("q", "default", key, offset, attempt)


def test_a_delivery_ends_as_it_was_recorded():
    acked = {"kind": "acked", "offsets": [1, 2], "attempts": [0, 1], "held_ms": [40, 70]}
    found = handling({"kind": "delivered"}, acked)
    assert (of(found), of(found, 2, 1)) == ((40, How.ACKED), (70, How.ACKED))
    assert found.drawn == 0


def test_one_that_never_ended_is_not_ended_by_its_consumer():
    assert of(handling({"kind": "delivered"}))[1] == How.EXPIRED


def test_what_was_never_delivered_is_drawn_from_its_key_or_its_queue():
    found = handling({"kind": "acked", "held_ms": [40]})
    assert of(found, 9) == (40, How.ACKED)
    assert of(found, 9, key="globex") == (40, How.ACKED)
    assert (found.drawn, found.unknown) == (2, 0)
    assert found.of("other", "default", "acme", 1, 0) is None
    assert found.unknown == 1


def test_that_a_consumer_left_says_nothing_of_the_message():
    """Else it would be held for ever by another consumer that is there."""
    acked = {"kind": "acked", "offsets": [2], "held_ms": [40]}
    gone = {"kind": "expired", "reason": "consumer gone", "held_ms": [5000]}
    for end in (gone, {"kind": "returned", "held_ms": [5]}):
        assert of(handling(acked, {"kind": "delivered"}, end)) == (40, How.ACKED)
    visibility = {"kind": "expired", "reason": "visibility timeout", "held_ms": [5000]}
    assert of(handling(acked, {"kind": "delivered"}, visibility))[1] == How.EXPIRED


def test_a_nack_that_gave_a_message_up_does_so_again():
    rejected = {"kind": "dead_lettered", "reason": "rejected"}
    assert of(handling({"kind": "nacked", "held_ms": [7]}, rejected)) == (7, How.REJECTED)
    at_the_end = {"kind": "dead_lettered", "reason": "max_attempts"}
    assert of(handling({"kind": "nacked", "held_ms": [7]}, at_the_end)) == (7, How.NACKED)


def test_slower_consumers_hold_each_delivery_longer_by_that_factor():
    acked = {"kind": "acked", "held_ms": [1000]}
    assert of(handling(acked, slowness=1.1)) == (1100, How.ACKED)
    assert of(handling(acked, slowness=0.9)) == (900, How.ACKED)
