"""Trace context from a producer's call to its message, so that a consumer's span can link to the producer's.

Only of sampled traces, and only where the message does not say so itself: an unsampled trace has nothing to link to,
and what a producer wrote into its headers is its own business. A call without the metadata costs one look at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from google.protobuf.message import DecodeError

from fila.v1.service_pb2 import EnqueueRequest

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
TRACESTATE_BYTES_MAX = 512
"""What W3C asks everybody to carry; more is left behind rather than refused."""

# version - trace id - span id - flags; version ff is forbidden, ids of zeros are none.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?"
)
_SAMPLED = 0x01

Metadata = Iterable[tuple[str, str | bytes]]


def with_trace_context(frame: bytes, metadata: Metadata, headers_max: int) -> bytes:
    """Return the EnqueueRequest with its call's trace context as headers, where there is one to carry."""
    traceparent = tracestate = ""
    for name, value in metadata:
        if name == TRACEPARENT and isinstance(value, str):
            traceparent = value
        elif name == TRACESTATE and isinstance(value, str):
            tracestate = value
    if not traceparent:
        return frame
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or not int(found[1], 16) & _SAMPLED:
        return frame
    return _with_headers(frame, traceparent, tracestate, headers_max)


def _with_headers(frame: bytes, traceparent: str, tracestate: str, headers_max: int) -> bytes:
    try:
        request = EnqueueRequest.FromString(frame)
    except DecodeError:
        return frame  # the core says what is wrong with it
    if TRACEPARENT in request.headers or len(request.headers) >= headers_max:
        return frame
    request.headers[TRACEPARENT] = traceparent
    if (
        tracestate
        and len(tracestate.encode()) <= TRACESTATE_BYTES_MAX
        and TRACESTATE not in request.headers
        and len(request.headers) < headers_max
    ):
        request.headers[TRACESTATE] = tracestate
    return request.SerializeToString()
