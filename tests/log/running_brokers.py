"""Three brokers that break as told (mock_brokers.py), and logs over them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from fila_server.cluster.kafka_settings import all_settings, library
from fila_server.config.kafka import KafkaSettings
from fila_server.core.log.kafka import KafkaLog

TOPICS = (
    "steady",
    "under-way",
    "rests",
    "places",
    "lost",
    "failed",
    "unknown",
    "moved",
    "hung",
    "owned",
    "told",
    "foreign",
    "empty",
    "serves",
    "succeeds",
    "follows-leader",
    "away",
    "fails",
    "killed",
    "followed",
    "sentinel",
    "asked",
    "moved-by-hand",
    "removed",
    "upgraded",
    "rolled",
    "keyed",
    "recorded",
    "first-log",
    "log-made-anew",
    "looks",
    "ends",
    "stopped",
    "taken",
    "damaged",
    "behind",
    "short",
    "begun",
    "full",
    "backed-up",
)
WAIT_MS = 30_000
"""How long a loaded machine may take for an answer that comes in milliseconds."""
QUICK = KafkaSettings.parse(
    {"retry.backoff.ms": 50, "retry.backoff.max.ms": 100, "reconnect.backoff.max.ms": 100}
)


class Brokers:
    """The mock cluster's process."""

    def __init__(self) -> None:
        topics = [f"{topic}=1" for topic in TOPICS]
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("mock_brokers.py"), library(), *topics, "wide=3"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addresses = self.process.stdout.readline().strip()

    def do(self, command: str) -> None:
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def log(self, topic: str, *, appends: bool = True, **more: Any) -> KafkaLog:
        return KafkaLog(library(), topic, all_settings(self.addresses, QUICK) | more, appends=appends)


def reports(log, count):
    """So many of them; the log owes one for each record."""
    found: list[tuple[int, int, int, int]] = []
    while len(found) < count:
        some = log.reports(wait_ms=WAIT_MS)
        assert some, f"{len(found)} of {count} reports came"
        found += some
    return found


def written(log, *records):
    """Their reports. A log takes a few records at a time."""
    said: list[tuple[int, int, int, int]] = []
    for tag, content in enumerate(records):
        while not log.append(content, tag):
            said += reports(log, 1)
    return said + reports(log, len(records) - len(said))
