"""What librdkafka is told, and where it is: `[cluster.kafka]` of the configuration over what Fila chooses by itself.

    CHOSEN      of the configuration, if it says otherwise: times after which a broker counts as dead
    KEPT        nobody's to change: what the promises of a log rest on (config/kafka.py)

A name that ends in `_file` names a file, whose first line is the value: `sasl.password_file` gives `sasl.password`.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from fila_server import errors
from fila_server.config.kafka import KEPT, KafkaSettings

CHOSEN = {
    "linger.ms": "0",
    "reconnect.backoff.max.ms": "500",
    "request.timeout.ms": "1500",
    "socket.nagle.disable": "true",
    "socket.timeout.ms": "2000",
    "topic.metadata.refresh.interval.ms": "1000",
}


def all_settings(brokers: str, given: KafkaSettings) -> dict[str, str]:
    """Everything that librdkafka is told. Raises ConfigInvalid where a file cannot be read."""
    said = {}
    for name, value in given:
        if name.endswith("_file"):
            said[name.removesuffix("_file")] = _first_line(name, value)
        else:
            said[name] = value
    return CHOSEN | said | KEPT | {"bootstrap.servers": brokers}


def _first_line(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
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
