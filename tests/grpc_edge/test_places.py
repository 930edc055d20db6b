"""Who has how many of the places for calls that Python answers."""

from __future__ import annotations

import pytest

from fila_server import errors
from fila_server.edges.native.context import Told
from fila_server.edges.native.places import HEALTH, LONG_BYTES_MAX, LONG_FROM_BYTES, STRANGER_MAX, Places

SMALL = 100


def of_key(caller: int) -> Told:
    return Told("/fila.v1.FilaAdmin/GetStats", "ipv4:127.0.0.1:1", caller)


def of_stranger(port: int) -> Told:
    return Told(f"{HEALTH}Watch", f"ipv4:127.0.0.1:{port}")


def refused(places: Places, token: int, told: Told, size: int = SMALL) -> str:
    with pytest.raises(errors.Overloaded) as caught:
        places.take(token, told, size)
    return str(caught.value)


def test_one_key_has_a_quarter_of_the_places_and_others_have_theirs():
    places = Places(8)
    assert [places.take(token, of_key(1), SMALL) for token in (1, 2)] == [0, 0]
    assert "this key has 2 calls open" in refused(places, 3, of_key(1))
    places.take(4, of_key(2), SMALL)

    places.give(1)
    places.take(5, of_key(1), SMALL)


def test_whoever_asks_for_health_once_is_answered_however_many_others_stay():
    places = Places(8)
    assert [places.take(port, of_stranger(port), SMALL) for port in (1, 2)] == [0, 0]
    assert places.take(3, of_stranger(3), SMALL) == 1
    places.give(1)
    places.take(4, of_key(1), SMALL)


def test_one_connection_does_not_push_others_out():
    places = Places(4 * STRANGER_MAX + 8)
    places.take(1, of_stranger(1), SMALL)
    for token in range(STRANGER_MAX):
        assert places.take(10 + token, of_stranger(2), SMALL) == 0
    assert "this connection has 100 calls" in refused(places, 9, of_stranger(2))


def test_without_keys_all_places_are_everybodys():
    places = Places(4)
    for token in range(4):
        places.take(token, of_key(0), SMALL)
    assert "4 calls are already waiting" in refused(places, 9, of_key(0))
    places.give(0)
    places.take(9, of_key(0), SMALL)


def test_calls_with_long_metadata_are_bounded_by_its_bytes_and_others_are_not():
    places = Places(1000)
    size = LONG_BYTES_MAX // 4
    for token in range(4):
        places.take(token, of_key(token), size)
    assert "64 MiB of metadata" in refused(places, 9, of_key(9), LONG_FROM_BYTES + 1)
    places.take(9, of_key(9), LONG_FROM_BYTES)
    places.give(0)
    places.take(10, of_key(9), size)


def test_a_place_is_given_back_once():
    places = Places(8)
    places.take(1, of_key(1), SMALL)
    places.take(2, of_key(1), SMALL)
    for _ in range(2):
        places.give(1)
    places.take(3, of_key(1), SMALL)
    refused(places, 4, of_key(1))
