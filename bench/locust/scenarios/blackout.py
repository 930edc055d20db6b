"""All consumers leave and come back: producers must not notice, and what gathered must go out fairly."""

from __future__ import annotations

from typing import ClassVar

from fila_locust import grpc_users, judgement, queue, shapes

queue.declare()
judgement.judge(rows_like=r"^Enqueue ", shared=True)


class Producer(grpc_users.Producer):
    """Carries on."""


class Consumer(grpc_users.Consumer):
    """Away from a quarter to two thirds of the run."""


class Shape(shapes.Gap):
    """Consumers, none, consumers."""

    stay: ClassVar = [Producer]
    visit: ClassVar = [Consumer]
    visitors = 4
