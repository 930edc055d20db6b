"""Whatever one client does, a polite one is served: beside each abuse, more than once a second.

This fails on a hang. How much slower the probe may become, and how much memory an abuse may take, is measured in
`make soak`: speed is never asserted on a machine that does other work as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import RunningServer, StartServer
from tests.liveness.conftest import StartAbuse, StartProbe

WATCHED_S = 3.0

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "name",
    [
        "redis_pings",
        "redis_unknown_commands",
        "redis_inline_commands",
        "redis_command_docs",
        "redis_pings_of_many",
        "slow_script",
        "slow_scripts_of_many_queues",
        "mask_paths_by_the_million",
        "weights_by_the_million",
        "as_many_weights_as_are_allowed",
        "statistics_of_many_keys",
        "queues_by_the_thousand",
        "gzip_bombs",
    ],
)
def test_a_polite_client_is_served_beside(
    start_server: StartServer, start_probe: StartProbe, start_abuse: StartAbuse, name: str
) -> None:
    server = start_server()
    probe = start_probe(server)
    start_abuse(name, server)

    served = probe.served_in(WATCHED_S)

    print(f"{name}: {served} messages, p99 {probe.p99_s():.3f} s, RSS {server_rss(server) >> 20} MiB")
    assert served >= WATCHED_S, f"{served} messages in {WATCHED_S} s; {probe.failures[-3:]}"
    assert server.process.poll() is None


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

    served = probe.served_in(1.0)
    probe.stop()

    assert served >= 1, probe.failures[-3:]
    assert server.stop() == 0
    assert server.event("broker.drain_timed_out") is None
