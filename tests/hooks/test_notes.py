"""fila.log, and returned fields that nobody reads: written, named, counted, and never more than a script is allowed."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from fila_server.hooks.counters import HookCounters
from fila_server.hooks.notes import FIELDS_MAX, LINES_AT_ONCE, Notebook, Notes, read_notes
from fila_server.hooks.on_failure import DeadLetter
from fila_server.hooks.packed import pack_messages
from fila_server.hooks.stage import HookStage
from tests.hooks.conftest import compile_on_enqueue, compile_on_failure, failed, standing_clock

S = 1_000_000_000


def told(body: str, count: int = 1) -> Notes:
    hook = compile_on_enqueue(f"function on_enqueue(m) {body} end")
    return read_notes(hook.route(b"q", count, pack_messages([([(b"tenant", b"acme")], 7)] * count)).notes)


def test_a_line_says_what_it_was_given():
    notes = told("fila.log('tenant', m.headers.tenant, m.payload_size, 1.5, true, nil, {}, print) return {}")

    assert notes.lines == ["tenant acme 7 1.5 true nil <table> nil"]
    assert notes.ignored == {}


def test_a_script_that_tells_nothing_costs_nothing():
    assert (
        compile_on_enqueue("function on_enqueue(m) return { weight = 2 } end")
        .route(b"q", 1, pack_messages([([], 0)]))
        .notes
        == b""
    )


def test_what_was_logged_before_an_error_is_told():
    assert told("fila.log('so far') error('no')").lines == ["so far"]


def test_lines_are_cut_and_no_more_than_eight_leave_a_crossing():
    notes = told("for i = 1, 100 do fila.log(i, ('x'):rep(2000)) end return {}")

    assert len(notes.lines) == 8
    assert all(len(line) <= 512 for line in notes.lines)
    assert notes.lost_lines == 92


def test_a_script_cannot_log_for_ever():
    hook = compile_on_enqueue("function on_enqueue(m) while true do fila.log('x') end end")

    answers = hook.route(b"q", 1, pack_messages([([], 0)]))

    assert answers.failure is not None
    assert answers.failure.kind == "time"


def test_a_scripts_own_tostring_is_not_asked():
    notes = told("fila.log(setmetatable({}, { __tostring = function() while true do end end })) return {}")

    assert notes.lines == ["<table>"]


def test_fields_that_nobody_reads_are_counted_by_name():
    notes = told("return { fairnes_key = 'x', weight = 1, [7] = 1 }", count=5)

    assert notes.ignored == {"fairnes_key": 5, "7": 5}


def test_a_result_of_a_million_fields_is_not_walked():
    notes = told("local r = {} for i = 1, 5000 do r['f' .. i] = 1 end return r")

    assert len(notes.ignored) == 8
    assert notes.lost_fields == 8


def test_on_failure_tells_too():
    hook = compile_on_failure(
        "function on_failure(m) fila.log(m.error) return { action = 'dlq', dealy = 1 } end"
    )

    assert isinstance(hook.decide(failed()), DeadLetter)
    notes = read_notes(hook.notes)
    assert (len(notes.lines), notes.ignored) == (1, {"dealy": 1})


# --- what is written -------------------------------------------------------------------------


def test_lines_beyond_the_rate_are_counted_and_the_next_one_says_how_many():
    book, counters = Notebook(), HookCounters()
    ten = Notes(lines=[str(number) for number in range(10)])
    written = [book.take(ten, counters, 1)[0] for _ in range(4)]

    assert [len(lines) for lines in written] == [10, LINES_AT_ONCE - 10, 0, 0]
    lines, missed, _ = book.take(ten, counters, 1 + S)
    assert (len(lines), missed) == (10, 20)
    assert (counters.log_lines, counters.log_lines_dropped) == (30, 20)


def test_names_of_fields_are_bounded_and_each_is_new_once():
    book, counters = Notebook(), HookCounters()

    new = book.take(Notes(ignored={f"f{number}": 1 for number in range(FIELDS_MAX + 5)}), counters, 1)[2]

    assert len(new) == FIELDS_MAX
    assert counters.ignored_fields["(others)"] == 5
    assert book.take(Notes(ignored={"f0": 3}), counters, 2)[2] == []
    assert counters.ignored_fields["f0"] == 4


@pytest.mark.parametrize("packed", [b""])
def test_nothing_is_nothing(packed):
    assert read_notes(packed) == Notes()


def test_the_log_names_queue_hook_and_field():
    stage = HookStage(now_ns=standing_clock, seed=1)
    stage.set_queue(
        "orders",
        on_failure_script="function on_failure(m) fila.log('hm') return { action = 'dlq', x = 1 } end",
    )

    with capture_logs() as logged:
        for _ in range(3):
            stage.decide_failure(failed(queue=b"orders"))

    lines = [each for each in logged if each["event"] == "hook.log"]
    assert [(each["queue"], each["hook"], each["line"]) for each in lines] == [
        ("orders", "on_failure", "hm")
    ] * 3
    (ignored,) = [each for each in logged if each["event"] == "hook.field_ignored"]
    assert (ignored["queue"], ignored["field"]) == ("orders", "x")
    (status,) = stage.status("orders")
    assert (status.counters.ignored_fields, status.counters.log_lines) == ({"x": 3}, 3)
