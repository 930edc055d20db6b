"""A script on trial answers what it would answer in a queue, and says what nobody would read."""

from __future__ import annotations

import pytest

from fila_server.hooks.sandbox import HookLimits
from fila_server.hooks.trial import Trial, try_script


def tried(script: str, **about):
    return try_script(Trial(script=script, **about), HookLimits())


def test_what_on_enqueue_returns_is_read_as_the_broker_reads_it():
    outcome = tried(
        "function on_enqueue(m) return { fairness_key = m.headers.tenant, weight = 3, "
        "throttle_keys = { 'a', 'b' } } end",
        headers={"tenant": "acme"},
    )

    assert outcome.result == {"fairness_key": "acme", "weight": 3, "throttle_keys": ["a", "b"]}
    assert (outcome.problem, outcome.ignored, outcome.hook) == ("", [], "on_enqueue")


def test_fields_that_nobody_reads_are_named():
    outcome = tried("function on_enqueue(m) return { fairnes_key = 'x', wieght = 1, weight = 2 } end")

    assert outcome.ignored == ["fairnes_key", "wieght"]
    assert outcome.result == {"weight": 2}


def test_an_error_comes_with_its_line():
    outcome = tried("function on_enqueue(m)\n  return { fairness_key = m.headers.none .. 'x' }\nend")

    assert outcome.problem.startswith("on_enqueue:2:")


def test_a_script_that_does_not_compile_is_told_and_not_run():
    outcome = tried("function on_enqueue(m")

    assert outcome.problem
    assert outcome.runs == 0


def test_a_script_without_end_is_cut_off():
    # By its time or by its instructions, whichever comes first on this machine.
    assert "the script took more than" in tried("function on_enqueue(m) while true do end end").problem


def test_on_failure_is_told_apart_and_sees_its_attempts():
    outcome = tried(
        "function on_failure(m) return { action = 'retry', delay_ms = 100 * m.attempts } end", attempts=3
    )

    assert (outcome.hook, outcome.result) == ("on_failure", {"action": "retry", "delay_ms": 300})


def test_unknown_fields_of_on_failure_are_named_too():
    assert tried("function on_failure(m) return { action = 'dlq', dealy = 1 } end").ignored == ["dealy"]


def test_a_script_reads_the_runtime_config_it_was_given():
    outcome = tried(
        "function on_enqueue(m) return { fairness_key = fila.get('tier') } end", config={"tier": "gold"}
    )

    assert outcome.result == {"fairness_key": "gold"}


@pytest.mark.parametrize("runs", [1, 50])
def test_it_runs_as_often_as_it_was_told(runs):
    outcome = tried("function on_enqueue(m) return {} end", runs=runs)

    assert outcome.runs == runs
    assert outcome.fastest_us <= outcome.median_us <= outcome.slowest_us
