"""The catalog and the core name the same numbers."""

from __future__ import annotations

from fila_server.core.admin.metrics import QUEUE_COUNTERS, TOTALS
from fila_server.telemetry.catalog import METRICS


def test_every_counter_of_a_queue_has_its_metric():
    told = [metric.core for metric in METRICS if metric.core and metric.attributes]
    assert sorted(told) == sorted(QUEUE_COUNTERS)


def test_every_metric_without_attributes_that_names_a_number_of_the_core_finds_it():
    told = {metric.core for metric in METRICS if metric.core and not metric.attributes}
    assert told <= set(TOTALS)
