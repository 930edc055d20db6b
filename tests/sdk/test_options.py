"""Settings: bounds, defaults, and the two places their names stand in."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from typing import Any, get_type_hints

import grpc
import pytest

from fila import Backoff, ClientOptions, FilaClient, Unavailable
from fila.connection import Connection
from fila.methods import ACK_BATCH, DELETE_QUEUE, ENQUEUE, GET_QUEUE, GET_STATS, PURGE_QUEUE
from fila.options import OptionFields
from fila.places import parse_target
from fila.v1.admin_pb2 import GetQueueRequest
from tests.sdk.conftest import ManualClock


def test_the_keywords_of_connect_are_the_fields_of_the_options() -> None:
    assert get_type_hints(OptionFields) == get_type_hints(ClientOptions)
    assert list(OptionFields.__annotations__) == [field.name for field in dataclasses.fields(ClientOptions)]


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ({"linger_ms": 6}, "linger_ms must be at most 5, got 6"),
        ({"linger_ms": -1}, "linger_ms must be at least 0, got -1"),
        ({"prefetch": 0}, "prefetch must be at least 1, got 0"),
        ({"prefetch": 10_001}, "prefetch must be at most 10000, got 10001; consume with several consumers"),
        ({"frame_messages_max": 10_001}, "frame_messages_max must be at most 10000, got 10001"),
    ],
)
def test_an_option_out_of_bounds_names_itself_and_its_bound(option: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ClientOptions(**option)


def test_backoff_doubles_up_to_its_cap_and_half_of_it_is_chance() -> None:
    backoff = Backoff(base_s=0.1, cap_s=1.0, randomness=random.Random(7))

    for attempt, ceiling_s in enumerate([0.1, 0.2, 0.4, 0.8, 1.0, 1.0]):
        waits = {backoff.wait_s(attempt) for _ in range(50)}
        assert all(ceiling_s / 2 <= wait <= ceiling_s for wait in waits)
        assert len(waits) == 50
    assert backoff.wait_s(10_000) <= 1.0


def test_backoff_refuses_a_cap_below_its_base() -> None:
    with pytest.raises(ValueError, match="0 < base_s <= cap_s"):
        Backoff(base_s=2, cap_s=1)


@pytest.mark.parametrize(
    ("target", "parsed"),
    [
        ("localhost:5555", ("localhost:5555", False)),
        ("http://localhost:5555", ("localhost:5555", False)),
        ("https://broker.example:443/", ("broker.example:443", True)),
        ("[::1]:5555", ("[::1]:5555", False)),
    ],
)
def test_a_target_may_have_a_scheme(target: str, parsed: tuple[str, bool]) -> None:
    assert parse_target(target) == parsed


@pytest.mark.parametrize("target", ["ftp://localhost:5555", "http://", "http://localhost:5555/path"])
def test_a_target_that_is_none_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="target must look like localhost:5555"):
        parse_target(target)


async def test_connecting_to_nobody_says_so_and_what_to_do() -> None:
    with pytest.raises(Unavailable, match=r"no Fila broker answers at 127.0.0.1:1\. Start fila-server there"):
        await FilaClient.connect("127.0.0.1:1", connect_timeout_s=0.2, clock=ManualClock())


def test_only_what_leaves_the_same_state_may_be_repeated() -> None:
    assert [method.repeatable for method in (GET_STATS, ACK_BATCH)] == [True, True]
    assert [method.repeatable for method in (ENQUEUE, PURGE_QUEUE, DELETE_QUEUE)] == [False, False, False]


class KeyTeller(grpc.GenericRpcHandler):
    """Answers every call empty, and notes who made it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        metadata = handler_call_details.invocation_metadata or ()
        sent = [str(value) for name, value in metadata if name == "authorization"]
        self.seen.append(sent[0] if sent else "")

        async def answer(_request: bytes, _context: object) -> bytes:
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


async def test_one_connection_serves_several_keys_and_tells_when_it_is_broken() -> None:
    teller = KeyTeller()
    server = grpc.aio.server(handlers=[teller])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    connection = Connection(f"127.0.0.1:{port}", ClientOptions(api_key="own"))
    for each in (connection.with_key("other"), connection, connection.with_key("")):
        await each.call(GET_QUEUE, GetQueueRequest(), {})
    broken = asyncio.ensure_future(connection.broken())
    await asyncio.sleep(0)
    assert not broken.done()
    await server.stop(None)
    await broken
    await connection.close()

    assert teller.seen == ["Bearer other", "Bearer own", ""]
