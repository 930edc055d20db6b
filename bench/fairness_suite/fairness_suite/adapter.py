"""What a broker must do to be judged: store, hand out, settle, take back. An adapter is some sixty lines.

The suite asks one question at a time and from one thread, so adapters need no locks and no speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Ability(StrEnum):
    """What a broker can be told about tenants. Where it cannot, it is told nothing, and judged by what it does."""

    WEIGHTS = "weights"
    COSTS = "costs"
    RATES = "rates"
    DELAYS = "delays"
    """A message that is given back comes again after a time, not at once."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """One that shares the broker with others."""

    name: str
    weight: int = 1
    rate_per_s: float = 0.0
    """Messages a second it may have; 0 is no limit."""
    limit: str = ""
    """All tenants that name the same limit have their rate together; empty: it has one of its own."""
    in_order: bool = False
    """Its messages are to be handled in order, where the broker can keep it: told of all tenants or of none."""


@dataclass(frozen=True, slots=True)
class Message:
    tenant: str
    number: int
    """Of this tenant's messages; each is sent once."""

    cost: int = 1


@dataclass(frozen=True, slots=True)
class Taken:
    """A delivery. `handle` is whatever the adapter needs to settle it."""

    message: Message
    handle: Any


class NotPossible(Exception):
    """The broker has no way to do this; the text says what is missing. The question is then answered with it."""


class Adapter(Protocol):
    """One broker as the suite speaks to it, used in the way that its makers recommend for tenants."""

    abilities: frozenset[Ability]

    def open(self, tenants: Mapping[str, Tenant]) -> None:
        """Begin anew: empty, with room for these tenants and no others."""

    def send(self, messages: Sequence[Message]) -> None:
        """Store the messages; once this returns they survive the broker's end."""

    def take(self, most: int, wait_s: float) -> list[Taken]:
        """Up to `most` messages, none when nothing comes within `wait_s` seconds."""

    def settle(self, taken: Sequence[Taken]) -> None:
        """These are done and must not come again."""

    def give_back(self, taken: Sequence[Taken], after_s: float) -> None:
        """These may not be handled yet; they come again after so many seconds, or at once without Ability.DELAYS."""

    def reconnect(self, address: str) -> None:
        """The broker was killed and started again on what it kept, and listens there now."""

    def close(self) -> None:
        """Let go of connections."""


def encoded(message: Message) -> bytes:
    """A payload that says which message it is, for brokers without headers."""
    return f"{message.tenant} {message.number} {message.cost}".encode()


def decoded(payload: bytes) -> Message:
    tenant, number, cost = payload.decode().split()
    return Message(tenant, int(number), int(cost))
