"""The same load for as long as -t says: does anything grow, slow down or fail?"""

from __future__ import annotations

from fila_locust import grpc_users, judgement, queue, shapes

queue.declare()
judgement.judge(rows_like=r"^(Enqueue|enqueue to delivery) ", shared=True)


class Producer(grpc_users.Producer):
    """One message a call."""


class Consumer(grpc_users.Consumer):
    """Two, whatever the shape does."""

    fixed_count = 2


class Shape(shapes.Soak):
    """Of the producers."""
