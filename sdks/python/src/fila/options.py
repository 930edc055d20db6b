"""Every setting of a client, with its default, unit and reason; and the time and chance it runs on.

Time and randomness are handed in, so that a test can say what they are.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypedDict

from fila.connection_events import ConnectionEvent
from fila.prefetch import WINDOW_MAX, Prefetch


class Clock(Protocol):
    """Monotonic time, and waiting for it to pass."""

    def now_s(self) -> float:
        """Return seconds since some fixed moment; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""


class SystemClock:
    """The machine's monotonic clock."""

    now_s = staticmethod(time.monotonic)  # the function itself: it is asked for every message

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before attempt after attempt: doubling, capped, half of it left to chance.

    Clients that lost the same broker at the same moment must not come back at the same moment.
    """

    base_s: float = 0.05
    """The first wait, at most."""

    cap_s: float = 5.0
    """No wait is longer."""

    randomness: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        if not 0 < self.base_s <= self.cap_s:
            raise ValueError(f"backoff needs 0 < base_s <= cap_s, got {self.base_s} and {self.cap_s}")

    def wait_s(self, attempt: int) -> float:
        """Return the wait before retry number `attempt`, the first being 0."""
        # 2**attempt of a long outage would overflow a float; the cap is reached long before.
        ceiling = min(self.cap_s, self.base_s * 2.0 ** min(attempt, 32))
        return ceiling * (0.5 + 0.5 * self.randomness.random())


def _name_of_process() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def check_prefetch(prefetch: Prefetch) -> None:
    """Refuse what is neither "auto" nor a number from 1 to 10,000: a broken stream's resume names no more leases."""
    if prefetch == "auto":
        return
    if isinstance(prefetch, bool) or not isinstance(prefetch, int):
        raise TypeError(f'prefetch must be "auto" or an int, got {prefetch!r}')
    if prefetch < 1:
        raise ValueError(f"prefetch must be at least 1, got {prefetch}")
    if prefetch > WINDOW_MAX:
        raise ValueError(
            f"prefetch must be at most {WINDOW_MAX}, got {prefetch}; consume with several consumers"
        )


def _key_of_environment() -> str:
    return os.environ.get("FILA_API_KEY", "").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """The settings of a FilaClient. `FilaClient.connect(target, **options)` takes the same names."""

    connect_timeout_s: float = 10.0
    """How long `connect` waits for the broker to answer."""

    call_timeout_s: float = 30.0
    """How long one call, or one frame of enqueues, may go unanswered before it counts as lost."""

    retry_for_s: float = 30.0
    """How long an unreachable broker is tried again before a call raises Unavailable. 0: not at all."""

    reconnect_for_s: float | None = None
    """How long a consumer tries to get its stream back before its loop raises Unavailable. None: for ever."""

    wait_when_overloaded_s: float = 0.0
    """How long a call that is refused with Overloaded is tried again, waiting as long as the broker
    suggests each time. 0 raises at once, so that the caller feels the pressure."""

    batching: bool = True
    """Send concurrent `enqueue` calls together. Off: each is a call of its own."""

    linger_ms: float = 5.0
    """Longest an `enqueue` may wait for company while an earlier frame is unanswered. At most 5.
    With nothing unanswered it is sent at once."""

    frame_messages_max: int = 200
    """Most messages in one frame. Larger frames cost less a message, and hold up the others longer."""

    frame_bytes_max: int = 1 << 20
    """A frame is sent when its headers and payloads reach this."""

    frames_in_flight_max: int = 4
    """Unanswered frames of enqueues; more hide the broker's pace instead of following it."""

    waiting_bytes_max: int = 64 << 20
    """Bytes of enqueues not yet sent; beyond it `enqueue` waits."""

    prefetch: Prefetch = "auto"
    """How many messages a consumer holds at once, those in your hands included, unless `consume` says otherwise.
    "auto" follows how fast your program works. A number is held whatever happens: then nobody else gets them."""

    prefetch_buffer_ms: int = 50
    """With "auto": how much work may lie in a consumer's buffer, 1 to 1,000."""

    name: str = field(default_factory=_name_of_process)
    """The consumers' name for people, at most 128 bytes; unless given, the machine and the process."""

    on_connection: Callable[[ConnectionEvent], object] | None = None
    """Called when a consumer's stream is lost, draining, or back; on the client's thread, so it must not block."""

    api_key: str = field(default_factory=_key_of_environment, repr=False)
    """Sent with every call, as `authorization: Bearer`. Unless given, the environment's FILA_API_KEY; "" sends none."""

    ca_file: str = ""
    """A PEM file with the authorities that may have signed the broker's certificate. This, or any other of the four,
    means TLS, as `https://` in the address does. Without it, where TLS is spoken, it is the environment's FILA_CA_FILE,
    or the system's authorities are trusted."""

    cert_file: str = ""
    """A PEM file with this client's own certificate, for brokers that ask for one; together with `key_file`. Without
    them, where TLS is spoken, they are the environment's FILA_CERT_FILE and FILA_KEY_FILE."""

    key_file: str = ""
    """A PEM file with the private key of `cert_file`."""

    server_name: str = ""
    """The name that the broker's certificate must be made out to, where it is not the address's."""

    backoff: Backoff = field(default_factory=Backoff)

    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        at_least = {
            "connect_timeout_s": 0.001,
            "call_timeout_s": 0.001,
            "retry_for_s": 0,
            "wait_when_overloaded_s": 0,
            "linger_ms": 0,
            "frame_messages_max": 1,
            "frame_bytes_max": 1,
            "frames_in_flight_max": 1,
            "waiting_bytes_max": 1,
            "prefetch_buffer_ms": 1,
        }
        for name, least in at_least.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        check_prefetch(self.prefetch)
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("cert_file and key_file belong together: give both, or neither")
        at_most = {
            "prefetch_buffer_ms": 1000,
            "linger_ms": 5,
            "frame_messages_max": 10_000,
            "frame_bytes_max": 8 << 20,
        }
        for name, most in at_most.items():
            if getattr(self, name) > most:
                raise ValueError(f"{name} must be at most {most}, got {getattr(self, name)}")


class OptionFields(TypedDict, total=False):
    """The fields of ClientOptions as keywords; a test holds the two together."""

    connect_timeout_s: float
    call_timeout_s: float
    retry_for_s: float
    reconnect_for_s: float | None
    wait_when_overloaded_s: float
    batching: bool
    linger_ms: float
    frame_messages_max: int
    frame_bytes_max: int
    frames_in_flight_max: int
    waiting_bytes_max: int
    prefetch: Prefetch
    prefetch_buffer_ms: int
    name: str
    on_connection: Callable[[ConnectionEvent], object] | None
    api_key: str
    ca_file: str
    cert_file: str
    key_file: str
    server_name: str
    backoff: Backoff
    clock: Clock
