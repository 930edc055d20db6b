"""PreviewKeyPolicy: what a change of one key's policy would do to it, and to those who share the channel with it.

    the key     its situation as it stands, and under the change: the forecast of both
    who loses   the core picks those from whose turns the change would take most; each is forecast twice, with the key
                as the rival that it is, and as the one that it would be

Nothing is changed, and the forecast is the one that ExplainKey tells: what it does not know it does not know here.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fila.v1 import admin_pb2 as pb
from fila.v1 import watch_pb2
from fila_server.broker.calls import Broker
from fila_server.broker.mirror import DEFAULT_CHANNEL
from fila_server.broker.speed import Look
from fila_server.core.protocol import commands, seam_frames
from fila_server.errors import Invalid
from fila_server.operations.explain import ask_forecast, forecast_reported, situation_of
from fila_server.operations.forecast import Interval, Rivals, Situation, Unknown, forecast, speed_of
from fila_server.operations.key_walk import walk_keys

LOSING_MAX = 10
ASKED_MAX = 40
"""Keys that are forecast to find those that lose most."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A key that would wait longer."""

    fairness_key: str
    pending: int
    before: Interval
    after: Interval

    @property
    def ms(self) -> int:
        return self.after.likely_ms - self.before.likely_ms


class Previewing:
    """Answers PreviewKeyPolicy; its caller lets in one at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def preview(self, request: pb.PreviewKeyPolicyRequest) -> pb.PreviewKeyPolicyResponse:
        """Raises QueueNotFound, ChannelNotFound, Invalid."""
        policy = request.policy
        channel = request.channel or DEFAULT_CHANNEL
        now = await self._situation(request.queue, channel, policy.fairness_key)
        config = self._broker.queue_configs.get(request.queue)
        changed = under(
            now,
            policy,
            config.key_defaults if config is not None else pb.KeyDefaults(),
            channel_is_paused=config is not None and (config.paused or channel in config.paused_channels),
        )
        looks = self._broker.speeds.of_channel(request.queue, channel)
        reported = pb.PreviewKeyPolicyResponse(pending=now.backlog)
        if now.backlog:
            reported.weight_before, reported.weight_after = int(now.weight), int(changed.weight)
        _report(reported.head, forecast(now, looks), forecast(changed, looks))
        last = max(now.backlog, 1)
        _report(reported.tail, forecast(now, looks, last), forecast(changed, looks, last))
        for loss in await self._losing(request, channel, now, changed, looks):
            row = reported.losing.add(fairness_key=loss.fairness_key, pending=loss.pending)
            _report(row.tail, loss.before, loss.after)
        return reported

    async def _situation(self, queue: str, channel: str, key: str) -> Situation:
        asked = ask_forecast(queue, channel, key)
        return situation_of(await self._broker.call(commands.EXPLAIN_KEY, asked))

    async def _losing(
        self,
        request: pb.PreviewKeyPolicyRequest,
        channel: str,
        now: Situation,
        changed: Situation,
        looks: Sequence[Look],
    ) -> list[Loss]:
        if not now.backlog:
            return []
        per_s = speed_of(now, looks)
        before, after = (rival_weight(each, now.rivals_weight, per_s) for each in (now, changed))
        if now.waiters is not None:
            before, after = now.weight, 0.0 if changed.is_paused else changed.weight
        if per_s <= 0 or after <= before:
            return []
        page = seam_frames.FindPage(
            queue=request.queue.encode(),
            channel=channel.encode(),
            most=ASKED_MAX,
            rival_work=now.backlog * now.mean_cost,
            rival_grant_before=before * now.quantum,
            rival_grant_after=after * now.quantum,
        )
        losses = []
        for name in await self._candidates(page):
            if name == request.policy.fairness_key:
                continue
            asked = ask_forecast(request.queue, channel, name, apart=request.policy.fairness_key)
            reply = await self._broker.call(commands.EXPLAIN_KEY, asked)
            if (loss := loss_of(name, reply, now, changed, looks)) is not None:
                losses.append(loss)
        return heapq.nsmallest(LOSING_MAX, losses, key=lambda loss: (-loss.ms, loss.fairness_key))

    async def _candidates(self, page: Any) -> list[str]:
        """Those that the core ranks first, over all parts of the queue's table of keys."""
        ranks: dict[str, int] = {}
        names: list[str] = []
        async for part in walk_keys(self._broker.call, commands.FIND_KEYS, page, seam_frames.KeyRows):
            if part is None:
                ranks.clear()
                continue
            for row, rank in zip(part.keys, part.ranks, strict=True):
                ranks[watch_pb2.KeyState.FromString(row).fairness_key] = rank
            names = heapq.nlargest(ASKED_MAX, ranks, key=ranks.__getitem__)
            ranks = {name: ranks[name] for name in names}
        return names


def under(
    now: Situation,
    policy: pb.SetKeyPolicyRequest,
    defaults: pb.KeyDefaults | None = None,
    *,
    channel_is_paused: bool = False,
) -> Situation:
    """The situation, were this policy set in a queue with these defaults. Raises Invalid."""

    def given(name: str) -> bool:
        return bool(policy.HasField(name))

    if given("burst") and policy.burst and not given("rate_per_second") and not now.own_rate:
        raise Invalid("burst", "needs a rate, and the key has none: give rate_per_second, too")
    cap = policy.max_in_flight if given("max_in_flight") else None
    rate = policy.rate_per_second if given("rate_per_second") else None
    burst = policy.burst if given("burst") else None
    defaults = defaults or pb.KeyDefaults()
    if policy.cap_by_default:
        cap = defaults.max_in_flight
    if policy.rate_by_default:
        rate, burst = defaults.rate_per_second, defaults.burst
    committed = policy.committed_per_second if given("committed_per_second") else None
    if policy.committed_by_default:
        committed = defaults.committed_per_second
    return now.under(
        weight=policy.weight if given("weight") else None,
        cap=cap,
        rate=rate,
        burst=burst,
        committed=committed,
        is_paused=policy.paused or channel_is_paused if given("paused") else None,
    )


def rival_weight(key: Situation, others: float, per_s: float) -> float:
    """What the key weighs to those beside it, who weigh `others` together: its weight; less where its cap or its rate
    gives it a smaller part of what the channel sends."""
    if key.is_paused:
        return 0.0
    part = 1.0
    if key.cap and key.held > key.cap:
        part = min(part, key.cap / key.held)
    if key.own_rate and per_s > 0:
        part = min(part, key.own_rate * key.mean_cost / per_s)
    return min(float(key.weight), others * part / (1 - part)) if part < 1 else float(key.weight)


def loss_of(
    name: str, reply: bytes, now: Situation, changed: Situation, looks: Sequence[Look]
) -> Loss | None:
    """What a key loses to another's change, from an answer in which that other is told apart; None if nothing."""
    own = situation_of(reply)
    facts = seam_frames.Explained.FromString(reply).forecast
    per_s = speed_of(own, looks)
    if now.waiters is not None:
        times = (1.0, 0.0 if changed.is_paused else changed.weight / now.weight)
        beside = [_in_line(own, facts.waiters, by) for by in times]
        return None if None in beside else _loss(name, own, beside, looks)
    if not own.backlog or not facts.HasField("apart"):
        return None
    beside = []
    for key in (now, changed):
        weight = rival_weight(key, own.rivals_weight + own.weight, per_s)
        ahead = min(weight * own.quantum, facts.apart.work) if facts.apart_before else 0.0
        beside.append(
            replace(
                own,
                rivals=(*own.rivals, Rivals(weight, facts.apart.work)) if weight else own.rivals,
                before_its_turn=own.before_its_turn - facts.apart_before + ahead,
            )
        )
    return _loss(name, own, beside, looks)


def _in_line(own: Situation, facts: Any, by: float) -> Situation | None:
    """Of a key in the same line as the other, did that one weigh `by` times as much; None where it is in none."""
    if own.waiters is None or not facts.HasField("apart"):
        return None
    weight = facts.apart.weight * by
    ahead = min(weight, facts.apart.work) if facts.apart_before else 0.0
    waiters = replace(
        own.waiters,
        rivals=(*own.waiters.rivals, Rivals(weight, facts.apart.work)) if weight else own.waiters.rivals,
        before_its_turn=own.waiters.before_its_turn - facts.apart_before + ahead,
    )
    return replace(own, waiters=waiters)


def _loss(
    name: str, own: Situation, beside: Sequence[Situation | None], looks: Sequence[Look]
) -> Loss | None:
    before, after = (forecast(each, looks, own.backlog) for each in beside if each is not None)
    if isinstance(before, Unknown) or isinstance(after, Unknown) or after.likely_ms <= before.likely_ms:
        return None
    return Loss(name, own.backlog, before, after)


def _report(change: pb.ForecastChange, before: Interval | Unknown, after: Interval | Unknown) -> None:
    change.before.CopyFrom(forecast_reported(before))
    change.after.CopyFrom(forecast_reported(after))
