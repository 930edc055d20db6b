"""What returns: its place, its attempts, what it cost; who is told; what a seek or a purge does to it."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila.v1.messages_pb2 import Message
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q", fairness_key_header="k", throttle_key_headers=["t"])
    yield driven
    driven.remove()


def filled(engine: DrivenEngine, count: int, key: str = "noisy", **headers: str) -> None:
    for i in range(count):
        engine.enqueue("q", b"%s %d" % (key.encode(), i), {"k": key, **headers})


# --- the window ----------------------------------------------------------------------------------


def test_a_window_sets_how_much_is_held_and_what_is_given_back_does_not_come_straight_back(
    engine: DrivenEngine,
) -> None:
    filled(engine, 10)
    session = DrivenSession(engine, max_in_flight=8)

    session.say(window={"size": 3, "give_back": session.lease_ids(3, 4, 5, 6, 7)})
    held = engine.stats("q").in_flight
    session.say(window={"size": 5})

    assert held == 3
    assert session.payloads[8:] == [b"noisy 3", b"noisy 4"]


def test_a_window_may_be_larger_than_what_the_session_opened_with(engine: DrivenEngine) -> None:
    filled(engine, 300)
    session = DrivenSession(engine)
    assert len(session.messages) == 256

    session.say(window={"size": 1_000})

    assert len(session.messages) == 300


def test_what_came_back_counts_in_no_keys_share_of_cost(engine: DrivenEngine) -> None:
    def share(key: str) -> float:
        request = admin.ExplainKeyRequest(queue="q", fairness_key=key)
        return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse).share

    filled(engine, 4, "quiet")
    filled(engine, 4, "noisy")
    session = DrivenSession(engine, max_in_flight=8)
    assert (share("quiet"), share("noisy")) == (0.5, 0.5)

    noisy = [at for at, payload in enumerate(session.payloads) if payload.startswith(b"noisy")]
    session.say(window={"size": 4, "give_back": session.lease_ids(*noisy)})
    assert (share("quiet"), share("noisy")) == (1.0, 0.0)

    session.say(window={"size": 6})
    assert [share("quiet"), share("noisy")] == pytest.approx([4 / 6, 2 / 6])


def test_nobody_gives_back_or_begins_what_another_session_holds(engine: DrivenEngine) -> None:
    filled(engine, 2)
    holder = DrivenSession(engine)
    stranger = DrivenSession(engine)

    stranger.say(window={"size": 0, "give_back": holder.lease_ids()})
    stranger.say(begun={"lease_ids": holder.lease_ids(0)})

    assert stranger.revoked == [("LEASE_LOST", holder.lease_ids(0))]
    assert engine.stats("q").unbegun == 2


@pytest.mark.parametrize("order", ["as delivered", "backwards", "from the middle"])
def test_each_of_many_finds_its_place_in_whatever_order_they_return(order: str, engine: DrivenEngine) -> None:
    filled(engine, 200)
    session = DrivenSession(engine)
    lease_ids = session.lease_ids()
    if order == "backwards":
        lease_ids.reverse()
    elif order == "from the middle":
        lease_ids = lease_ids[100:] + lease_ids[:100]

    session.say(window={"size": 0, "give_back": lease_ids})

    assert engine.payloads("q", 300) == [b"noisy %d" % i for i in range(200)]


# --- what it cost --------------------------------------------------------------------------------


def test_a_quiet_key_waits_at_most_two_grants_after_a_mass_return(engine: DrivenEngine) -> None:
    filled(engine, 300)
    session = DrivenSession(engine, max_in_flight=250)
    assert len(session.messages) == 250
    engine.enqueue("q", b"quiet", {"k": "quiet"})

    session.say(window={"size": 0, "give_back": session.lease_ids()})

    assert b"quiet" in engine.payloads("q", 3)


def test_tokens_come_back_for_what_was_given_back_and_for_nothing_else(engine: DrivenEngine) -> None:
    engine.set_config("throttle.api", "0.001,10")
    filled(engine, 4, t="api")
    session = DrivenSession(engine)

    def tokens() -> int:
        [bucket] = engine.stats("q").per_throttle_stats
        return round(bucket.tokens)

    session.say(window={"size": 0, "give_back": session.lease_ids(0)})
    given_back = tokens()
    session.say(nack={"lease_ids": session.lease_ids(1), "release": True})
    released = tokens()
    session.say(close={})

    assert (given_back, released, tokens()) == (7, 7, 7)


def test_a_message_counts_as_leased_when_it_is_sent_and_as_delivered_when_it_is_begun(
    engine: DrivenEngine,
) -> None:
    filled(engine, 7)
    session = DrivenSession(engine)

    def counted() -> tuple[int, int, int]:
        stats = engine.stats("q")
        assert [key.delivered_total for key in stats.per_key_stats] == [stats.delivered_total]
        return stats.leased_total, stats.delivered_total, stats.returned_total

    sent = counted()
    session.begin(0, 1)
    session.begin(0)
    begun = counted()
    session.say(ack={"lease_ids": session.lease_ids(0, 2)})
    session.say(nack={"lease_ids": session.lease_ids(3), "delay_ms": 60_000})
    session.say(extend={"lease_ids": session.lease_ids(4), "extend_ms": 60_000})
    answered = counted()
    session.say(window={"size": 0, "give_back": session.lease_ids(1, 5, 6)})

    assert (sent, begun, answered, counted()) == ((7, 0, 0), (7, 2, 0), (7, 5, 0), (7, 5, 3))


@pytest.mark.parametrize("how", ["pull", "session"])
def test_where_nobody_tracks_what_is_begun_a_lease_is_a_delivery(how: str, engine: DrivenEngine) -> None:
    filled(engine, 3)
    if how == "pull":
        engine.lease("q", 3)
    else:
        DrivenSession(engine, tracks_begun=False).say(close={"release": True})

    stats = engine.stats("q")

    assert (stats.leased_total, stats.delivered_total) == (3, 3)
    assert [key.delivered_total for key in stats.per_key_stats] == [3] * len(stats.per_key_stats)


def test_what_a_message_costs_is_known_before_one_is_begun(engine: DrivenEngine) -> None:
    """The forecast goes by what was charged, and that is charged at the lease."""
    engine.create_queue("dear", fairness_key_header="k", cost_header="cost")
    for i in range(8):
        engine.enqueue("dear", b"%d" % i, {"k": "a", "cost": "5"})
    DrivenSession(engine, queue="dear", max_in_flight=4)

    asked = seam_frames.ExplainKey(queue=b"dear", fairness_key=b"a", with_forecast=True)
    told = engine.call(commands.EXPLAIN_KEY, asked, seam_frames.Explained)

    assert told.forecast.usual_cost == 5_000


def test_a_time_to_live_that_passed_meanwhile_takes_effect(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"short", ttl_ms=500)
    session = DrivenSession(engine)
    engine.listen(600)

    session.say(window={"size": 0, "give_back": session.lease_ids()})

    assert engine.stats("q").depth == 0
    assert engine.stats("q").ttl_dropped_total == 1


def test_what_lies_unbegun_counts_for_a_keys_cap(engine: DrivenEngine) -> None:
    capped = admin.SetKeyPolicyRequest(queue="q", fairness_key="noisy", max_in_flight=2)
    engine.call(commands.SET_KEY_POLICY, capped, admin.SetKeyPolicyResponse)
    filled(engine, 5)

    session = DrivenSession(engine)

    assert len(session.messages) == 2
    assert engine.stats("q").in_flight == engine.stats("q").unbegun == 2


# --- revoked -------------------------------------------------------------------------------------


def test_a_seek_takes_everything_back_and_says_so(engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    session.begin(0)
    session.say(window={"size": 0})
    held = session.lease_ids()

    moved = admin.SeekChannelRequest(queue="q", offset=1)
    engine.call(commands.SEEK_CHANNEL, moved, admin.SeekChannelResponse)
    session.read()

    assert [(reason, sorted(lost)) for reason, lost in session.revoked] == [("SEEK", held)]
    assert engine.stats("q").in_flight == 0
    assert engine.stats("q").unbegun == 0


def test_a_purge_takes_what_was_not_begun_and_leaves_the_rest_to_its_holder(engine: DrivenEngine) -> None:
    filled(engine, 3)
    session = DrivenSession(engine)
    session.begin(1)

    engine.call(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"), admin.PurgeQueueResponse)
    session.read()
    session.say(ack={"sequence": 1, "lease_ids": session.lease_ids(1)})

    assert [(reason, sorted(lost)) for reason, lost in session.revoked] == [
        ("PURGE", session.lease_ids(0, 2))
    ]
    assert not session.answers[-1].settled.failures
    assert engine.stats("q").depth == engine.stats("q").in_flight == 0


def test_a_purge_takes_what_a_session_returned_as_it_left_though_it_has_yet_to_come_back(
    engine: DrivenEngine,
) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    session.begin(0, 1)

    engine.submit(commands.SESSION, service.ConsumeSessionRequest(close={"release": True}), session.token)
    purge = admin.PurgeQueueRequest(queue="q")  # taken in the same pass
    answer = engine.call(commands.PURGE_QUEUE, purge, admin.PurgeQueueResponse)

    assert answer.purged == 2
    assert engine.payloads("q") == []


@pytest.mark.parametrize(
    ("kind", "request_", "reason", "ended"),
    [
        (commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"), "QUEUE_DELETED", "QUEUE_NOT_FOUND"),
        (
            commands.DELETE_CHANNEL,
            admin.DeleteChannelRequest(queue="q", channel="default"),
            "CHANNEL_DELETED",
            "CHANNEL_NOT_FOUND",
        ),
    ],
)
def test_a_deletion_takes_everything_back_and_ends_the_session(
    kind: int, request_: object, reason: str, ended: str, engine: DrivenEngine
) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)

    engine.submit(kind, request_)  # type: ignore[arg-type]
    session.read()

    assert session.revoked == [(reason, session.lease_ids())]
    assert session.ended == (5, ended)


def test_a_channel_can_go_while_consumers_are_away_and_while_they_leave(engine: DrivenEngine) -> None:
    filled(engine, 3_000)
    away, leaving = DrivenSession(engine, max_in_flight=100), DrivenSession(engine)
    leaving.say(window={"size": 2_900})
    away.breaks()
    engine.submit(commands.SESSION, service.ConsumeSessionRequest(close={}), leaving.token)
    engine.run_pass()  # more than a pass works off

    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"), admin.DeleteQueueResponse)
    engine.listen(6_000)

    assert engine.core.counters()["leases"] == 0
    assert engine.core.counters()["consumers"] == 0


# --- wishes of a nack ----------------------------------------------------------------------------


def nacked(engine: DrivenEngine, leased: list[Message], **wishes: Any) -> list[int]:
    items = [
        service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id, error="bad", **wishes)
        for m in leased
    ]
    request = service.NackBatchRequest(queue="q", items=items)
    answer = engine.call(commands.NACK_BATCH, request, service.SettleBatchResponse)
    return [result.code for result in answer.results]


def test_a_rejected_message_is_dead_at_once_and_says_why(engine: DrivenEngine) -> None:
    filled(engine, 1)

    assert nacked(engine, list(engine.lease("q")), dead_letter=True) == [0]

    [dead] = engine.lease("q.dlq")
    assert dead.metadata.dead_letter.reason == "rejected"
    assert dead.metadata.dead_letter.last_error == "bad"
    assert dead.metadata.dead_letter.attempts == 1


def test_a_rejected_dead_letter_stays_where_it_is(engine: DrivenEngine) -> None:
    filled(engine, 1)
    nacked(engine, list(engine.lease("q")), dead_letter=True)
    [dead] = engine.lease("q.dlq")
    again = service.NackRequest(
        queue="q.dlq", message_id=dead.id, lease_id=dead.metadata.lease_id, dead_letter=True
    )

    engine.call(commands.NACK, again, service.NackResponse)

    assert engine.stats("q.dlq").depth == 1


def test_a_released_message_is_back_where_it_was(engine: DrivenEngine) -> None:
    filled(engine, 3)
    [first] = engine.lease("q", 1)
    released = service.NackRequest(
        queue="q", message_id=first.id, lease_id=first.metadata.lease_id, release=True
    )

    engine.call(commands.NACK, released, service.NackResponse)

    again = engine.lease("q")
    assert [m.payload for m in again] == [b"noisy 0", b"noisy 1", b"noisy 2"]
    assert [m.metadata.attempt_count for m in again] == [0, 0, 0]


def test_wishes_that_contradict_each_other_refuse_their_item_alone(engine: DrivenEngine) -> None:
    filled(engine, 1)
    leased = list(engine.lease("q"))

    assert nacked(engine, leased, release=True, dead_letter=True) == [3]
    assert nacked(engine, leased, release=True, delay_ms=5) == [3]
    assert nacked(engine, leased, release=True) == [0]


def test_a_key_whose_message_is_taken_and_returned_again_and_again_keeps_nobody_waiting(
    engine: DrivenEngine,
) -> None:
    filled(engine, 1)
    session = DrivenSession(engine, max_in_flight=1)
    engine.enqueue("q", b"quiet", {"k": "quiet"})

    for _ in range(3):
        session.say(window={"size": 1, "give_back": session.lease_ids(-1)})

    assert b"quiet" in session.payloads


def test_what_is_leased_over_a_restart_returns_to_its_place_too(engine: DrivenEngine) -> None:
    filled(engine, 3)
    engine.nack("q", engine.lease("q", 1))  # "noisy 0" stands behind the others now
    engine.enqueue("q", b"newer", {"k": "noisy"})
    session = DrivenSession(engine, max_in_flight=3)
    taken = session.payloads
    engine.kill()
    engine.reopen()

    engine.listen(6_000)

    assert taken == [b"noisy 1", b"noisy 2", b"noisy 0"]
    assert engine.payloads("q") == [b"noisy 1", b"noisy 2", b"noisy 0", b"newer"]
