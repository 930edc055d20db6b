"""Sinks: what is staged is invisible, and published once, also if tasks repeat it or processes end early."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila.v1 import sink_pb2 as pb
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.sink_client import SinkClient, Staged, log_of

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    engine.create_queue("q")
    yield engine
    engine.remove()


# --- stage and publish ------------------------------------------------------------------------


def test_what_is_staged_is_seen_by_nobody_until_it_is_published(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    attempt = sink.staged(0, [b"a", b"b"])
    assert log_of(engine) == []
    assert engine.stats("q").depth == 0

    answer = sink.publish(0, [attempt])

    assert (answer.messages, answer.already_published) == (2, False)
    assert engine.payloads("q") == [b"a", b"b"]


def test_a_batch_of_several_attempts_and_frames_comes_whole_and_in_order(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    sink.stage(0, [b"a0"], partition=0)
    first = sink.staged(0, [b"a1", b"a2"], partition=0, frame=1)
    second = sink.staged(0, [b"b0"], partition=1, attempt=7)

    assert sink.publish(0, [first, second]).messages == 4

    assert log_of(engine) == [b"a0", b"a1", b"a2", b"b0"]


def test_a_batch_may_go_to_several_queues(engine: DrivenEngine, sink: SinkClient) -> None:
    engine.create_queue("other")
    sink.stage(0, [b"a"])
    sink.publish(0, [sink.staged(0, [b"b"], queue="other", frame=1)])

    assert (log_of(engine), log_of(engine, "other")) == ([b"a"], [b"b"])


def test_a_batch_of_nothing_counts_as_published(sink: SinkClient) -> None:
    assert sink.publish(0).messages == 0
    assert sink.publish(0).already_published


def test_an_attempt_that_is_not_listed_is_not_published_and_goes(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    sink.stage(0, [b"speculative"], attempt=0)
    sink.publish(0, [sink.staged(0, [b"won"], attempt=1)])
    engine.settle_down()

    assert log_of(engine) == [b"won"]
    assert engine.core.counters()["staged_bytes"] == 0


def test_settings_route_what_is_published_as_they_do_what_is_enqueued(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    engine.create_queue("routed", fairness_key_header="tenant")
    message = service.EnqueueMessage(headers={"tenant": "acme"}, payload=b"x")
    sink.publish(0, [sink.staged(0, [message], queue="routed")])

    assert [m.metadata.fairness_key for m in engine.lease("routed")] == ["acme"]


def test_a_delay_begins_when_the_batch_is_published(engine: DrivenEngine, sink: SinkClient) -> None:
    message = service.EnqueueMessage(payload=b"later", options=service.EnqueueOptions(delay_ms=1000))
    attempt = sink.staged(0, [message])
    engine.sleep(5000)
    sink.publish(0, [attempt])

    engine.sleep(900)
    assert engine.payloads("q") == []
    engine.sleep(200)
    assert engine.payloads("q") == [b"later"]


def test_a_dedup_key_is_looked_up_when_the_batch_is_published(engine: DrivenEngine, sink: SinkClient) -> None:
    options = service.EnqueueOptions(dedup_key="k")
    attempt = sink.staged(0, [service.EnqueueMessage(payload=b"staged", options=options), b"new"])
    engine.enqueue("q", b"first", dedup_key="k")

    answer = sink.publish(0, [attempt])

    assert (answer.messages, answer.duplicates) == (1, 1)
    assert log_of(engine) == [b"first", b"new"]


def test_what_no_setting_of_today_can_route_is_published_under_the_default_key(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    message = service.EnqueueMessage(headers={"tenant": "t" * 300}, payload=b"x")
    attempt = sink.staged(0, [message])
    config = admin.QueueConfig(fairness_key_header="tenant")
    engine.call(
        commands.UPDATE_QUEUE, admin.UpdateQueueRequest(queue="q", config=config), admin.UpdateQueueResponse
    )

    assert sink.publish(0, [attempt]).messages == 1
    assert [m.metadata.fairness_key for m in engine.lease("q")] == ["default"]


# --- repeats ----------------------------------------------------------------------------------


def test_a_frame_staged_again_is_stored_once(engine: DrivenEngine, sink: SinkClient) -> None:
    sink.stage(0, [b"a"])
    before = engine.core.counters()["staged_bytes"]
    attempt = sink.staged(0, [b"a"])

    assert engine.core.counters()["staged_bytes"] == before
    assert sink.publish(0, [attempt]).messages == 1


def test_a_frame_staged_again_with_other_bytes_is_refused(sink: SinkClient) -> None:
    sink.stage(0, [b"a"])
    with pytest.raises(Refused, match="STAGED_OTHERWISE"):
        sink.stage(0, [b"b"])


def test_frames_come_in_order(sink: SinkClient) -> None:
    with pytest.raises(Refused, match="STAGE_GAP"):
        sink.stage(0, [b"a"], frame=1)


def test_a_second_publish_does_nothing_and_says_so(engine: DrivenEngine, sink: SinkClient) -> None:
    attempt = sink.staged(0, [b"a"])
    sink.publish(0, [attempt])

    assert sink.publish(0, [attempt]).already_published
    assert log_of(engine) == [b"a"]


def test_who_stages_for_a_published_batch_is_told_and_nothing_is_stored(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    sink.publish(0, [sink.staged(0, [b"a"])])

    assert sink.stage(0, [b"again"]).already_published
    assert engine.core.counters()["staged_bytes"] == 0


def test_two_publishes_of_a_batch_that_is_on_its_way_are_answered_together(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    attempt = sink.staged(0, [b"a"])
    first = engine.submit(commands.PUBLISH, sink.publish_request(0, [attempt]))
    second = engine.submit(commands.PUBLISH, sink.publish_request(0, [attempt]))
    engine.others += engine.settle_down()

    answers = [pb.PublishResponse.FromString(engine.answer_of(token)[1]) for token in (first, second)]
    assert [(a.messages, a.already_published) for a in answers] == [(1, False), (1, True)]
    assert log_of(engine) == [b"a"]


def test_a_gap_is_refused_unless_reset_is_set(sink: SinkClient) -> None:
    attempt = sink.staged(5, [b"a"])
    with pytest.raises(Refused, match="BATCH_GAP"):
        sink.publish(5, [attempt])

    assert sink.publish(5, [attempt], reset=True).messages == 1
    assert sink.publish(5, [attempt]).already_published
    assert sink.publish(4).already_published


def test_the_next_batch_waits_until_the_one_before_it_is_there(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    engine.submit(commands.PUBLISH, sink.publish_request(0, [sink.staged(0, [b"a"])]))
    token = engine.submit(commands.PUBLISH, sink.publish_request(1, []))
    engine.others += engine.settle_down()

    assert b"still on its way" in engine.answer_of(token)[1]


@pytest.mark.parametrize(
    ("messages", "checksum"), [(2, 0), (1, 1), (0, 0)], ids=["too many", "another checksum", "none"]
)
def test_what_is_listed_otherwise_than_it_was_staged_is_not_published(
    engine: DrivenEngine, sink: SinkClient, messages: int, checksum: int
) -> None:
    attempt = sink.staged(0, [b"a"])
    wrong = Staged(messages=messages, checksum=checksum or attempt.checksum)
    with pytest.raises(Refused, match="NOT_STAGED"):
        sink.publish(0, [wrong])

    assert sink.publish(0, [attempt]).messages == 1


def test_a_partition_is_published_once(sink: SinkClient) -> None:
    first, second = sink.staged(0, [b"a"], attempt=0), sink.staged(0, [b"a"], attempt=1)
    with pytest.raises(Refused, match="listed twice"):
        sink.publish(0, [first, second])


def test_a_frame_whose_stage_was_not_answered_cannot_be_published(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    guessed = sink.staged(0, [b"a"])
    sink.drop(0)
    engine.settle_down()
    engine.submit(commands.STAGE, sink.request(0, [b"a"]))
    token = engine.submit(commands.PUBLISH, sink.publish_request(0, [guessed]))
    engine.others += engine.settle_down()

    assert b"NOT_STAGED" in engine.answer_of(token)[1]


# --- runs -------------------------------------------------------------------------------------


def test_the_same_run_keeps_its_epoch_and_a_new_one_gets_a_higher(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    assert sink.open().epoch == sink.open().epoch == 1
    assert SinkClient(engine, run_id="run-2").open().epoch == 2


def test_a_later_run_fences_the_earlier_one_and_drops_what_it_staged(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    attempt = sink.staged(0, [b"old"])
    later = SinkClient(engine, run_id="run-2")
    later.open()
    engine.settle_down()

    assert engine.core.counters()["staged_bytes"] == 0
    for call in (
        lambda: sink.stage(0, [b"x"]),
        lambda: sink.publish(0, [attempt]),
        lambda: sink.drop(0),
        sink.open,
    ):
        with pytest.raises(Refused, match="SINK_FENCED"):
            call()
    with pytest.raises(Refused, match="NOT_STAGED"):
        later.publish(0, [attempt])


def test_what_is_on_its_way_arrives_although_a_later_run_begins(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    engine.submit(commands.PUBLISH, sink.publish_request(0, [sink.staged(0, [b"a"])]))
    engine.run_pass()
    later = SinkClient(engine, run_id="run-2")

    assert later.open().next_batch == 1
    assert log_of(engine) == [b"a"]
    assert later.publish(0).already_published


def test_a_sink_has_to_be_opened(engine: DrivenEngine) -> None:
    with pytest.raises(Refused, match="SINK_NOT_FOUND"):
        SinkClient(engine, epoch=1).stage(0, [b"a"])


# --- giving up --------------------------------------------------------------------------------


def test_what_is_dropped_cannot_be_published(engine: DrivenEngine, sink: SinkClient) -> None:
    attempt = sink.staged(0, [b"a"])
    assert sink.drop(0).attempts == 1
    engine.settle_down()

    assert engine.core.counters()["staged_bytes"] == 0
    with pytest.raises(Refused, match="NOT_STAGED"):
        sink.publish(0, [attempt])


def test_one_attempt_is_dropped_and_the_other_stays(sink: SinkClient) -> None:
    lost, won = sink.staged(0, [b"a"], attempt=0), sink.staged(0, [b"a"], attempt=1)
    assert sink.drop(0, [lost]).attempts == 1
    assert sink.publish(0, [won]).messages == 1


def test_a_published_batch_cannot_be_dropped(engine: DrivenEngine, sink: SinkClient) -> None:
    attempt = sink.staged(0, [b"a"])
    engine.submit(commands.PUBLISH, sink.publish_request(0, [attempt]))
    engine.run_pass()
    with pytest.raises(Refused, match="ALREADY_PUBLISHED"):
        sink.drop(0)
    with pytest.raises(Refused, match="ALREADY_PUBLISHED"):
        sink.drop(0, [attempt])

    assert log_of(engine) == [b"a"]


def test_an_attempt_dropped_in_the_pass_that_staged_it_leaves_nothing(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    stage = engine.submit(commands.STAGE, sink.request(0, [b"a"]))
    engine.submit(commands.DROP_STAGED, pb.DropRequest(sink_id="s", epoch=1, batch=0))
    engine.others += engine.settle_down()

    assert b"STAGED_DROPPED" in engine.answer_of(stage)[1]
    assert engine.core.counters()["staged_bytes"] == 0
    engine.kill()
    engine.reopen()
    assert engine.core.counters()["staged_bytes"] == 0


def test_orphans_go_by_age_and_what_is_still_being_staged_stays(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    sink.stage(0, [b"a"], partition=0)
    engine.sleep(DAY_MS - 60_000, step_ms=3600_000)
    other = sink.staged(0, [b"b"], partition=1)
    engine.sleep(3600_000, step_ms=600_000)
    assert engine.core.counters()["sink_swept"] == 0

    engine.sleep(DAY_MS, step_ms=3600_000)

    assert engine.core.counters()["sink_swept"] == 2
    assert engine.core.counters()["staged_bytes"] == 0
    with pytest.raises(Refused, match="NOT_STAGED"):
        sink.publish(0, [other])


def test_an_idle_sink_is_forgotten_and_its_next_batch_refused(engine: DrivenEngine, sink: SinkClient) -> None:
    sink.publish(0, [sink.staged(0, [b"a"])])
    engine.sleep(29 * DAY_MS, step_ms=DAY_MS)
    assert engine.core.counters()["sinks"] == 1
    engine.sleep(2 * DAY_MS, step_ms=DAY_MS)
    assert engine.core.counters()["sinks"] == 0

    later = SinkClient(engine, run_id="run-2")
    later.open()
    with pytest.raises(Refused, match="BATCH_GAP"):
        later.publish(1, [later.staged(1, [b"b"])])


def test_a_sink_may_ask_to_be_kept_for_less(engine: DrivenEngine, sink: SinkClient) -> None:
    SinkClient(engine, "brief").open(keep_ms=3600_000)
    engine.sleep(2 * 3600_000, step_ms=600_000)

    assert engine.core.counters()["sinks"] == 1


# --- who looks at them ------------------------------------------------------------------------


def _listed(engine: DrivenEngine, **request: Any) -> pb.ListSinksResponse:
    return engine.call(commands.LIST_SINKS, pb.ListSinksRequest(**request), pb.ListSinksResponse)


def test_a_listed_sink_says_what_it_has_staged_and_published(engine: DrivenEngine, sink: SinkClient) -> None:
    sink.publish(0, [sink.staged(0, [b"a"])])
    sink.stage(1, [b"b", b"c"])
    sink.stage(1, [b"d"], frame=1)
    sink.stage(1, [b"e"], partition=1)

    told = _listed(engine)
    (info,) = told.sinks
    assert (info.sink_id, info.run_id, info.epoch, info.keep_ms) == ("s", "run-1", 1, 30 * DAY_MS)
    assert (info.next_batch, info.attempts, info.staged_messages) == (1, 2, 4)
    assert info.staged_bytes == told.staged_bytes > 3 * 1024
    assert told.staged_bytes_max == 1 << 30
    assert not info.HasField("publishing")
    sink.drop(1)
    assert _listed(engine).sinks[0].staged_bytes == 0


def test_a_batch_on_its_way_is_listed_with_how_far_it_is(engine: DrivenEngine, sink: SinkClient) -> None:
    listed = sink.staged(0, [b"a", b"b"])
    engine.submit(commands.PUBLISH, sink.publish_request(0, [listed]))
    engine.run_pass()

    (info,) = _listed(engine).sinks
    assert (info.publishing.batch, info.publishing.messages, info.next_batch) == (0, 2, 0)


def test_sinks_are_listed_by_name_page_by_page(engine: DrivenEngine) -> None:
    for number in range(7):
        SinkClient(engine, f"job-{number}").open()
    SinkClient(engine, "another").open()

    names, after = [], ""
    while True:
        page = _listed(engine, prefix="job-", after=after, limit=3)
        names.append([info.sink_id for info in page.sinks])
        after = page.next_after
        if not after:
            break
    assert names == [["job-0", "job-1", "job-2"], ["job-3", "job-4", "job-5"], ["job-6"]]
