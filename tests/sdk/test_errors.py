"""The tree as drawn, the one table, and what an error carries."""

from __future__ import annotations

import asyncio
import re

import grpc
import pytest
from google.rpc import code_pb2

import fila
from fila import errors
from fila.errors import FilaError, from_status
from fila_server import errors as server_errors
from tests.sdk.conftest import QUICK_BACKOFF, until
from tests.sdk.fake_broker import FakeBroker, Refusal


def tree(root: type[FilaError]) -> list[type[FilaError]]:
    return [root, *(found for child in root.__subclasses__() for found in tree(child))]


def test_the_drawing_shows_every_error_where_it_stands() -> None:
    entry = re.compile(r"^    ([│├└─ ]*)([A-Z][A-Za-z]+)\b", re.MULTILINE)
    drawn = [(len(branch) // 4, name) for branch, name in entry.findall(errors.__doc__ or "")]

    def walk(kind: type[FilaError], depth: int) -> list[tuple[int, str]]:
        below = [entry for child in kind.__subclasses__() for entry in walk(child, depth + 1)]
        return [(depth, kind.__name__), *below]

    assert drawn == walk(FilaError, 0)


def test_every_error_can_be_imported_from_the_top() -> None:
    assert {kind.__name__ for kind in tree(FilaError)} <= set(fila.__all__)


def test_every_reason_the_server_knows_has_its_row() -> None:
    theirs = {
        kind.reason
        for kind in server_errors._subclasses(server_errors.FilaServerError)
        if not issubclass(kind, server_errors.StartError)
    }

    assert theirs <= set(errors.ERROR_BY_REASON)


def test_every_status_the_server_sends_belongs_to_its_reason() -> None:
    for kind in server_errors._subclasses(server_errors.FilaServerError):
        if not issubclass(kind, server_errors.StartError):
            ours = from_status(kind.status, "text", kind.reason, {})
            assert type(ours) is errors.ERROR_BY_REASON[kind.reason]


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (code_pb2.NOT_FOUND, "QUEUE_NOT_FOUND", errors.QueueNotFound),
        (code_pb2.NOT_FOUND, "SHELF_NOT_FOUND", errors.NotFound),
        (code_pb2.RESOURCE_EXHAUSTED, "", errors.Overloaded),
        (code_pb2.UNAVAILABLE, "QUEUE_NOT_FOUND", errors.Unavailable),
        (code_pb2.OK, "", FilaError),
        (999, "", FilaError),
    ],
)
def test_an_unknown_reason_falls_back_to_the_status(code: int, reason: str, kind: type[FilaError]) -> None:
    assert type(from_status(code, "text", reason, {})) is kind


def test_an_error_carries_what_the_request_was_about() -> None:
    known = {"queue": "orders", "channel": "audit", "message_id": "m1", "lease_id": 7, "noise": 1}

    lost = from_status(code_pb2.FAILED_PRECONDITION, "text", "LEASE_LOST", known)
    missing = from_status(code_pb2.NOT_FOUND, "text", "CHANNEL_NOT_FOUND", known)

    assert isinstance(lost, errors.LeaseLost)
    assert (lost.message_id, lost.lease_id) == ("m1", 7)
    assert isinstance(missing, errors.ChannelNotFound)
    assert (missing.queue, missing.channel) == ("orders", "audit")
    assert (missing.code, missing.reason, str(missing)) == (
        grpc.StatusCode.NOT_FOUND,
        "CHANNEL_NOT_FOUND",
        "text",
    )


async def test_a_call_the_broker_refused_because_it_is_stopping_is_tried_again(broker: FakeBroker) -> None:
    broker.refusals.append(Refusal(code_pb2.UNAVAILABLE, "SHUTTING_DOWN", "the broker is stopping"))
    async with fila.FilaClient.connect(broker.address, batching=False, backoff=QUICK_BACKOFF) as client:
        assert (await client.enqueue("orders", b"x")).offset == 1


@pytest.mark.parametrize("cut", [True, False])
async def test_a_call_whose_answer_is_missing_is_not_repeated(broker: FakeBroker, cut: bool) -> None:
    async with fila.FilaClient.connect(
        broker.address, batching=False, call_timeout_s=30.0 if cut else 0.5, backoff=QUICK_BACKOFF
    ) as client:
        broker.answering.clear()
        call = asyncio.create_task(client.enqueue("orders", b"x"))
        await until(lambda: broker.calls)
        if cut:
            broker.break_connections()

        with pytest.raises(errors.AnswerLost):
            await call

    assert broker.calls == ["Enqueue"]
