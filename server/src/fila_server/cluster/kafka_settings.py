"""What librdkafka is told, and where it is: `[cluster.kafka]` of the configuration over what Fila chooses by itself.

    CHOSEN      of the configuration, if it says otherwise: times after which a broker counts as dead
    KEPT        nobody's to change: what the promises of a log rest on (config/kafka.py)

A name that ends in `_file` names a file, whose first line is the value: `sasl.password_file` gives `sasl.password`.
"""

from __future__ import annotations

import errno
import importlib.util
from pathlib import Path

from fila_server import errors
from fila_server.config.kafka import BROKERS, FILE, KEPT, KafkaSettings

CHOSEN = {
    "linger.ms": "0",
    "queue.buffering.max.messages": "5",
    "reconnect.backoff.max.ms": "500",
    "request.timeout.ms": "1500",
    "socket.nagle.disable": "true",
    "socket.timeout.ms": "2000",
    "topic.metadata.refresh.interval.ms": "1000",
}


VALUE_BYTES_MAX = 1 << 20
"""More of a file's first line is not looked at."""


def judged(brokers: str, topic: str, given: KafkaSettings) -> tuple[str, dict[str, str]]:
    """Where librdkafka is, and everything that it is told, once it has said that it would take all of it.

    No broker is asked. Raises ConfigInvalid, or StartError where there is no librdkafka.
    """
    from fila_server.core.log.kafka import LogRefused, judge_settings

    place, settings = library(), all_settings(brokers, given)
    try:
        judge_settings(place, topic, {name: value for name, value in settings.items() if name != BROKERS})
    except LogRefused as refused:
        raise errors.ConfigInvalid(
            f"cluster.kafka: {refused}. Correct it by the list of librdkafka's settings, CONFIGURATION.md",
            key="cluster.kafka",
        ) from None
    return place, settings


def all_settings(brokers: str, given: KafkaSettings) -> dict[str, str]:
    """Everything that librdkafka is told. Raises ConfigInvalid where a file cannot be read."""
    said = {}
    for name, value in given:
        if name.endswith(FILE):
            said[name.removesuffix(FILE)] = _first_line(name, value)
        else:
            said[name] = value
    return CHOSEN | said | KEPT | {BROKERS: brokers}


def _first_line(name: str, path: str) -> str:
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise OSError(errno.EINVAL, "it is no regular file")
        with Path(path).open("rb") as file:
            value = file.readline(VALUE_BYTES_MAX).decode().rstrip("\r\n")
        if not value.isprintable():
            raise ValueError
        return value
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its first line is no printable text"
        raise errors.ConfigInvalid(
            f"cluster.kafka: {name}: {path} cannot be read: {why}. Name a file whose first line is the value",
            key="cluster.kafka",
        ) from None


def library() -> str:
    """Where the librdkafka of confluent-kafka's wheel is. Raises StartError."""
    found = importlib.util.find_spec("confluent_kafka")
    if found is None or found.origin is None:
        raise errors.StartError(
            "a log over Kafka's protocol needs confluent-kafka, which is not installed: pip install confluent-kafka"
        )
    beside = Path(found.origin).parents[1] / "confluent_kafka.libs"
    libraries = sorted(beside.glob("librdkafka-*.so.1"))
    if not libraries:
        raise errors.StartError(
            f"{beside} holds no librdkafka: this confluent-kafka was not installed from a wheel. Install it as one"
        )
    return str(libraries[0])
