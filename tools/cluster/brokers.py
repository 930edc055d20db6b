"""Three Kafka brokers that are their own controllers (KRaft), on loopback."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # it has no __all__

NUMBERS = (1, 2, 3)
TOPIC = "fila"
CLUSTER_ID = "ZmlsYS1vbi1sb29wYmFjaw"
HEAP = "-Xmx384m"
UP_S_MAX = 120.0

# A broker that is gone is missed within two seconds; docs/cluster.md says what each of these costs.
PROPERTIES = """process.roles=broker,controller
node.id={number}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters={voters}
log.dirs={folder}
offsets.topic.replication.factor=3
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=3
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=2
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
controller.quorum.fetch.timeout.ms=1000
controller.quorum.election.timeout.ms=500
replica.lag.time.max.ms=2000
"""
OF_TOPIC = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
}


@dataclass(frozen=True)
class Ports:
    """Of the three brokers, by their numbers."""

    clients: Sequence[int] = (19091, 19092, 19093)
    controllers: Sequence[int] = (19191, 19192, 19193)


PORTS = Ports()


def addresses(ports: Ports = PORTS) -> str:
    """Where clients find the brokers."""
    return ",".join(f"127.0.0.1:{port}" for port in ports.clients)


def start(
    number: int, jars: Path, folder: Path, ports: Ports = PORTS, more: str = ""
) -> subprocess.Popen[bytes]:
    """One broker, with its files in `folder`. What it says goes to the file beside. `more`: lines of its settings."""
    properties = folder.with_suffix(".properties")
    voters = ",".join(
        f"{each}@127.0.0.1:{port}" for each, port in zip(NUMBERS, ports.controllers, strict=True)
    )
    port, controller = ports.clients[number - 1], ports.controllers[number - 1]
    lines = PROPERTIES.format(number=number, voters=voters, folder=folder, port=port, controller=controller)
    properties.write_text(lines + more)
    java = ["java", HEAP, "-cp", f"{jars}/*"]
    with folder.with_suffix(".log").open("ab") as said:
        if not (folder / "meta.properties").exists():
            formats = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
            subprocess.run([*java, *formats], stdout=said, stderr=said, check=True)
        return subprocess.Popen(
            [*java, "kafka.Kafka", str(properties)], stdout=said, stderr=said, start_new_session=True
        )


def make_topic(topic: str = TOPIC, ports: Ports = PORTS, **config: str) -> None:
    """Wait for the brokers, and make the topic unless it is there. Raises TimeoutError."""
    client = AdminClient({"bootstrap.servers": addresses(ports), "log_level": 0, "socket.timeout.ms": 5000})
    until_s = time.monotonic() + UP_S_MAX
    while True:
        try:
            if len(client.list_topics(timeout=5).brokers) == len(NUMBERS):
                if topic not in client.list_topics(timeout=5).topics:
                    made = NewTopic(topic, 1, 3, config=OF_TOPIC | config)
                    client.create_topics([made])[topic].result(10)
                return
        except KafkaException:
            pass
        if time.monotonic() > until_s:
            raise TimeoutError(f"the brokers are not up after {UP_S_MAX:.0f} s: see their .log files")
        time.sleep(0.5)
