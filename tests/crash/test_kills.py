"""`kill -9` and power cuts at random instants under load: nothing answered is lost, nothing settled returns.

`make test` kills a few times each way, `make soak` a thousand times, half of them under each durability (FILA_KILLS
says how often, FILA_KILLS_SEED with which load). A seed repeats the load, not the instant: what failed is told by the
witness, with the queue and the message.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from fila.v1 import admin_pb2
from tests.crash import powercut
from tests.crash.check import check
from tests.crash.load import Load
from tests.crash.witness import Witness
from tests.e2e.conftest import RunningServer, launch, wait_until_started

KILLS = int(os.environ.get("FILA_KILLS") or 0)
KILLS_EVERY_TIME = {"fsync": 6, "os": 4}
CUTS_EVERY_TIME = 4
SEED = int(os.environ.get("FILA_KILLS_SEED") or 2)
DURABILITIES = {"fsync": admin_pb2.DURABILITY_FSYNC, "os": admin_pb2.DURABILITY_OS}

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(0 if KILLS else 240)]

LIVES_OF_A_GENERATION = 25
LIVES_BETWEEN_CHECKS = 2
"""But 1 where a cut may forget: the next life's messages would stand behind the hole it left."""


async def _live(server: RunningServer, load: Load, die_after_s: float, how: str, is_new: bool) -> None:
    """One life of a server: what it kept, then load, then its end."""
    async with load.connected(server.addresses["grpc"]):
        if is_new:
            await load.new_queues()
        actors = load.start()
        await asyncio.sleep(die_after_s)
        if how == "kill":
            server.process.send_signal(signal.SIGKILL)
        else:
            await asyncio.to_thread(powercut.cut, server.process.pid)
        await asyncio.to_thread(server.process.wait)
        _, running = await asyncio.wait(actors, timeout=10)
        for actor in running:
            actor.cancel()
        await asyncio.gather(*actors)
    load.died()
    load.witness.count("deaths")


async def _many_lives(folder: Path, load: Load, kills: int, how: str, seed: int) -> None:
    data_dir = folder / "data"
    chance = random.Random(seed)
    lives_between_checks = LIVES_BETWEEN_CHECKS if load.witness.keeps_answered else 1
    environ = {"FILA_STORAGE__MIN_FREE_BYTES": "0"}
    server: RunningServer | None = None
    try:
        for life in range(kills):
            if how == "power":
                environ |= powercut.environment(data_dir, seed=chance.choice((0, life + 1)))
            server = wait_until_started(launch(data_dir, folder / f"server-{life}.log", **environ))
            assert server.event("store.damage_found") is None, server.log
            if life and life % lives_between_checks == 0:
                async with load.connected(server.addresses["grpc"]):
                    await check(load)
                    if life % LIVES_OF_A_GENERATION == 0:
                        await load.old_queues_go()
                assert not load.witness.violations, f"life {life}: {load.witness.violations}"
            die_after_s = chance.choice((0.05, 0.3, 0.6, 1.2)) * chance.uniform(0.5, 1.5)
            await _live(server, load, die_after_s, how, is_new=life % LIVES_OF_A_GENERATION == 0)
        server = wait_until_started(launch(data_dir, folder / "server-last.log"))
        async with load.connected(server.addresses["grpc"]):
            await check(load)
        assert server.event("store.damage_found") is None, server.log
        assert not load.witness.violations, load.witness.violations
        assert server.stop() == 0
    finally:
        print(load.witness.counts)  # the numbers behind a green run, with -s
        if server is not None:
            server.process.kill()
            server.process.wait()


@pytest.mark.costly("a server starts, works and is killed, some times over")
@pytest.mark.parametrize("durability", DURABILITIES)
async def test_nothing_answered_is_lost_and_nothing_settled_returns_when_the_process_is_killed(
    tmp_path: Path, durability: str
) -> None:
    kills = KILLS or KILLS_EVERY_TIME[durability]
    load = Load(Witness(), seed=SEED, durability=DURABILITIES[durability])

    await _many_lives(tmp_path, load, kills, "kill", seed=SEED)

    done = load.witness.counts
    assert done["deaths"] == kills
    if kills >= KILLS_EVERY_TIME["fsync"]:
        for what in (
            "enqueued",
            "settled",
            "nacked",
            "redriven",
            "purges",
            "seeks",
            "queues deleted",
            "cancelled",
        ):
            assert done.get(what), f"the load never came to: {what}"


@pytest.mark.needs("cc")
@pytest.mark.costly("a server starts, works and loses its power, some times over")
@pytest.mark.parametrize("durability", DURABILITIES)
async def test_a_power_cut_loses_nothing_that_was_answered_under_fsync_and_nothing_in_between_under_os(
    tmp_path: Path, durability: str
) -> None:
    kills = KILLS or CUTS_EVERY_TIME
    witness = Witness(keeps_leases=False, keeps_answered=durability == "fsync")
    load = Load(witness, seed=SEED + 1, durability=DURABILITIES[durability])

    await _many_lives(tmp_path, load, kills, "power", seed=SEED + 1)

    assert witness.counts["deaths"] == kills
