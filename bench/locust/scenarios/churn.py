"""Tenants that come and go: each producer that starts is a tenant never seen before, and leaves for good."""

from __future__ import annotations

import secrets

from fila_locust import grpc_users, judgement, queue, shapes
from locust.env import Environment

queue.declare()
judgement.judge(rows_like=r"^enqueue to delivery ", shared=True)


class Passing(grpc_users.Producer):
    """One tenant, as long as its user lives."""

    role = "passing"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._name = f"t{secrets.token_hex(4)}"

    def tenant(self) -> str:
        return self._name


class Consumer(grpc_users.Consumer):
    """Stays."""

    fixed_count = 2
    batch = 10


class Shape(shapes.Waves):
    """Of the tenants."""
