"""Producers and consumers over the Redis protocol."""

from __future__ import annotations

from fila_locust import judgement, queue, redis_users

queue.declare()
judgement.judge(rows_like=r"^(RPUSH|push to delivery)$")


class Producer(redis_users.RedisProducer):
    """One RPUSH after another."""


class Consumer(redis_users.RedisConsumer):
    """HMGET and HDEL in turn."""
