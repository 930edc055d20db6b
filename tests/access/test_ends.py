"""A key's end is judged by the clock as it stands, however it is set."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila_server import errors
from fila_server.access import keys
from fila_server.access.admission import Admission, Caller
from fila_server.access.directory import Directory
from fila_server.access.ends import Ends
from fila_server.access.failures import Failures
from fila_server.access.records import GrantRecord, KeyRecord, PrincipalRecord
from fila_server.access.rights import PRODUCE
from fila_server.access.table import RPCS
from fila_server.core.requests.rights_table import Rights

HOUR_MS = 3_600_000
ENQUEUE = RPCS["FilaService/Enqueue"]


async def _stored(_kind: int, _frame: bytes) -> bytes:
    return b""


@dataclass
class Shop:
    """A program with a key for an hour, and the clock by which it ends."""

    now_ms: int
    text: bytes = b""
    ended: list[errors.FilaServerError] = field(default_factory=list)
    admission: Admission = field(init=False)

    def set_clock(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.admission.look()

    def enter(self) -> Caller:
        return self.admission.enter(self.text, "127.0.0.1", encrypted=False)

    def holds_open(self, caller: Caller) -> None:
        self.admission.hold(caller, 0, "", "", self.ended.append)


@pytest.fixture
async def shop(tmp_path: Path) -> Shop:
    made = Shop(now_ms=HOUR_MS)
    table = Rights()
    table.switch_on()
    directory = Directory(_stored, table, str(tmp_path), wall_ms=lambda: made.now_ms, mono_ns=lambda: 0)
    text, key = keys.make(os.urandom)
    made.text = text.encode()
    principal = PrincipalRecord("shop", 1, grants=(GrantRecord(rights=PRODUCE, queue="orders"),))
    await directory.change([principal, KeyRecord(key.id, "shop", key.digest, 1, 2 * HOUR_MS)], [])
    made.admission = Admission(
        table, directory, Failures(lambda: 0.0), is_on=True, wall_ms=lambda: made.now_ms
    )
    return made


async def test_a_clock_set_forward_and_back_takes_no_key_away(shop: Shop):
    shop.set_clock(3 * HOUR_MS)
    with pytest.raises(errors.Unauthenticated, match="expired"):
        shop.enter()

    shop.set_clock(HOUR_MS + 1)

    caller = shop.enter()
    shop.admission.check(caller, ENQUEUE, "orders")
    assert shop.enter() == caller


async def test_what_a_key_holds_open_ends_with_it_and_may_be_opened_again_when_the_clock_is_right(shop: Shop):
    caller = shop.enter()
    shop.holds_open(caller)
    shop.set_clock(2 * HOUR_MS - 1)
    assert not shop.ended

    shop.set_clock(2 * HOUR_MS)

    assert [str(error) for error in shop.ended] == [
        "the key was revoked or has expired; ask an admin for another"
    ]
    with pytest.raises(errors.Unauthenticated):
        shop.admission.check(caller, ENQUEUE, "orders")
    shop.set_clock(HOUR_MS)
    shop.admission.check(caller, ENQUEUE, "orders")


async def test_a_change_of_its_name_gives_a_key_that_is_over_no_further_time(shop: Shop):
    caller = shop.enter()
    shop.set_clock(3 * HOUR_MS)
    directory = shop.admission.directory
    [key] = directory.keys_of("shop")

    await directory.change([directory.principals["shop"], key], [])

    with pytest.raises(errors.Unauthenticated, match="expired"):
        shop.admission.check(caller, ENQUEUE, "orders")


async def test_a_start_at_a_wrong_time_takes_no_key_away_either(shop: Shop, tmp_path: Path):
    shop.set_clock(3 * HOUR_MS)
    directory = shop.admission.directory
    stored = directory.keys_of("shop")
    table = Rights()
    table.switch_on()
    again = Directory(_stored, table, str(tmp_path), wall_ms=lambda: shop.now_ms, mono_ns=lambda: 0)
    again.look()
    await again.change([directory.principals["shop"], *stored], [])
    parsed = keys.parse(shop.text)
    assert parsed is not None
    assert again.find(parsed.id, parsed.digest)[0] == 0

    shop.now_ms = HOUR_MS
    again.look()

    caller, _ = again.find(parsed.id, parsed.digest)
    assert caller
    assert table.holds(caller)


# Ends, against a twin that looks at all of them each time.

IDS = st.sampled_from("abcdef")
TIMES = st.integers(0, 9)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), IDS, TIMES),
        st.tuples(st.just("drop"), IDS, st.just(0)),
        st.tuples(st.just("look"), st.just(""), TIMES),
    )
)


@given(STEPS)
def test_who_follows_each_look_knows_what_is_over_by_its_time(steps: list[tuple[str, str, int]]):
    ends = Ends()
    twin: dict[str, int] = {}
    over: dict[str, bool] = {}
    now_ms = 0
    for what, key_id, time_ms in steps:
        if what == "put":
            twin[key_id] = time_ms
            over[key_id] = ends.put(key_id, time_ms)
        elif what == "drop":
            twin.pop(key_id, None)
            over.pop(key_id, None)
            ends.drop(key_id)
        else:
            now_ms = time_ms
            over.update(ends.look(now_ms))
        assert over == {key_id: 0 < end_ms <= now_ms for key_id, end_ms in twin.items()}
        for until_ms in range(10):
            ended = sorted((end_ms, key_id) for key_id, end_ms in twin.items() if 0 < end_ms <= until_ms)
            assert list(ends.over_since(until_ms)) == [key_id for _, key_id in ended]
