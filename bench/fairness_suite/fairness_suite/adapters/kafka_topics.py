"""Kafka: one topic with a partition a tenant, read by one member of a group that takes of each partition in turn."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

from fairness_suite.adapter import Ability, Message, Taken, Tenant, decoded, encoded

_TIMEOUT_S = 60.0


class OneTopic:
    abilities: frozenset[Ability] = frozenset()

    def __init__(self, address: str) -> None:
        self._tenants: list[str] = []
        self._topic = ""
        self._runs = 0
        self.reconnect(address)

    def reconnect(self, address: str) -> None:
        self._address = address
        self._producer: Any = KafkaProducer(bootstrap_servers=address, acks="all", linger_ms=1)
        self._admin: Any = KafkaAdminClient(bootstrap_servers=address)
        self._consumer: Any = None
        if self._topic:
            self._subscribe()

    def _subscribe(self) -> None:
        # Partitions are assigned by hand: there is one reader, and a group would take seconds to say so.
        self._consumer = KafkaConsumer(
            bootstrap_servers=self._address,
            group_id=self._topic,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
        )
        self._partitions = [TopicPartition(self._topic, number) for number in range(len(self._tenants))]
        self._consumer.assign(self._partitions)
        self._fetched: dict[Any, deque[Any]] = {partition: deque() for partition in self._partitions}
        self._next = 0

    def close(self) -> None:
        for client in (self._producer, self._admin, self._consumer):
            if client is not None:
                with contextlib.suppress(KafkaError):
                    client.close()

    def open(self, tenants: Mapping[str, Tenant]) -> None:
        if self._consumer is not None:
            self._consumer.close()
        # A topic that was deleted can't be made again at once, so each question has one of its own.
        self._runs += 1
        self._tenants, self._topic = list(tenants), f"suite-{self._runs}"
        with contextlib.suppress(TopicAlreadyExistsError):
            self._admin.create_topics([NewTopic(self._topic, len(self._tenants), 1)])
        self._subscribe()

    def send(self, messages: Sequence[Message]) -> None:
        answers = [
            self._producer.send(self._topic, encoded(each), partition=self._tenants.index(each.tenant))
            for each in messages
        ]
        self._producer.flush()
        for answer in answers:
            answer.get(_TIMEOUT_S)

    def take(self, most: int, wait_s: float) -> list[Taken]:
        until = time.monotonic() + wait_s
        taken: list[Taken] = []
        while len(taken) < most:
            partition = self._turn()
            if partition is None:
                if taken or time.monotonic() > until:
                    break
                for found, records in self._consumer.poll(timeout_ms=100, max_records=10_000).items():
                    self._fetched[found].extend(records)
                continue
            record = self._fetched[partition].popleft()
            taken.append(Taken(decoded(record.value), (partition, record.offset)))
        return taken

    def _turn(self) -> Any:
        """The next partition of which something was fetched; what the others have to give is fetched meanwhile."""
        if not all(self._fetched.values()):
            for found, records in self._consumer.poll(timeout_ms=0, max_records=10_000).items():
                self._fetched[found].extend(records)
        for step in range(len(self._partitions)):
            partition = self._partitions[(self._next + step) % len(self._partitions)]
            if self._fetched[partition]:
                self._next = (self._next + step + 1) % len(self._partitions)
                return partition
        return None

    def settle(self, taken: Sequence[Taken]) -> None:
        offsets = {
            partition: OffsetAndMetadata(offset + 1, "", -1)
            for partition, offset in (t.handle for t in taken)
        }
        self._consumer.commit(offsets)

    def give_back(self, taken: Sequence[Taken], after_s: float) -> None:
        del after_s  # a log delays nothing: the message is written again at its end
        self.send([each.message for each in taken])
        self.settle(taken)
