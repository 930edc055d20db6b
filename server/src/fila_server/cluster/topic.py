"""The settings of a group's topic that its promises rest on: what the brokers say of it, and what is wrong with that.

A node looks when it starts, and each hour, since somebody may change them meanwhile. What is wrong at a start refuses
it. Later the node goes on, for nothing is lost yet, and says it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from fila_server.errors import StartError

log = structlog.get_logger("fila_server.cluster.topic")

LOOK_AGAIN_S = 3600.0
ASK_AGAIN_S = 60.0
"""While nobody could tell."""
ANSWER_S_MAX = 3.0
RECORD_BYTES = 1_000_000
"""What a record of a pass takes at most, with what Kafka adds to it."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What the brokers say of a topic."""

    replicas: int
    """Of the partition that has the fewest."""
    settings: Mapping[str, str]
    """By Kafka's names. One that the brokers do not tell is missing."""


class NotReported(Exception):
    """The brokers do not say how the topic is; the text is why."""


def faults(topic: Topic) -> list[str]:
    """What of it would break a promise of the group, each with what to do; empty: nothing."""
    said = topic.settings
    found = []

    def wrong(setting: str, why: str, remedy: str) -> None:
        found.append(f"{setting} is {said[setting]}: {why}. Set it to {remedy}")

    if topic.replicas < 3:
        found.append(
            f"it has {topic.replicas} replicas: where a broker is gone, what is confirmed has no second copy, or "
            "nothing is confirmed. Give it 3 replicas"
        )
    if _below(said, "min.insync.replicas", 2):
        wrong("min.insync.replicas", "a record counts as confirmed while one broker alone has it", "2")
    if said.get("unclean.leader.election.enable", "false") != "false":
        wrong(
            "unclean.leader.election.enable", "a broker that lacks confirmed records may begin anew", "false"
        )
    if said.get("cleanup.policy", "delete") != "delete":
        wrong("cleanup.policy", "compaction takes records out of the middle of the log", "delete")
    for setting in ("retention.ms", "retention.bytes"):
        if said.get(setting, "-1") != "-1":
            wrong(
                setting, "the brokers remove records that no node may have yet", "-1; Fila truncates the log"
            )
    if _below(said, "max.message.bytes", RECORD_BYTES):
        wrong("max.message.bytes", "records may be longer", f"{RECORD_BYTES:,} or more".replace(",", ""))
    return found


def _below(said: Mapping[str, str], setting: str, least: int) -> bool:
    value = said.get(setting, "")
    return value.isdigit() and int(value) < least


def ask(name: str, settings: Mapping[str, str]) -> Topic:
    """Ask the brokers that `settings`, librdkafka's, lead to. Raises NotReported."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # it has no __all__

    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    try:
        client = AdminClient({**settings, "log_level": 0})
        described = client.list_topics(name, timeout=ANSWER_S_MAX).topics[name]
        if described.error is not None or not described.partitions:
            raise NotReported(described.error.str() if described.error else "it has no partitions")
        answered = client.describe_configs([resource], request_timeout=ANSWER_S_MAX)[resource].result(
            ANSWER_S_MAX
        )
    except (KafkaException, TimeoutError) as error:
        raise NotReported(_why(error)) from None
    return Topic(
        min(len(partition.replicas) for partition in described.partitions.values()),
        {entry.name: entry.value for entry in answered.values() if entry.value is not None},
    )


def _why(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return str(said.str() if hasattr(said, "str") else said) or f"no answer within {ANSWER_S_MAX:.0f} s"


class TopicKeeper:
    """Looks at one topic, now and each hour."""

    def __init__(self, name: str, look: Callable[[], Topic], *, accepts_weak: bool) -> None:
        self._name, self._look, self._accepts_weak = name, look, accepts_weak
        self._is_reported: bool | None = None
        """By the last look; None: there was none."""

    def begin(self) -> None:
        """The look of a start, unless any topic will do. Raises StartError where a promise would break."""
        if self._accepts_weak:
            return
        if found := self._found():
            raise StartError(
                f"cluster.log: the topic {self._name} cannot be the log of a group: {'; '.join(found)}. "
                "(cluster.accept_weak_topic = true takes it as it is, for a group whose messages may be lost)"
            )

    def look_again(self) -> None:
        """A later look, which only tells."""
        for fault in self._found():
            log.error("cluster.topic_weak", topic=self._name, detail=fault)

    @property
    def wait_s(self) -> float:
        """Seconds until the next look."""
        if self._is_reported is None:
            return 0.0
        return LOOK_AGAIN_S if self._is_reported else ASK_AGAIN_S

    def keep(self, ends: threading.Event) -> None:
        """Look again and again until that is set."""
        while not ends.wait(self.wait_s):
            self.look_again()

    def _found(self) -> list[str]:
        """What is wrong; nothing where nobody could tell."""
        try:
            topic = self._look()
        except NotReported as error:
            if self._is_reported is not False:
                log.warning("cluster.topic_not_reported", topic=self._name, detail=str(error))
            self._is_reported = False
            return []
        self._is_reported = True
        return faults(topic)
