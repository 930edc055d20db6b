"""More producers step by step, beside consumers of a fixed speed: at which load does waiting begin?"""

from __future__ import annotations

from fila_locust import grpc_users, judgement, queue, shapes

queue.declare()
judgement.judge(rows_like=r"^(Enqueue|enqueue to delivery) ", shared=True)


class Producer(grpc_users.Producer):
    """One message a call."""


class Consumer(grpc_users.Consumer):
    """Two, whatever the shape does."""

    fixed_count = 2


class Shape(shapes.Ramp):
    """Of the producers."""
