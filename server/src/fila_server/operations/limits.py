"""What a limit may be: each part's bounds, in sentences; and what stands for a word that was left out.

The core keeps the table of limits and judges by it (core/scheduling/limits.pxd).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from fila.v1 import limit_pb2 as pb
from fila.v1.admin_pb2 import QueueConfig
from fila_server.access.admission import Admission, Caller
from fila_server.broker.calls import Broker
from fila_server.broker.gate import GateByName
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands
from fila_server.errors import Invalid, LimitExceeded
from fila_server.operations.audit import carry_out

NAME_BYTES_MAX = 256
RATES_MAX = 4
RATE_MAX = 1e9
LEARNED_MIN = 0.001
SLOTS_MAX = 1_000_000_000
AMOUNT_MAX = 1e12
PERIOD_MS_MIN, PERIOD_MS_MAX = 1_000, 366 * 24 * 3600 * 1000
ANCHOR_MS_MAX = 100_000 * 24 * 3600 * 1000
LISTED_DEFAULT, LISTED_MAX = 100, 1_000

_UNITS = (pb.Limit.UNIT_UNSPECIFIED, pb.Limit.UNIT_MESSAGES, pb.Limit.UNIT_COST)


class LimitCalls:
    """Answers SetLimit and ListLimits, and checks what the core answers itself."""

    def __init__(self, broker: Broker, limits: Limits, admission: Admission) -> None:
        self._broker = broker
        self._admission = admission
        self._own_looks = GateByName("calls of this tenant", at_once=4)
        self._name_bytes_max = min(NAME_BYTES_MAX, limits.throttle_key_bytes_max)
        self._key_bytes_max = limits.throttle_key_bytes_max

    async def set(self, request: pb.SetLimitRequest, caller: Caller) -> bytes:
        """Set a limit as a whole."""
        completed = pb.SetLimitRequest(limit=self.complete(request.limit))
        return await carry_out(self._broker.call, "SetLimit", commands.SET_LIMIT, completed, caller)

    def complete(self, limit: pb.Limit) -> pb.Limit:
        """The limit with everything that was left out. Raises Invalid."""
        self._name("limit.name", limit.name)
        if len(limit.rates) > RATES_MAX:
            raise LimitExceeded("limit.rates", f"must be at most {RATES_MAX}, got {len(limit.rates)}")
        if not (limit.rates or limit.max_in_flight or limit.HasField("budget")):
            raise Invalid(
                "limit", "must have rates, max_in_flight or a budget; DeleteLimit takes a limit away"
            )
        whole = pb.Limit(name=limit.name, max_in_flight=limit.max_in_flight, shadow=limit.shadow)
        if limit.max_in_flight > SLOTS_MAX:
            raise LimitExceeded(
                "limit.max_in_flight", f"must be at most {SLOTS_MAX}, got {limit.max_in_flight}"
            )
        for i, rate in enumerate(limit.rates):
            whole.rates.append(_complete_rate(f"limit.rates[{i}]", rate))
        if limit.HasField("budget"):
            whole.budget.CopyFrom(_complete_budget(limit.budget))
        if limit.HasField("learn"):
            whole.learn.CopyFrom(_complete_learn(whole, limit.learn))
        return whole

    def delete(self, request: pb.DeleteLimitRequest) -> None:
        if not request.limit_name:
            raise Invalid("limit_name", "must not be empty")
        self._bytes("limit_name", request.limit_name, self._name_bytes_max)

    async def list(self, request: pb.ListLimitsRequest, caller: Caller) -> bytes:
        """Limits; of a tenant's key those that its own messages meet. Raises Invalid, LimitExceeded."""
        self._check_listing(request)
        if not caller.tenant:
            return await self._broker.call(commands.LIST_LIMITS, request.SerializeToString())
        async with self._own_looks.of(caller.tenant):
            return (await self._own(request, caller)).SerializeToString()

    async def _own(self, request: pb.ListLimitsRequest, caller: Caller) -> pb.ListLimitsResponse:
        """A name that is not among its own is as one that nothing limits."""
        listed = pb.ListLimitsResponse()
        most = request.max_limits or LISTED_DEFAULT
        for name in own_names(self._broker.queue_configs, caller, self._admission):
            begins = name.startswith(request.prefix) and name.encode() > request.after.encode()
            if name != request.throttle_key if request.throttle_key else not begins:
                continue
            asked = pb.ListLimitsRequest(throttle_key=name)
            reply = await self._broker.call(commands.LIST_LIMITS, asked.SerializeToString())
            found = pb.ListLimitsResponse.FromString(reply).limits
            if found and len(listed.limits) == most:
                listed.more = True
                break
            listed.limits.extend(hide_others(each, name) for each in found)
        return listed

    def _check_listing(self, request: pb.ListLimitsRequest) -> None:
        for field in ("prefix", "after", "throttle_key"):
            self._bytes(field, getattr(request, field), self._key_bytes_max)
        if request.max_limits > LISTED_MAX:
            raise LimitExceeded(
                "max_limits", f"must be at most {LISTED_MAX}, got {request.max_limits}: ask in parts"
            )

    def reset(self, request: pb.ResetLimitRequest) -> None:
        if not request.throttle_key:
            raise Invalid("throttle_key", "must not be empty")
        if request.throttle_key.endswith("*"):
            raise Invalid(
                "throttle_key",
                f"{request.throttle_key[:64]} limits each throttle key that begins so, and each has a budget of its "
                "own: name one of them",
            )
        self._bytes("throttle_key", request.throttle_key, self._key_bytes_max)
        _number("spent", request.spent, 0, AMOUNT_MAX)

    def _name(self, field: str, name: str) -> None:
        if not name:
            raise Invalid(field, "must be a throttle key, or the beginning of some and a * behind it")
        self._bytes(field, name, self._name_bytes_max)
        if "*" in name[:-1]:
            raise Invalid(
                field,
                f'may have one * at its end, which stands for whatever throttle keys go on with, got "{name[:64]}"',
            )

    def _bytes(self, field: str, text: str, bytes_max: int) -> None:
        size = len(text.encode())
        if size > bytes_max:
            raise LimitExceeded(field, f"must be at most {bytes_max} bytes, got {size}")


def _complete_rate(field: str, rate: pb.Rate) -> pb.Rate:
    _number(f"{field}.per_second", rate.per_second, 0, RATE_MAX)
    if rate.burst:
        _number(f"{field}.burst", rate.burst, 1, RATE_MAX)
    burst = rate.burst if rate.burst or not rate.per_second else max(1.0, rate.per_second)
    return pb.Rate(per_second=rate.per_second, burst=burst, unit=_unit(field, rate.unit))


def _complete_budget(budget: pb.Budget) -> pb.Budget:
    field = "limit.budget"
    if not 0 < budget.amount <= AMOUNT_MAX:
        raise Invalid(
            f"{field}.amount", f"must be above 0, and at most {AMOUNT_MAX:g}, got {budget.amount:g}"
        )
    if not PERIOD_MS_MIN <= budget.period_ms <= PERIOD_MS_MAX:
        raise Invalid(
            f"{field}.period_ms",
            f"must be from {PERIOD_MS_MIN} (a second) to {PERIOD_MS_MAX} (366 days), got {budget.period_ms}",
        )
    if abs(budget.anchor_ms) > ANCHOR_MS_MAX:
        raise Invalid(
            f"{field}.anchor_ms",
            f"must be from -{ANCHOR_MS_MAX} to {ANCHOR_MS_MAX}: a period begins there and every period_ms before "
            f"and after it, got {budget.anchor_ms}",
        )
    return pb.Budget(
        amount=budget.amount,
        period_ms=budget.period_ms,
        anchor_ms=budget.anchor_ms,
        unit=_unit(field, budget.unit),
    )


def _complete_learn(limit: pb.Limit, learn: pb.Learn) -> pb.Learn:
    field = "limit.learn"
    if not limit.rates or limit.rates[0].unit != pb.Limit.UNIT_MESSAGES:
        raise Invalid(
            field,
            "begins at the first rate, and needs one in messages: give rates[0], the provider's as you know it",
        )
    if limit.shadow:
        raise Invalid(field, "is not together with shadow, which holds nothing back and so learns nothing")
    _number(f"{field}.min", learn.min, LEARNED_MIN, RATE_MAX)
    _number(f"{field}.max", learn.max, LEARNED_MIN, RATE_MAX)
    if learn.min > learn.max:
        raise Invalid(f"{field}.min", f"must be at most max, which is {learn.max:g}, got {learn.min:g}")
    return pb.Learn(min=learn.min, max=learn.max)


def _unit(field: str, unit: pb.Limit.Unit) -> pb.Limit.Unit:
    if unit not in _UNITS:
        raise Invalid(f"{field}.unit", f"must be 1 (messages) or 2 (cost), got {unit}")
    return unit or pb.Limit.UNIT_MESSAGES


def own_names(configs: Mapping[str, QueueConfig], caller: Caller, admission: Admission) -> list[str]:
    """The throttle keys that a tenant's messages name in queues that it knows, in the order of their bytes."""
    beginnings = {
        config.key_limit
        for queue, config in configs.items()
        if config.key_limit and admission.sees(caller, queue)
    }
    return sorted((beginning + caller.tenant for beginning in beginnings), key=str.encode)


def hide_others(state: pb.LimitState, name: str) -> pb.LimitState:
    """Take out what it says of others: for whom else the limit was set, and what all of them together do."""
    state.limit.name, state.of_tenant = name, True
    for field in ("waiting", "passed_total", "held_total", "would_hold_total", "throttle_keys"):
        state.ClearField(field)
    return state


def _number(field: str, value: float, least: float, most: float) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise Invalid(field, f"must be from {least:g} to {most:g}, got {value:g}")
