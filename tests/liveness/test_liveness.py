"""Whatever one client does, a polite one is served: beside each abuse, more than once a second.

This fails on a hang. How much slower the probe may become (its p99 within five times that of a quiet server), and how
much memory an abuse may take (`rss_max`), is asserted in `make soak` only: a machine that does other work as well would
fail for its own reasons.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fila_server.config.kinds import MIB
from fila_server.config.schema import Config
from tests.e2e.conftest import RunningServer, StartServer
from tests.liveness.conftest import StartAbuse, StartProbe

IN_SOAK = bool(os.environ.get("FILA_SOAK"))
WATCHED_S = 10.0 if IN_SOAK else 2.0
P99_FACTOR_MAX = 5
QUIET_P99_S_MIN = 0.02
"""Of a quiet machine: where a busy one is quiet for a moment, its luck is no measure."""

PROGRAM_BYTES = 160 * MIB
"""The interpreter, gRPC, the compiled core, and the state of some ten thousand messages."""


def rss_max(config: Config) -> int:
    """The memory a server may take, by its settings: every budget in full, and what is on its way out twice.

    An answer is counted once, and gRPC copies it when it writes it; freed memory goes back to the system late,
    so a fifth more.
    """
    storage, limits = config.storage, config.limits
    budgets = (
        storage.hot_payload_bytes
        + storage.memtable_bytes * storage.memtable_count
        + storage.block_cache_bytes
        + 2 * limits.unwritten_bytes_max
    )
    return (PROGRAM_BYTES + budgets) * 6 // 5


pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.costly("an abuse takes all of the CPU for as long as it is watched"),
]


@pytest.mark.parametrize(
    "name",
    [
        "redis_pings",
        pytest.param("redis_unknown_commands", marks=pytest.mark.soak),
        pytest.param("redis_inline_commands", marks=pytest.mark.soak),
        pytest.param("redis_command_docs", marks=pytest.mark.soak),
        pytest.param("redis_pings_of_many", marks=pytest.mark.soak),
        "slow_script",
        pytest.param("slow_scripts_of_many_queues", marks=pytest.mark.soak),
        pytest.param("mask_paths_by_the_million", marks=pytest.mark.soak),
        "weights_by_the_million",
        pytest.param("as_many_weights_as_are_allowed", marks=pytest.mark.soak),
        pytest.param("statistics_of_many_keys", marks=pytest.mark.soak),
        pytest.param("queues_by_the_thousand", marks=pytest.mark.soak),
        "gzip_bombs",
        "peeks_nobody_reads",
        pytest.param("reads_of_the_log_and_consumers_nobody_reads", marks=pytest.mark.soak),
        pytest.param("redis_reads_nobody_reads", marks=pytest.mark.soak),
    ],
)
def test_a_polite_client_is_served_beside(
    start_server: StartServer, start_probe: StartProbe, start_abuse: StartAbuse, name: str
) -> None:
    server = start_server()
    probe = start_probe(server)
    quiet_p99_s = QUIET_P99_S_MIN
    if IN_SOAK:
        probe.served_in(WATCHED_S)
        quiet_p99_s = max(probe.p99_s(), quiet_p99_s)
    start_abuse(name, server)
    probe.p99_s()  # what came before does not count

    served = probe.served_in(WATCHED_S)

    p99_s, rss = probe.p99_s(), server_rss(server)
    print(f"{name}: {served} messages, p99 {p99_s:.3f} s, quiet {quiet_p99_s:.3f} s, RSS {rss >> 20} MiB")
    assert served >= WATCHED_S, f"{served} messages in {WATCHED_S} s; {probe.failures[-3:]}"
    assert server.process.poll() is None
    if IN_SOAK:
        assert p99_s <= P99_FACTOR_MAX * quiet_p99_s
        assert rss <= rss_max(Config())


def server_rss(server: RunningServer) -> int:
    """Bytes of memory the server holds."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * 1024


def test_pulls_that_were_abandoned_take_no_place_and_hold_up_no_stop(
    start_server: StartServer, start_probe: StartProbe, start_abuse: StartAbuse
) -> None:
    server = start_server(FILA_SCHEDULER__OUTSTANDING_CALLS_MAX="50")
    probe = start_probe(server)
    start_abuse("abandoned_pulls", server)

    served = probe.served_in(WATCHED_S)
    probe.stop()

    assert served >= WATCHED_S, probe.failures[-3:]
    assert server.stop() == 0
    assert server.event("broker.drain_timed_out") is None
