"""`fila hook`: what it says of scripts that fail, and of those that are not there."""

from __future__ import annotations

from fila.v1 import admin_pb2
from tests.cli.fake_broker import FakeBroker

SCRIPT = "function on_enqueue(msg) return {} end"


def has(broker: FakeBroker, on_enqueue_script: str = "", on_failure_script: str = "") -> None:
    config = admin_pb2.QueueConfig(on_enqueue_script=on_enqueue_script, on_failure_script=on_failure_script)
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(config=config)


def test_a_script_that_is_not_there_is_not_said_to_be_taken_away(fila, broker: FakeBroker):
    has(broker, on_failure_script=SCRIPT)

    assert fila("hook", "disable", "orders", "on-enqueue") == (0, "orders has no on-enqueue script\n", "")
    assert all(method != "UpdateQueue" for method, _ in broker.asked)


def test_a_script_that_is_there_is_taken_away_once_it_is_meant(fila, broker: FakeBroker):
    has(broker, on_enqueue_script=SCRIPT)

    assert fila("hook", "disable", "orders", "on-enqueue").code == 2
    assert fila("hook", "disable", "orders", "on-enqueue", "--yes").out == "on-enqueue of orders disabled\n"
    assert list(broker.request("UpdateQueue").update_mask.paths) == ["on_enqueue_script"]


def test_a_trial_names_what_is_missing(fila, broker: FakeBroker):
    has(broker)

    assert fila("hook", "test", "--queue", "orders") == (
        1,
        "",
        "fila: queue orders has no scripts; 'fila hook set orders' gives it one\n",
    )
    assert "cannot read nowhere.lua: No such file or directory;" in fila("hook", "test", "nowhere.lua").err


def test_a_single_run_has_no_median(fila, tmp_path):
    script = tmp_path / "route.lua"
    script.write_text(SCRIPT)

    once = fila("hook", "test", str(script)).out
    often = fila("hook", "test", str(script), "--runs", "1000").out

    assert "median" not in once
    assert "us median of 1,000 runs, slowest" in often


def test_hook_show_names_what_a_script_returns_in_vain(fila, broker: FakeBroker):
    told = admin_pb2.HookStats(hook="on_enqueue", breaker_state="BREAKER_STATE_CLOSED", log_lines=3)
    told.ignored_fields["fairnes_key"] = 120
    told.ignored_fields["wieght"] = 1
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(hooks=[told])

    out = fila("hook", "show", "orders").out

    assert "returns in vain  fairnes_key (120 times), wieght (1 time)" in out
    assert "logged           3 lines" in out
