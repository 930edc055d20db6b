"""A call as handlers see it: its context, what it is refused with, and when its answer was read.

An error of errors.py becomes what a gRPC client sees here, and nowhere else. Every refusal carries google.rpc.Status
with ErrorInfo{reason, domain "fila"}, so a client needs one table whatever call it made; RESOURCE_EXHAUSTED carries
RetryInfo as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import grpc
import structlog
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from fila_server import errors
from fila_server.broker.unwritten import Unwritten

log = structlog.get_logger("fila_server.services")

Context = grpc.aio.ServicerContext[Any, bytes]
UnaryHandler = Callable[[bytes, Context], Awaitable[bytes]]

DOMAIN = "fila"
DETAILS_KEY = "grpc-status-details-bin"

MESSAGE_CHARS_MAX = 1024
"""A status travels in HTTP/2 trailers, which clients cap at 8 KiB and which carry it twice."""

CODE_BY_STATUS: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def until_written(context: Context, unwritten: Unwritten, size: int, peer: str = "") -> None:
    """Give the budget back what an answer took of it, when its call is over: written, or its client gone."""
    written: Any = lambda _: unwritten.give(size, peer)  # noqa: E731 - grpc's own type of it is too narrow
    context.add_done_callback(written)


def status_of(error: errors.FilaServerError) -> status_pb2.Status:
    """Return the rich status of an error."""
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN)
    if isinstance(error, errors.NotOwner) and error.owner:
        info.metadata["owner"] = error.owner
    status = status_pb2.Status(code=error.status, message=_shortened(error.message), details=[_packed(info)])
    if error.status == errors.RESOURCE_EXHAUSTED:
        after_ms = getattr(error, "retry_after_ms", errors.RETRY_AFTER_MS_DEFAULT)
        delay = duration_pb2.Duration(seconds=after_ms // 1000, nanos=after_ms % 1000 * 1_000_000)
        status.details.append(_packed(error_details_pb2.RetryInfo(retry_delay=delay)))
    return status


async def abort(context: grpc.aio.ServicerContext[Any, Any], error: Exception) -> NoReturn:
    """End the call with what `error` means; an error that is not ours is logged and hidden.

    grpc.aio keeps what `context.abort` raises on the context, a cycle that stands until the collector
    comes by, and it comes by seldom. So nothing large may hang on it: not the frames `error` came
    through, and not the caller's own request, which the caller lets go of first.
    """
    refusal = hidden(error)
    error.__traceback__ = None
    if isinstance(refusal, errors.Unauthenticated) and refusal.before_reported is not None:
        await refusal.before_reported()
    status = status_of(refusal)
    await context.abort(
        CODE_BY_STATUS[refusal.status], status.message, ((DETAILS_KEY, status.SerializeToString()),)
    )
    raise AssertionError("abort() raises")


def hidden(error: Exception) -> errors.FilaServerError:
    """Return the error a client may see: one of ours as it is, anything else logged and hidden."""
    if isinstance(error, errors.FilaServerError) and not isinstance(error, errors.StartError):
        return error
    # The client learns that it was us, and nothing about how we are built.
    log.error("call.failed", exc_info=error)
    return errors.Internal("the server failed on this call; its log says how")


def _packed(message: Any) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed


def _shortened(message: str) -> str:
    return message if len(message) <= MESSAGE_CHARS_MAX else message[: MESSAGE_CHARS_MAX - 3] + "..."
