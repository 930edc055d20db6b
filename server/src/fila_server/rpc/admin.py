"""FilaAdmin: rare calls, typed by people. Everything is parsed and checked here, in Python.

A method is a row of the table in `handlers`: its command, its request type, and its
check. Two calls need more than a check: CreateQueue sends the complete config, and
UpdateQueue merges what its mask names into the config that is there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from fila.v1 import admin_pb2 as pb
from fila_server import commands, errors
from fila_server.broker import Broker
from fila_server.rpc import queue_rules as rules
from fila_server.rpc.service import Context
from fila_server.rpc.status import abort
from fila_server.rpc.wire_fault import explain
from fila_server.settings import Limits

SERVICE = "fila.v1.FilaAdmin"

PEEK_MESSAGES_MAX = 1_000
STATS_KEYS_MAX = 100_000

Check = Callable[[Any], None]


def handlers(broker: Broker, limits: Limits) -> grpc.GenericRpcHandler:
    """Every method of the service, registered on raw bytes."""
    admin = _Admin(broker, limits)
    plain: dict[str, tuple[int, type[Message], Check]] = {
        "GetQueue": (commands.GET_QUEUE, pb.GetQueueRequest, admin.check_queue),
        "DeleteQueue": (commands.DELETE_QUEUE, pb.DeleteQueueRequest, admin.check_own_queue),
        "ListQueues": (commands.LIST_QUEUES, pb.ListQueuesRequest, _check_nothing),
        "PurgeQueue": (commands.PURGE_QUEUE, pb.PurgeQueueRequest, admin.check_view),
        "PeekMessages": (commands.PEEK_MESSAGES, pb.PeekMessagesRequest, admin.check_peek),
        "GetStats": (commands.GET_STATS, pb.GetStatsRequest, admin.check_stats),
        "SetConfig": (commands.SET_CONFIG, pb.SetConfigRequest, admin.check_set_config),
        "GetConfig": (commands.GET_CONFIG, pb.GetConfigRequest, admin.check_config_key),
        "ListConfig": (commands.LIST_CONFIG, pb.ListConfigRequest, admin.check_prefix),
    }
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(_plain(broker, kind, request_type, check))
        for name, (kind, request_type, check) in plain.items()
    }
    methods["CreateQueue"] = grpc.unary_unary_rpc_method_handler(_answering(admin.create_queue))
    methods["UpdateQueue"] = grpc.unary_unary_rpc_method_handler(_answering(admin.update_queue))
    for name in ("Redrive", "CreateChannel", "DeleteChannel", "ListChannels", "SeekChannel", "PurgeChannel",
                 "SetKeyPolicy", "ExplainKey"):  # fmt: skip
        methods[name] = grpc.unary_unary_rpc_method_handler(_answering(_not_yet(name)))
    methods["ReadLog"] = grpc.unary_stream_rpc_method_handler(_read_log)
    return grpc.method_handlers_generic_handler(SERVICE, methods)


class _Admin:
    """The checks, with the limits they check against."""

    def __init__(self, broker: Broker, limits: Limits) -> None:
        self._broker = broker
        self._limits = limits

    async def create_queue(self, frame: bytes) -> bytes:
        request = parse(pb.CreateQueueRequest, frame)
        rules.check_new_name("name", request.name)
        config = rules.complete(request.config, self._limits)
        self._broker.hooks.check_scripts(config.on_enqueue_script, config.on_failure_script)
        complete = pb.CreateQueueRequest(name=request.name, config=config)
        return await self._broker.call(commands.CREATE_QUEUE, complete.SerializeToString())

    async def update_queue(self, frame: bytes) -> bytes:
        request = parse(pb.UpdateQueueRequest, frame)
        self.check_own_queue(request)
        # Two updates that each read, merge and write must not undo one another.
        async with self._broker.mirror.update_lock:
            current = self._broker.queue_configs.get(request.queue)
            if current is None:
                raise errors.QueueNotFound(request.queue)
            config = rules.complete(rules.merge(current, request), self._limits, default_channel=False)
            self._broker.hooks.check_scripts(config.on_enqueue_script, config.on_failure_script)
            complete = pb.UpdateQueueRequest(
                queue=request.queue, config=config, update_mask=request.update_mask
            )
            return await self._broker.call(commands.UPDATE_QUEUE, complete.SerializeToString())

    def check_queue(self, request: Any) -> None:
        rules.check_name("queue", request.queue)

    def check_own_queue(self, request: Any) -> None:
        rules.check_name("queue", request.queue)
        if request.queue.startswith(rules.RESERVED_PREFIX):
            raise errors.Invalid("queue", "is the broker's own and is not changed from outside")

    def check_view(self, request: Any) -> None:
        """A queue and, where they are given, a channel and a fairness key."""
        rules.check_name("queue", request.queue)
        if request.channel:
            rules.check_name("channel", request.channel)
        self._check_bytes("fairness_key", request.fairness_key, self._limits.fairness_key_bytes_max)

    def check_peek(self, request: pb.PeekMessagesRequest) -> None:
        self.check_view(request)
        if request.max_messages > PEEK_MESSAGES_MAX:
            raise errors.LimitExceeded(
                "max_messages", f"must be at most {PEEK_MESSAGES_MAX}, got {request.max_messages}"
            )

    def check_stats(self, request: pb.GetStatsRequest) -> None:
        rules.check_name("queue", request.queue)
        if request.channel:
            rules.check_name("channel", request.channel)
        if request.max_keys > STATS_KEYS_MAX:
            raise errors.LimitExceeded(
                "max_keys", f"must be at most {STATS_KEYS_MAX}, got {request.max_keys}"
            )

    def check_config_key(self, request: Any) -> None:
        if not request.key:
            raise errors.Invalid("key", "must not be empty")
        self._check_bytes("key", request.key, self._limits.config_key_bytes_max)

    def check_set_config(self, request: pb.SetConfigRequest) -> None:
        self.check_config_key(request)
        self._check_bytes("value", request.value, self._limits.config_value_bytes_max)

    def check_prefix(self, request: pb.ListConfigRequest) -> None:
        self._check_bytes("prefix", request.prefix, self._limits.config_key_bytes_max)

    def _check_bytes(self, field: str, text: str, bytes_max: int) -> None:
        size = len(text.encode())
        if size > bytes_max:
            raise errors.LimitExceeded(field, f"must be at most {bytes_max} bytes, got {size}")


def parse(request_type: type[Any], frame: bytes) -> Any:
    """Parse a request, or say which field is broken."""
    try:
        return request_type.FromString(frame)
    except DecodeError:
        raise explain(frame, request_type.DESCRIPTOR) from None


def _plain(
    broker: Broker, kind: int, request_type: type[Message], check: Check
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def call(frame: bytes) -> bytes:
        check(parse(request_type, frame))
        return await broker.call(kind, frame)

    return _answering(call)


def _answering(call: Callable[[bytes], Awaitable[bytes]]) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def handle(frame: bytes, context: Context) -> bytes:
        try:
            return await call(frame)
        except Exception as error:
            await abort(context, error)

    return handle


def _not_yet(name: str) -> Callable[[bytes], Awaitable[bytes]]:
    async def refuse(_frame: bytes) -> bytes:
        raise errors.Unimplemented(f"{name} is not implemented by this version of fila-server")

    return refuse


async def _read_log(_frame: bytes, context: Context) -> None:
    await abort(context, errors.Unimplemented("ReadLog is not implemented by this version of fila-server"))


def _check_nothing(_request: Message) -> None:
    """For requests without fields."""
