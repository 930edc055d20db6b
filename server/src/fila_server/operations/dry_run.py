"""What a change of settings would do to the newest messages and dead letters, in a sandbox of its own.

The order is the core's (core/lifecycle/routing.pyx): a script's word, then the settings, then defaults; a message bound
to a tenant stays the tenant's. A test holds this against messages that are really enqueued.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from fila.v1 import admin_pb2 as pb
from fila.v1.messages_pb2 import Message
from fila_server.broker.calls import Broker
from fila_server.broker.mirror import DLQ_SUFFIX
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands
from fila_server.hooks.on_enqueue import OnEnqueue
from fila_server.hooks.on_failure import DeadLetter, FailedMessage, OnFailure
from fila_server.hooks.packed import KeyLimits, Routing, pack_messages, unpack_routings
from fila_server.hooks.sandbox import HookFailure, new_runtime_config

LAST_DEFAULT = 100
TIME_S_MAX = 2.0
DEFAULT_KEY = "default"
_TENANT = "fila-tenant"
_WEIGHT_MAX, _COST_MIN, _COST_MAX = 1000, 0.001, 1_000_000.0
_PRIORITY_USUAL, _PRIORITY_MAX = 1, 3


class DryRun:
    """One of them."""

    def __init__(self, broker: Broker, config: pb.QueueConfig, limits: Limits) -> None:
        self._broker = broker
        self._config = config
        self._key_limits = KeyLimits(
            fairness_key_bytes=limits.fairness_key_bytes_max,
            throttle_key_bytes=limits.throttle_key_bytes_max,
            throttle_keys=limits.throttle_keys_max,
        )
        self._hook_limits = broker.hooks.limits
        self._ends_s = time.monotonic() + TIME_S_MAX

    async def run(self, queue: str, last: int) -> pb.DryRunPolicyResponse:
        """Raises QueueNotFound, and what is wrong with a script."""
        reported = pb.DryRunPolicyResponse()
        stats = await self._stats(queue)
        found = await newest(partial(self._log, queue), stats.tail_offset, stats.head_offset, last)
        reported.retained = len(found)
        if len(found) == last:
            reported.retained = found[-1].metadata.offset + 1 - max(1, stats.tail_offset)
        router = self._router()
        for message in found:
            if time.monotonic() > self._ends_s:
                reported.cut = True
                return reported
            self._judge(reported.messages.add(), message, queue, router)
            await asyncio.sleep(0)  # a script may take its whole time limit
        if self._config.on_failure_script and queue + DLQ_SUFFIX in self._broker.queue_configs:
            await self._judge_dead_letters(reported, queue, last)
        return reported

    async def _stats(self, queue: str) -> pb.GetStatsResponse:
        asked = pb.GetStatsRequest(queue=queue, max_keys=1)
        reply = await self._broker.call(commands.GET_STATS, asked.SerializeToString())
        return pb.GetStatsResponse.FromString(reply)

    async def _log(self, queue: str, first: int, most: int) -> list[Message]:
        asked = pb.ReadLogRequest(queue=queue, from_offset=first, max_batch=most)
        found: list[Message] = []
        async with contextlib.aclosing(self._broker.read_log(asked.SerializeToString())) as pieces:
            async for piece in pieces:
                found += pb.ReadLogResponse.FromString(piece).messages
                if len(found) >= most:
                    break
        return found[:most]

    async def _peek(self, dlq: str, first: int, most: int) -> list[Message]:
        asked = pb.PeekMessagesRequest(queue=dlq, max_messages=most, after_offset=first - 1)
        reply = await self._broker.call(commands.PEEK_MESSAGES, asked.SerializeToString())
        return list(pb.PeekMessagesResponse.FromString(reply).messages)

    def _router(self) -> OnEnqueue | None:
        if not self._config.on_enqueue_script:
            return None
        return OnEnqueue(
            self._config.on_enqueue_script.encode(),
            limits=self._hook_limits,
            config=self._runtime_config(),
            now_ns=time.monotonic_ns,
            seed=0,
        )

    def _runtime_config(self) -> Any:
        config = new_runtime_config()
        config.replace({key.encode(): value.encode() for key, value in self._broker.runtime_config.items()})
        return config

    def _judge(
        self, reported: pb.DryRunMessage, message: Message, queue: str, router: OnEnqueue | None
    ) -> None:
        reported.offset = message.metadata.offset
        before = message.metadata
        reported.before.fairness_key, reported.before.weight, reported.before.cost = (
            before.fairness_key,
            before.weight,
            before.cost,
        )
        reported.before.throttle_keys.extend(before.throttle_keys)
        if before.HasField("priority"):
            reported.before.priority = before.priority
        hooked: Routing | None = None
        if router is not None:
            hooked, reported.error = self._ask(router, queue, message)
        self._route(reported.after, dict(message.headers), hooked)
        if not self._config.priority_header and before.HasField("priority"):
            reported.after.priority = before.priority  # its producer's word, as far as anybody knows
        refused = self._name_key_limit(reported.after)
        reported.error = reported.error or refused

    def _ask(self, router: OnEnqueue, queue: str, message: Message) -> tuple[Routing | None, str]:
        headers = {name.encode(): value.encode() for name, value in message.headers.items()}
        fairness_header = self._config.fairness_key_header.encode()
        if fairness_header and (tenant := headers.get(_TENANT.encode())):
            headers[fairness_header] = tenant
        packed = pack_messages([(list(headers.items()), len(message.payload))])
        answers = router.route(queue.encode(), 1, packed)
        if answers.failure is not None:
            return None, answers.failure.text
        routings, problem, _ = unpack_routings(answers.routings, 0, 1, self._key_limits)
        return (None, problem) if problem is not None else (routings[0], "")

    def _route(self, reported: pb.DryRunRouting, headers: Mapping[str, str], hooked: Routing | None) -> None:
        config = self._config
        tenant = headers.get(_TENANT, "")
        reported.fairness_key = headers.get(config.fairness_key_header, "") or DEFAULT_KEY
        reported.weight, reported.cost = 1, 1.0
        if config.priority_header in headers:
            priority = _priority(_number(headers[config.priority_header]))
            if priority != _PRIORITY_USUAL:
                reported.priority = priority
        if not tenant:
            if config.weight_header in headers:
                reported.weight = _weight(_number(headers[config.weight_header]))
            if config.cost_header in headers:
                cost = _number(headers[config.cost_header])
                reported.cost = 1.0 if math.isnan(cost) else _cost(cost)
        if hooked is not None:
            if hooked.fairness_key:
                reported.fairness_key = hooked.fairness_key.decode("utf-8", "backslashreplace")
            if hooked.weight is not None:
                reported.weight = _weight(hooked.weight)
            if hooked.cost is not None:
                reported.cost = _cost(hooked.cost)
        if hooked is not None and hooked.throttle_keys is not None:
            keys = {key.decode("utf-8", "backslashreplace") for key in hooked.throttle_keys if key}
        else:
            keys = set() if tenant else {headers.get(name, "") for name in config.throttle_key_headers} - {""}
        reported.throttle_keys.extend(sorted(keys, key=str.encode))
        if tenant:
            reported.fairness_key = tenant

    def _name_key_limit(self, reported: pb.DryRunRouting) -> str:
        """Add the limit that the queue has for the fairness key; what the core would refuse the message for, or
        nothing."""
        if not self._config.key_limit:
            return ""
        most, name = self._key_limits, self._config.key_limit + reported.fairness_key
        keys = {*reported.throttle_keys, name}
        if len(name.encode()) > most.throttle_key_bytes:
            return (
                f"refused: the fairness key and key_limit are {len(name.encode())} bytes together, and may be "
                f"{most.throttle_key_bytes}"
            )
        if len(keys) > most.throttle_keys:
            return f"refused: with that of key_limit it names more throttle keys than {most.throttle_keys}"
        del reported.throttle_keys[:]
        reported.throttle_keys.extend(sorted(keys, key=str.encode))
        return ""

    async def _judge_dead_letters(self, reported: pb.DryRunPolicyResponse, queue: str, last: int) -> None:
        judge = OnFailure(
            self._config.on_failure_script.encode(),
            limits=self._hook_limits,
            config=self._runtime_config(),
            now_ns=time.monotonic_ns,
            seed=0,
        )
        dlq = queue + DLQ_SUFFIX
        stats = await self._stats(dlq)
        for message in await newest(partial(self._peek, dlq), stats.tail_offset, stats.head_offset, last):
            if time.monotonic() > self._ends_s:
                reported.cut = True
                return
            letter = message.metadata.dead_letter
            judged = judge.decide(
                FailedMessage(
                    queue=queue.encode(),
                    channel=letter.source_channel.encode(),
                    headers=[(name.encode(), value.encode()) for name, value in message.headers.items()],
                    message_id=message.id.encode(),
                    attempts=letter.attempts,
                    error=letter.last_error.encode(),
                    fairness_key=message.metadata.fairness_key.encode(),
                )
            )
            row = reported.dead_letters.add(offset=message.metadata.offset)
            if isinstance(judged, HookFailure):
                row.error = judged.text
            elif isinstance(judged, DeadLetter):
                row.action = "dlq"
            else:
                row.action, row.delay_ms = "retry", judged.delay_ms or 0
            await asyncio.sleep(0)


async def newest(
    read: Callable[[int, int], Awaitable[list[Message]]], oldest: int, head: int, most: int
) -> list[Message]:
    """The newest messages below offset `head`, at most so many; `read` gives the first ones from an offset on.

    Offsets have gaps: a crash leaves out up to a million of them, and retention may take a message among others.
    """

    async def bisected(most: int, high: int) -> tuple[int, list[Message]]:
        """The highest offset from which on there are so many, and these; where there is none, all and the oldest."""
        low = max(1, oldest)
        found = await read(low, most)
        while len(found) == most and high - low > 1:
            middle = (low + high) // 2
            if len(fewer := await read(middle, most)) == most:
                low, found = middle, fewer
            else:
                high = middle
        return low, found

    if not await read(max(1, head - 1), 1):  # single messages first: these are many reads, across a wide gap
        last, _ = await bisected(1, head)
        head = last + 1
    first = max(1, oldest, head - most)
    found = await read(first, most)
    if len(found) == most or first <= max(1, oldest):
        return found
    return (await bisected(most, first))[1]


def _number(text: str) -> float:
    """As the core reads a header: digits and nothing before them; what is no number is none."""
    if not text or len(text) >= 64 or text[0] in " \t\n" or text[-1] in " \t\n" or "_" in text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


def _weight(weight: float) -> int:
    return int(weight) if 1 <= weight <= _WEIGHT_MAX else _WEIGHT_MAX if weight > _WEIGHT_MAX else 1


def _priority(priority: float) -> int:
    return _PRIORITY_USUAL if math.isnan(priority) else int(min(max(priority, 0), _PRIORITY_MAX))


def _cost(cost: float) -> float:
    return math.floor(min(max(cost, _COST_MIN), _COST_MAX) * 1000 + 0.5) / 1000
