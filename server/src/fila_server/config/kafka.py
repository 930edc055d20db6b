"""How settings of librdkafka are written: a table of `fila.toml`, and which of them are nobody's to change."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from fila_server.errors import ConfigInvalid

KEPT = {
    "acks": "all",
    "auto.offset.reset": "error",
    "check.crcs": "true",
    "enable.gapless.guarantee": "true",
    "enable.idempotence": "true",
    "enable.partition.eof": "true",
    "max.in.flight": "5",
    # A record that is given up leaves a hole, so none is, however long the brokers are away.
    "message.timeout.ms": "0",
}
"""What the promises of a log rest on."""

OTHER_NAMES = (
    "request.required.acks",
    "max.in.flight.requests.per.connection",
    "delivery.timeout.ms",
    "transactional.id",
)
"""Names by which librdkafka knows some of them too, and what takes them away."""

BROKERS = "bootstrap.servers"
ADDRESSES = (BROKERS, "metadata.broker.list")

CODE = ("plugin.library.paths",)
"""Names of libraries that would be loaded into the broker."""

SECRETS = (
    "sasl.password",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.client.secret",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
)

FILE = "_file"
"""Ends a name that names a file."""


class KafkaSettings(tuple[tuple[str, str], ...]):  # noqa: SLOT001 - it has none of its own
    """Names and values; a table within the table is a name with a dot, as TOML reads `sasl.mechanism`."""

    expected = "a table of texts, whole numbers, true and false, in the file"

    @classmethod
    def parse(cls, value: object) -> KafkaSettings:
        """Check the shape; librdkafka knows the names."""
        if not isinstance(value, dict):
            raise ValueError
        return cls(_pairs("", value))


def _pairs(before: str, table: dict[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = f"{before}{key}"
        if isinstance(value, dict):
            yield from _pairs(f"{name}.", value)
        elif isinstance(value, bool):
            yield name, str(value).lower()
        elif isinstance(value, int) or (isinstance(value, str) and value.isprintable()):
            yield name, str(value)
        else:
            raise ValueError


def check_kafka(given: KafkaSettings) -> None:
    """Refuse what would break a promise or show a secret. Raises ConfigInvalid."""
    for written, _ in given:
        name = written.removesuffix(FILE)
        if not re.fullmatch(r"[a-z0-9._]+", name):
            raise _refused(written, "is no name of a setting. Write it as librdkafka does")
        if name in KEPT or name in OTHER_NAMES:
            raise _refused(written, "is not to be changed: the promises of the log rest on it. Take it away")
        if name in ADDRESSES:
            raise _refused(
                written,
                "has no place here: the brokers' addresses are told where the log is named. Take it away",
            )
        if name in CODE:
            raise _refused(written, "would load code into the broker, which guards messages. Take it away")
        if written in SECRETS:
            raise _refused(
                written,
                "is a secret, and this file may be shown. Write it into a file of its own, and name that: "
                f"{name}{FILE}",
            )


def _refused(name: str, why: str) -> ConfigInvalid:
    return ConfigInvalid(f"cluster.kafka: {json.dumps(name)[1:-1]} {why}", key="cluster.kafka")
