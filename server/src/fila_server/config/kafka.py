"""How settings of librdkafka are written: a table of `fila.toml`, and which of them are nobody's to change."""

from __future__ import annotations

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

ADDRESSES = ("bootstrap.servers", "metadata.broker.list")

SECRETS = (
    "sasl.password",
    "sasl.oauthbearer.client.secret",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
)


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
    for name, _ in given:
        if name in KEPT or name in OTHER_NAMES:
            raise ConfigInvalid(
                f"cluster.kafka: {name} is not to be changed: the promises of the log rest on it. Take it away",
                key="cluster.kafka",
            )
        if name in ADDRESSES:
            raise ConfigInvalid(
                f"cluster.kafka: {name}: the brokers' addresses are told where the log is named. Take it away",
                key="cluster.kafka",
            )
        if name in SECRETS:
            raise ConfigInvalid(
                f"cluster.kafka: {name} is a secret, and this file may be shown. Write it into a file of its own, "
                f"and name that: {name}_file",
                key="cluster.kafka",
            )
