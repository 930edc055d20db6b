"""Sinks: what bounds them, queues that go, and brokers that end."""

import random
from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila.v1 import sink_pb2 as pb
from fila_server import errors
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.sink_client import SinkClient, Staged, log_of


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    engine.create_queue("q")
    yield engine
    engine.remove()


@pytest.fixture
def sink(engine: DrivenEngine) -> SinkClient:
    client = SinkClient(engine)
    client.open()
    return client


# --- bounds -----------------------------------------------------------------------------------


def bounded(**settings: int) -> SinkClient:
    engine = DrivenEngine({f"sinks.{name}": value for name, value in settings.items()})
    engine.create_queue("q")
    sink = SinkClient(engine)
    sink.open()
    return sink


def test_staged_bytes_are_bounded_and_free_again_once_published() -> None:
    sink = bounded(staged_bytes_max=100_000)
    attempt = sink.staged(0, [b"x" * 90_000])
    with pytest.raises(Refused, match=r"sinks\.staged_bytes_max"):
        sink.stage(0, [b"y" * 10_000], partition=1)
    sink.publish(0, [attempt])

    assert sink.stage(1, [b"y" * 90_000]).messages == 1
    sink.engine.remove()


def test_attempts_of_a_sink_are_bounded() -> None:
    sink = bounded(attempts_max=2)
    sink.stage(0, [b"a"], partition=0)
    sink.stage(0, [b"a"], partition=1)
    with pytest.raises(Refused, match=r"sinks\.attempts_max"):
        sink.stage(0, [b"a"], partition=2)
    assert sink.stage(0, [b"b"], partition=1, frame=1).messages == 2
    sink.engine.remove()


def test_sinks_are_bounded() -> None:
    sink = bounded(sinks_max=1)
    with pytest.raises(Refused, match=r"sinks\.sinks_max"):
        SinkClient(sink.engine, "another").open()
    assert sink.open().epoch == 1
    sink.engine.remove()


def test_a_pass_looks_at_few_of_the_sinks_with_a_batch_on_its_way_and_none_is_left_out() -> None:
    names = [f"s{i}" for i in range(150)]
    engine = DrivenEngine({"sinks.sinks_max": len(names)})
    engine.create_queue("q")
    wanted = []
    for name in names:
        sink = SinkClient(engine, name)
        sink.open()
        wanted.append(sink.publish_request(0, [sink.staged(0, [name.encode()])]))
    for request in wanted:
        engine.submit(commands.PUBLISH, request)
    for _ in names:
        engine.run_pass()
    engine.commit()

    read = []
    for _ in range(3):
        engine.run_pass()
        read.append(engine.core.load())
    engine.settle_down()

    assert read == [64, 64, 22]
    assert sorted(log_of(engine)) == sorted(name.encode() for name in names)
    engine.remove()


def opened(engine: DrivenEngine, names: list[str]) -> None:
    for name in names:
        engine.submit(commands.OPEN_SINK, pb.OpenSinkRequest(sink_id=name, run_id="run"))
    engine.settle_down()


def listed(engine: DrivenEngine, prefix: str = "", after: str = "", limit: int = 7) -> list[str]:
    """Every page of it."""
    names: list[str] = []
    while True:
        page = pb.ListSinksRequest(prefix=prefix, after=after, limit=limit)
        told = engine.call(commands.LIST_SINKS, page, pb.ListSinksResponse)
        names += [info.sink_id for info in told.sinks]
        after = told.next_after
        if not after:
            return names
        assert len(told.sinks) == limit


def test_a_pass_that_is_asked_for_many_long_lists_of_sinks_ends_behind_a_few(engine: DrivenEngine) -> None:
    opened(engine, [f"job-{number:04d}" for number in range(1_100)])
    tokens = {engine.submit(commands.LIST_SINKS, pb.ListSinksRequest(limit=1_000)) for _ in range(20)}
    engine.run_pass()
    first = {out[0] for out in engine.core.drain()} & tokens
    rest = {out[0] for out in engine.settle_down()} & tokens

    assert 1 <= len(first) <= 3
    assert first | rest == tokens


def test_sinks_are_listed_by_name_while_they_come_and_go_and_over_a_restart(engine: DrivenEngine) -> None:
    chance = random.Random(5)
    names = {"".join(chance.choices("ab.-Z0", k=chance.randrange(1, 6))) for _ in range(80)}
    shuffled = chance.sample(sorted(names), len(names))
    opened(engine, shuffled[:60])
    brief = set(chance.sample(shuffled[:60], 25))
    for name in brief:
        SinkClient(engine, name, "brief").open(keep_ms=1_000)
    engine.sleep(60_000, step_ms=1_000)
    assert listed(engine) == sorted(set(shuffled[:60]) - brief)

    opened(engine, shuffled[60:])
    left = sorted(names - brief)
    for _ in range(2):
        assert listed(engine) == left
        assert listed(engine, prefix="a") == [name for name in left if name.startswith("a")]
        assert listed(engine, after="a.") == [name for name in left if name > "a."]
        engine.kill()
        engine.reopen()


def test_staged_bytes_count_against_the_queue(engine: DrivenEngine, sink: SinkClient) -> None:
    engine.create_queue("small", max_bytes=10_000)
    sink.stage(0, [b"x" * 6_000], queue="small")
    with pytest.raises(Refused, match="max_bytes"):
        sink.stage(0, [b"x" * 6_000], queue="small", partition=1)
    with pytest.raises(Refused, match="max_bytes"):
        engine.enqueue("small", b"x" * 6_000)


def test_publish_reserves_room_or_publishes_nothing(engine: DrivenEngine, sink: SinkClient) -> None:
    engine.create_queue("short", max_depth=3)
    attempt = sink.staged(0, [b"a", b"b", b"c"], queue="short")
    engine.enqueue("short", b"first")
    with pytest.raises(Refused, match="max_depth"):
        sink.publish(0, [attempt])
    assert log_of(engine, "short") == [b"first"]
    engine.ack("short", engine.lease("short"))

    engine.submit(commands.PUBLISH, sink.publish_request(0, [attempt]))
    engine.run_pass()
    engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="short", payload=b"late"))
    engine.others += engine.settle_down()

    assert engine.payloads("short") == [b"a", b"b", b"c"]


def test_a_full_disk_refuses_to_stage_and_to_publish() -> None:
    engine = DrivenEngine()
    engine.create_queue("q")
    sink = SinkClient(engine)
    sink.open()
    attempt = sink.staged(0, [b"a"])
    engine.kill()
    engine.settings["storage.min_free_bytes"] = 1 << 60
    engine.reopen()
    engine.core.watch()
    with pytest.raises(Refused, match="DISK_FLOOR"):
        sink.stage(0, [b"b"], partition=1)
    with pytest.raises(Refused, match="DISK_FLOOR"):
        sink.publish(0, [attempt])
    engine.remove()


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (service.EnqueueMessage(payload=b"x" * 2_000_000), "payload"),
        (service.EnqueueMessage(headers={"k" * 5_000: "v"}), "headers"),
        (service.EnqueueMessage(queue="elsewhere", payload=b"x"), "one queue"),
    ],
    ids=["payload", "header", "another queue"],
)
def test_a_message_beyond_a_bound_refuses_its_frame(
    engine: DrivenEngine, sink: SinkClient, message: service.EnqueueMessage, why: str
) -> None:
    with pytest.raises((Refused, errors.Invalid), match=why):
        sink.stage(0, [b"good", message])
    assert engine.core.counters()["staged_bytes"] == 0


def test_what_was_staged_is_held_against_no_newer_rule(engine: DrivenEngine, sink: SinkClient) -> None:
    """A header without a name, as it could be staged before such were refused."""
    anything_goes = {"limits.header_key_bytes_max": 0xFFFFFFFF}
    engine.settings |= anything_goes
    engine.kill()
    engine.reopen()
    attempt = sink.staged(0, [service.EnqueueMessage(headers={"": "nameless"}, payload=b"m")])
    for name in anything_goes:
        del engine.settings[name]
    engine.kill()
    engine.reopen()
    with pytest.raises((Refused, errors.Invalid), match="header"):
        sink.stage(1, [service.EnqueueMessage(headers={"": "nameless"})])

    published = sink.publish(0, [attempt])
    assert (published.messages, published.lost) == (1, 0)
    assert [dict(m.headers) for m in engine.lease("q")] == [{"": "nameless"}]


def test_a_key_that_cannot_be_routed_is_refused_when_it_is_staged(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    engine.create_queue("routed", fairness_key_header="tenant")
    with pytest.raises(Refused, match="fairness or throttle key"):
        sink.stage(0, [service.EnqueueMessage(headers={"tenant": "t" * 300})], queue="routed")


def test_an_unknown_queue_is_named(sink: SinkClient) -> None:
    with pytest.raises(Refused, match='queue "nowhere" does not exist'):
        sink.stage(0, [b"a"], queue="nowhere")


# --- queues that go ---------------------------------------------------------------------------


def test_a_queue_with_a_batch_on_its_way_is_deleted_only_by_force(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    engine.create_queue("other")
    sink.stage(0, [b"kept"], queue="other")
    attempt = sink.staged(0, [b"a", b"b"], frame=1)
    publish = engine.submit(commands.PUBLISH, sink.publish_request(0, [attempt]))
    engine.run_pass()
    refused = engine.submit(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"))
    engine.submit(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q", force=True))
    engine.others += engine.settle_down()

    assert b"SINK_PUBLISHING" in engine.answer_of(refused)[1]
    answer = pb.PublishResponse.FromString(engine.answer_of(publish)[1])
    assert (answer.messages, answer.lost) == (1, 2)
    assert engine.core.counters()["sink_lost"] == 2
    assert any(kind == commands.NOTICE for _, kind, _, _ in engine.others)
    assert log_of(engine, "other") == [b"kept"]


def test_a_queue_that_was_deleted_after_staging_refuses_the_batch(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    attempt = sink.staged(0, [b"a"])
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"), admin.DeleteQueueResponse)
    engine.create_queue("q")
    with pytest.raises(Refused, match="was deleted since"):
        sink.publish(0, [attempt])


# --- ends -------------------------------------------------------------------------------------


def test_all_of_it_survives_a_restart(engine: DrivenEngine, sink: SinkClient) -> None:
    sink.publish(0, [sink.staged(0, [b"zero"])])
    attempt = sink.staged(1, [b"one"])
    engine.kill()
    engine.reopen()

    assert sink.publish(0).already_published
    assert sink.staged(1, [b"one"]) == attempt
    assert sink.open().epoch == 1
    assert sink.publish(1, [attempt]).messages == 1
    assert log_of(engine) == [b"zero", b"one"]


def test_a_routing_that_a_hook_decided_survives_a_restart(engine: DrivenEngine, sink: SinkClient) -> None:
    parsed = engine.core.parse(commands.STAGE, sink.request(0, [b"a", b"b"]).SerializeToString())
    routing = b"\x01\x00\x00\x01" + bytes(8) + b"\x00\x04acme"
    assert parsed.route([1], 0, 1, routing, 0) == (1, None, len(routing))
    engine.core.submit_parsed(1_000, parsed)
    engine.others += engine.settle_down()
    staged = pb.StageResponse.FromString(engine.answer_of(1_000)[1])
    engine.kill()
    engine.reopen()

    sink.publish(0, [Staged(messages=2, checksum=staged.checksum)])

    assert {m.payload: m.metadata.fairness_key for m in engine.lease("q")} == {b"a": "default", b"b": "acme"}


def test_a_batch_whose_commit_point_is_on_the_disk_goes_on_after_a_power_cut(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    sink.stage(0, [b"a"])
    attempt = sink.staged(0, [b"b"], frame=1)
    engine.submit(commands.PUBLISH, sink.publish_request(0, [attempt]))
    engine.run_pass()
    engine.commit()
    engine.cut_power()
    engine.reopen()
    engine.settle_down()

    assert log_of(engine) == [b"a", b"b"]
    assert sink.publish(0).already_published


def test_a_batch_whose_commit_point_was_lost_is_published_by_the_repeat(
    engine: DrivenEngine, sink: SinkClient
) -> None:
    attempt = sink.staged(0, [b"a"])
    engine.submit(commands.PUBLISH, sink.publish_request(0, [attempt]))
    engine.run_pass()
    engine.cut_power()
    engine.reopen()
    engine.settle_down()
    assert log_of(engine) == []

    answer = sink.publish(0, [attempt])
    assert (answer.messages, answer.already_published) == (1, False)
    assert log_of(engine) == [b"a"]


@pytest.mark.parametrize("passes", range(12))
def test_wherever_the_broker_is_killed_the_batch_is_there_once(passes: int) -> None:
    engine = DrivenEngine()
    engine.create_queue("q")
    sink = SinkClient(engine)
    sink.open()
    for frame in range(4):
        attempt = sink.staged(0, [b"%d" % frame, b"dup"], frame=frame)
    engine.submit(commands.PUBLISH, sink.publish_request(0, [attempt]))
    for _ in range(passes):
        engine.run_pass()
        engine.commit()
        engine.core.load()
    engine.kill()
    engine.reopen()
    engine.settle_down()
    sink.publish(0, [attempt])

    assert log_of(engine) == [b"0", b"dup", b"1", b"dup", b"2", b"dup", b"3", b"dup"]
    assert engine.core.counters()["staged_bytes"] == 0
    assert engine.stats("q").depth == 8
    engine.remove()
