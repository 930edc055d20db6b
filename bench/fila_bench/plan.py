"""What one load consists of: values handed to the producer and consumer processes."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from multiprocessing import get_context
from typing import Any

from fila_bench import frames

# Fresh interpreters: gRPC must not be forked once it has threads.
PROCESSES = get_context("spawn")


class Counter(IntEnum):
    """Slots of the counters that load processes write and the parent samples; one writer each."""

    PRODUCED = 0
    REFUSED = 1
    CONSUMED = 2
    ACKED = 3
    SETTLE_FAILED = 4
    STOP = 5
    PRODUCER_CPU_US = 6
    CONSUMER_CPU_US = 7


Counters = Any  # a ctypes array of u64 in shared memory; its stub type is private


def new_counters() -> Counters:
    return PROCESSES.RawArray(ctypes.c_uint64, len(Counter))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    """One process that fills a queue through EnqueueStream."""

    address: str
    queue: str
    payload_bytes: int = 1024
    batch: int = 100
    keys: int = 10
    key_header: str = "tenant"
    window_frames: int = 8
    """Frames sent and not yet answered."""

    streams: int = 1
    message_count: int = 0
    """Stop after that many; 0 = until told to stop."""

    backlog_max: int = 0
    """Pause while produced - consumed is beyond it, for a steady state; 0 = never."""

    extra_headers: dict[str, str] = field(default_factory=dict)
    weights: int = 1
    """Keys have weights of 1 to so many, in the header `weight`, and costs likewise in `cost`; 1 = no headers."""

    def bodies(self) -> list[bytes]:
        """Every distinct frame this load sends, built before the clock starts."""
        return list(self.iterate_bodies())

    def iterate_bodies(self) -> Iterator[bytes]:
        payload = b"x" * self.payload_bytes
        # So many frames, and every key has come equally often.
        frame_count = self.keys // math.gcd(self.keys, self.batch)
        for frame in range(frame_count):
            first = frame * self.batch
            messages = (self._message((first + i) % self.keys, payload) for i in range(self.batch))
            yield frames.enqueue_stream_body(frames.enqueue_batch(self.queue, messages))

    def _message(self, key: int, payload: bytes) -> bytes:
        headers = {self.key_header: key_text(key), **self.extra_headers}
        if self.weights > 1:
            headers |= {
                "weight": str(1 + key % self.weights),
                "cost": str(1 + key // self.weights % self.weights),
            }
        return frames.enqueue_message(headers, payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPlan:
    """One process that takes from a channel through ConsumeSession and acks what it gets."""

    address: str
    queue: str
    channel: str = ""
    max_in_flight: int = 4096
    credit: int = 0
    """initial_credit of the session, topped up as messages come; 0 = ruled by max_in_flight alone."""

    says_begun: bool = False
    """Track what is begun, and say it of every message before its ack."""

    message_count: int = 0
    sessions: int = 1


def key_text(number: int) -> str:
    """Fairness keys of one length, so that loads of few and of many keys carry messages of the same size."""
    return f"k{number:07}"


def now_ns() -> int:
    """One clock for producer, consumer and parent: they share the machine."""
    return time.monotonic_ns()
