"""How a fake broker refuses a call, and what makes it a node of a group that another one owns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from fila.v1 import messages_pb2


async def end(
    context: Any, refused: messages_pb2.ItemStatus, metadata: dict[str, str], retry_after_ms: int
) -> None:
    """End a call with a rich status."""
    details = [
        error_details_pb2.ErrorInfo(reason=refused.reason, domain="fila", metadata=metadata),
        error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(nanos=retry_after_ms * 1_000_000)),
    ]
    packed = [any_pb2.Any() for _ in details]
    for box, detail in zip(packed, details, strict=True):
        box.Pack(detail)
    status = status_pb2.Status(code=refused.code, message=refused.message, details=packed)
    context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
    code = next(code for code in grpc.StatusCode if code.value[0] == refused.code)
    await context.abort(code, refused.message)


class StandingBy(grpc.aio.ServerInterceptor):
    """Has every call turned away, with its method's name, while there is an owner, be its address known or not."""

    def __init__(
        self, owner: Callable[[], str | None], turn_away: Callable[[str, Any], Awaitable[None]]
    ) -> None:
        self._owner, self._turn_away = owner, turn_away

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if self._owner() is None:
            return handler
        method = details.method.rpartition("/")[2]

        async def refuse(_: Any, context: Any) -> None:
            await self._turn_away(method, context)

        async def refuse_stream(_: Any, context: Any) -> Any:
            await self._turn_away(method, context)
            yield  # never: it makes this a stream

        kind = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[handler.request_streaming, handler.response_streaming]
        return kind(refuse_stream if handler.response_streaming else refuse)
