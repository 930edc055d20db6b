"""FilaAdmin: rare calls, typed by people. Their bytes are parsed here; what they may ask is in operations/.

A method is a row of the table in `handlers`: its command, its request type, and its
check. Those that need more than a check are methods of operations/queues.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from fila.v1 import admin_pb2 as pb
from fila.v1 import events_pb2
from fila_server import commands
from fila_server.broker.calls import Broker
from fila_server.broker.gate import Gate
from fila_server.broker.unwritten import COUNTED_FROM_BYTES, Unwritten
from fila_server.config.schema import Limits
from fila_server.edges.grpc.admission import Admission
from fila_server.edges.grpc.service import Context, until_written
from fila_server.edges.grpc.status import abort
from fila_server.edges.grpc.watching import Watching
from fila_server.edges.grpc.wire_fault import explain
from fila_server.operations import changes
from fila_server.operations.late import list_late
from fila_server.operations.queues import Queues
from fila_server.operations.requests import AdminRules
from fila_server.operations.status import Status

SERVICE = "fila.v1.FilaAdmin"

Check = Callable[[Any], None]
Call = Callable[[bytes], Awaitable[bytes]]

LARGE_REST_S = 0.05
"""After a request of many entries, before the next one is looked at: such a one takes about as long."""


def handlers(broker: Broker, limits: Limits, durability: str, data_dir: str) -> grpc.GenericRpcHandler:
    """Every method of the service, registered on raw bytes."""
    check = AdminRules(limits)
    admission = Admission(limits)

    def answering(method: str, call: Call) -> grpc.RpcMethodHandler[Any, Any]:
        return grpc.unary_unary_rpc_method_handler(_answering(method, admission, broker.unwritten, call))

    plain: dict[str, tuple[int, type[Message], Check]] = {
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
    queues = Queues(broker, limits, check, durability)
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: answering(name, _plain(broker, kind, request_type, row_check))
        for name, (kind, request_type, row_check) in plain.items()
    }
    methods["CreateQueue"] = answering("CreateQueue", _parsed(pb.CreateQueueRequest, queues.create))
    methods["GetQueue"] = answering("GetQueue", _parsed(pb.GetQueueRequest, queues.get))
    methods["UpdateQueue"] = answering("UpdateQueue", _parsed(pb.UpdateQueueRequest, queues.update))
    methods["ListQueues"] = answering("ListQueues", _parsed(pb.ListQueuesRequest, queues.list_queues))
    methods["ListChannels"] = answering("ListChannels", _parsed(pb.ListChannelsRequest, queues.list_channels))
    methods["GetStats"] = answering("GetStats", _parsed(pb.GetStatsRequest, queues.stats))
    methods["PeekMessages"] = answering("PeekMessages", _parsed(pb.PeekMessagesRequest, queues.peek))
    methods["Redrive"] = answering("Redrive", _parsed(pb.RedriveRequest, queues.redrive))
    status = Status(broker, data_dir)
    methods["GetStatus"] = answering(
        "GetStatus", _parsed(events_pb2.GetStatusRequest, lambda _: status.get())
    )
    methods["ListLate"] = answering("ListLate", _parsed(events_pb2.ListLateRequest, _late(broker)))
    methods["ListKeyPolicies"] = answering(
        "ListKeyPolicies", _parsed(events_pb2.ListKeyPoliciesRequest, queues.key_policies)
    )
    methods["DropDeadLetters"] = answering(
        "DropDeadLetters", _parsed(events_pb2.DropDeadLettersRequest, queues.drop_dead_letters)
    )
    methods["WatchEvents"] = grpc.unary_stream_rpc_method_handler(
        _watching(Watching(broker.at_drain), admission)
    )
    methods["ReadLog"] = grpc.unary_stream_rpc_method_handler(_reading_log(broker, admission, check))
    return grpc.method_handlers_generic_handler(SERVICE, methods)


def _late(broker: Broker) -> Callable[[Any], Awaitable[bytes]]:
    walks = Gate("ListLate calls", at_once=1)

    async def late(request: events_pb2.ListLateRequest) -> bytes:
        async with walks:
            return (await list_late(broker, request)).SerializeToString()

    return late


def _parsed(request_type: type[Any], answer: Callable[[Any], Awaitable[bytes]]) -> Call:
    async def call(frame: bytes) -> bytes:
        return await answer(parse(request_type, frame))

    return call


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
            if (request_type := changes.REQUEST_BY_METHOD.get(method)) is not None:
                changes.tell(method, request_type.FromString(frame), context.peer() or "")
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


def _watching(watching: Watching, admission: Admission) -> Callable[[bytes, Context], AsyncIterator[bytes]]:
    async def handle(frame: bytes, context: Context) -> AsyncIterator[bytes]:
        try:
            admission.check_bytes("WatchEvents", frame)
            async for piece in watching.watch(parse(events_pb2.WatchEventsRequest, frame)):
                yield piece
        except Exception as error:
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
