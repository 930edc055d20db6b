"""The brokers that can be judged, by name.

An adapter's client is imported only when it is asked for: a run with one broker needs no other's library.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from fairness_suite.adapter import Adapter, NotPossible


@dataclass(frozen=True, slots=True)
class Entry:
    peer: str
    """The broker of the comparison that the suite starts for it; any other can be judged by its address."""

    module: str
    kind: str
    needs: str
    """What pip installs for it."""

    about: str


ADAPTERS: Mapping[str, Entry] = {
    "fila": Entry(
        "fila-grpc", "fila_grpc", "FilaQueue", "grpcio", "one queue, the tenant is the fairness key"
    ),
    "redis-stream": Entry(
        "redis-stream", "redis_streams", "OneStream", "redis", "one stream for all tenants"
    ),
    "redis-streams": Entry(
        "redis-stream", "redis_streams", "StreamEach", "redis", "a stream a tenant, read in turn"
    ),
    "rabbitmq": Entry(
        "rabbitmq-quorum", "rabbitmq_queues", "OneQueue", "pika", "one quorum queue for all tenants"
    ),
    "rabbitmq-queues": Entry(
        "rabbitmq-quorum", "rabbitmq_queues", "QueueEach", "pika", "a queue a tenant, asked in turn"
    ),
    "nats": Entry(
        "nats", "nats_streams", "SubjectEach", "nats-py", "a subject and a consumer a tenant, asked in turn"
    ),
    "kafka": Entry("kafka", "kafka_topics", "OneTopic", "kafka-python", "one topic, a partition a tenant"),
}


def adapter(name: str, address: str) -> Adapter:
    """Connected to a broker that listens there. Raise NotPossible where its client is not installed."""
    entry = ADAPTERS[name]
    try:
        module = importlib.import_module(f"{__name__}.{entry.module}")
    except ImportError as error:
        raise NotPossible(f"{error.name} is missing: pip install {entry.needs}") from None
    connected: Adapter = getattr(module, entry.kind)(address)
    return connected
