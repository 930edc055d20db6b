"""The metrics page, read by Prometheus's own parser."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fila_server import errors
from fila_server.config.kinds import AddressOrOff, HostNames
from fila_server.telemetry import catalog, prometheus
from fila_server.telemetry.catalog import Metric
from fila_server.telemetry.probes import HEAD_BYTES_MAX
from fila_server.telemetry.prometheus import lines_of
from fila_server.telemetry.series import Histogram, Series
from fila_server.telemetry.service import Telemetry
from tests.telemetry.conftest import (
    BACKUP_AGE_S,
    EDGE,
    GROUP,
    QUOTAS,
    SCHEDULES,
    TROUBLES,
    Ask,
    live_a_little,
    metrics_of,
)

PLACE = AddressOrOff("127.0.0.1:0")


async def fetch(
    port: int, request: bytes = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
) -> tuple[str, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.decode(), body.decode()


@pytest.fixture
async def page(ask, hook_readings):
    telemetry = Telemetry(ask, lambda: hook_readings, lambda: QUOTAS, lambda: TROUBLES)
    port = await telemetry.start_page(PLACE)
    yield port
    telemetry.stop_page()


@pytest.mark.parametrize("group", [None, GROUP])
async def test_prometheus_reads_every_metric_of_the_catalog(engine, ask_of_a_long_life, hook_readings, group):
    live_a_little(engine)
    telemetry = Telemetry(
        ask_of_a_long_life,
        lambda: hook_readings,
        lambda: QUOTAS,
        lambda: TROUBLES,
        lambda: BACKUP_AGE_S,
        lambda: SCHEDULES,
        lambda: EDGE,
        (lambda: group) if group else None,
    )
    page = await telemetry.start_page(PLACE)

    head, body = await fetch(page)
    telemetry.stop_page()

    assert head.startswith("HTTP/1.1 200 OK")
    families = {family.name: family for family in text_string_to_metric_families(body)}
    for metric in metrics_of(group):
        family = families[metric.prometheus_name.removesuffix("_total")]
        assert family.type == metric.kind
        assert family.documentation == metric.description
    assert "process_cpu_seconds" in families


async def test_values_and_labels_arrive_as_they_are(engine, page):
    live_a_little(engine)

    _, body = await fetch(page)

    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }
    queue = ("messaging_destination_name", "orders")
    assert samples["fila_messages_enqueued_total", queue] == 8
    assert samples["fila_delivery_latency_seconds_count", queue] == 7
    assert samples["fila_delivery_latency_seconds_sum", queue] == 10.5
    assert samples["fila_delivery_latency_seconds_bucket", ("le", "1.024"), queue] == 0
    assert samples["fila_delivery_latency_seconds_bucket", ("le", "2.048"), queue] == 7
    assert samples["fila_hook_breaker_state", ("fila_hook", "on_enqueue"), queue] == 1
    shop = ("fila_principal", "shop")
    assert samples["fila_quota_refused_total", shop] == 3
    assert samples["fila_quota_use_ratio", shop, ("fila_quota", "stored_bytes")] == 0.25
    assert samples["fila_hook_duration_seconds_count", ("fila_hook", "on_enqueue"), queue] == 4


def test_labels_are_escaped():
    metric = Metric("fila.x", "gauge", "1", "Says\nthings.", ("a",))
    hostile = 'quote " backslash \\ and\nnewline {}'

    text = "".join(lines_of(Series(metric, [({"a": hostile}, 1.5)], [])))

    [family] = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"a": hostile}
    assert family.samples[0].value == 1.5


def test_a_histogram_counts_up_to_infinity():
    metric = Metric("fila.h", "histogram", "s", "H.", ())

    text = "".join(lines_of(Series(metric, [], [({}, Histogram((1.0, 2.0), (3, 4, 5), 9.5))])))

    [family] = text_string_to_metric_families(text)
    by_name = [(sample.name, sample.labels.get("le"), sample.value) for sample in family.samples]
    assert by_name == [
        ("fila_h_seconds_bucket", "1", 3),
        ("fila_h_seconds_bucket", "2", 7),
        ("fila_h_seconds_bucket", "+Inf", 12),
        ("fila_h_seconds_sum", None, 9.5),
        ("fila_h_seconds_count", None, 12),
    ]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost:9464", "200"),
        (b"LocalHost", "200"),
        (b"127.0.0.1:9464", "200"),
        (b"192.0.2.7", "200"),
        (b"[::1]:9464", "200"),
        (b"[2001:db8::1]", "200"),
        (b"fila:9464", "200"),
        (b"FILA.internal", "200"),
        (b"evil.example", "421"),
        (b"evil.example:9464", "421"),
        (b"localhost.evil.example", "421"),
        (b"127.0.0.1.evil.example:9464", "421"),
        (b"[::1].evil.example", "421"),
        (b"localhost\r\nHost: evil.example", "421"),
        (b"", "421"),
        (b"\xff", "421"),
    ],
)
async def test_the_page_is_asked_for_by_an_address_or_a_name_it_has(ask, hook_readings, host, status):
    telemetry = Telemetry(ask, lambda: hook_readings, lambda: QUOTAS, lambda: TROUBLES)
    names = HostNames.parse("fila, fila.internal").each
    port = await telemetry.start_page(PLACE, allowed_hosts=names)

    head, body = await fetch(port, b"GET /metrics HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    probe, _ = await fetch(port, b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")

    assert head.startswith(f"HTTP/1.1 {status}")
    assert (status == "421") == ("put the name into metrics.allowed_hosts" in body)
    assert probe.startswith("HTTP/1.1 200"), "a probe learns nothing, and may ask by any name"
    telemetry.stop_page()


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/1.1", "404"),
        (b"POST /metrics HTTP/1.1", "405"),
        (b"HEAD /metrics HTTP/1.1", "200"),
        (b"GET /metrics?name[]=up HTTP/1.1", "200"),
        (b"\x16\x03\x01", "405"),
    ],
)
async def test_other_requests_get_a_short_answer(engine, page, request_line, status):
    head, body = await fetch(page, request_line + b"\r\n\r\n")

    assert head.startswith(f"HTTP/1.1 {status}")
    if request_line.startswith(b"HEAD"):
        assert body == ""


async def test_an_endless_head_is_cut_off(engine, page):
    reader, writer = await asyncio.open_connection("127.0.0.1", page)
    writer.write(b"GET /" + b"x" * (2 * HEAD_BYTES_MAX))

    assert await reader.read() == b""
    writer.close()


async def test_a_core_that_refuses_is_a_503():
    async def refuse() -> bytes:
        raise errors.Unavailable("the server is shutting down")

    telemetry = Telemetry(refuse)
    port = await telemetry.start_page(PLACE)

    head, body = await fetch(port)

    assert head.startswith("HTTP/1.1 503")
    assert "shutting down" in body
    telemetry.stop_page()


async def test_an_overloaded_broker_still_shows_its_metrics(ask: Ask):
    refusals = iter([errors.Overloaded("full"), errors.Overloaded("full")])

    async def refuse_twice() -> bytes:
        for refusal in refusals:
            raise refusal
        return await ask()

    telemetry = Telemetry(refuse_twice)
    port = await telemetry.start_page(PLACE)

    head, _ = await fetch(port)

    assert head.startswith("HTTP/1.1 200")
    telemetry.stop_page()


async def test_scrapers_at_the_same_time_share_one_look_at_the_core(ask: Ask):
    asked = 0

    async def count() -> bytes:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.05)
        return await ask()

    telemetry = Telemetry(count)
    port = await telemetry.start_page(PLACE)

    heads = [
        head for head, _ in await asyncio.gather(*(fetch(port) for _ in range(prometheus.SCRAPES_MAX + 2)))
    ]

    assert sorted(head.split()[1] for head in heads) == ["200"] * prometheus.SCRAPES_MAX + ["503"] * 2
    assert asked == 1
    telemetry.stop_page()


async def test_an_empty_address_turns_the_page_off(ask):
    assert await Telemetry(ask).start_page(AddressOrOff("")) == 0


async def test_a_port_that_somebody_holds_is_an_error_that_names_the_setting(ask, page):
    with pytest.raises(errors.PortTaken, match=r"metrics\.listen_addr"):
        await Telemetry(ask).start_page(AddressOrOff(f"127.0.0.1:{page}"))


async def test_a_large_page_lets_the_loop_serve_others(ask, monkeypatch):
    many = Series(catalog.KEY_PENDING, [({"k": f"key-{i}"}, i) for i in range(50_000)], [])
    monkeypatch.setattr("fila_server.telemetry.service.all_series", lambda *_: iter([many]))
    monkeypatch.setattr(prometheus, "SLICE_NS", 0)  # every look at the clock ends a slice, on any machine
    telemetry = Telemetry(ask)
    port = await telemetry.start_page(PLACE)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(others())
    _, body = await fetch(port)
    task.cancel()

    assert body.count("\n") > 50_000
    assert turns >= 50_000 / prometheus.LINES_A_SLICE
    telemetry.stop_page()
