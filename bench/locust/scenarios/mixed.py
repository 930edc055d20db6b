"""Producers and consumers in balance: one tenant has three times the weight of the others."""

from __future__ import annotations

from fila_locust import grpc_users, judgement, queue

WEIGHTS = {grpc_users.tenant_name(0): 3}

queue.declare(weights=WEIGHTS)
judgement.judge(rows_like=r"^(Enqueue|enqueue to delivery) ", weights=WEIGHTS, shared=True)


class Producer(grpc_users.Producer):
    """Sends for all tenants in turn."""

    weight = 3


class Consumer(grpc_users.Consumer):
    """Takes ten at a time."""

    weight = 1
    batch = 10
