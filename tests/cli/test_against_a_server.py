"""The command line and the real broker: what a person does in a first hour, typed as they would."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from fila_bench.server import Server

from fila_cli import main
from tests.cli.fake_broker import Ran

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def fila(server: Server, capfd, monkeypatch):
    monkeypatch.setenv("FILA_ADDR", server.address)

    def run(line: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main.run(line.split())
        return Ran(code, *capfd.readouterr())

    return run


def ok(ran: Ran) -> str:
    assert ran.code == 0, ran.err
    return ran.out


def until(condition, within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def test_a_quiet_tenant_is_served_beside_a_noisy_one(fila):
    ok(fila("queue create orders --fairness-header tenant --weight acme=3 --retry exponential:1s..60s"))
    ok(fila("enqueue orders --lines --header tenant=noisy", b"".join(b"n%d\n" % i for i in range(100))))
    ok(fila("enqueue orders --lines --header tenant=acme", b"a0\na1\na2\na3\na4\n"))

    served = ok(fila("consume orders --count 10")).split()

    assert sum(payload.startswith("a") for payload in served) == 5


def test_inspect_shows_who_waits(fila):
    ok(fila("queue create waiting --fairness-header tenant --weight acme=3"))
    ok(fila("enqueue waiting x --header tenant=acme"))

    shown = ok(fila("queue inspect waiting"))

    assert "KEY   PENDING  DEFICIT  WEIGHT\nacme        1        0       3" in shown
    assert "BUCKET" not in shown


def test_a_message_that_keeps_failing_can_be_read_in_the_dlq_and_redriven(fila):
    ok(fila("queue create fragile --max-attempts 1 --visibility-timeout 1s"))
    ok(fila("enqueue fragile order-7"))
    ok(fila("consume fragile --count 1 --no-ack"))

    # Nobody acks, so the lease expires; that is the one failure this queue allows.
    until(lambda: "order-7" in ok(fila("queue peek fragile.dlq")))
    assert "visibility timeout expired" in ok(fila("queue peek fragile.dlq"))

    assert ok(fila("dlq redrive fragile.dlq")) == "1 dead letter moved back\n"
    assert ok(fila("consume fragile --count 1")) == "order-7\n"


def test_consume_stays_with_a_queue_on_which_nothing_comes(fila):
    """The broker ends a session that says nothing for a visibility timeout; waiting is no silence."""
    ok(fila("queue create silent --visibility-timeout 1s"))

    ran = fila("consume silent --wait 2500ms")

    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_consume_stands_among_the_consumers_and_comes_back_after_a_restart(tmp_path):
    with Server() as restarted:
        environ = os.environ | {"FILA_ADDR": restarted.address, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-c", "from fila_cli.main import main; main()"]

        def fila(*arguments: str) -> str:
            done = subprocess.run(
                [*command, *arguments], env=environ, capture_output=True, text=True, check=True
            )
            return done.stdout

        fila("queue", "create", "orders")
        with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
            consuming = subprocess.Popen([*command, "consume", "orders"], env=environ, stdout=out, stderr=err)
        try:
            until(lambda: "fila consume" in fila("consumer", "list", "orders"))
            restarted.restart()
            fila("enqueue", "orders", "after")
            until(lambda: "after" in (tmp_path / "out").read_text())
            assert "the broker is back" in (tmp_path / "err").read_text()
        finally:
            consuming.kill()
            consuming.wait()


def test_a_bucket_set_on_the_command_line_holds_messages_back(fila):
    ok(fila("config set throttle.stripe 0.001,1"))
    ok(fila("queue create calls --throttle-header provider"))
    ok(fila("enqueue calls --lines --header provider=stripe", b"one\ntwo\n"))

    assert ok(fila("consume calls --wait 200ms")) == "one\n"
    assert "stripe" in ok(fila("queue inspect calls"))
    assert "throttled by stripe" in ok(fila("explain calls default"))

    ok(fila("config set throttle.stripe 1000,10"))
    assert ok(fila("consume calls --count 1")) == "two\n"


def test_a_second_channel_sees_what_it_is_moved_back_to(fila):
    ok(fila("queue create log --soft-retention 1h"))
    ok(fila("enqueue log --lines", b"one\ntwo\nthree\n"))
    ok(fila("consume log --count 3"))

    ok(fila("channel create log audit --from oldest"))
    assert ok(fila("consume log --channel audit --count 3")).split() == ["one", "two", "three"]
    ok(fila("channel seek log audit --to 2"))
    assert ok(fila("consume log --channel audit --count 2")).split() == ["two", "three"]


def test_a_paused_key_waits_until_it_is_resumed(fila):
    ok(fila("queue create pausing --fairness-header tenant"))
    ok(fila("enqueue pausing x --header tenant=acme"))
    ok(fila("key pause pausing acme"))

    assert ok(fila("consume pausing --wait 100ms")) == ""
    assert "paused by 127.0.0.1 since " in ok(fila("explain pausing acme"))

    ok(fila("key resume pausing acme"))
    assert ok(fila("consume pausing --count 1")) == "x\n"


def test_hooks_route_by_lua_from_a_file(fila, tmp_path):
    script = tmp_path / "route.lua"
    script.write_text('function on_enqueue(msg) return { fairness_key = "vip", weight = 9 } end')
    ok(fila(f"queue create hooked --on-enqueue @{script}"))
    ok(fila("enqueue hooked x"))

    key = json.loads(ok(fila("queue inspect hooked -o json")))["per_key_stats"][0]

    assert (key["key"], key["weight"]) == ("vip", 9)

    script.write_text("function on_enqueue(msg")
    assert fila(f"queue update hooked --on-enqueue @{script}").code == 1


def test_what_is_not_there_is_exit_code_1_in_one_line(fila):
    for line in (
        "enqueue nowhere x",
        "queue inspect nowhere",
        "consume nowhere --count 1",
        "dlq redrive nowhere.dlq",
    ):
        ran = fila(line)

        assert ran.code == 1
        assert ran.err.count("\n") == 1
        assert "fila queue list" in ran.err


def test_what_was_exported_differs_in_nothing(fila, tmp_path):
    ok(
        fila(
            "queue create exported --fairness-header tenant --weight acme=3 --retry fixed:5s --max-attempts 0"
        )
    )
    ok(fila("channel create exported audit"))
    path = tmp_path / "queues.toml"
    path.write_text(ok(fila("export exported")))

    assert ok(fila(f"diff -f {path}")) == "nothing differs\n"

    path.write_text(
        path.read_text().replace('"acme" = 3', '"acme" = 4') + "\n[queues.fresh]\nmax-depth = 7\n"
    )
    assert ok(fila(f"apply {path}")) == (
        '~ update exported weight { "acme" = 3 } -> { "acme" = 4 }\n+ create fresh\n2 things changed\n'
    )
    assert ok(fila(f"diff {path}")) == "nothing differs\n"


def test_that_a_key_has_no_cap_over_its_queues_default_is_carried_to_another_queue(fila, tmp_path):
    ok(fila("queue create capped --key-cap 4 --key-rate 2 --key-committed 1"))
    for number in ("cap", "rate", "committed"):
        ok(fila(f"key {number} capped bob 0"))
    path = tmp_path / "queues.toml"
    path.write_text(exported := ok(fila("export --keys capped")))
    assert ok(fila(f"diff {path}")) == "nothing differs\n"

    path.write_text(exported.replace('"capped"', '"copied"'))
    assert "key copied/bob cap unset -> 0, rate unset -> 0, committed unset -> 0" in ok(fila(f"apply {path}"))

    assert ok(fila("key show copied bob")) == ok(fila("key show capped bob"))
    assert "no cap" in ok(fila("key show copied bob"))
    assert ok(fila(f"diff {path}")) == "nothing differs\n"
