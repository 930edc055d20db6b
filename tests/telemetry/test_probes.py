"""/healthz and /readyz, from before the store is open until after it was closed."""

from __future__ import annotations

import asyncio
import socket
import threading
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

from fila_server import errors, main, serving
from fila_server.config.kinds import AddressOrOff
from fila_server.config.load import load
from fila_server.telemetry import probes
from fila_server.telemetry.group import STANDBY, GroupStatus, NodeStatus
from fila_server.telemetry.probes import LoadingPage, bound
from fila_server.telemetry.prometheus import MetricsPage, group_page
from fila_server.telemetry.series import Disk
from fila_server.telemetry.service import Telemetry

PLACE = AddressOrOff("127.0.0.1:0")


async def ask_for(port: int, path: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body.decode().strip()


def page_of(disk_level: int) -> MetricsPage:
    async def snapshot() -> SimpleNamespace:
        return SimpleNamespace(totals=SimpleNamespace(disk_level=disk_level))

    return MetricsPage(snapshot, lambda _: iter(()))  # type: ignore[arg-type]


async def test_probes_are_answered_from_the_store_s_opening_on_and_nobody_is_refused_when_others_answer(ask):
    sockets = bound(PLACE)
    port = sockets[0].getsockname()[1]
    loading = LoadingPage(sockets)

    assert await ask_for(port, "/healthz") == (200, "alive")
    assert await ask_for(port, "/readyz") == (503, probes.LOADING)
    assert await ask_for(port, "/metrics") == (503, probes.LOADING)

    telemetry = Telemetry(ask)
    assert await telemetry.start_page(AddressOrOff(f"127.0.0.1:{port}"), loading=loading) == port
    assert await ask_for(port, "/readyz") == (503, "starting")
    telemetry.say_ready()
    assert await ask_for(port, "/readyz") == (200, "ready")
    telemetry.stop_page()


async def test_a_standby_is_ready_while_it_lacks_nothing_and_is_no_owner(ask):
    sockets = bound(PLACE)
    port = sockets[0].getsockname()[1]
    loading = LoadingPage(sockets)
    lacks = ["the log is not read to its end"]
    loading.stands_by = lambda: lacks[0]
    assert await ask_for(port, "/healthz") == (200, "alive")
    assert await ask_for(port, "/readyz") == (503, "standby: the log is not read to its end")
    lacks[0] = ""
    assert await ask_for(port, "/readyz") == (200, "standby: in sync")
    assert await ask_for(port, "/ownerz") == (503, probes.STANDBY)
    assert await ask_for(port, "/metrics") == (503, probes.STANDBY)

    loading.stands_by = None
    assert await ask_for(port, "/readyz") == (503, probes.LOADING)
    telemetry = Telemetry(ask)
    await telemetry.start_page(AddressOrOff(f"127.0.0.1:{port}"), loading=loading)
    assert await ask_for(port, "/ownerz") == (503, "starting")
    telemetry.say_ready()
    assert await ask_for(port, "/ownerz") == (200, "ready")
    telemetry.stop_page()


async def test_a_standby_has_a_page_of_metrics_of_its_group():
    loading = LoadingPage(bound(PLACE))
    nodes = (NodeStatus("10.0.0.2:5556", "fila-2", role=STANDBY, behind=7), NodeStatus("10.0.0.1:5556"))
    try:
        assert (await ask_for(loading.port, "/metrics"))[0] == 503
        status_of = GroupStatus("orders", nodes, skipped=3)
        loading.metrics = lambda: group_page(status_of, Disk(1, 4096), 60.0)
        status, page = await ask_for(loading.port, "/metrics")
        assert status == 200
        for line in (
            "fila_cluster_role", "fila_cluster_in_sync", "fila_cluster_behind", "fila_cluster_nodes",
            "fila_cluster_nodes_in_sync", "fila_cluster_skipped_total",
        ):  # fmt: skip
            assert f'\n{line}{{fila_cluster="orders"}} ' in page
        assert 'fila_cluster_behind{fila_cluster="orders"} 7\n' in page
        assert 'fila_cluster_nodes{fila_cluster="orders"} 2\n' in page
        for line in ("storage_disk_level 1", "storage_disk_free_bytes 4096", "backup_age_seconds 60"):
            assert f"\nfila_{line}\n" in page
        assert "fila_storage_disk" not in group_page(status_of, Disk(0, -1), None).decode()
        assert "process_cpu_seconds_total" in page
        assert "fila_build_info" in page
    finally:
        for each in loading.hand_over():
            each.close()


async def test_who_connects_and_says_nothing_keeps_no_probe_waiting_for_long(monkeypatch):
    monkeypatch.setattr(probes, "HEAD_S_MAX", 0.5)  # it bounds the honest one, too
    sockets = bound(PLACE)
    port = sockets[0].getsockname()[1]
    loading = LoadingPage(sockets)
    _, silent = await asyncio.open_connection("127.0.0.1", port)

    assert await ask_for(port, "/healthz") == (200, "alive")

    silent.close()
    for each in loading.hand_over():
        each.close()


class Dripping:
    """The server's end of a connection that brings a byte every `every_s` seconds; time passes as it is read."""

    def __init__(self, every_s: float) -> None:
        self.now_s = 0.0
        self._every_s = every_s
        self._timeout_s = 0.0

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0.0, "0 would not wait at all"
        self._timeout_s = seconds

    def recv(self, _most: int) -> bytes:
        self.now_s += min(self._every_s, self._timeout_s)
        if self._timeout_s < self._every_s:
            raise TimeoutError
        return b"G"


@pytest.mark.parametrize("every_s", [0.0001, 0.3, 0.9, 5.0])
def test_who_sends_byte_by_byte_has_no_longer_than_who_says_nothing(every_s):
    slow = Dripping(every_s)

    with pytest.raises(TimeoutError):
        probes.read_head(slow, 1.0, lambda: slow.now_s)  # type: ignore[arg-type]

    assert slow.now_s == pytest.approx(1.0)


def test_a_start_waits_for_one_probe_at_most_and_leaves_the_next_to_who_answers_then(monkeypatch):
    monkeypatch.setattr(probes, "HEAD_S_MAX", 60.0)
    sockets = bound(PLACE) + bound(PLACE)
    slow, next_one = [socket.create_connection(each.getsockname()) for each in sockets]
    loading = LoadingPage(sockets)
    join = threading.Thread.join

    def slow_goes_and_join(thread: threading.Thread, timeout: float | None = None) -> None:
        slow.close()
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", slow_goes_and_join)
    loading.hand_over()

    sockets[1].settimeout(10.0)
    accepted, _ = sockets[1].accept()
    for each in (accepted, next_one, *sockets):
        each.close()


def test_a_port_that_somebody_holds_is_told_of_when_the_store_is_open():
    (holder,) = bound(PLACE)

    with holder:
        assert LoadingPage.at(AddressOrOff(f"127.0.0.1:{holder.getsockname()[1]}")) is None
    assert LoadingPage.at(AddressOrOff("")) is None


def test_a_server_that_opens_its_store_is_alive(monkeypatch, tmp_path):
    pages: list[LoadingPage] = []
    answers: list[tuple[int, str]] = []
    hold = LoadingPage.at

    def at(address: AddressOrOff) -> LoadingPage | None:
        page = hold(address)
        assert page is not None
        pages.append(page)
        return page

    def open_engine(_settings: object) -> None:
        for path in ("/healthz", "/readyz"):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{pages[0].port}{path}", timeout=10) as answer:
                    answers.append((answer.status, answer.read().decode().strip()))
            except urllib.error.HTTPError as refused:
                answers.append((refused.code, refused.read().decode().strip()))
        raise errors.StoreError("enough was seen")

    monkeypatch.setattr(LoadingPage, "at", at)
    monkeypatch.setattr(main, "open_engine", open_engine)
    environ = {"FILA_METRICS__LISTEN_ADDR": "127.0.0.1:0", "FILA_DATA_DIR": str(tmp_path / "data")}

    with pytest.raises(errors.StoreError):
        main.run(load(None, environ, tmp_path).config)

    assert answers == [(200, "alive"), (503, probes.LOADING)]
    for each in pages[0].hand_over():
        each.close()


async def test_a_server_that_drains_is_alive_until_its_store_is_closed(ask):
    telemetry = Telemetry(ask)
    port = await telemetry.start_page(PLACE)
    telemetry.say_ready()
    telemetry.say_draining()
    answers: list[tuple[int, str]] = []

    async def drain(*_: float) -> None:
        answers.extend([await ask_for(port, "/healthz"), await ask_for(port, "/readyz")])

    async def nothing(*_: float) -> None:
        pass

    broker = SimpleNamespace(drain=drain, stop=drain)
    rpc = SimpleNamespace(say_not_serving=nothing, stop=nothing)
    await serving._drain(broker, rpc, None, telemetry)  # type: ignore[arg-type]

    assert answers == [(200, "alive"), (503, probes.DRAINING)] * 2
    with pytest.raises(OSError, match=str(port)):
        await ask_for(port, "/healthz")


@pytest.mark.parametrize(
    ("disk_level", "status", "said"),
    [
        (0, 200, "ready"),
        (1, 200, "ready; the disk is low: enqueues are refused, acks and deliveries go on"),
        (2, 503, "the disk is critical: every write is refused"),
    ],
)
async def test_a_low_disk_keeps_consumers_coming_and_a_critical_one_nobody(disk_level, status, said):
    page = page_of(disk_level)
    page.why_not_ready = ""
    await page.start(bound(PLACE))

    assert await ask_for(page.port, "/readyz") == (status, said)
    page.stop()
