"""Producers alone: what an enqueue costs its caller, at a fixed rate a user."""

from __future__ import annotations

from fila_locust import grpc_users, judgement, queue

queue.declare()
judgement.judge(rows_like=r"^Enqueue ")


class Producer(grpc_users.Producer):
    """One message a call."""
