"""FilaAdmin: rare calls, typed by people. Everything is parsed and checked here, in Python.

A method is a row of the table in `handlers`: its command, its request type, and its
check. A few need more than a check: CreateQueue sends the complete config, UpdateQueue
merges what its mask names into the config that is there, GetStats adds what the hooks
counted, lists are sorted, and Redrive is a walk of its own (redrive.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from fila.v1 import admin_pb2 as pb
from fila_server import commands, errors
from fila_server import queue_rules as rules
from fila_server.broker.calls import Broker
from fila_server.broker.gate import Gate
from fila_server.broker.unwritten import COUNTED_FROM_BYTES, PAGE_BYTES_MAX, Unwritten
from fila_server.config.schema import Limits
from fila_server.hooks.counters import HookStatus
from fila_server.hooks.packed import KeyLimits
from fila_server.redrive import Redrive
from fila_server.rpc.admin_rules import AdminRules
from fila_server.rpc.admission import Admission
from fila_server.rpc.service import Context, until_written
from fila_server.rpc.status import abort
from fila_server.rpc.wire_fault import explain

SERVICE = "fila.v1.FilaAdmin"

Check = Callable[[Any], None]
Call = Callable[[bytes], Awaitable[bytes]]

LARGE_REST_S = 0.05
"""After a request of many entries, before the next one is looked at: such a one takes about as long."""


def handlers(broker: Broker, limits: Limits) -> grpc.GenericRpcHandler:
    """Every method of the service, registered on raw bytes."""
    check = AdminRules(limits)
    admission = Admission(limits)

    def answering(method: str, call: Call) -> grpc.RpcMethodHandler[Any, Any]:
        return grpc.unary_unary_rpc_method_handler(_answering(method, admission, broker.unwritten, call))

    plain: dict[str, tuple[int, type[Message], Check]] = {
        "GetQueue": (commands.GET_QUEUE, pb.GetQueueRequest, check.queue),
        "DeleteQueue": (commands.DELETE_QUEUE, pb.DeleteQueueRequest, check.changed_queue),
        "PurgeQueue": (commands.PURGE_QUEUE, pb.PurgeQueueRequest, check.view),
        "SetConfig": (commands.SET_CONFIG, pb.SetConfigRequest, check.set_config),
        "GetConfig": (commands.GET_CONFIG, pb.GetConfigRequest, check.config_key),
        "ListConfig": (commands.LIST_CONFIG, pb.ListConfigRequest, check.prefix),
        "CreateChannel": (commands.CREATE_CHANNEL, pb.CreateChannelRequest, check.new_channel),
        "DeleteChannel": (commands.DELETE_CHANNEL, pb.DeleteChannelRequest, check.channel),
        "SeekChannel": (commands.SEEK_CHANNEL, pb.SeekChannelRequest, check.seek),
        "PurgeChannel": (commands.PURGE_CHANNEL, pb.PurgeChannelRequest, check.view),
        "SetKeyPolicy": (commands.SET_KEY_POLICY, pb.SetKeyPolicyRequest, check.key_policy),
        "ListConsumers": (commands.LIST_CONSUMERS, pb.ListConsumersRequest, check.consumers),
        "ExplainKey": (commands.EXPLAIN_KEY, pb.ExplainKeyRequest, check.explained_key),
    }
    queues = _Queues(broker, limits, check)
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: answering(name, _plain(broker, kind, request_type, row_check))
        for name, (kind, request_type, row_check) in plain.items()
    }
    methods["CreateQueue"] = answering("CreateQueue", queues.create)
    methods["UpdateQueue"] = answering("UpdateQueue", queues.update)
    methods["ListQueues"] = answering("ListQueues", queues.list_queues)
    methods["ListChannels"] = answering("ListChannels", queues.list_channels)
    methods["GetStats"] = answering("GetStats", queues.stats)
    methods["PeekMessages"] = answering("PeekMessages", queues.peek)
    methods["Redrive"] = answering("Redrive", queues.redrive)
    methods["ReadLog"] = grpc.unary_stream_rpc_method_handler(_reading_log(broker, admission, check))
    return grpc.method_handlers_generic_handler(SERVICE, methods)


class _Queues:
    """The calls that are more than one command with its check."""

    def __init__(self, broker: Broker, limits: Limits, check: AdminRules) -> None:
        self._broker = broker
        self._limits = limits
        self._check = check
        self._looks = Gate("GetStats calls", at_once=1)
        self._peeks = Gate("PeekMessages calls", at_once=4)

    async def create(self, frame: bytes) -> bytes:
        request = parse(pb.CreateQueueRequest, frame)
        rules.check_new_name("name", request.name)
        config = rules.complete(request.config, self._limits)
        self._broker.hooks.check_scripts(config.on_enqueue_script, config.on_failure_script)
        complete = pb.CreateQueueRequest(name=request.name, config=config)
        return await self._broker.call(commands.CREATE_QUEUE, complete.SerializeToString())

    async def update(self, frame: bytes) -> bytes:
        request = parse(pb.UpdateQueueRequest, frame)
        self._check.update(request)
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

    async def list_queues(self, frame: bytes) -> bytes:
        parse(pb.ListQueuesRequest, frame)
        listed = pb.ListQueuesResponse.FromString(await self._broker.call(commands.LIST_QUEUES, frame))
        # The core has them in the order of its table.
        listed.queues.sort(key=lambda queue: queue.name)
        return listed.SerializeToString()

    async def list_channels(self, frame: bytes) -> bytes:
        self._check.queue(parse(pb.ListChannelsRequest, frame))
        listed = pb.ListChannelsResponse.FromString(await self._broker.call(commands.LIST_CHANNELS, frame))
        listed.channels.sort(key=lambda channel: channel.name)
        return listed.SerializeToString()

    async def stats(self, frame: bytes) -> bytes:
        request = parse(pb.GetStatsRequest, frame)
        self._check.stats(request)
        async with self._looks:
            reply = await self._broker.call(commands.GET_STATS, frame)
        scripts = self._broker.hooks.status(request.queue)
        return with_hooks(reply, scripts) if scripts else reply

    async def peek(self, frame: bytes) -> bytes:
        self._check.peek(parse(pb.PeekMessagesRequest, frame))
        async with self._peeks:
            unwritten = self._broker.unwritten
            unwritten.set_page_aside()
            try:
                reply = await self._broker.call(commands.PEEK_MESSAGES, frame)
            finally:
                unwritten.give(PAGE_BYTES_MAX)
            return reply

    async def redrive(self, frame: bytes) -> bytes:
        request = parse(pb.RedriveRequest, frame)
        self._check.redrive(request)
        limits = KeyLimits(
            fairness_key_bytes=self._limits.fairness_key_bytes_max,
            throttle_key_bytes=self._limits.throttle_key_bytes_max,
            throttle_keys=self._limits.throttle_keys_max,
        )
        redriven = await Redrive(self._broker, request, limits).run()
        return pb.RedriveResponse(redriven=redriven).SerializeToString()


_BREAKER_BY_STATE = {
    "closed": pb.BREAKER_STATE_CLOSED,
    "half_open": pb.BREAKER_STATE_HALF_OPEN,
    "open": pb.BREAKER_STATE_OPEN,
}
_GRAVITY = list(_BREAKER_BY_STATE)


def with_hooks(reply: bytes, scripts: Sequence[HookStatus]) -> bytes:
    """Add to a GetStats reply what only the edge knows: how the queue's scripts are doing."""
    stats = pb.GetStatsResponse.FromString(reply)
    for script in scripts:
        stats.hook_fallbacks += script.counters.fallbacks
        stats.hook_errors += script.counters.errors
        stats.weights_clamped_total += script.counters.clamped_weights
    worst = max((script.breaker for script in scripts), key=_GRAVITY.index)
    stats.breaker_state = _BREAKER_BY_STATE[worst]
    return stats.SerializeToString()


def parse(request_type: type[Any], frame: bytes) -> Any:
    """Parse a request, or say which field is broken."""
    try:
        return request_type.FromString(frame)
    except DecodeError:
        raise explain(frame, request_type.DESCRIPTOR) from None


def _plain(broker: Broker, kind: int, request_type: type[Message], check: Check) -> Call:
    async def call(frame: bytes) -> bytes:
        check(parse(request_type, frame))
        return await broker.call(kind, frame)

    return call


def _answering(
    method: str, admission: Admission, unwritten: Unwritten, call: Call
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    large = Gate(f"{method} calls of many entries", at_once=1, rest_s=LARGE_REST_S)

    async def handle(frame: bytes, context: Context) -> bytes:
        try:
            admission.check_bytes(method, frame)
            if admission.may_have_many_parts(method, frame):
                async with large:
                    admission.check_parts(frame)
                    reply = await call(frame)
            else:
                reply = await call(frame)
            if len(reply) >= COUNTED_FROM_BYTES:
                # What changes something answers with little: only what was read can be refused here.
                if not unwritten.take(len(reply)):
                    raise unwritten.refusal()
                until_written(context, unwritten, len(reply))
            return reply
        except Exception as error:
            frame = b""  # see abort()
            await abort(context, error)

    return handle


def _reading_log(
    broker: Broker, admission: Admission, check: AdminRules
) -> Callable[[bytes, Context], AsyncIterator[bytes]]:
    async def handle(frame: bytes, context: Context) -> AsyncIterator[bytes]:
        try:
            admission.check_bytes("ReadLog", frame)
            check.read_log(parse(pb.ReadLogRequest, frame))
            async for piece in broker.read_log(frame):
                yield piece
        except Exception as error:
            await abort(context, error)

    return handle
