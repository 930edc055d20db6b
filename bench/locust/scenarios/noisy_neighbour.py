"""Many quiet tenants beside one that sends as fast as it can: do they notice?

The consumers are the bottleneck. First in, first out (--fifo) every message waits behind the noisy tenant's.
"""

from __future__ import annotations

from fila_locust import batching, grpc_users, judgement, queue

queue.declare()
judgement.judge(rows_like=r"delivery \(quiet\)", shared=True)


class Quiet(grpc_users.Producer):
    """Each user sends for all quiet tenants in turn."""

    role = "quiet"


class Noisy(batching.BatchProducer):
    """One tenant, frame after frame."""

    fixed_count = 1
    role = "noisy"
    rate_per_s = 2_000.0

    def tenant(self) -> str:
        """Always the same."""
        return "noisy000"


class Consumer(grpc_users.Consumer):
    """Slower together than what comes in."""

    fixed_count = 2
    batch = 10
