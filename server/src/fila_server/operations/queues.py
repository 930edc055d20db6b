"""The calls of operators that are more than one command with its check: a request in, the response's bytes out.

CreateQueue sends the complete config, UpdateQueue merges what its mask names into the config that is
there, GetStats adds what the hooks counted, lists are sorted, peeks and statistics take turns, and Redrive
is a walk of its own (redrive.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from bisect import bisect_right
from collections.abc import Awaitable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from fila.v1 import admin_pb2 as pb
from fila.v1 import events_pb2, version_pb2, watch_pb2
from fila_server import errors
from fila_server.access.admission import Admission, Caller
from fila_server.access.table import RPCS
from fila_server.broker.calls import Broker
from fila_server.broker.gate import Gate, GateByName
from fila_server.broker.mirror import DEFAULT_CHANNEL, DLQ_SUFFIX
from fila_server.broker.unwritten import PAGE_BYTES_MAX
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands, seam_frames
from fila_server.hooks.counters import HookStatus
from fila_server.hooks.packed import KeyLimits
from fila_server.operations import changes, pauses, rules, versions
from fila_server.operations.audit import carry_out
from fila_server.operations.cluster import ClusterCalls
from fila_server.operations.dry_run import LAST_DEFAULT, DryRun
from fila_server.operations.keys import find_keys, key_policies
from fila_server.operations.preview import Previewing
from fila_server.operations.redrive import Redrive, drop
from fila_server.operations.requests import PAGE_MAX, AdminRules, check_own_key
from fila_server.operations.seeking import preview_seek
from fila_server.operations.statistics import Statistics


class Queues:
    """The calls that are more than one command with its check."""

    def __init__(
        self,
        broker: Broker,
        limits: Limits,
        check: AdminRules,
        durability: str,
        admission: Admission,
        cluster: ClusterCalls | None = None,
    ) -> None:
        self._cluster = cluster or ClusterCalls(None)
        self._admission = admission
        self._broker = broker
        self._limits = limits
        self._check = check
        self._durability = durability
        self._previewing = Previewing(broker)
        self._statistics = Statistics(broker)
        self._looks = Gate("GetStats calls", at_once=1)
        self._own_looks = GateByName("calls of this tenant", at_once=4)
        """Tenants': one with many queues keeps no operator waiting, and no other tenant."""
        self._peeks = Gate("PeekMessages calls", at_once=4)
        self._lists = Gate("ListPending calls", at_once=4)
        self._dry_runs = Gate("DryRunPolicy calls", at_once=1)
        self._pausing: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        """By the names of pauses of keys that are changed now."""

    async def create(self, request: pb.CreateQueueRequest, caller: Caller) -> bytes:
        rules.check_new_name("name", request.name)
        config = rules.complete(request.config, self._limits)
        self._broker.hooks.check_scripts(config.on_enqueue_script, config.on_failure_script)
        complete = pb.CreateQueueRequest(name=request.name, config=config)
        had_dlq = request.name + DLQ_SUFFIX in self._broker.queue_configs and not config.expires_after_idle_ms
        reply = await carry_out(
            self._broker.call,
            "CreateQueue",
            commands.CREATE_QUEUE,
            complete,
            caller,
            kept=pauses.forgotten(request.name)
            + versions.created(request.name, config, caller)
            + b"".join(
                pauses.begun(name, caller, time.time_ns() // 1_000_000)
                for name in _paused_by(request.name, config)
            ),
        )
        if not (had_dlq and self._admission.sees(caller, request.name + DLQ_SUFFIX)):
            return reply
        return pb.CreateQueueResponse(queue_id=request.name, adopted_dlq=True).SerializeToString()

    async def get(self, request: pb.GetQueueRequest, caller: Caller) -> bytes:
        self._check.queue(request)
        # Asked first: of settings that change meanwhile it is too old, and a caller with it is refused. One that is
        # too new would let an update undo a change that its caller never saw.
        version = await versions.newest(self._broker.call, request.queue) or 1
        reply = await self._broker.call(commands.GET_QUEUE, request.SerializeToString())
        got = pb.GetQueueResponse.FromString(reply)
        rules.report_defaults(got.config, self._durability)
        got.version = version
        if got.config.paused:
            paused = await pauses.read(self._broker.call, pauses.of_queue(request.queue))
            pauses.tell(got.pause, paused, partial(self._admission.may_name, caller))
        return got.SerializeToString()

    async def dry_run(self, request: pb.DryRunPolicyRequest, _caller: Caller) -> bytes:
        self._check.dry_run(request)
        current = self._broker.queue_configs.get(request.queue)
        if current is None:
            raise errors.QueueNotFound(request.queue)
        if request.update_mask.paths:
            update = pb.UpdateQueueRequest(config=request.config, update_mask=request.update_mask)
            current = rules.complete(rules.merge(current, update), self._limits, default_channel=False)
            self._broker.hooks.check_scripts(current.on_enqueue_script, current.on_failure_script)
        async with self._dry_runs:
            run = DryRun(self._broker, current, self._limits)
            return (await run.run(request.queue, request.last or LAST_DEFAULT)).SerializeToString()

    async def delete(self, request: pb.DeleteQueueRequest, caller: Caller) -> bytes:
        self._check.changed_queue(request)
        # Made anew: what a client put behind its fields is not for the core.
        asked = pb.DeleteQueueRequest(queue=request.queue, force=request.force)
        kept = versions.deleted(request.queue) + pauses.forgotten(request.queue)
        return await carry_out(
            self._broker.call, "DeleteQueue", commands.DELETE_QUEUE, asked, caller, kept=kept
        )

    async def list_versions(self, request: version_pb2.ListQueueVersionsRequest, _caller: Caller) -> bytes:
        self._check.versions(request)
        if request.queue not in self._broker.queue_configs:
            raise errors.QueueNotFound(request.queue)
        return (await versions.listed(self._broker.call, request)).SerializeToString()

    async def get_version(self, request: version_pb2.GetQueueVersionRequest, _caller: Caller) -> bytes:
        self._check.queue(request)
        current = self._broker.queue_configs.get(request.queue)
        if current is None:
            raise errors.QueueNotFound(request.queue)
        reported = await versions.one(self._broker.call, request.queue, request.number, current)
        rules.report_defaults(reported.config, self._durability)
        return reported.SerializeToString()

    async def update(self, request: pb.UpdateQueueRequest, caller: Caller) -> bytes:
        self._check.update(request)
        # Two updates that each read, merge and write must not undo one another.
        async with self._broker.mirror.update_lock:
            current = self._broker.queue_configs.get(request.queue)
            if current is None:
                raise errors.QueueNotFound(request.queue)
            config = rules.complete(rules.merge(current, request), self._limits, default_channel=False)
            self._broker.hooks.check_scripts(config.on_enqueue_script, config.on_failure_script)
            kept, version = await versions.updated(self._broker.call, request, current, config, caller)
            before, now = _paused_by(request.queue, current), _paused_by(request.queue, config)
            for name in sorted(before ^ now | _paused_again(request, current, config)):
                kept += await self._pause_kept(name, caller, is_paused=name in now, comment=request.comment)
            complete = pb.UpdateQueueRequest(
                queue=request.queue, config=config, update_mask=request.update_mask, comment=request.comment
            )
            reply = await carry_out(
                self._broker.call, "UpdateQueue", commands.UPDATE_QUEUE, complete, caller, kept=kept
            )
            updated = pb.UpdateQueueResponse.FromString(reply)
            updated.version = version
            rules.report_defaults(updated.config, self._durability)
            return updated.SerializeToString()

    async def set_key_policy(self, request: pb.SetKeyPolicyRequest, caller: Caller) -> bytes:
        self._check.key_policy(request)
        request.DiscardUnknownFields()  # what a client put behind its fields is not for the core
        change = partial(
            carry_out, self._broker.call, "SetKeyPolicy", commands.SET_KEY_POLICY, request, caller
        )
        if not request.HasField("paused"):
            return await change(kept=b"")
        name = pauses.of_key(request.queue, request.fairness_key)
        # What is read of a pause decides what is kept of it: nobody may resume or pause the key in between.
        async with self._pausing.setdefault(name, asyncio.Lock()):
            kept = await self._pause_kept(name, caller, is_paused=request.paused, comment=request.comment)
            return await change(kept=kept)

    async def _pause_kept(self, name: bytes, caller: Caller, *, is_paused: bool, comment: str) -> bytes:
        """What a change that pauses or resumes keeps of itself."""
        now_ms = time.time_ns() // 1_000_000
        return await pauses.changed(
            self._broker.call, name, caller, now_ms, is_paused=is_paused, comment=comment
        )

    async def list_queues(self, request: pb.ListQueuesRequest, caller: Caller) -> bytes:
        self._check.list_queues(request)
        nodes, owner, _ = self._cluster.counts
        listed = pb.ListQueuesResponse(cluster_node_count=nodes, tenant=caller.tenant)
        names = self._names_asked_for(request, caller)
        listed.matched = len(names)
        if request.page_token:
            names = names[bisect_right(names, request.page_token) :]
        if request.page_size and len(names) > request.page_size:
            names = names[: request.page_size]
            listed.next_page_token = names[-1]
        if caller.tenant:
            listed.queues.extend(await self._own_queues(names, caller.tenant))
            return listed.SerializeToString()
        listed.queues.extend(await self._listed(names))
        for queue in listed.queues:
            queue.leader_node_id = owner
            queue.breaker_state = worst_breaker(self._broker.hooks.status(queue.name))
        return listed.SerializeToString()

    async def _listed(self, names: Sequence[str]) -> list[pb.QueueInfo]:
        """The queues of these names that there are, in order; of many all are asked for."""
        if not names:
            return []
        asked = seam_frames.QueuesAsked()
        if len(names) <= PAGE_MAX:
            asked.names.extend(name.encode() for name in names)
        reply = await self._broker.call(commands.LIST_QUEUES, asked.SerializeToString())
        wanted = set(names)
        found = [each for each in pb.ListQueuesResponse.FromString(reply).queues if each.name in wanted]
        # The core has them in the order of its table.
        return sorted(found, key=lambda queue: queue.name)

    def _names_asked_for(self, request: pb.ListQueuesRequest, caller: Caller) -> list[str]:
        """Of the queues that the caller may know of, in order; those that are asked for alone are looked at."""
        prefix, part = request.prefix.lower(), request.containing.lower()
        names: Iterable[str] = self._broker.queue_configs
        if prefix or part:
            names = [name for name in names if name.lower().startswith(prefix) and part in name.lower()]
        if caller.number is not None:
            names = [name for name in names if self._admission.sees(caller, name)]
        return sorted(names)

    async def list_channels(self, request: pb.ListChannelsRequest, caller: Caller) -> bytes:
        self._check.queue(request)
        listed = pb.ListChannelsResponse.FromString(
            await self._broker.call(commands.LIST_CHANNELS, request.SerializeToString())
        )
        if caller.number is not None:
            seen = [
                channel
                for channel in listed.channels
                if self._admission.sees_channel(caller, request.queue, channel.name)
            ]
            del listed.channels[:]
            listed.channels.extend(seen)
        config = self._broker.queue_configs.get(request.queue)
        paused = {*config.paused_channels} if config is not None else set()
        for channel in listed.channels:
            if channel.name in paused:
                found = await pauses.read(self._broker.call, pauses.of_channel(request.queue, channel.name))
                pauses.tell(channel.pause, found, partial(self._admission.may_name, caller))
        listed.channels.sort(key=lambda channel: channel.name)
        return listed.SerializeToString()

    async def stats(self, request: pb.GetStatsRequest, caller: Caller) -> bytes:
        self._check.stats(request)
        if caller.tenant:
            return await self._own_stats(request, caller.tenant)
        async with self._looks:
            call = self._statistics.of(request)
            reply = await (on_channel(self._admission, caller, request, call) if request.channel else call)
        _, owner, copies = self._cluster.counts
        if owner:
            of_group = pb.GetStatsResponse(leader_node_id=owner, replication_count=copies)
            reply += of_group.SerializeToString()  # behind the others, fields join them
        if not self._admission.sees_all_channels(caller, request.queue):
            reply = self._without_hidden(reply, request.queue, caller)
        scripts = self._broker.hooks.status(request.queue)
        quotes = self._admission.sees_messages(caller, request.queue)
        return with_hooks(reply, scripts, quotes=quotes) if scripts else reply

    def _without_hidden(self, reply: bytes, queue: str, caller: Caller) -> bytes:
        """The statistics, with channels, keys and buckets only where the caller may know them."""
        stats = pb.GetStatsResponse.FromString(reply)
        seen = [
            channel for channel in stats.channels if self._admission.sees_channel(caller, queue, channel.name)
        ]
        del stats.channels[:]
        stats.channels.extend(seen)
        if not self._admission.sees_keys(caller, queue):
            stats.ClearField("per_key_stats")
            stats.ClearField("per_throttle_stats")
        return stats.SerializeToString()

    async def _own(self, queue: str, channel: str, tenant: str) -> pb.ExplainKeyResponse:
        """A tenant's own fairness key. Raises QueueNotFound, and ChannelNotFound, which names no other channel."""
        asked = pb.ExplainKeyRequest(queue=queue, channel=channel, fairness_key=tenant)
        try:
            reply = await self._broker.call(commands.EXPLAIN_KEY, asked.SerializeToString())
        except errors.ChannelNotFound:
            raise errors.ChannelNotFound(queue, channel or DEFAULT_CHANNEL) from None
        return pb.ExplainKeyResponse.FromString(reply)

    async def _own_queues(self, names: Sequence[str], tenant: str) -> list[pb.QueueInfo]:
        """What a tenant has in each queue itself, in the channel `default`."""
        reported = []
        async with self._own_looks.of(tenant):
            for name in names:
                own = pb.ExplainKeyResponse()
                with contextlib.suppress(errors.NotFound):  # deleted since, or without such a channel
                    own = await self._own(name, "", tenant)
                reported.append(
                    pb.QueueInfo(
                        name=name, depth=own.pending, in_flight=own.in_flight, oldest_age_ms=own.oldest_age_ms
                    )
                )
        return reported

    async def _own_stats(self, request: pb.GetStatsRequest, tenant: str) -> bytes:
        """What a tenant may know: its own fairness key, and nothing that others make up."""
        async with self._own_looks.of(tenant):
            own = await self._own(request.queue, request.channel, tenant)
        stats = pb.GetStatsResponse(
            depth=own.pending, in_flight=own.in_flight, oldest_age_ms=own.oldest_age_ms, replication_count=1
        )
        stats.per_key_stats.add(
            key=tenant,
            pending_count=own.pending,
            in_flight=own.in_flight,
            oldest_age_ms=own.oldest_age_ms,
            weight=own.weight,
            paused=own.state == pb.ExplainKeyResponse.STATE_PAUSED,
        )
        return stats.SerializeToString()

    async def peek(self, request: pb.PeekMessagesRequest, _caller: Caller) -> bytes:
        self._check.peek(request)
        async with self._peeks:
            unwritten = self._broker.unwritten
            unwritten.set_page_aside()
            try:
                reply = await self._broker.call(commands.PEEK_MESSAGES, request.SerializeToString())
            finally:
                unwritten.give(PAGE_BYTES_MAX)
            return reply

    async def pending(self, request: pb.ListPendingRequest, caller: Caller) -> bytes:
        self._check.pending(request)
        self._check_channel("FilaAdmin/ListPending", caller, request.queue, request.channel)
        async with self._lists:
            return await self._broker.call(commands.LIST_PENDING, request.SerializeToString())

    async def key_policies(self, request: events_pb2.ListKeyPoliciesRequest, caller: Caller) -> bytes:
        self._check.queue(request)
        check_own_key(caller, request.fairness_key)
        async with self._own_looks.of(caller.tenant) if caller.tenant else self._looks:
            reported = await key_policies(self._broker, request)
            if not caller.tenant:
                names = partial(self._admission.may_name, caller)
                await pauses.tell_of_keys(self._broker.call, request.queue, reported.policies, names)
            return reported.SerializeToString()

    async def preview_key_policy(self, request: pb.PreviewKeyPolicyRequest, _caller: Caller) -> bytes:
        self._check.preview_key_policy(request)
        async with self._looks:
            return (await self._previewing.preview(request)).SerializeToString()

    async def find_keys(self, request: watch_pb2.FindKeysRequest, caller: Caller) -> bytes:
        self._check.find_keys(request)
        self._check_channel("FilaAdmin/FindKeys", caller, request.queue, request.channel)
        async with self._looks:
            return (await find_keys(self._broker, request)).SerializeToString()

    def _check_channel(self, rpc: str, caller: Caller, queue: str, channel: str) -> None:
        """Refuse a channel that the caller may not look at, of a queue that it may."""
        channel = channel or DEFAULT_CHANNEL
        if not self._admission.may_watch(caller, queue, channel):
            raise errors.PermissionDenied.on_queue(RPCS[rpc].words, f"{queue}:{channel}")

    async def seek(self, request: pb.SeekChannelRequest, caller: Caller) -> bytes:
        self._check.seek(request)
        if not request.validate_only:
            return await carry_out(self._broker.call, "SeekChannel", commands.SEEK_CHANNEL, request, caller)
        async with self._looks:
            return (await preview_seek(self._broker, request)).SerializeToString()

    async def drop_dead_letters(self, request: events_pb2.DropDeadLettersRequest, caller: Caller) -> bytes:
        self._check.drop_dead_letters(request)
        # As many commands as there are pages: the record is a change of its own.
        await carry_out(self._broker.call, "DropDeadLetters", commands.ACCESS_CHANGE, request, caller, b"")
        pages = drop(self._broker, request.dlq_queue, sorted(set(request.offsets)))
        dropped = sum([dropped async for dropped in pages])
        return events_pb2.DropDeadLettersResponse(dropped=dropped).SerializeToString()

    async def redrive(self, request: pb.RedriveRequest, caller: Caller) -> bytes:
        self._check.redrive(request)
        source = request.dlq_queue.removesuffix(DLQ_SUFFIX)
        if caller.number is not None and source != request.dlq_queue:
            # What it moves arrives in the source queue.
            self._admission.check(caller, RPCS["FilaAdmin/UpdateQueue"], source)
        # A walk of many commands: its record is a change of its own.
        await carry_out(self._broker.call, "Redrive", commands.ACCESS_CHANGE, request, caller, b"")
        limits = KeyLimits(
            fairness_key_bytes=self._limits.fairness_key_bytes_max,
            throttle_key_bytes=self._limits.throttle_key_bytes_max,
            throttle_keys=self._limits.throttle_keys_max,
        )
        redrive = Redrive(self._broker, request, limits)
        try:
            return (await redrive.run()).SerializeToString()
        except BaseException:
            # A drain, or a caller that went away: what was moved until then stays moved, and its event is due.
            reply = pb.RedriveResponse(redriven=redrive.moved).SerializeToString()
            who = caller.name if caller.number is not None else ""
            changes.report("Redrive", request, caller.peer, who, reply)
            raise


def _paused_by(queue: str, config: pb.QueueConfig) -> set[bytes]:
    """The names of the pauses that these settings hold: the queue's, and those of channels."""
    names = {pauses.of_channel(queue, channel) for channel in config.paused_channels}
    return names | {pauses.of_queue(queue)} if config.paused else names


def _paused_again(request: pb.UpdateQueueRequest, before: pb.QueueConfig, now: pb.QueueConfig) -> set[bytes]:
    """The names of the pauses that the update asks for again, so that they may get another reason: the queue's, and
    where the same channels are paused as before, the one of the channel that is named last."""
    asked, names = set(request.update_mask.paths), set()
    if "paused" in asked and now.paused:
        names.add(pauses.of_queue(request.queue))
    channels = now.paused_channels
    if "paused_channels" in asked and channels and {*channels} == {*before.paused_channels}:
        names.add(pauses.of_channel(request.queue, channels[-1]))
    return names


async def on_channel(admission: Admission, caller: Caller, request: Any, call: Awaitable[bytes]) -> bytes:
    """A call about one channel. A caller that may not name all cannot tell a hidden one from one that is not there,
    and the refusal names no others."""
    channel = request.channel or DEFAULT_CHANNEL
    if not caller.tenant and admission.sees_all_channels(caller, request.queue):
        return await call
    try:
        reply = await call
    except errors.ChannelNotFound:
        raise errors.ChannelNotFound(request.queue, channel) from None
    if not admission.sees_channel(caller, request.queue, channel):
        raise errors.ChannelNotFound(request.queue, channel)
    return reply


_BREAKER_BY_STATE = {
    "closed": pb.BREAKER_STATE_CLOSED,
    "half_open": pb.BREAKER_STATE_HALF_OPEN,
    "open": pb.BREAKER_STATE_OPEN,
}
_GRAVITY = list(_BREAKER_BY_STATE)


def _reported(script: HookStatus) -> pb.HookStats:
    counters = script.counters
    reported = pb.HookStats(
        hook=script.hook,
        runs=counters.runs,
        errors=counters.errors,
        fallbacks=counters.fallbacks,
        held=counters.held,
        breaker_state=_BREAKER_BY_STATE[script.breaker],
        last_error=counters.last_error,
        last_error_headers=counters.last_error_headers,
        ignored_fields=counters.ignored_fields,
        log_lines=counters.log_lines,
        log_lines_dropped=counters.log_lines_dropped,
    )
    if counters.last_error_ms:
        reported.last_error_at.FromMilliseconds(counters.last_error_ms)
    return reported


def with_hooks(reply: bytes, scripts: Sequence[HookStatus], *, quotes: bool = True) -> bytes:
    """Add to a GetStats reply what only the edge knows: how the queue's scripts are doing. Not `quotes`: without what
    they quote of messages."""
    stats = pb.GetStatsResponse.FromString(reply)
    for script in scripts:
        stats.hook_fallbacks += script.counters.fallbacks
        stats.hook_errors += script.counters.errors
        stats.weights_clamped_total += script.counters.clamped_weights
        stats.hooks.append(_reported(script))
        if not quotes:
            # A script may put whatever it read into its error.
            stats.hooks[-1].ClearField("last_error_headers")
            stats.hooks[-1].ClearField("last_error")
    stats.breaker_state = worst_breaker(scripts)
    return stats.SerializeToString()


def worst_breaker(scripts: Sequence[HookStatus]) -> pb.BreakerState:
    """Of a queue's scripts, the state of the one that is worst off; unspecified without scripts."""
    if not scripts:
        return pb.BREAKER_STATE_UNSPECIFIED
    return _BREAKER_BY_STATE[max((script.breaker for script in scripts), key=_GRAVITY.index)]
