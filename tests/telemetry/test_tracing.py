"""Trace context from a call's metadata to its message."""

from __future__ import annotations

import pytest

from fila.v1.service_pb2 import EnqueueRequest
from fila_server.telemetry.tracing import with_trace_context

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = SAMPLED[:-2] + "00"


def carried(metadata, headers_max: int = 64, **fields) -> EnqueueRequest:
    frame = EnqueueRequest(queue="orders", payload=b"x", **fields).SerializeToString()
    return EnqueueRequest.FromString(with_trace_context(frame, metadata, headers_max))


def test_a_sampled_trace_travels_with_the_message():
    request = carried([("traceparent", SAMPLED), ("tracestate", "vendor=1")], headers={"tenant": "acme"})

    assert dict(request.headers) == {"tenant": "acme", "traceparent": SAMPLED, "tracestate": "vendor=1"}
    assert (request.queue, request.payload) == ("orders", b"x")


def test_a_frame_without_trace_metadata_is_not_even_copied():
    frame = EnqueueRequest(queue="orders").SerializeToString()

    assert with_trace_context(frame, [("user-agent", "x")], 64) is frame


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
def test_what_is_not_sampled_or_not_valid_stays_behind(traceparent):
    assert dict(carried([("traceparent", traceparent)]).headers) == {}


def test_a_later_versions_context_is_carried_as_it_is():
    later = "cc" + SAMPLED[2:] + "-what-the-future-holds"

    assert carried([("traceparent", later)]).headers["traceparent"] == later


def test_the_messages_own_headers_win():
    own = UNSAMPLED.replace("b7", "c7")

    assert dict(carried([("traceparent", SAMPLED)], headers={"traceparent": own}).headers) == {
        "traceparent": own
    }


def test_a_message_with_every_header_it_may_have_is_not_refused_for_ours():
    headers = {f"h{i}": "v" for i in range(64)}

    assert dict(carried([("traceparent", SAMPLED)], headers=headers).headers) == headers
    nearly = dict(list(headers.items())[:63])
    request = carried([("traceparent", SAMPLED), ("tracestate", "a=1")], headers=nearly)
    assert len(request.headers) == 64
    assert "tracestate" not in request.headers


def test_a_long_tracestate_stays_behind():
    request = carried([("traceparent", SAMPLED), ("tracestate", "a=" + "x" * 600)])

    assert dict(request.headers) == {"traceparent": SAMPLED}


def test_a_frame_that_is_no_request_is_left_to_the_core():
    assert with_trace_context(b"\xff\xff", [("traceparent", SAMPLED)], 64) == b"\xff\xff"
