"""Who has how many of the places for calls that Python answers."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any, cast

import pytest

from fila_server import errors
from fila_server.edge.call_limits import HEALTH, LONG_BYTES_MAX, LONG_FROM_BYTES, STRANGER_MAX, CallLimits
from fila_server.edge.context import Reported
from fila_server.edge.python_calls import CALL, GONE, PythonCalls

SMALL = 100


def of_key(caller: int) -> Reported:
    return Reported("/fila.v1.FilaAdmin/GetStats", "ipv4:127.0.0.1:1", caller)


def of_stranger(port: int) -> Reported:
    return Reported(f"{HEALTH}Watch", f"ipv4:127.0.0.1:{port}")


def refused(places: CallLimits, token: int, told: Reported, size: int = SMALL) -> str:
    with pytest.raises(errors.Overloaded) as caught:
        places.take(token, told, size)
    return str(caught.value)


def test_one_key_has_a_quarter_of_the_places_and_others_have_theirs():
    places = CallLimits(8)
    assert [places.take(token, of_key(1), SMALL) for token in (1, 2)] == [0, 0]
    assert "this key has 2 calls open" in refused(places, 3, of_key(1))
    places.take(4, of_key(2), SMALL)

    places.give(1)
    places.take(5, of_key(1), SMALL)


def test_a_caller_that_asks_for_health_once_is_answered_however_many_others_stay():
    places = CallLimits(8)
    assert [places.take(port, of_stranger(port), SMALL) for port in (1, 2)] == [0, 0]
    assert places.take(3, of_stranger(3), SMALL) == 1
    places.give(1)
    places.take(4, of_key(1), SMALL)


def test_one_connection_does_not_push_others_out():
    places = CallLimits(4 * STRANGER_MAX + 8)
    places.take(1, of_stranger(1), SMALL)
    for token in range(STRANGER_MAX):
        assert places.take(10 + token, of_stranger(2), SMALL) == 0
    assert "this connection has 100 calls" in refused(places, 9, of_stranger(2))


def test_a_connection_has_no_more_calls_of_the_health_service_where_others_made_room_by_its_own():
    """Else those of a few connections made room by turns, and each kept thousands whose answers it never reads."""
    places = CallLimits(4 * STRANGER_MAX)
    for token in range(1, STRANGER_MAX + 1):
        places.take(token, of_stranger(1), SMALL)
        places.ended(token)
    for token in range(1001, 1001 + STRANGER_MAX):
        assert places.take(token, of_stranger(2), SMALL) == token - 1000
    assert "this connection has 100 calls" in refused(places, 9, of_stranger(1))

    places.give(1)
    places.take(9, of_stranger(1), SMALL)
    for token in range(2001, 2001 + 3 * STRANGER_MAX):
        places.take(token, of_key(0), SMALL)


def test_the_metadata_of_a_call_that_is_answered_counts_no_more():
    """Else a client that reads no answers keeps others from sending any."""
    places = CallLimits(4 * STRANGER_MAX)
    for token in range(1, 6):
        places.take(token, of_stranger(1), LONG_BYTES_MAX // 4)
        places.ended(token)
    places.take(6, of_key(1), LONG_BYTES_MAX)


def test_without_keys_all_places_but_those_of_the_health_service_are_everybodys():
    places = CallLimits(8)
    for token in range(6):
        places.take(token, of_key(0), SMALL)
    assert refused(places, 9, of_key(0)).endswith(
        "already waiting for an answer; call again when some have theirs"
    )
    places.give(0)
    places.take(9, of_key(0), SMALL)


@pytest.mark.parametrize("keys", [0, 4])
def test_the_health_service_has_places_that_no_other_calls_take(keys: int):
    """A balancer would else take a busy server for a broken one."""
    places = CallLimits(8)
    for token in range(6):
        places.take(token, of_key(1 + token % keys if keys else 0), SMALL)
    assert "6 calls are already waiting" in refused(places, 9, of_key(4 if keys else 0))
    assert [places.take(port, of_stranger(port), SMALL) for port in (11, 12)] == [0, 0]
    assert places.take(13, of_stranger(13), SMALL) == 11


def test_calls_of_the_health_service_take_no_places_from_others():
    places = CallLimits(8)
    for port in (11, 12):
        places.take(port, of_stranger(port), SMALL)
    for token in range(6):
        places.take(token, of_key(0), SMALL)


def test_of_a_single_place_others_have_it():
    places = CallLimits(1)
    places.take(1, of_key(0), SMALL)
    places.take(2, of_stranger(2), SMALL)


def test_calls_with_long_metadata_are_bounded_by_its_bytes_and_others_are_not():
    places = CallLimits(1000)
    size = LONG_BYTES_MAX // 4
    for token in range(4):
        places.take(token, of_key(token), size)
    assert "64 MiB of metadata" in refused(places, 9, of_key(9), LONG_FROM_BYTES + 1)
    places.take(9, of_key(9), LONG_FROM_BYTES)
    places.give(0)
    places.take(10, of_key(9), size)


def test_a_place_is_given_back_once():
    places = CallLimits(8)
    places.take(1, of_key(1), SMALL)
    places.take(2, of_key(1), SMALL)
    for _ in range(2):
        places.give(1)
    places.take(3, of_key(1), SMALL)
    refused(places, 4, of_key(1))


def test_a_call_of_the_health_service_has_its_place_until_it_is_gone():
    """Its client may never read the answer."""
    places = CallLimits(4 * STRANGER_MAX)
    for token in range(STRANGER_MAX):
        places.take(token, of_stranger(1), SMALL)
        places.ended(token)
    assert "this connection has 100 calls" in refused(places, 900, of_stranger(1))
    places.give(0)
    places.take(900, of_stranger(1), SMALL)


def test_any_other_call_has_its_place_until_its_status_is_known():
    places = CallLimits(8)
    for token in range(20):
        places.take(token, of_key(1), SMALL)
        places.ended(token)


class Threads:
    """Whose clients read no answer."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int, int, bytes, None]] = []
        self.ends: list[int] = []
        """Statuses."""

    def take(self) -> list[tuple[int, int, int, bytes, None]]:
        taken, self.events = self.events, []
        return taken

    def end(self, token: int, status: int, message: bytes, details: bytes) -> None:
        self.ends.append(status)


def begun(token: int, path: str, peer: str) -> tuple[int, int, int, bytes, None]:
    fields = [part.encode() for part in (":path", path, ":peer", peer)]
    return CALL, token, 0, b"".join(struct.pack(">I", len(part)) + part for part in fields), None


def left(token: int) -> tuple[int, int, int, bytes, None]:
    return GONE, token, 0, b"", None


@pytest.mark.parametrize("path", [f"{HEALTH}None", "/fila.v1.FilaAdmin/None"])
def test_nothing_is_kept_of_calls_that_are_answered_and_that_nobody_reads(path: str):
    threads = Threads()
    calls = PythonCalls(cast("Any", threads), cast("Any", None), [], 8, lambda _: None)
    threads.events = [begun(token, path, f"ipv4:127.0.0.1:{token}") for token in range(300)]

    calls.take_events()

    assert len(threads.ends) == 300
    assert not cast("Any", calls)._contexts


def test_one_connection_that_reads_no_answers_of_the_health_service_has_a_bounded_number_of_them():
    threads = Threads()
    calls = PythonCalls(cast("Any", threads), cast("Any", None), [], 1000, lambda _: None)
    threads.events = [begun(token, f"{HEALTH}None", "ipv4:127.0.0.1:1") for token in range(STRANGER_MAX + 50)]
    calls.take_events()
    assert Counter(threads.ends) == {errors.UNIMPLEMENTED: STRANGER_MAX, errors.RESOURCE_EXHAUSTED: 50}

    threads.events = [left(0), begun(900, f"{HEALTH}None", "ipv4:127.0.0.1:1")]
    calls.take_events()
    assert threads.ends[-1] == errors.UNIMPLEMENTED
