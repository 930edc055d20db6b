"""Sessions that say what they have begun: only what was begun and failed counts an attempt."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila.v1.messages_pb2 import Message
from fila_server import errors
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q", visibility_timeout_ms=2_000)
    yield driven
    driven.remove()


def filled(engine: DrivenEngine, count: int) -> list[bytes]:
    for i in range(count):
        engine.enqueue("q", b"%d" % i)
    return [b"%d" % i for i in range(count)]


def waiting(engine: DrivenEngine) -> list[tuple[bytes, int]]:
    """What is pending, in order of delivery, with its attempts; after it every backoff is over."""
    engine.sleep(1_000)
    return [(m.payload, m.metadata.attempt_count) for m in engine.lease("q")]


def settle(engine: DrivenEngine, session: DrivenSession, *places: int, **wishes: object) -> None:
    session.say(nack={"lease_ids": session.lease_ids(*places), **wishes})


# --- what opening says ---------------------------------------------------------------------------


def test_a_session_is_told_what_holds_for_it(engine: DrivenEngine) -> None:
    opened = DrivenSession(engine).opened

    assert opened.consumer_id > 0
    assert opened.visibility_timeout_ms == 2_000
    assert opened.disconnect_grace_ms == 5_000
    assert opened.max_lease_renewal_ms == 600_000


def test_a_session_that_tracks_nothing_has_nothing_renewed(engine: DrivenEngine) -> None:
    assert DrivenSession(engine, tracks_begun=False).opened.max_lease_renewal_ms == 0


def test_two_consumers_never_have_one_number_not_even_over_a_restart(engine: DrivenEngine) -> None:
    first, second = DrivenSession(engine).opened, DrivenSession(engine).opened
    engine.kill()
    engine.reopen()
    third = DrivenSession(engine).opened

    assert len({first.consumer_id, second.consumer_id, third.consumer_id}) == 3


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"name": "x" * 129}, "name"),
        ({"max_lease_renewal_ms": 43_200_001}, "max_lease_renewal_ms"),
        ({"tracks_begun": False, "max_lease_renewal_ms": 1}, "max_lease_renewal_ms"),
        ({"resume": {"consumer_id": 1, "lease_ids": range(1, 10_002)}}, "resume.lease_ids"),
    ],
)
def test_an_open_that_asks_for_the_impossible_is_refused(
    wrong: dict[str, object], named: str, engine: DrivenEngine
) -> None:
    with pytest.raises(errors.FilaServerError, match=named):
        DrivenSession(engine, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("frame", "named"),
    [
        ({"window": {"size": 10_001}}, "window.size"),
        ({"nack": {"lease_ids": [1], "release": True, "dead_letter": True}}, "release"),
        ({"nack": {"lease_ids": [1], "release": True, "delay_ms": 0}}, "release"),
        ({"begun": {"lease_ids": range(1, 10_002)}}, "lease_ids"),
    ],
)
def test_a_frame_that_asks_for_the_impossible_is_refused(
    frame: dict[str, object], named: str, engine: DrivenEngine
) -> None:
    session = DrivenSession(engine)

    with pytest.raises(errors.FilaServerError, match=named):
        session.say(**frame)


# --- what a lease's end counts -------------------------------------------------------------------


def test_a_consumer_that_is_gone_fails_what_it_had_begun_and_nothing_else(engine: DrivenEngine) -> None:
    filled(engine, 5)
    session = DrivenSession(engine)
    session.begin(1)

    session.breaks()
    engine.listen(5_500)

    assert waiting(engine) == [(b"0", 0), (b"2", 0), (b"3", 0), (b"4", 0), (b"1", 1)]


def test_what_was_not_begun_keeps_its_place_before_what_came_later(engine: DrivenEngine) -> None:
    filled(engine, 3)
    session = DrivenSession(engine)
    engine.enqueue("q", b"later")

    session.say(close={})

    assert waiting(engine) == [(b"0", 0), (b"1", 0), (b"2", 0), (b"later", 0)]


def test_nothing_comes_back_before_the_grace_is_over(engine: DrivenEngine) -> None:
    filled(engine, 3)
    session = DrivenSession(engine)
    session.begin(0)

    session.breaks()
    engine.listen(4_800)

    assert engine.stats("q").in_flight == 3
    assert engine.stats("q").depth == 0


def test_without_a_grace_everything_comes_back_at_once(engine: DrivenEngine) -> None:
    engine.create_queue("now", disconnect_grace_ms=0)
    engine.enqueue("now", b"x")
    session = DrivenSession(engine, "now")

    session.breaks()

    assert engine.stats("now").depth == 1


def test_a_nack_of_a_message_that_was_never_begun_counts(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)

    settle(engine, session, 0, delay_ms=0)
    again = session.read()

    assert [m.metadata.attempt_count for m in session.messages] == [0, 1]
    assert again == []


def test_a_session_that_tracks_nothing_fails_all_it_held(engine: DrivenEngine) -> None:
    engine.create_queue("long")  # whose leases outlast the grace
    engine.enqueue("long")
    engine.enqueue("long")
    session = DrivenSession(engine, "long", tracks_begun=False)

    session.breaks()
    engine.listen(6_500)

    assert [m.metadata.attempt_count for m in engine.lease("long")] == [1, 1]


def test_of_a_plain_stream_that_ends_the_oldest_delivery_counts_and_the_others_return(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("long")
    for i in range(40):
        engine.enqueue("long", b"%d" % i)
    token = engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="long", max_batch=40))
    for _ in range(5):
        engine.settle_down()
        engine.submit(commands.WRITTEN, b"", token)
    held = engine.stats("long").in_flight
    engine.submit(commands.CONSUMER_CLOSE, b"", token)
    engine.listen(6_500)

    found = [(m.payload, m.metadata.attempt_count) for m in engine.lease("long")]

    assert held == 32
    assert found == [*((b"%d" % i, 0) for i in range(1, 40)), (b"0", 1)]


def test_closing_with_release_returns_what_was_begun_too(engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    session.begin(0)

    session.say(close={"release": True})

    assert session.ended == (0, "")
    assert waiting(engine) == [(b"0", 0), (b"1", 0)]


@pytest.mark.parametrize(("by", "reason"), [("lease", "LEASE_LOST"), ("message", "MESSAGE_NOT_FOUND")])
def test_what_a_session_returned_as_it_left_is_not_settled_while_it_comes_back(
    engine: DrivenEngine, by: str, reason: str
) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    session.begin(0)

    engine.submit(commands.SESSION, service.ConsumeSessionRequest(close={"release": True}), session.token)
    items = [
        service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id if by == "lease" else 0)
        for m in session.messages
    ]
    late = service.NackBatchRequest(queue="q", items=items)
    answer = engine.call(commands.NACK_BATCH, late, service.SettleBatchResponse)  # taken in the same pass

    assert [result.reason for result in answer.results] == [reason, reason]
    assert waiting(engine) == [(b"0", 0), (b"1", 0)]


def test_closing_without_release_leaves_what_was_begun_the_visibility_timeout(engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    session.begin(0)

    session.say(close={})

    assert engine.stats("q").in_flight == 1
    assert engine.stats("q").depth == 1
    engine.sleep(1_900)
    assert engine.stats("q").in_flight == 1
    engine.sleep(200)
    assert engine.stats("q").in_flight == 0
    assert engine.stats("q").expired_total == 1


def test_closing_does_not_shorten_leases_that_nobody_renews(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine, tracks_begun=False)
    sooner = admin.UpdateQueueRequest(queue="q", config=admin.QueueConfig(visibility_timeout_ms=100))
    sooner.update_mask.paths.append("visibility_timeout_ms")
    engine.call(commands.UPDATE_QUEUE, sooner, admin.UpdateQueueResponse)

    session.say(close={})
    engine.sleep(1_900)

    assert engine.stats("q").in_flight == 1


def test_a_peer_that_half_closes_without_a_close_may_come_back(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)
    session.begin(0)
    engine.submit(commands.CONSUMER_CLOSE, b"half-closed", session.token)
    session.read()

    resumed = session.resumed(0)

    assert session.ended == (0, "")
    assert resumed.opened.consumer_id == session.opened.consumer_id
    assert not resumed.opened.lost_lease_ids


# --- redelivered, and came back ------------------------------------------------------------------

NEW, CAME_BACK, REDELIVERED = (False, False), (False, True), (True, False)


def marks(messages: list[Message]) -> dict[bytes, tuple[bool, bool]]:
    """What the last delivery of each says: whether somebody had begun it, or it came back before anybody had."""
    return {m.payload: (m.metadata.redelivered, m.metadata.came_back) for m in messages}


def test_only_what_somebody_had_begun_is_redelivered(engine: DrivenEngine) -> None:
    filled(engine, 5)
    session = DrivenSession(engine)
    assert set(marks(session.messages).values()) == {NEW}

    session.begin(1, 2)
    session.say(window={"size": 5, "give_back": session.lease_ids(0, 1)})
    settle(engine, session, 2, 3, release=True)  # a release says that the program had it
    settle(engine, session, 4, delay_ms=0)

    again = session.messages[5:]
    assert marks(again) == {
        b"0": CAME_BACK,
        b"1": REDELIVERED,
        b"2": REDELIVERED,
        b"3": REDELIVERED,
        b"4": REDELIVERED,
    }
    assert {m.payload for m in again if m.metadata.attempt_count} == {b"4"}


@pytest.mark.parametrize("how", ["closed", "silent", "broken"])
def test_what_lay_in_the_buffer_of_a_session_that_went_came_back(how: str, engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    session.begin(0)
    if how == "closed":
        session.say(close={"release": True})
    elif how == "broken":
        session.breaks()
    engine.listen(8_000)

    assert marks(engine.lease("q")) == {b"0": REDELIVERED, b"1": CAME_BACK}


def test_a_mark_stays_as_long_as_it_is_true(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)
    told = []
    for begins in (False, True, False):
        place = len(session.messages) - 1
        if begins:
            session.begin(place)
        session.say(window={"size": 1, "give_back": session.lease_ids(place)})
        told += session.messages[place + 1 :]

    assert [(m.metadata.redelivered, m.metadata.came_back) for m in told] == [
        CAME_BACK,
        REDELIVERED,
        REDELIVERED,
    ]


def test_where_nobody_tracks_what_is_begun_each_delivery_counts_as_begun(engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine, tracks_begun=False)
    session.say(close={"release": True})
    [by_pull] = engine.lease("q", 1)
    release = service.NackRequest(queue="q", message_id=by_pull.id, release=True)
    engine.call(commands.NACK, release, service.NackResponse)

    assert marks([by_pull]) == {b"0": REDELIVERED}
    assert marks(engine.lease("q")) == {b"0": REDELIVERED, b"1": REDELIVERED}


def test_a_delivery_that_nobody_ever_wrote_was_none(engine: DrivenEngine) -> None:
    filled(engine, 1)
    token = engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q"))
    engine.settle_down()
    engine.submit(commands.CONSUMER_CLOSE, b"", token)

    [message] = engine.lease("q")

    assert marks([message]) == {b"0": NEW}
