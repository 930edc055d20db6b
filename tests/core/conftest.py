"""The compiled core in a test's hand: one engine, as many as a test opens, and a sink's client on one."""

from collections.abc import Callable, Iterator

import pytest

from tests.core.driven_engine import DrivenEngine
from tests.core.driven_group import Group
from tests.core.sink_client import SinkClient

Make = Callable[..., DrivenEngine]


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    """One with the settings' defaults and no queue."""
    engine = DrivenEngine()
    yield engine
    engine.remove()


@pytest.fixture
def opened() -> Iterator[Make]:
    """Opens engines; a setting's name has two underscores for its dot."""
    made: list[DrivenEngine] = []

    def make(**settings: int | str) -> DrivenEngine:
        made.append(DrivenEngine({name.replace("__", "."): value for name, value in settings.items()}))
        return made[-1]

    yield make
    for engine in made:
        engine.remove()


@pytest.fixture
def sink(engine: DrivenEngine) -> SinkClient:
    """A sink that is open, on the test's engine."""
    client = SinkClient(engine)
    client.open()
    return client


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group()
    yield made
    for node in made.nodes:
        node.remove()
