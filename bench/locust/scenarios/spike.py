"""Five times the producers for a sixth of the run: how long until nobody waits any more?"""

from __future__ import annotations

from fila_locust import grpc_users, judgement, queue, shapes

queue.declare()
judgement.judge(rows_like=r"^(Enqueue|enqueue to delivery) ", shared=True)


class Producer(grpc_users.Producer):
    """One message a call."""


class Consumer(grpc_users.Consumer):
    """Two, whatever the shape does."""

    fixed_count = 2


class Shape(shapes.Spike):
    """Of the producers."""
