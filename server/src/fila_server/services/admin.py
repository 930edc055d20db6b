"""FilaAdmin: rare calls, typed by people. Their bytes are parsed here; what they may ask is in operations/.

A method is a row of one of the tables below `handlers`: either its command, its request's type and its check, or its
request's type and who answers it, in operations/.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from fila.v1 import admin_pb2 as pb
from fila.v1 import cluster_pb2, events_pb2, limit_pb2, operation_pb2, schedule_pb2, version_pb2, watch_pb2
from fila_server.access.admission import Admission, Caller
from fila_server.access.rights import ADMIN, CONSUME, MANAGE
from fila_server.access.table import KEYS, RPCS, Need
from fila_server.broker.calls import Broker
from fila_server.broker.gate import Gate
from fila_server.broker.mirror import DEFAULT_CHANNEL
from fila_server.broker.unwritten import COUNTED_FROM_BYTES, Unwritten
from fila_server.config.schema import History, Limits
from fila_server.core.protocol import commands
from fila_server.errors import ChannelNotFound, FilaServerError, Overloaded
from fila_server.operations import changes
from fila_server.operations.audit import carry_out
from fila_server.operations.cluster import ClusterCalls
from fila_server.operations.dead_letter_calls import DeadLetterCalls
from fila_server.operations.explain import Explaining
from fila_server.operations.group_commands import GroupCommands
from fila_server.operations.limits import LimitCalls
from fila_server.operations.past import Past
from fila_server.operations.queues import Queues, on_channel
from fila_server.operations.requests import AdminRules
from fila_server.operations.schedules import Schedules
from fila_server.operations.series import RecentSeries
from fila_server.operations.series_calls import SeriesCalls
from fila_server.operations.status import Status
from fila_server.operations.troubles import Troubles
from fila_server.operations.waiting_longest import WaitingLongest
from fila_server.operations.watch_stats import StatsWatch, watcher_of
from fila_server.services.identity import Identity
from fila_server.services.request_bounds import RequestBounds
from fila_server.services.status import Context, abort, until_written
from fila_server.services.watching import Watching
from fila_server.services.wire_fault import explain

SERVICE = "fila.v1.FilaAdmin"

Check = Callable[[Any], None]
Call = Callable[[bytes, Caller], Awaitable[bytes]]
Answer = Callable[[Any, Caller], Awaitable[bytes]]
"""What a request is answered with, once its caller may ask it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What began a stream of answers: the request's bytes, and the connection on which they came."""

    frame: bytes
    peer: str


OF_A_NAME_MAX = 50
"""Of the hundred who may watch by one method, those of one name: with them it takes no more than half."""

LARGE_REST_S = 0.05
"""After a request of many entries, before the next one is looked at: such a one takes about as long."""


def handlers(
    broker: Broker,
    limits: Limits,
    durability: str,
    data_dir: str,
    identity: Identity,
    recent: RecentSeries,
    troubles: Troubles,
    schedules: Schedules,
    history: History,
    cluster: ClusterCalls,
    group: GroupCommands,
) -> grpc.GenericRpcHandler:
    """Every method of the service, registered on raw bytes."""
    check = AdminRules(limits)
    bounds = RequestBounds(limits)
    admission = identity.admission
    queues = Queues(broker, limits, check, durability, admission, cluster)
    dead_letters = DeadLetterCalls(broker, limits, check, admission)
    answers = _of_queues(queues) | _of_dead_letters(queues, dead_letters) | _of_schedules(schedules)
    status = Status(broker, data_dir, troubles)
    limit_calls = LimitCalls(broker, limits, admission)
    answers["SetLimit"] = (limit_pb2.SetLimitRequest, limit_calls.set)
    answers["ListLimits"] = (limit_pb2.ListLimitsRequest, limit_calls.list)
    answers |= _views(admission, Explaining(broker, check, Past(history)), WaitingLongest(broker), status)
    answers["GetClusterStatus"] = (cluster_pb2.GetClusterStatusRequest, _of_cluster(cluster))
    answers["MoveOwner"] = (cluster_pb2.MoveOwnerRequest, group.move)
    answers["RemoveNode"] = (cluster_pb2.RemoveNodeRequest, group.remove)
    answers["UpgradeGroup"] = (cluster_pb2.UpgradeGroupRequest, group.upgrade)
    answers["GetSeries"] = (watch_pb2.GetSeriesRequest, SeriesCalls(broker, admission, check, recent).series)
    calls = {
        method: _plain(method, broker, admission, kind, request_type, row_check)
        for method, (kind, request_type, row_check) in (
            _checked_only(check) | _of_limits(limit_calls)
        ).items()
    }
    calls |= {
        method: _parsed(method, admission, request_type, answer)
        for method, (request_type, answer) in answers.items()
    }
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        method: grpc.unary_unary_rpc_method_handler(
            answering_handler(method, bounds, broker.unwritten, identity, call)
        )
        for method, call in calls.items()
    }
    _add_streams(methods, broker, check, bounds, identity, dead_letters)
    return grpc.method_handlers_generic_handler(SERVICE, methods)


def _checked_only(check: AdminRules) -> dict[str, tuple[int, type[Message], Check]]:
    """What the core answers itself, once the request is found sound."""
    return {
        "PurgeQueue": (commands.PURGE_QUEUE, pb.PurgeQueueRequest, check.view),
        "SetConfig": (commands.SET_CONFIG, pb.SetConfigRequest, check.set_config),
        "GetConfig": (commands.GET_CONFIG, pb.GetConfigRequest, check.config_key),
        "ListConfig": (commands.LIST_CONFIG, pb.ListConfigRequest, check.prefix),
        "CreateChannel": (commands.CREATE_CHANNEL, pb.CreateChannelRequest, check.new_channel),
        "DeleteChannel": (commands.DELETE_CHANNEL, pb.DeleteChannelRequest, check.channel),
        "PurgeChannel": (commands.PURGE_CHANNEL, pb.PurgeChannelRequest, check.view),
        "SkipMessage": (commands.SKIP_MESSAGE, pb.SkipMessageRequest, check.explained_key),
        "ListConsumers": (commands.LIST_CONSUMERS, pb.ListConsumersRequest, check.consumers),
    }


def _of_limits(limits: LimitCalls) -> dict[str, tuple[int, type[Message], Check]]:
    """What the core answers itself of limits."""
    return {
        "DeleteLimit": (commands.DELETE_LIMIT, limit_pb2.DeleteLimitRequest, limits.delete),
        "ResetLimit": (commands.RESET_LIMIT, limit_pb2.ResetLimitRequest, limits.reset),
    }


def _of_queues(queues: Queues) -> dict[str, tuple[type[Message], Answer]]:
    """Queues, their settings and versions, their channels and keys."""
    return {
        "CreateQueue": (pb.CreateQueueRequest, queues.create),
        "DeleteQueue": (pb.DeleteQueueRequest, queues.delete),
        "GetQueue": (pb.GetQueueRequest, queues.get),
        "UpdateQueue": (pb.UpdateQueueRequest, queues.update),
        "ListQueues": (pb.ListQueuesRequest, queues.list_queues),
        "DryRunPolicy": (pb.DryRunPolicyRequest, queues.dry_run),
        "ListQueueVersions": (version_pb2.ListQueueVersionsRequest, queues.list_versions),
        "GetQueueVersion": (version_pb2.GetQueueVersionRequest, queues.get_version),
        "ListChannels": (pb.ListChannelsRequest, queues.list_channels),
        "SeekChannel": (pb.SeekChannelRequest, queues.seek),
        "GetStats": (pb.GetStatsRequest, queues.stats),
        "FindKeys": (watch_pb2.FindKeysRequest, queues.find_keys),
        "SetKeyPolicy": (pb.SetKeyPolicyRequest, queues.set_key_policy),
        "ListKeyPolicies": (events_pb2.ListKeyPoliciesRequest, queues.key_policies),
        "PreviewKeyPolicy": (pb.PreviewKeyPolicyRequest, queues.preview_key_policy),
    }


def _of_schedules(schedules: Schedules) -> dict[str, tuple[type[Message], Answer]]:
    """Messages that the broker enqueues by itself."""
    return {
        "CreateSchedule": (schedule_pb2.CreateScheduleRequest, schedules.create),
        "UpdateSchedule": (schedule_pb2.UpdateScheduleRequest, schedules.update),
        "PauseSchedule": (schedule_pb2.PauseScheduleRequest, schedules.pause),
        "DeleteSchedule": (schedule_pb2.DeleteScheduleRequest, schedules.delete),
        "GetSchedule": (schedule_pb2.GetScheduleRequest, schedules.get),
        "ListSchedules": (schedule_pb2.ListSchedulesRequest, schedules.list),
    }


def _of_dead_letters(
    queues: Queues, dead_letters: DeadLetterCalls
) -> dict[str, tuple[type[Message], Answer]]:
    """Messages that are looked at, and dead letters that are moved, edited or dropped."""
    return {
        "PeekMessages": (pb.PeekMessagesRequest, queues.peek),
        "ListPending": (pb.ListPendingRequest, queues.pending),
        "Redrive": (pb.RedriveRequest, queues.redrive),
        "DropDeadLetters": (events_pb2.DropDeadLettersRequest, queues.drop_dead_letters),
        "EditDeadLetter": (operation_pb2.EditDeadLetterRequest, dead_letters.edit),
        "StartOperation": (operation_pb2.StartOperationRequest, dead_letters.start),
        "ListOperations": (operation_pb2.ListOperationsRequest, dead_letters.list),
        "CancelOperation": (operation_pb2.CancelOperationRequest, dead_letters.cancel),
    }


def _views(
    admission: Admission, explaining: Explaining, waiting: WaitingLongest, status: Status
) -> dict[str, tuple[type[Message], Answer]]:
    """Why a key waits, which keys are late, and how the broker is."""
    one_listing = Gate("ListLate calls", at_once=1)

    async def explained(request: pb.ExplainKeyRequest, caller: Caller) -> bytes:
        asked = explaining.explain(request, caller, partial(admission.may_name, caller))
        return await on_channel(admission, caller, request, asked)

    async def found(request: pb.GetMessageRequest, caller: Caller) -> bytes:
        quotes = admission.sees_messages(caller, request.queue)
        asked = explaining.message(request, caller, quotes=quotes)
        return await on_channel(admission, caller, request, asked)

    async def listed(request: events_pb2.ListLateRequest, caller: Caller) -> bytes:
        async with one_listing:
            return (await waiting.list(request, partial(admission.may_watch, caller))).SerializeToString()

    async def status_of(request: events_pb2.GetStatusRequest, caller: Caller) -> bytes:
        sees = None if caller.tenant else partial(admission.may_watch, caller)
        return await status.get(request, sees, partial(admission.may_name, caller), whole=caller.is_admin)

    return {
        "ExplainKey": (pb.ExplainKeyRequest, explained),
        "GetMessage": (pb.GetMessageRequest, found),
        "ListLate": (events_pb2.ListLateRequest, listed),
        "GetStatus": (events_pb2.GetStatusRequest, status_of),
    }


def _of_cluster(cluster: ClusterCalls) -> Answer:
    async def status(_request: Any, _caller: Caller) -> bytes:
        return cluster.status()

    return status


def _add_streams(
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]],
    broker: Broker,
    check: AdminRules,
    bounds: RequestBounds,
    identity: Identity,
    dead_letters: DeadLetterCalls,
) -> None:
    admission = identity.admission
    watching = Watching(broker.at_drain)
    stats = StatsWatch(broker)

    def events(request: Any, caller: Caller, _asked: Asked) -> AsyncGenerator[bytes, None]:
        return watching.watch(
            request,
            partial(admission.may_watch, caller),
            partial(admission.sees_messages, caller),
            partial(admission.may_name, caller),
            partial(admission.sees_all_channels, caller),
        )

    def log(request: Any, _caller: Caller, asked: Asked) -> AsyncGenerator[bytes, None]:
        check.read_log(request)
        return broker.read_log(asked.frame, asked.peer)

    def numbers(request: Any, caller: Caller, _asked: Asked) -> AsyncGenerator[bytes, None]:
        check.watch_stats(request)
        for queue in request.queues if request.keys else ():
            admission.check(caller, KEYS, queue)
        pieces = stats.watch(
            watcher_of(request, caller),
            partial(admission.sees_channel, caller),
            partial(admission.sees_keys, caller),
            partial(admission.is_admin, caller),
        )
        return _naming_no_hidden_channel(admission, caller, request, pieces)

    def operation(request: Any, _caller: Caller, _asked: Asked) -> AsyncGenerator[bytes, None]:
        return dead_letters.watch(request)

    methods["WatchOperation"] = _streaming(
        "WatchOperation", operation_pb2.WatchOperationRequest, bounds, identity, operation, MANAGE
    )
    methods["WatchEvents"] = _streaming(
        "WatchEvents", events_pb2.WatchEventsRequest, bounds, identity, events
    )
    methods["ReadLog"] = _streaming("ReadLog", pb.ReadLogRequest, bounds, identity, log, CONSUME)
    methods["WatchStats"] = _streaming("WatchStats", watch_pb2.WatchStatsRequest, bounds, identity, numbers)


async def _naming_no_hidden_channel(
    admission: Admission,
    caller: Caller,
    request: watch_pb2.WatchStatsRequest,
    pieces: AsyncGenerator[bytes, None],
) -> AsyncGenerator[bytes, None]:
    """A caller that may not name all channels of a queue cannot tell a hidden one from one that is not there, and
    the refusal names no others."""
    channel = request.channel or DEFAULT_CHANNEL
    short_sighted = [
        queue for queue in request.queues if caller.tenant or not admission.sees_all_channels(caller, queue)
    ]
    for queue in short_sighted:
        if not admission.sees_channel(caller, queue, channel):
            raise ChannelNotFound(queue, channel)
    try:
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                yield piece
    except ChannelNotFound:
        if not short_sighted:
            raise
        raise ChannelNotFound(short_sighted[0], channel) from None


def _parsed(method: str, admission: Admission, request_type: type[Any], answer: Answer) -> Call:
    need = RPCS[f"FilaAdmin/{method}"]

    async def call(frame: bytes, caller: Caller) -> bytes:
        request = parse(request_type, frame)
        authorize(admission, caller, need, request)
        return await answer(request, caller)

    return call


def authorize(admission: Admission, caller: Caller, need: Need, request: Any) -> None:
    """Raise what the table of rights says about this request."""
    named = getattr(request, need.queue) if need.queue else ""
    if caller.number is None:
        return
    if need.filtered and not named:
        admission.check_bound(caller, need)
        return
    channel = getattr(request, need.channel) if need.channel else ""
    for queue in (named,) if isinstance(named, str) else named:
        admission.check(caller, need, queue, channel)


def parse(request_type: type[Any], frame: bytes) -> Any:
    """Parse a request, or say which field is broken."""
    try:
        return request_type.FromString(frame)
    except DecodeError:
        raise explain(frame, request_type.DESCRIPTOR) from None


def _plain(
    method: str, broker: Broker, admission: Admission, kind: int, request_type: type[Message], check: Check
) -> Call:
    need = RPCS[f"FilaAdmin/{method}"]

    async def call(frame: bytes, caller: Caller) -> bytes:
        request = parse(request_type, frame)
        check(request)
        authorize(admission, caller, need, request)
        return await carry_out(broker.call, method, kind, request, caller, frame)

    return call


def answering_handler(
    method: str, bounds: RequestBounds, unwritten: Unwritten, identity: Identity, call: Call
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    large = Gate(f"{method} calls of many entries", at_once=1, rest_s=LARGE_REST_S)

    async def handle(frame: bytes, context: Context) -> bytes:
        try:
            caller = identity.enter(context)
            bounds.check_bytes(method, frame)
            if bounds.may_have_many_parts(method, frame):
                async with large:
                    bounds.check_parts(method, frame)
                    reply = await call(frame, caller)
            else:
                reply = await call(frame, caller)
            if (request_type := changes.REQUEST_BY_METHOD.get(method)) is not None:
                who = caller.name if caller.number is not None else ""
                changes.report(method, request_type.FromString(frame), context.peer() or "", who, reply)
            if len(reply) >= COUNTED_FROM_BYTES:
                # What changes something answers with little: only what was read can be refused here.
                if not unwritten.take(len(reply), peer := context.peer() or ""):
                    raise unwritten.refusal()
                until_written(context, unwritten, len(reply), peer)
            return reply
        except Exception as error:
            frame = b""  # see abort()
            await abort(context, error)

    return handle


def _streaming(
    method: str,
    request_type: type[Any],
    bounds: RequestBounds,
    identity: Identity,
    begin: Callable[[Any, Caller, Asked], AsyncGenerator[bytes, None]],
    right: int = 0,
) -> grpc.RpcMethodHandler[Any, Any]:
    """A stream of answers; it ends when its caller loses the key, or `right` on the queue, or what let it in."""
    need = RPCS[f"FilaAdmin/{method}"]
    own: Counter[str] = Counter()
    most = sys.maxsize if method == "ReadLog" else OF_A_NAME_MAX

    async def handle(frame: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        try:
            caller = identity.enter(context)
            bounds.check_bytes(method, frame)
            request = parse(request_type, frame)
            admission = identity.admission
            authorize(admission, caller, need, request)
            if own[caller.name] >= most:
                raise Overloaded(f"{method}: this key's name has {most} open, and no more may; end one first")
            pieces = begin(request, caller, Asked(frame, context.peer() or ""))
            give_back = admission.take_stream(caller)
        except Exception as error:
            await abort(context, error)
        ended: list[FilaServerError] = []
        held, queue = right, getattr(request, need.queue) if right else ""
        if need.filtered and need.queue == "queue":
            # Without a queue it goes on for callers that may see some; each event is judged by itself.
            held, queue = (need.right, request.queue) if request.queue else (ADMIN * caller.is_admin, "")
        release = admission.hold(caller, held, queue, "", _ending_this_task(ended))
        own[caller.name] += caller.number is not None
        try:
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    yield piece
        except asyncio.CancelledError:
            if not ended:
                raise
            await abort(context, ended[0])
        except Exception as error:
            await abort(context, error)
        finally:
            release()
            give_back()
            own[caller.name] -= caller.number is not None
            if not own[caller.name]:
                del own[caller.name]

    return grpc.unary_stream_rpc_method_handler(handle)


def _ending_this_task(ended: list[FilaServerError]) -> Callable[[FilaServerError], None]:
    """What ends the running call when its caller loses the right to it; `ended` then says why."""
    task = asyncio.current_task()

    def end(error: FilaServerError) -> None:
        ended.append(error)
        if task is not None:
            task.cancel()  # it may wait for a client that does not read

    return end
