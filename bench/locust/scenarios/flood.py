"""One tenant floods for a while and leaves; the others carry on. Their wait must not move."""

from __future__ import annotations

from typing import ClassVar

from fila_locust import batching, grpc_users, judgement, queue, shapes

queue.declare()
judgement.judge(rows_like=r"delivery \(quiet\)", shared=True)


class Quiet(grpc_users.Producer):
    """Tenants of habit."""

    role = "quiet"


class Flood(batching.BatchProducer):
    """As many frames as are answered, of one tenant."""

    role = "flood"
    rate_per_s = 10_000.0

    def tenant(self) -> str:
        """Always the same."""
        return "flood000"


class Consumer(grpc_users.Consumer):
    """Slower than the flood."""

    fixed_count = 2
    batch = 10


class Shape(shapes.Interlude):
    """The flood comes and goes."""

    stay: ClassVar = [Quiet, Consumer]
    visit: ClassVar = [Flood]
