"""A server, a polite probe, and somebody in another process who is anything but polite."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.conftest import RunningServer, start_server
from tests.liveness.probe import Probe

__all__ = ["start_server"]

StartProbe = Callable[[RunningServer], Probe]
StartAbuse = Callable[[str, RunningServer], None]


@pytest.fixture
def start_probe() -> Iterator[StartProbe]:
    """Start the probe beside a server; it ends with the test."""
    probes: list[Probe] = []

    def start(server: RunningServer) -> Probe:
        probes.append(Probe(server.addresses["grpc"], server.admin))
        return probes[-1].start()

    yield start
    for probe in probes:
        probe.stop()


@pytest.fixture
def start_abuse() -> Iterator[StartAbuse]:
    """Start an abuse of abuses.py in a process of its own; returns when it is under way."""
    processes: list[subprocess.Popen[str]] = []

    def start(name: str, server: RunningServer) -> None:
        addresses = (server.addresses["grpc"], server.addresses["redis"])
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.liveness.abuses", name, *addresses],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "GRPC_VERBOSITY": "NONE"},
            )
        )
        assert processes[-1].stdout.readline() == "under way\n", f"{name} could not begin"

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()
