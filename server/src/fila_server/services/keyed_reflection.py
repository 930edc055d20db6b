"""Reflection for callers with a key, and for all who may come in without one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from grpc_reflection.v1alpha import reflection

from fila_server.services.identity import Identity
from fila_server.services.status import abort


class KeyedReflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]  # published without types
    """grpcio's own answers, for those who are admitted."""

    def __init__(self, names: Sequence[str], identity: Identity) -> None:
        super().__init__(names, pool=None)
        self._identity = identity

    async def ServerReflectionInfo(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:
        """Answer questions about services and messages."""
        try:
            self._identity.enter(context)
        except Exception as error:
            await abort(context, error)
        async for response in super().ServerReflectionInfo(request_iterator, context):
            yield response
