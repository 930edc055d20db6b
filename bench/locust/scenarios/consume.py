"""Consumers alone: a few batching producers keep the queue full, and leases and acks are what is measured."""

from __future__ import annotations

from fila_locust import batching, grpc_users, judgement, queue

queue.declare()
judgement.judge(rows_like=r"^AckBatch$")


class Feeder(batching.BatchProducer):
    """One user that keeps ahead of the consumers."""

    fixed_count = 1
    role = "feeder"


class Consumer(grpc_users.Consumer):
    """One lease after another."""
