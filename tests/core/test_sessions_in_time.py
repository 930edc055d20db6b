"""Sessions and time: silence, grace, resuming, renewal, restarts; what a pause of the broker is not."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q", visibility_timeout_ms=2_000)
    yield driven
    driven.remove()


def filled(engine: DrivenEngine, count: int) -> None:
    for i in range(count):
        engine.enqueue("q", b"%d" % i)


def waiting(engine: DrivenEngine) -> list[tuple[bytes, int]]:
    engine.listen(1_000)
    return [(m.payload, m.metadata.attempt_count) for m in engine.lease("q")]


# --- leaving -------------------------------------------------------------------------------------


def test_what_is_returned_in_the_pass_in_which_its_lease_runs_out_has_not_failed(
    engine: DrivenEngine,
) -> None:
    filled(engine, 2)
    session = DrivenSession(engine, tracks_begun=False)
    close = service.ConsumeSessionRequest(close={"release": True})

    engine.submit(commands.SESSION, close, session.token)
    engine.sleep(2_500)

    assert waiting(engine) == [(b"0", 0), (b"1", 0)]
    assert engine.stats("q").expired_total == 0


# --- silence -------------------------------------------------------------------------------------


def test_a_session_that_says_nothing_for_the_visibility_timeout_is_gone(engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    session.begin(0)

    engine.listen(1_900)
    assert engine.stats("q").in_flight == 2
    engine.listen(300)
    session.read()

    assert session.ended == (14, "SESSION_SILENT")
    assert waiting(engine) == [(b"1", 0), (b"0", 1)]


def test_whatever_a_session_says_is_a_sign_of_life_and_alive_is_answered(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)
    session.begin(0)

    for sequence in range(1, 11):
        engine.listen(1_500)
        session.say(alive={"sequence": sequence, "handling_time_us": 7})

    assert [frame.alive.sequence for frame in session.answers] == list(range(1, 11))
    assert engine.stats("q").in_flight == 1
    assert session.ended is None


def test_a_pause_of_the_broker_is_nobodys_silence(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)
    session.begin(0)
    engine.listen(1_000)

    engine.sleep(60_000)  # stopped, or a loop that stands still: no socket is read
    engine.listen(400)

    assert engine.stats("q").in_flight == 1
    assert session.ended is None


def test_a_pause_of_the_broker_eats_no_grace(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)
    session.begin(0)
    session.breaks()

    engine.sleep(60_000)
    engine.listen(400)

    assert not session.resumed(0).opened.lost_lease_ids


# --- renewal -------------------------------------------------------------------------------------


def living(engine: DrivenEngine, session: DrivenSession, ms: int) -> None:
    for _ in range(ms // 1_000):
        session.say(alive={"sequence": 1})
        engine.listen(1_000)
    session.read()


def test_the_lease_of_a_living_session_ends_by_its_renewal_and_the_session_is_told(
    engine: DrivenEngine,
) -> None:
    filled(engine, 2)
    session = DrivenSession(engine, max_lease_renewal_ms=10_000, max_in_flight=2)
    session.say(window={"size": 2})
    begun, unbegun = session.lease_ids()
    living(engine, session, 5_000)
    session.begin(0)
    session.say(window={"size": 0})

    living(engine, session, 6_000)
    assert session.revoked == [("EXPIRED", [unbegun])]
    assert engine.stats("q").in_flight == 1
    living(engine, session, 5_000)

    assert session.revoked == [("EXPIRED", [unbegun]), ("EXPIRED", [begun])]
    assert waiting(engine) == [(b"1", 0), (b"0", 1)]


def test_an_extension_makes_a_renewed_lease_longer_and_never_shorter(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine, max_lease_renewal_ms=5_000)
    session.say(extend={"lease_ids": session.lease_ids(0), "extend_ms": 1_000})
    living(engine, session, 3_000)
    assert session.revoked == []

    session.say(extend={"lease_ids": session.lease_ids(0), "extend_ms": 20_000})
    living(engine, session, 19_000)

    assert session.revoked == []
    assert engine.stats("q").unbegun == 0


def test_without_renewal_a_lease_lasts_the_visibility_timeout(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine, max_lease_renewal_ms=0, max_in_flight=1)
    session.begin(0)
    session.say(window={"size": 0})

    living(engine, session, 3_000)

    assert session.opened.max_lease_renewal_ms == 0
    assert [reason for reason, _ in session.revoked] == ["EXPIRED"]


# --- resuming ------------------------------------------------------------------------------------


def test_a_session_that_resumes_goes_on_with_what_it_still_holds(engine: DrivenEngine) -> None:
    filled(engine, 4)
    session = DrivenSession(engine)
    session.begin(0)
    session.breaks()
    engine.listen(3_000)

    resumed = session.resumed(0, 2)
    resumed.say(ack={"sequence": 1, "lease_ids": session.lease_ids(0, 2)})

    assert resumed.opened.consumer_id == session.opened.consumer_id
    assert not resumed.opened.lost_lease_ids
    assert not resumed.answers[0].settled.failures
    assert [(m.payload, m.metadata.attempt_count) for m in resumed.messages] == [(b"1", 0), (b"3", 0)]


def test_a_session_that_resumes_too_late_hears_what_it_lost(engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    session.begin(0)
    session.breaks()
    engine.listen(5_500)

    resumed = session.resumed(0, 1)

    assert list(resumed.opened.lost_lease_ids) == session.lease_ids(0, 1)
    assert resumed.opened.consumer_id != session.opened.consumer_id


def test_a_session_may_resume_before_its_broken_stream_was_noticed(engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)

    resumed = session.resumed(0)
    session.read()

    assert session.ended == (9, "SESSION_RESUMED")
    assert resumed.payloads == [b"1"]
    assert engine.stats("q").active_consumers == 1


def test_nobody_resumes_a_session_of_another_channel(engine: DrivenEngine) -> None:
    made = admin.CreateChannelRequest(queue="q", channel="other", oldest=True)
    engine.call(commands.CREATE_CHANNEL, made, admin.CreateChannelResponse)
    filled(engine, 1)
    session = DrivenSession(engine)

    stranger = session.resumed(0, channel="other")

    assert list(stranger.opened.lost_lease_ids) == session.lease_ids(0)
    assert session.ended is None


def test_a_frame_on_its_way_when_the_connection_broke_is_still_the_sessions(engine: DrivenEngine) -> None:
    session = DrivenSession(engine)
    filled(engine, 1)
    session.read(written=False)  # the transport has it, the broker does not know that it arrived
    session.breaks()

    assert not session.resumed(0).opened.lost_lease_ids


# --- restarts ------------------------------------------------------------------------------------


def restarted(engine: DrivenEngine, how: str) -> None:
    if how == "kill":
        engine.kill()
    elif how == "power":
        engine.commit()
        engine.cut_power()
    else:
        engine.stop()
    engine.reopen(away_ms=1_000_000)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_was_begun_before_a_restart_counts_after_it_and_nothing_else(
    how: str, engine: DrivenEngine
) -> None:
    filled(engine, 3)
    session = DrivenSession(engine)
    session.begin(1)

    restarted(engine, how)
    assert engine.stats("q").in_flight == 3
    assert engine.stats("q").unbegun == 2
    engine.listen(5_500)

    assert waiting(engine) == [(b"0", 0), (b"2", 0), (b"1", 1)]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_session_resumes_over_a_restart_however_long_the_broker_was_down(
    how: str, engine: DrivenEngine
) -> None:
    filled(engine, 3)
    session = DrivenSession(engine)
    session.begin(0)

    restarted(engine, how)
    engine.sleep(60_000)  # nobody can connect yet
    engine.listen(4_000)
    resumed = session.resumed(0, 1)
    resumed.say(ack={"sequence": 1, "lease_ids": session.lease_ids(0, 1)})

    assert not resumed.opened.lost_lease_ids
    assert not resumed.answers[0].settled.failures
    assert resumed.payloads == [b"2"]


def test_a_power_cut_may_forget_that_a_message_was_begun_and_never_invents_it(engine: DrivenEngine) -> None:
    filled(engine, 2)
    session = DrivenSession(engine)
    engine.enqueue("q", b"synced")  # with it the leases
    engine.submit(
        commands.SESSION,
        service.ConsumeSessionRequest(begun={"lease_ids": session.lease_ids(0)}),
        session.token,
    )
    engine.run_pass()

    restarted(engine, "power")
    engine.listen(5_500)

    assert [attempts for payload, attempts in waiting(engine) if payload != b"0"] == [0, 0]


def test_what_was_given_back_does_not_revive_with_the_rest_of_its_frame(engine: DrivenEngine) -> None:
    filled(engine, 3)
    session = DrivenSession(engine)
    assert len(session.messages) == 3
    session.say(window={"size": 0, "give_back": session.lease_ids(1)})

    restarted(engine, "kill")

    assert engine.stats("q").in_flight == 2
    [again] = engine.lease("q")
    assert (again.payload, again.metadata.attempt_count) == (b"1", 0)
    assert (again.metadata.redelivered, again.metadata.came_back) == (False, True)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_came_back_uncounted_says_so_after_a_restart_in_its_old_place(
    how: str, engine: DrivenEngine
) -> None:
    filled(engine, 3)
    session = DrivenSession(engine)
    session.say(window={"size": 0, "give_back": session.lease_ids()})  # nothing of their frame is left
    session.say(close={})

    restarted(engine, how)
    leased = engine.lease("q", 2)
    engine.ack("q", leased[:1])
    restarted(engine, how)
    engine.listen(3_000)

    assert [(m.payload, m.metadata.came_back) for m in leased] == [(b"0", True), (b"1", True)]
    again = engine.lease("q")
    assert {(m.payload, m.metadata.attempt_count) for m in again} == {(b"1", 1), (b"2", 0)}
    assert {m.payload: m.metadata.redelivered for m in again} == {b"1": True, b"2": False}


@pytest.mark.parametrize("held", ["alone", "beside others"])
@pytest.mark.parametrize("before", ["first time", "came back before"])
def test_that_a_message_was_begun_before_it_came_back_outlasts_a_restart(
    before: str, held: str, engine: DrivenEngine
) -> None:
    filled(engine, 1 if held == "alone" else 2)
    session = DrivenSession(engine)
    if before == "came back before":
        session.say(window={"size": 1, "give_back": session.lease_ids(0)})
        session.say(window={"size": 2})
    [place] = [i for i, m in enumerate(session.messages) if m.payload == b"0"][-1:]
    session.begin(place)
    session.say(window={"size": 0, "give_back": session.lease_ids(place)})

    restarted(engine, "kill")

    [again] = engine.lease("q", 1)
    assert (again.payload, again.metadata.attempt_count) == (b"0", 0)
    assert (again.metadata.redelivered, again.metadata.came_back) == (True, False)


def test_marks_go_with_the_last_lease_of_their_frame(engine: DrivenEngine) -> None:
    filled(engine, 3)
    session = DrivenSession(engine)
    session.begin(0, 1)
    session.say(ack={"sequence": 1, "lease_ids": session.lease_ids()})
    filled(engine, 2)

    restarted(engine, "kill")

    assert [m.metadata.attempt_count for m in engine.lease("q")] == [] or engine.stats("q").depth == 0
    engine.listen(5_500)
    assert [attempts for _, attempts in waiting(engine)] == [0, 0]


def test_a_lease_extended_before_a_restart_keeps_its_length(engine: DrivenEngine) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)
    session.say(extend={"lease_ids": session.lease_ids(0), "extend_ms": 3_600_000})
    engine.kill()
    engine.reopen()

    resumed = session.resumed(0)
    for _ in range(20):
        resumed.say(alive={"sequence": 1})
        engine.listen(1_000)

    assert resumed.revoked == []


def test_a_lease_that_would_have_run_out_while_the_broker_was_down_is_renewed_by_a_resume(
    engine: DrivenEngine,
) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)
    session.begin(0)
    restarted(engine, "kill")  # for longer than the renewal

    resumed = session.resumed(0)
    living(engine, resumed, 20_000)

    assert resumed.revoked == []
    assert engine.stats("q").in_flight == 1


def test_what_a_closed_session_left_begun_keeps_its_time_over_a_restart(engine: DrivenEngine) -> None:
    """Nobody comes back for it, so no grace is waited for, and none of it counts an attempt before its time."""
    engine.create_queue("slow", visibility_timeout_ms=30_000, disconnect_grace_ms=1_000)
    for payload in (b"0", b"1", b"2"):
        engine.enqueue("slow", payload)
    session = DrivenSession(engine, "slow")
    session.begin(0, 1)
    session.say(close={})
    engine.kill()
    engine.reopen()

    engine.listen(4_000)
    assert engine.stats("slow").expired_total == 0
    assert engine.stats("slow").in_flight == 2
    assert engine.ack("slow", session.messages[:1]) == [0]

    engine.kill()
    engine.reopen()
    engine.listen(31_000)
    assert [(m.payload, m.metadata.attempt_count) for m in engine.lease("slow")] == [(b"2", 0), (b"1", 1)]


def test_what_a_closed_session_left_begun_may_be_extended_and_keeps_that_over_a_restart(
    engine: DrivenEngine,
) -> None:
    filled(engine, 1)
    session = DrivenSession(engine)
    session.begin(0)
    session.say(close={})
    engine.call(
        commands.EXTEND_LEASE,
        service.ExtendLeaseRequest(
            queue="q", message_id=session.messages[0].id, lease_id=session.lease_ids(0)[0], extend_ms=20_000
        ),
        service.ExtendLeaseResponse,
    )
    engine.kill()
    engine.reopen()

    engine.listen(15_000)
    assert engine.stats("q").in_flight == 1
    engine.listen(6_000)
    assert waiting(engine) == [(b"0", 1)]
