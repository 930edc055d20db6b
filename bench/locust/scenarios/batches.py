"""As much as a few processes can send and take, in frames of --batch messages: use --processes."""

from __future__ import annotations

from fila_locust import batching, judgement, queue

queue.declare()
judgement.judge(rows_like=r"^EnqueueBatch ")


class Producer(batching.BatchProducer):
    """Frames of --batch messages; --user-rate 0 for the next when the last was answered."""


class Consumer(batching.BatchConsumer):
    """Takes as much a call."""
