"""What somebody sees who gave an argument of a wrong type: its name, at the call that gave it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fila import FilaClient, NewMessage
from tests.sdk.fake_broker import FakeBroker

Call = Callable[[FilaClient], Awaitable[Any]]

BAD_HEADER: Any = NewMessage(headers={"a": 1})  # type: ignore[dict-item]

CALLS: list[tuple[str, Call]] = [
    ("queue must be str, got int", lambda c: c.enqueue(5, b"x")),  # type: ignore[arg-type]
    ("queue must be str, got NoneType", lambda c: c.enqueue(None, b"x")),
    ("payload must be bytes, got str", lambda c: c.enqueue("q", "x")),  # type: ignore[arg-type]
    ("headers['tenant'] must be str, got int", lambda c: c.enqueue("q", b"x", {"tenant": 7})),  # type: ignore[dict-item]
    ("a key of headers must be str, got int", lambda c: c.enqueue("q", b"x", {7: "tenant"})),  # type: ignore[dict-item]
    ("headers must be a mapping, got int", lambda c: c.enqueue("q", b"x", 7)),  # type: ignore[arg-type]
    ("headers['t'] must be str that can be written as UTF-8", lambda c: c.enqueue("q", b"x", {"t": "\ud800"})),
    ("delay_ms must be int, got str", lambda c: c.enqueue("q", b"x", delay_ms="5")),  # type: ignore[arg-type]
    ("ttl_ms must be from 0 to 18446744073709551615, got -1", lambda c: c.enqueue("q", b"x", ttl_ms=-1)),
    ("dedup_key must be str, got int", lambda c: c.enqueue("q", b"x", dedup_key=5)),  # type: ignore[arg-type]
    ("messages[1]: a message must be NewMessage or bytes, got str", lambda c: c.enqueue_many("q", [b"x", "y"])),  # type: ignore[list-item]
    ("messages[1]: payload must be bytes, got str", lambda c: c.enqueue_many("q", [b"x", NewMessage(payload="y")])),  # type: ignore[arg-type]
    ("messages[2]: headers['a'] must be str, got int", lambda c: c.enqueue_many("q", [b"x", b"y", BAD_HEADER])),
    ("queue must be str, got int", lambda c: c.enqueue_many(5, [b"x"])),  # type: ignore[arg-type]
    ("queue must be str, got int", lambda c: c.lease(5)),  # type: ignore[arg-type]
    ("max_messages must be from 1 to 4294967295, got -1", lambda c: c.lease("q", -1)),
    ("max_messages must be from 1 to 4294967295, got 0", lambda c: c.lease("q", 0)),
    ("max_messages must be from 1 to 4294967295, got 0", lambda c: c.peek("q", max_messages=0)),
    ("max_messages must be int, got str", lambda c: c.peek("q", max_messages="5")),  # type: ignore[arg-type]
    ("channel must be str, got int", lambda c: c.lease("q", channel=5)),  # type: ignore[arg-type]
    ("queue must be str, got int", lambda c: c.nack(5, "id")),  # type: ignore[arg-type]
    ("message_id must be str, got int", lambda c: c.ack("q", 5)),  # type: ignore[arg-type]
    ("extend_ms must be int, got float", lambda c: c.extend("q", "id", 1.5)),  # type: ignore[arg-type]
    ("queue must be str, got int", lambda c: c.create_queue(5)),  # type: ignore[arg-type]
    ("max_depth must be int, got str", lambda c: c.create_queue("q", max_depth="5")),  # type: ignore[arg-type]
    ("weights['a'] must be int, got str", lambda c: c.update_queue("q", weights={"a": "5"})),  # type: ignore[dict-item]
    ("retry.base_ms must be from 0 to", lambda c: c.update_queue("q", retry={"base_ms": -5})),
    ("queue must be str, got int", lambda c: c.delete_queue(5)),  # type: ignore[arg-type]
    ("dlq must be str, got int", lambda c: c.redrive(5)),  # type: ignore[arg-type]
    ("value must be str, got int", lambda c: c.set_config("k", 5)),  # type: ignore[arg-type]
    ("fairness_key must be str, got int", lambda c: c.set_key_policy("q", 5)),  # type: ignore[arg-type]
    ("name must be str, got int", lambda c: c.set_limit(5, max_in_flight=1)),  # type: ignore[arg-type]
    ("rates[0]: per_second must be a number, got str", lambda c: c.set_limit("k", rates=[{"per_second": "5"}])),  # type: ignore[typeddict-item]
    ("rates[0]: unit must be messages or cost", lambda c: c.set_limit("k", rates=[{"per_second": 1, "unit": "x"}])),  # type: ignore[typeddict-item]
    ("budget.period_ms: ", lambda c: c.set_limit("k", budget={"amount": 1, "period_ms": "a day"})),
]  # fmt: skip


@pytest.mark.parametrize(
    ("says", "call"), CALLS, ids=[f"{i} {says[:40]}" for i, (says, _) in enumerate(CALLS)]
)
async def test_a_wrong_argument_is_named_and_nothing_is_sent(
    broker: FakeBroker, client: FilaClient, says: str, call: Call
) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        await call(client)

    assert str(raised.value).startswith(says)


async def test_a_consumer_of_a_queue_without_a_name_is_refused_where_it_is_made(client: FilaClient) -> None:
    with pytest.raises(TypeError, match="queue must be str, got int"):
        client.consume(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="channel must be str, got int"):
        client.consume("orders", channel=5)  # type: ignore[arg-type]


async def test_a_nack_with_an_exception_is_refused_and_harms_no_other_settlement(
    broker: FakeBroker, client: FilaClient
) -> None:
    await client.enqueue_many("orders", [b"one", b"two"])
    one, two = await client.lease("orders", 2)

    settled = one.ack()
    with pytest.raises(TypeError, match="error must be str, got KeyError"):
        two.nack(KeyError("card"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delay_ms must be from 0 to"):
        two.nack("later", 2**64)

    await settled
    await two.nack("card declined")
