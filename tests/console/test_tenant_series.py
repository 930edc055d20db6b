"""A tenant is told its key's hour, and no points of the whole channel: its pages draw what there is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fila.watched import KeySeries, KeySeriesPoint, Series
from fila_console.cells import Plot
from fila_console.pages.key import KeyTopic
from fila_console.pages.queue import QueueTopic
from fila_console.pages.tenant import TenantTopic
from fila_console.series import point_times
from fila_console.upstream import Upstream

OF_A_TENANT = Series(
    step_ms=10_000,
    points=[],
    keys=[
        KeySeries(
            fairness_key="acme",
            points=[KeySeriesPoint(), *[KeySeriesPoint(recorded=True, arrived=30.0, served=20.0)] * 2],
        )
    ],
    recorded_keys=[],
    first_at=datetime.fromtimestamp(1_000, UTC),
)


class TenantsBroker(Upstream):
    """What pages ask for an hour."""

    def __init__(self) -> None:
        """Nothing is connected."""

    async def series(self, *_: object) -> Series:
        return OF_A_TENANT

    async def channels(self, *_: object) -> list[str]:
        return []

    def color(self, *_: object) -> int:
        return 0


def test_the_times_of_a_tenants_hour_are_those_of_its_key():
    assert point_times(OF_A_TENANT) == ([1_000, 1_010], 1)


@pytest.mark.parametrize("topic", [KeyTopic("orders", "", "acme"), TenantTopic("orders", "acme")])
async def test_a_tenants_key_has_its_hour_on_its_page(topic):
    await topic._ask_series(TenantsBroker())

    assert topic._plot.times == [1_000, 1_010]
    assert topic._plot.series["arrived"] == [3.0, 3.0]
    assert topic._plot.series["served"] == [2.0, 2.0]
    assert topic._plot.series.get("due", [None, None]) == [None, None]


def test_a_queues_page_draws_a_tenants_key_by_itself():
    plot = QueueTopic("orders", "")._plot(TenantsBroker(), OF_A_TENANT)

    assert isinstance(plot, Plot)
    assert plot.times == [1_000, 1_010]
    assert plot.series == {"acme": [1.0, 1.0]}
