"""Users that speak the Redis protocol, through redis-py as any program would.

Pushed messages have no headers: each carries the moment it was meant to be sent at the front of its payload, and all
have the fairness key `default`.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from typing import Any

import gevent
import redis
from locust import User, task
from locust.env import Environment

from . import rows
from .options import options_of
from .schedule import Schedule

KIND = "redis"
CHANNEL = "default"

_PORT = 9797
_STAMP = struct.Struct("<d")
_READ_WAIT_S = 0.5


class RedisUser(User):
    """A user with a connection of its own."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.options = options_of(environment)
        host, port = redis_address(self.options.redis, self.host or "")
        self.client = redis.Redis(host=host, port=port, socket_timeout=30, single_connection_client=True)

    def on_stop(self) -> None:
        self.client.close()

    def timed(self, name: str, began: float, call: Callable[[], Any], *, count: int = 1) -> Any:
        """As of gRPC users: the answer, or None and a failure in the report."""
        try:
            answer = call()
        except redis.RedisError as error:
            rows.report(self.environment, KIND, name, time.time() - began, RuntimeError(str(error)[:200]))
            gevent.sleep(0.1)
            return None
        rows.report_many(self.environment, KIND, name, time.time() - began, count)
        return answer


def redis_address(given: str, host: str) -> tuple[str, int]:
    """Host and port: as given, or port 9797 of the gRPC address's host."""
    if not given:
        return host.removeprefix("http://").rpartition(":")[0] or "localhost", _PORT
    name, _, port = given.rpartition(":")
    if not name or not port.isdigit():
        raise ValueError(f"--redis is host:port, got {given!r}")
    return name, int(port)


class RedisProducer(RedisUser):
    """Pushes --batch messages in one RPUSH; --user-rate counts messages."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._schedule = Schedule(self.options.user_rate / self.options.batch, time.time(), random.random())
        self._rest = random.randbytes(self.options.payload - _STAMP.size)

    @task
    def push(self) -> None:
        """One RPUSH."""
        due = self._schedule.next(time.time())
        gevent.sleep(max(0.0, due - time.time()))
        payloads = [_STAMP.pack(due) + self._rest] * self.options.batch
        call = lambda: self.client.rpush(self.options.queue, *payloads)  # noqa: E731
        self.timed("RPUSH", due, call, count=len(payloads))


class RedisConsumer(RedisUser):
    """Takes up to --batch messages by HMGET, works on each, acknowledges them by one HDEL."""

    abstract = True

    @task
    def take(self) -> None:
        """One round."""
        queue, most = self.options.queue, self.options.batch
        try:
            taken = self.client.hmget(queue, [CHANNEL, most, _READ_WAIT_S])
        except redis.RedisError as error:
            rows.report(self.environment, KIND, "HMGET", 0.0, RuntimeError(str(error)[:200]))
            gevent.sleep(0.1)
            return
        messages: Any = taken or []
        if not messages:
            return
        now = time.time()
        for _, _, body in messages:
            (sent,) = _STAMP.unpack_from(body)
            rows.report_many(self.environment, rows.WAIT, "push to delivery", now - sent, 1)
        gevent.sleep(self.options.work_ms / 1000 * len(messages))
        tickets = [ticket for _, ticket, _ in messages]
        done = self.timed(
            "HDEL", time.time(), lambda: self.client.hdel(queue, CHANNEL, *tickets), count=len(tickets)
        )
        if done is not None and done != len(tickets):
            lost = RuntimeError("tickets had expired: HDEL counted fewer than it was given")
            rows.report(self.environment, KIND, "HDEL", 0.0, lost)
