"""What tests over brokers start from; nothing is loaded for the others."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def brokers():
    from tests.log.running_brokers import Brokers

    made = Brokers()
    yield made
    made.process.stdin.close()
    made.process.wait()
    made.process.stdout.close()


@pytest.fixture
def opened(brokers):
    """Logs that are closed at the end."""
    logs = []

    def log(topic, **more):
        logs.append(brokers.log(topic, **more))
        return logs[-1]

    yield log
    for each in logs:
        each.close()
