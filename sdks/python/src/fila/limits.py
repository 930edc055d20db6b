"""Limits as methods of a client: what the messages that name a throttle key may use of it, over all queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Required, TypedDict, Unpack

from fila import methods
from fila.answers import answer
from fila.arguments import at_index, make
from fila.connection import Connection
from fila.settings import Duration
from fila.v1 import limit_pb2 as wire
from fila.values import duration_ms


class RateOptions(TypedDict, total=False):
    """A token bucket."""

    per_second: Required[float]
    """From 0 (nothing goes) to 1e9; 60 a minute are 1."""
    burst: float
    """How much may go at once after a pause, from 1 to 1e9; one second's worth where it is left out."""
    unit: Literal["messages", "cost"]
    """What it counts: each message as 1, the default, or as its cost."""


class BudgetOptions(TypedDict, total=False):
    """So much within each of periods of one length, which follow each other."""

    amount: Required[float]
    """Above 0, up to 1e12."""
    period_ms: Required[Duration]
    """From a second to 366 days, such as `"24h"`."""
    anchor_ms: int
    """When a period begins, in milliseconds since 1970 in UTC; 0 where it is left out."""
    unit: Literal["messages", "cost"]


class LearnOptions(TypedDict):
    """Between which bounds the first rate follows its provider, in messages a second."""

    min: float
    max: float


class LimitOptions(TypedDict, total=False):
    """A limit's parts; at least one rate, slots or a budget."""

    rates: Sequence[RateOptions]
    """At most 4."""
    max_in_flight: int
    """Slots: most messages in flight at once, over all queues."""
    budget: BudgetOptions
    learn: LearnOptions
    """Follow the provider from the first rate on, as workers tell of it; see `fila.Message.limited`."""
    shadow: bool
    """Judge and count, and hold nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A token bucket."""

    per_second: float
    burst: float
    unit: str
    """`messages` or `cost`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """So much within each of periods of one length."""

    amount: float
    period_ms: int
    anchor_ms: int = 0
    unit: str = "messages"
    """`messages` or `cost`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learn:
    """Between which bounds a rate follows its provider, in messages a second."""

    min: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit as it was set; `fila.limits.LimitOptions` explains each part."""

    name: str
    rates: list[Rate] = field(default_factory=list)
    max_in_flight: int = 0
    """0: any number."""
    budget: Budget | None = None
    learn: Learn | None = None
    shadow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitState:
    """A limit as it is now."""

    limit: Limit
    throttle_key: str = ""
    """Whose `tokens`, `in_flight`, `spent` and `period_ends_at` these are; empty where the limit is that of many."""
    tokens: list[float] = field(default_factory=list)
    """What its rates have now, in their order; below 0 after a message that cost more than there was."""
    in_flight: int = 0
    spent: float = 0.0
    """Of the budget, within this period."""
    period_ends_at: datetime | None = None
    waiting: int = 0
    """Fairness keys that wait for it now, of all its throttle keys together."""
    passed_total: int = 0
    """Messages that it let go since the broker started."""
    held_total: int = 0
    """Times that a key began to wait for it since the broker started."""
    would_hold_total: int = 0
    """Messages that it would have held if it were no shadow, since the broker started."""
    throttle_keys: int = 0
    """Throttle keys that have it now."""
    learned_per_second: float = 0.0
    """Of a limit that learns: messages a second that it lets go now."""
    closed_until: datetime | None = None
    """A provider said so; None where it is open."""
    refused_at: datetime | None = None
    """When a provider last refused; None where none has since the broker started."""
    of_tenant: bool = False
    """Told to the tenant whose throttle key it is: `waiting`, the totals and `throttle_keys` are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitPage:
    """Limits in the order of their names' bytes."""

    limits: list[LimitState]
    more: bool = False
    """There are more behind the last of these."""


_UNITS = {"messages": wire.Limit.UNIT_MESSAGES, "cost": wire.Limit.UNIT_COST}


class LimitCalls:
    """The calls of FilaAdmin about limits. They need the right `admin`; a tenant's key may ask for its own."""

    _connection: Connection

    async def set_limit(self, name: str, **parts: Unpack[LimitOptions]) -> Limit:
        """Set the limit of a throttle key as a whole; where its name ends in a `*`, that of each throttle key which
        begins so. Raises Invalid, LimitExceeded."""
        request = wire.SetLimitRequest(limit=limit_message(name, parts))
        told = await self._connection.call(methods.SET_LIMIT, request, {})
        return answer(Limit, told.limit)

    async def get_limit(self, throttle_key: str) -> LimitState | None:
        """Return the limit that messages with this throttle key meet, its own or that of a pattern, and what of it is
        used; None where nothing limits it."""
        request = make(wire.ListLimitsRequest, throttle_key=throttle_key)
        told = await self._connection.call(methods.LIST_LIMITS, request, {})
        return answer(LimitState, told.limits[0]) if told.limits else None

    async def list_limits(self, prefix: str = "", *, after: str = "", max_limits: int = 0) -> LimitPage:
        """Return the limits whose names begin with `prefix`: 100, or up to 1,000, and with `after` those behind that
        name."""
        request = make(wire.ListLimitsRequest, prefix=prefix, after=after, max_limits=max_limits)
        told = await self._connection.call(methods.LIST_LIMITS, request, {})
        return answer(LimitPage, told)

    async def delete_limit(self, name: str) -> None:
        """Delete a limit by the name it was set with; what waits for it goes. Raises NotFound."""
        request = make(wire.DeleteLimitRequest, limit_name=name)
        await self._connection.call(methods.DELETE_LIMIT, request, {})

    async def reset_limit(self, throttle_key: str, *, spent: float = 0.0) -> LimitState:
        """Say how much of its budget a throttle key has spent in this period, and return how its limit is then. Raises
        NotFound, Invalid."""
        request = make(wire.ResetLimitRequest, throttle_key=throttle_key, spent=spent)
        told = await self._connection.call(methods.RESET_LIMIT, request, {})
        return answer(LimitState, told.limit)


def limit_message(name: str, parts: LimitOptions) -> wire.Limit:
    """The limit as the wire has it. Raises ValueError, TypeError, with the field."""
    fields: dict[str, Any] = dict(parts)
    rates = []
    for i, given in enumerate(fields.pop("rates", ())):
        try:
            rates.append(make(wire.Rate, **_with_unit(given)))
        except (TypeError, ValueError) as wrong:
            raise at_index(wrong, "rates", i) from None
    if fields.get("budget") is not None:
        budget = _with_unit(fields["budget"])
        budget["period_ms"] = duration_ms("budget.period_ms", budget.get("period_ms", 0))
        fields["budget"] = make(wire.Budget, **budget)
    return make(wire.Limit, name=name, rates=rates, **fields)


def _with_unit(given: Mapping[str, Any]) -> dict[str, Any]:
    unit = given.get("unit", "messages")
    if unit not in _UNITS:
        raise ValueError(f"unit must be messages or cost, got {unit!r}")
    return {**given, "unit": _UNITS[unit]}
