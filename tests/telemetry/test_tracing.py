"""Trace context from a call's metadata to its message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer, launch, wait_until_started

pytestmark = pytest.mark.e2e

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = SAMPLED[:-2] + "00"
HEADERS_MAX = 64


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("tracing")
    running = wait_until_started(
        launch(folder / "data", folder / "server.log", FILA_STORAGE__DURABILITY="os")
    )
    running.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    yield running
    assert running.stop() == 0, running.log_file.read_text()


@pytest.fixture(scope="module")
def service(server: RunningServer) -> Any:
    return server.service


def carried(
    service: Any, *metadata: tuple[str, str], headers: dict[str, str] | None = None
) -> dict[str, str]:
    """The headers of a message whose call had this metadata."""
    request = service_pb2.EnqueueRequest(queue="orders", payload=b"x", headers=headers or {})
    service.Enqueue(request, metadata=metadata)
    [message] = service.Lease(service_pb2.LeaseRequest(queue="orders")).messages
    assert message.payload == b"x"
    return dict(message.headers)


def test_a_sampled_trace_travels_with_the_message(service: Any):
    headers = carried(
        service, ("traceparent", SAMPLED), ("tracestate", "vendor=1"), headers={"tenant": "acme"}
    )

    assert headers == {"tenant": "acme", "traceparent": SAMPLED, "tracestate": "vendor=1"}


@pytest.mark.parametrize(
    "traceparent",
    [
        UNSAMPLED,
        "",
        "nonsense",
        "ff" + SAMPLED[2:],
        SAMPLED.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        SAMPLED.replace("b7ad6b7169203331", "0" * 16),
        SAMPLED.upper(),
        SAMPLED + "x",
    ],
)
def test_what_is_not_sampled_or_not_valid_stays_behind(service: Any, traceparent: str):
    assert carried(service, ("traceparent", traceparent)) == {}


def test_a_later_versions_context_is_carried_as_it_is(service: Any):
    later = "cc" + SAMPLED[2:] + "-what-the-future-holds"

    assert carried(service, ("traceparent", later))["traceparent"] == later


def test_the_messages_own_headers_win(service: Any):
    own = {"traceparent": UNSAMPLED.replace("b7", "c7")}

    assert carried(service, ("traceparent", SAMPLED), headers=own) == own


def test_a_message_with_every_header_it_may_have_is_not_refused_for_ours(service: Any):
    headers = {f"h{i}": "v" for i in range(HEADERS_MAX)}

    assert carried(service, ("traceparent", SAMPLED), headers=headers) == headers
    nearly = dict(list(headers.items())[:-1])
    found = carried(service, ("traceparent", SAMPLED), ("tracestate", "a=1"), headers=nearly)
    assert found == nearly | {"traceparent": SAMPLED}


def test_a_long_tracestate_stays_behind(service: Any):
    found = carried(service, ("traceparent", SAMPLED), ("tracestate", "a=" + "x" * 600))

    assert found == {"traceparent": SAMPLED}


def test_a_frame_that_is_no_request_is_refused_as_without_a_trace(server: RunningServer):
    enqueue: Any = server.channel().unary_unary("/fila.v1.FilaService/Enqueue")
    with pytest.raises(grpc.RpcError) as raised:
        enqueue(b"\xff\xff", metadata=[("traceparent", SAMPLED)])

    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
