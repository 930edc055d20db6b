"""ExplainKey: what the core says of the key, who was served meanwhile, who consumes, and when it will go. GetMessage
says the same of one message: where the core finds it, and what its key waits for."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from fila.v1 import admin_pb2 as pb
from fila.v1 import events_pb2
from fila_server import errors
from fila_server.access.admission import Caller
from fila_server.broker.calls import Broker
from fila_server.broker.gate import Gate
from fila_server.broker.mirror import DEFAULT_CHANNEL, DLQ_SUFFIX
from fila_server.broker.speed import Speeds
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations import pauses
from fila_server.operations.forecast import Interval, Rivals, Situation, Unknown, Waiters, forecast
from fila_server.operations.past import Past
from fila_server.operations.pauses import Names
from fila_server.operations.requests import AdminRules, check_own_key
from fila_server.telemetry.snapshot import text_of

SERVED_KEYS_MAX = 10
THOUSANDTHS = 1000.0
_ITS_OWN = (pb.ExplainKeyResponse.STATE_THROTTLED, pb.ExplainKeyResponse.STATE_HIGHER_FIRST)
"""What a message waits for itself, whatever its key's next one waits for."""
_ASIDE = (
    pb.ExplainKeyResponse.STATE_PAUSED,
    pb.ExplainKeyResponse.STATE_CAPPED,
    pb.ExplainKeyResponse.STATE_RATE_LIMITED,
    pb.ExplainKeyResponse.STATE_IN_ORDER,
)


class Explaining:
    """Answers from the core's tables and from what `broker.speeds` saw."""

    def __init__(self, broker: Broker, check: AdminRules, past: Past) -> None:
        self._broker = broker
        self._past = past
        self._check = check
        self._messages = Gate("GetMessage calls", at_once=16)

    async def explain(self, request: pb.ExplainKeyRequest, caller: Caller, names: Names) -> bytes:
        """A tenant is told about its own key only, and nothing of others: no shares, no names, no consumers. Who paused
        it is told as far as `names` lets it through."""
        self._check.explained_key(request)
        check_own_key(caller, request.fairness_key)
        reply = await self._broker.call(
            commands.EXPLAIN_KEY, ask_forecast(request.queue, request.channel, request.fairness_key)
        )
        reported = explained(reply, request, self._broker.speeds, time.monotonic())
        if caller.tenant:
            hide_others(reported)
        elif reported.state == pb.ExplainKeyResponse.STATE_PAUSED:
            found = None
            for name in (
                pauses.of_key(request.queue, request.fairness_key),
                pauses.of_channel(request.queue, request.channel or DEFAULT_CHANNEL),
                pauses.of_queue(request.queue),
            ):
                found = found or await pauses.read(self._broker.call, name)
            pauses.tell(reported.pause, found, names)
        return reported.SerializeToString()

    async def message(self, request: pb.GetMessageRequest, caller: Caller, *, quotes: bool) -> bytes:
        """A tenant is told about its own messages only: others' are not known. Without `quotes` nothing is told that a
        consumer said, for it may quote the message."""
        self._check.one_message(request)
        async with self._messages:
            reported = await self._found(request, caller.tenant)
            if reported.state == pb.GetMessageResponse.STATE_NOT_KNOWN:
                reported = await self._dead(request)
            if caller.tenant and reported.fairness_key != caller.tenant:
                reported = pb.GetMessageResponse(state=pb.GetMessageResponse.STATE_NOT_KNOWN)
            if reported.state == pb.GetMessageResponse.STATE_WAITING:
                await self._put_wait(request, reported)
        if request.with_past:
            reported.past.CopyFrom(await self._past.of(request, reported, caller.tenant, quotes=quotes))
        if caller.tenant:
            for field in ("offset", "blocking_bucket", "consumer_id", "consumer_name", "nobody_consumes"):
                reported.ClearField(field)
        if not quotes and reported.last_error:
            reported.ClearField("last_error")
            if reported.HasField("dead_letter"):
                reported.dead_letter.ClearField("last_error")
        return reported.SerializeToString()

    async def _found(self, request: pb.GetMessageRequest, tenant: str = "") -> pb.GetMessageResponse:
        """A tenant's dedup keys are its own."""
        request.DiscardUnknownFields()  # what a client put behind its fields is not for the core
        bound = seam_frames.Canceller(tenant=tenant.encode()).SerializeToString() if tenant else b""
        reply = await self._broker.call(commands.GET_MESSAGE, request.SerializeToString() + bound)
        return pb.GetMessageResponse.FromString(reply)

    async def _dead(self, request: pb.GetMessageRequest) -> pb.GetMessageResponse:
        """The same of a dead letter of the queue, which is where messages go that are not in it any more."""
        dlq = request.queue + DLQ_SUFFIX
        nowhere = pb.GetMessageResponse(state=pb.GetMessageResponse.STATE_NOT_KNOWN)
        if dlq not in self._broker.queue_configs or not request.message_id:
            return nowhere
        with contextlib.suppress(errors.NotFound):  # deleted since
            found = await self._found(pb.GetMessageRequest(queue=dlq, message_id=request.message_id))
            if found.state == pb.GetMessageResponse.STATE_NOT_KNOWN:
                return nowhere
            page = pb.PeekMessagesRequest(queue=dlq, after_offset=found.offset - 1, max_messages=1)
            peeked = pb.PeekMessagesResponse.FromString(
                await self._broker.call(commands.PEEK_MESSAGES, page.SerializeToString())
            )
            dead = pb.GetMessageResponse(
                state=pb.GetMessageResponse.STATE_DEAD,
                message_id=found.message_id,
                offset=found.offset,
                fairness_key=found.fairness_key,
                enqueued_at=found.enqueued_at,
                priority=found.priority if found.HasField("priority") else None,
            )
            for letter in peeked.messages:
                if letter.metadata.offset == found.offset:
                    died = letter.metadata.dead_letter
                    dead.dead_letter.CopyFrom(died)
                    dead.attempts, dead.last_error = died.attempts, died.last_error
            return dead
        return nowhere

    async def _put_wait(self, request: pb.GetMessageRequest, reported: pb.GetMessageResponse) -> None:
        """What its key waits for, where the message waits in no line of its own, and when it will go."""
        key = reported.fairness_key
        reply = await self._broker.call(
            commands.EXPLAIN_KEY, ask_forecast(request.queue, request.channel, key)
        )
        of_key = pb.ExplainKeyResponse.FromString(reply)
        if reported.cause not in _ITS_OWN or of_key.state in _ASIDE:
            reported.cause, reported.nobody_consumes = of_key.state, of_key.nobody_consumes
            reported.blocking_bucket = of_key.blocking_bucket
            reported.blocking_part, reported.blocking_rate = of_key.blocking_part, of_key.blocking_rate
        is_behind = reported.cause == pb.ExplainKeyResponse.STATE_HIGHER_FIRST
        if of_key.HasField("until") and reported.blocking_bucket == of_key.blocking_bucket and not is_behind:
            reported.until.CopyFrom(of_key.until)
        looks = self._broker.speeds.of_channel(request.queue, request.channel or DEFAULT_CHANNEL)
        outcome = forecast(situation_of(reply), looks, max(reported.place, 1))
        reported.forecast.CopyFrom(forecast_reported(outcome))


def ask_forecast(queue: str, channel: str, fairness_key: str, apart: str = "") -> bytes:
    """An EXPLAIN_KEY that is answered with its forecast; `apart` is a key shown by itself, not as a rival."""
    asked = seam_frames.ExplainKey(
        queue=queue.encode(), channel=channel.encode(), fairness_key=fairness_key.encode(), with_forecast=True
    )
    if apart:
        asked.apart = apart.encode()
    return bytes(asked.SerializeToString())


def explained(
    reply: bytes, request: pb.ExplainKeyRequest, speeds: Speeds, now_s: float
) -> pb.ExplainKeyResponse:
    """The core's answer, completed; `now_s` is on the clock that `speeds` was told."""
    reported = pb.ExplainKeyResponse.FromString(reply)
    reported.DiscardUnknownFields()
    situation = situation_of(reply)
    channel = request.channel or DEFAULT_CHANNEL
    looks = speeds.of_channel(request.queue, channel)
    reported.consumers.CopyFrom(_consumers(seam_frames.Explained.FromString(reply).forecast.consumers))
    reported.head_forecast.CopyFrom(forecast_reported(forecast(situation, looks)))
    reported.tail_forecast.CopyFrom(forecast_reported(forecast(situation, looks, max(situation.backlog, 1))))
    if reported.pending and reported.oldest_age_ms:
        _put_served(reported, speeds, request.queue, channel, now_s)
    return reported


def situation_of(reply: bytes) -> Situation:
    """What decides when the key's messages go, from an answer with its forecast."""
    reported = pb.ExplainKeyResponse.FromString(reply)
    facts = seam_frames.Explained.FromString(reply).forecast
    consumers = facts.consumers
    return Situation(
        backlog=facts.backlog,
        weight=max(facts.weight, 1),
        cap=facts.cap,
        is_paused=reported.state == pb.ExplainKeyResponse.STATE_PAUSED,
        is_delayed=reported.state
        in (pb.ExplainKeyResponse.STATE_DELAYED, pb.ExplainKeyResponse.STATE_SUCCEEDS),
        head_cost=facts.head_cost,
        mean_cost=facts.mean_cost,
        usual_cost=facts.usual_cost,
        quantum=facts.quantum,
        before_its_turn=facts.before_its_turn,
        rounds_to_save=facts.rounds_to_save,
        rivals=tuple(Rivals(each.weight, each.work) for each in facts.rivals),
        waiters=_waiters(facts.waiters) if facts.HasField("waiters") else None,
        own_rate=facts.key_rate,
        own_tokens=facts.key_level,
        own_burst=facts.key_burst,
        committed_rate=facts.committed_rate,
        committed_tokens=facts.committed_level,
        others_committed=facts.others_committed,
        weight_by_policy=max(facts.weight_by_policy, 1),
        is_aside=reported.state in _ASIDE,
        own_held=reported.in_flight,
        consumers=consumers.count,
        waiting_pulls=consumers.waiting_pulls,
        room=max(consumers.window - consumers.held, 0),
        held=consumers.held,
        ready=facts.ready,
    )


def _waiters(waiters: Any) -> Waiters:
    return Waiters(
        rate=waiters.rate,
        level=waiters.level,
        channels=waiters.channels,
        weight=waiters.weight,
        before_its_turn=waiters.before_its_turn,
        rounds_to_save=waiters.rounds_to_save,
        own=waiters.own,
        rivals=tuple(Rivals(each.weight, each.work) for each in waiters.rivals),
    )


def _consumers(consumers: Any) -> events_pb2.ChannelConsumers:
    return events_pb2.ChannelConsumers(
        count=consumers.count,
        with_room=consumers.with_room,
        waiting_pulls=consumers.waiting_pulls,
        window=consumers.window,
        held=consumers.held,
        begun=consumers.begun,
        at_quota=consumers.at_quota,
    )


def forecast_reported(outcome: Interval | Unknown) -> events_pb2.Forecast:
    """A forecast as the wire tells it."""
    if isinstance(outcome, Unknown):
        return events_pb2.Forecast(unknown=f"UNKNOWN_{outcome.name}")
    return events_pb2.Forecast(
        earliest_ms=outcome.earliest_ms, likely_ms=outcome.likely_ms, latest_ms=outcome.latest_ms
    )


def _put_served(
    reported: pb.ExplainKeyResponse, speeds: Speeds, queue: str, channel: str, now_s: float
) -> None:
    began_s, served = speeds.served_since(queue, channel, now_s - reported.oldest_age_ms / 1000)
    total = sum(served.values())
    if not total:
        return
    reported.served_meanwhile.since.FromMilliseconds(int((time.time() - (now_s - began_s)) * 1000))
    most = sorted(served.items(), key=lambda entry: (-entry[1], entry[0]))[:SERVED_KEYS_MAX]
    for key, cost in most:
        reported.served_meanwhile.keys.add(
            fairness_key=text_of(key), share=cost / total, cost=cost / THOUSANDTHS
        )
    reported.served_meanwhile.others_share = max(1 - sum(cost for _, cost in most) / total, 0.0)


def hide_others(reported: pb.ExplainKeyResponse) -> None:
    """Take out what it says of others: shares, who stands in front or beside, what a shared limit learned and when it
    was refused, and an offset, which counts them."""
    for field in (
        "share",
        "due_share",
        "blocking_bucket",
        "learned_per_second",
        "refused_at",
        "served_meanwhile",
        "consumers",
        "nobody_consumes",
        "returning_offset",
    ):
        reported.ClearField(field)
    if reported.HasField("waits_for"):
        for field in ("offset", "consumer_id", "consumer_name"):
            reported.waits_for.ClearField(field)
