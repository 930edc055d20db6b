"""Four priorities inside a key: the higher goes first there, other keys notice nothing, and it costs nothing unused."""

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.errors import Invalid
from tests.core.driven_engine import DrivenEngine, Refused
from tests.native.storeprobe import StoreProbe

SETTINGS: dict[str, Any] = {
    "fairness_key_header": "k",
    "priority_header": "p",
    "throttle_key_headers": ["t"],
    "cost_header": "c",
    "weight_header": "w",
}
States = admin.ExplainKeyResponse
INDEX = 2


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", **SETTINGS)
    yield made
    made.remove()


def put(engine: DrivenEngine, payload: str, key: str = "a", queue: str = "q", **more: Any) -> int:
    """`priority` is an option, headers are texts."""
    options = {name: more.pop(name) for name in ("priority", "delay_ms") if name in more}
    return engine.enqueue(queue, payload.encode(), {"k": key, **more}, **options)


def gone(engine: DrivenEngine, most: int = 100, queue: str = "q") -> list[str]:
    return [message.payload.decode() for message in engine.lease(queue, most)]


def priority_of(metadata: Any) -> int:
    return metadata.priority if metadata.HasField("priority") else 1


def where(engine: DrivenEngine, message_id: str) -> admin.GetMessageResponse:
    request = admin.GetMessageRequest(queue="q", message_id=message_id)
    return engine.call(commands.GET_MESSAGE, request, admin.GetMessageResponse)


def peeked(engine: DrivenEngine, queue: str = "q") -> list[messages.Message]:
    request = admin.PeekMessagesRequest(queue=queue, max_messages=100)
    return list(engine.call(commands.PEEK_MESSAGES, request, admin.PeekMessagesResponse).messages)


def test_of_one_key_the_higher_go_first_and_alike_ones_in_their_order(engine: DrivenEngine) -> None:
    for payload, priority in (
        ("low", 0),
        ("first", 1),
        ("high", 2),
        ("second", None),
        ("top", 3),
        ("top2", 3),
    ):
        options: dict[str, Any] = {} if priority is None else {"priority": priority}
        put(engine, payload, **options)

    assert gone(engine) == ["top", "top2", "high", "first", "second", "low"]


@pytest.mark.parametrize(
    ("header", "priority"),
    [
        ("0", 0),
        ("3", 3),
        ("2.9", 2),
        ("-0.5", 0),
        ("-7", 0),
        ("4", 3),
        ("1e99", 3),
        ("0x3", 3),
        ("0x.8p2", 2),
        ("1e309", 3),
        ("-inf", 0),
        ("nan", 1),
        ("soon", 1),
        ("", 1),
        (" 3", 1),
    ],
)
def test_a_header_is_cut_off_and_clamped_and_no_number_is_the_usual_priority(
    engine: DrivenEngine, header: str, priority: int
) -> None:
    put(engine, "x", p=header)

    assert priority_of(peeked(engine)[0].metadata) == priority


def test_what_the_producer_says_counts_over_the_header(engine: DrivenEngine) -> None:
    put(engine, "x", p="3", priority=0)

    assert priority_of(peeked(engine)[0].metadata) == 0


def test_between_keys_nothing_changes_whatever_their_messages_say(engine: DrivenEngine) -> None:
    shares = {"a": {"c": "2"}, "b": {}, "c": {"w": "3"}}
    orders = []
    for priorities in ((1, 1, 1), (3, 0, 2)):
        engine.create_queue(queue := f"of-{priorities[0]}", **SETTINGS)
        for n in range(40):
            for (key, headers), priority in zip(shares.items(), priorities, strict=True):
                put(engine, key, key, queue, priority=(priority + n % 2) % 4, **headers)
        orders.append(gone(engine, 50, queue))

    assert orders[0] == orders[1]
    assert len(Counter(orders[0])) == 3


@pytest.mark.parametrize(("saved_for", "higher"), [(1, 3), (0, 1), (0, 2)])
def test_a_key_that_saves_for_a_dear_message_lets_a_higher_one_go_at_once(
    engine: DrivenEngine, saved_for: int, higher: int
) -> None:
    put(engine, "dear", "a", c="500", priority=saved_for)
    for n in range(20):
        put(engine, f"b{n}", "b")
    gone(engine, 3)
    put(engine, "urgent", "a", priority=higher)

    assert "urgent" in gone(engine, 3)


@pytest.mark.parametrize("priority", [4, 2**32 - 1])
def test_more_than_three_is_refused_with_a_sentence(engine: DrivenEngine, priority: int) -> None:
    with pytest.raises(Invalid, match=r"options.priority: must be 0 to 3; leave it out"):
        put(engine, "x", priority=priority)


def test_a_queue_in_order_takes_no_priority_not_even_the_usual_one(engine: DrivenEngine) -> None:
    engine.create_queue("strict", fairness_key_header="k", key_order=admin.KEY_ORDER_STRICT)
    for priority in range(4):
        with pytest.raises(Refused, match=r"options.priority: this queue's key_order is strict"):
            put(engine, "x", queue="strict", priority=priority)
    put(engine, "plain", queue="strict")

    assert gone(engine, queue="strict") == ["plain"]


# --- limits ------------------------------------------------------------------------------------


def test_a_token_goes_to_the_higher_of_a_key_that_wait_for_it(engine: DrivenEngine) -> None:
    engine.set_config("throttle.mail", "1,1")
    put(engine, "low", t="mail", priority=0)
    put(engine, "usual", t="mail")
    assert gone(engine) == ["usual"]
    engine.sleep(100)
    put(engine, "high", t="mail", priority=3)
    assert gone(engine) == []
    engine.sleep(1000, 50)
    assert gone(engine) == ["high"]
    engine.sleep(1000, 50)

    assert gone(engine) == ["low"]


def test_one_that_its_limit_holds_lets_lower_ones_of_its_key_go(engine: DrivenEngine) -> None:
    engine.set_config("throttle.mail", "1,1")
    put(engine, "spent", t="mail")
    assert gone(engine) == ["spent"]
    put(engine, "held", t="mail", priority=3)
    put(engine, "low", priority=0)

    assert gone(engine) == ["low"]


# --- what comes back ---------------------------------------------------------------------------


def fail(engine: DrivenEngine, leased: list[messages.Message], delay_ms: int = 0) -> None:
    engine.nack("q", leased, delay_ms)


def test_a_failed_a_delayed_and_an_expired_message_keep_their_priority(engine: DrivenEngine) -> None:
    put(engine, "delayed", priority=3, delay_ms=500)
    put(engine, "failed", priority=2)
    fail(engine, engine.lease("q", 1))
    put(engine, "usual")
    assert gone(engine, 1) == ["failed"]
    engine.sleep(31_000, 1_000)

    assert gone(engine, 3) == ["delayed", "failed", "usual"]


def test_it_outlives_kills_in_frames_and_in_what_comes_back(engine: DrivenEngine) -> None:
    for payload, priority in (("low", 0), ("usual", 1), ("high", 2)):
        put(engine, payload, priority=priority)
    put(engine, "later", priority=3, delay_ms=1_000)
    fail(engine, engine.lease("q", 1))
    engine.kill()
    engine.reopen()
    put(engine, "new")
    engine.sleep(1_500, 100)

    assert gone(engine) == ["later", "high", "usual", "new", "low"]


def test_a_dead_letter_keeps_it_for_its_redrive_and_goes_in_the_order_of_deaths(engine: DrivenEngine) -> None:
    engine.create_queue("once", **SETTINGS, max_attempts=1)
    for payload, priority in (("first", 0), ("second", 3), ("third", 1)):
        put(engine, payload, queue="once", priority=priority)
        engine.nack("once", engine.lease("once"), 0)
    dead = peeked(engine, "once.dlq")
    assert [(each.payload, priority_of(each.metadata)) for each in dead] == [
        (b"first", 0),
        (b"second", 3),
        (b"third", 1),
    ]
    assert gone(engine, 1, "once.dlq") == ["first"]
    engine.kill()
    engine.reopen()
    engine.sleep(31_000, 1_000)
    request = admin.RedriveRequest(dlq_queue="once.dlq", count=256)
    engine.call(commands.REDRIVE_MOVE, request, admin.RedriveResponse)

    assert gone(engine, queue="once") == ["second", "third", "first"]


def test_a_replacement_brings_its_own_priority_to_the_place_it_takes(engine: DrivenEngine) -> None:
    replace = service.EnqueueOptions.ON_DUPLICATE_REPLACE
    engine.enqueue("q", b"old", {"k": "a"}, dedup_key="d", priority=0)
    put(engine, "high", priority=2)
    engine.enqueue("q", b"new", {"k": "a"}, dedup_key="d", on_duplicate=replace, priority=2)

    assert gone(engine) == ["new", "high"]


def test_each_channel_and_a_channel_that_seeks_back_goes_by_it(engine: DrivenEngine) -> None:
    retention = admin.Retention(soft_period_ms=10**9)
    engine.create_queue("kept", **SETTINGS, channels=["default", "other"], retention=retention)
    put(engine, "low", queue="kept", priority=0)
    put(engine, "high", queue="kept", priority=3)
    assert engine.payloads("kept", channel="other") == [b"high", b"low"]
    leased = engine.lease("kept")
    engine.ack("kept", leased)
    engine.call(
        commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue="kept", channel="default", offset=1),
        admin.SeekChannelResponse,
    )  # fmt: skip
    engine.sleep(100, 10)

    assert gone(engine, queue="kept") == ["high", "low"]


# --- what is told of it ------------------------------------------------------------------------


def test_a_message_behind_higher_ones_names_them_as_its_cause_and_counts_them(engine: DrivenEngine) -> None:
    for payload, priority in (("low", 0), ("usual", 1), ("high", 3)):
        put(engine, payload, priority=priority)
    ids = {message.payload: message.id for message in peeked(engine)}
    low, usual, high = (where(engine, ids[name]) for name in (b"low", b"usual", b"high"))

    assert [(each.place, priority_of(each), each.cause) for each in (low, usual, high)] == [
        (3, 0, States.STATE_HIGHER_FIRST),
        (2, 1, States.STATE_HIGHER_FIRST),
        (1, 3, States.STATE_UNSPECIFIED),
    ]


def explained(engine: DrivenEngine, key: str = "a") -> admin.ExplainKeyResponse:
    request = admin.ExplainKeyRequest(queue="q", fairness_key=key)
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)


def test_a_key_says_how_many_of_its_messages_wait_behind_higher_ones(engine: DrivenEngine) -> None:
    behind = []
    for payload, priority in (("low", 0), ("low", 0), ("usual", 1), ("high", 3), ("usual", 1), ("high", 3)):
        put(engine, payload, priority=priority)
        behind.append(explained(engine).behind_higher)
    put(engine, "of another key", "b", priority=0)

    assert behind == [0, 0, 2, 3, 4, 4]
    assert explained(engine, "b").behind_higher == 0
    assert explained(engine, "nobody").behind_higher == 0

    assert gone(engine, 3) == ["high", "of another key", "high"]
    assert explained(engine).behind_higher == 2
    assert explained(engine).pending == 4


def test_the_messages_of_a_key_that_wait_behind_higher_ones_are_those_that_say_so(
    engine: DrivenEngine,
) -> None:
    """With limits, some wait there and say that; what is paused counts them as well."""
    engine.set_config("throttle.empty", "0,0")
    for number in range(24):
        limits = {"t": "empty"} if number % 3 == 0 else {"t": "known"} if number % 3 == 1 else {}
        put(engine, f"{number}", priority=number % 4, **limits)
    engine.lease("q", 1)
    engine.ack("q", engine.lease("q", 1))

    causes = Counter(where(engine, message.id).cause for message in peeked(engine))
    assert causes[States.STATE_THROTTLED] > 1, causes
    behind = explained(engine).behind_higher
    assert behind == causes[States.STATE_HIGHER_FIRST] > 10, causes

    engine.call(
        commands.SET_KEY_POLICY,
        admin.SetKeyPolicyRequest(queue="q", fairness_key="a", paused=True),
        admin.SetKeyPolicyResponse,
    )
    assert (explained(engine).state, explained(engine).behind_higher) == (States.STATE_PAUSED, behind)


def index_record(engine: DrivenEngine, offset: int) -> bytes:
    """What the index says of a frame from its messages' count on, without ids and times."""
    store = StoreProbe(str(engine.directory))
    found = [store.get(INDEX, struct.pack(">QQ", queue, offset)) for queue in range(1, 50)]
    store.close()
    (record,) = [value for value in found if value is not None]
    return record[record.index(b"\x01a") :]


def test_the_usual_priority_stores_no_byte_and_another_one_three(engine: DrivenEngine) -> None:
    usual, said, high = put(engine, "x"), put(engine, "x", priority=1), put(engine, "x", priority=3)
    engine.stop()
    records = [index_record(engine, offset) for offset in (usual, said, high)]
    engine.reopen()

    assert records[0] == records[1] == b"\x01a" + b"\x01" + b"\xe8\x07" + b"\x00" + records[0][6:]
    assert len(records[2]) == len(records[0]) + 3
