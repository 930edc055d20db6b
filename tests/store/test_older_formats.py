"""Data directories of older servers are read, and raised to this server's format.

`formats/N.tar.gz` is a directory that a server of format N left behind after `kill -9`. To make one, run the older
server's tests/core/driven_engine.py through the calls told below, and pack the directory without its ballast.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.telemetry.snapshot import decode
from tests.core.driven_engine import DrivenEngine
from tests.native.storeprobe import StoreProbe

FORMATS = Path(__file__).parent / "formats"


@pytest.fixture
def first() -> Iterator[DrivenEngine]:
    """Format 1. Queue q with the channels default and b, max_attempts 5, visibility timeout 30 s; m0 to m5 enqueued. In
    `default` m0 was acked, m1 nacked, m2 nacked for 60 s, m3 leased (lease 4) and extended by 90 s, m4 leased (lease
    5). Then `ttl` (120 s), `late` (delayed by 60 s) and `once` (dedup key d) were enqueued."""
    yield from unpacked("1")


@pytest.fixture
def keys() -> Iterator[DrivenEngine]:
    """Format 2, when a key's record did not say since when it is paused. Queue q with fairness keys from header k: one
    message each of heavy (weight 7 by its message), paused, plain, slow (an operator's rate of 0.5/s) and capped (an
    operator's cap of 2 and weight of 9). Keys paused and both (with a rate) were paused; both has no message."""
    yield from unpacked("2-keys")


def unpacked(name: str) -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    engine.kill()
    shutil.rmtree(engine.directory)
    with tarfile.open(FORMATS / f"{name}.tar.gz") as packed:
        # Ours, and Debian 12's Python has no `filter` yet.
        packed.extractall(engine.directory)
    engine.reopen()
    yield engine
    engine.remove()


def test_all_that_a_server_of_format_1_left_is_there(first: DrivenEngine) -> None:
    ready = {m.payload: m.metadata.attempt_count for m in first.lease("q")}
    assert ready == {b"m1": 1, b"m5": 0, b"ttl": 0, b"once": 0}
    assert first.stats("q").in_flight == 2 + len(ready)
    assert len(first.payloads("q", channel="b")) == 8, "all but the one that is delayed"

    first.sleep(31_000)  # m4's lease ends
    first.sleep(30_000)  # m2 and `late` are due
    assert {*first.payloads("q")} == {b"m1", b"m2", b"m4", b"m5", b"late", b"once", b"ttl"}
    again = service.EnqueueRequest(queue="q", payload=b"x", options={"dedup_key": "d"})
    assert first.call(commands.ENQUEUE, again, service.EnqueueResponse).offset == 9
    read = admin.GetConfigRequest(key="throttle.api")
    assert first.call(commands.GET_CONFIG, read, admin.GetConfigResponse).value == "5,10"


def test_a_lease_of_format_1_is_acked_by_its_number(first: DrivenEngine) -> None:
    extended = service.AckRequest(queue="q", message_id="018bcfe5-6800-7003-92f2-2ade1a7f673d", lease_id=4)
    first.call(commands.ACK, extended, service.AckResponse)

    assert first.stats("q").in_flight == 1


def test_an_older_directory_is_raised_so_that_its_server_refuses_it(first: DrivenEngine) -> None:
    assert (first.directory / "format").read_text() == "fila 2\n"

    first.stop()
    store = StoreProbe(str(first.directory))
    assert store.get(0, b"format") == b"\x02", "the file may be lost, or brought back from a copy"
    store.close()
    first.reopen()


def policy_of(engine: DrivenEngine, key: str) -> tuple[int, bool, int, float]:
    (row,) = [row for row in engine.stats("q").per_key_stats if row.key == key]
    return row.weight, row.paused, row.max_in_flight, row.rate_per_second


def test_what_an_older_server_kept_of_a_key_is_still_there(keys: DrivenEngine) -> None:
    kept = {key: policy_of(keys, key) for key in ("heavy", "paused", "slow", "capped", "both")}

    assert kept == {
        "heavy": (7, False, 0, 0.0),
        "paused": (2, True, 0, 0.0),
        "slow": (1, False, 0, 0.5),
        "capped": (9, False, 2, 0.0),
        "both": (1, True, 0, 2.0),
    }
    assert {*keys.payloads("q")} == {b"heavy", b"plain", b"capped"}, "a rate begins empty after a start"


def test_a_pause_of_which_nobody_noted_the_moment_began_with_the_first_start_that_notes_it(
    keys: DrivenEngine,
) -> None:
    def longest_ms() -> int:
        token = keys.submit(commands.METRICS)
        keys.others += keys.settle_down()
        (queue,) = [q for q in decode(keys.answer_of(token)[1]).queues if q.name == b"q"]
        return queue.longest_paused_ms

    keys.sleep(60_000)
    assert longest_ms() == 60_000
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key="paused", weight=3, paused=True)
    keys.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key="both")
    keys.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)
    keys.kill()
    keys.advance(1_000)
    keys.reopen()

    assert longest_ms() == 61_000, "its record says since when by now"
