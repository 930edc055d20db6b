"""What reaches a terminal: colours that mean something, and nothing that a payload could steer it with."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import threading

import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2, events_pb2, messages_pb2
from fila_cli import colors, output
from fila_cli.colors import Meaning, Meant
from fila_cli.failures import in_words_of_flags
from fila_cli.probe import diagnosis
from fila_cli.progress import Progress
from tests.cli.fake_broker import FakeBroker, Refusal

EVIL = "\x1b]0;owned\x07\x9b31m\u202e"


@pytest.fixture(autouse=True)
def _colors_as_nobody_asked(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    colors.choose("auto")
    yield
    colors.choose("auto")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# --- colours ---------------------------------------------------------------------------------


def test_a_terminal_gets_colours_and_a_pipe_none():
    assert colors.wanted(Terminal())
    assert not colors.wanted(io.StringIO())


def test_no_color_wins_over_a_terminal_and_the_flag_over_both(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colors.wanted(Terminal())

    colors.choose("always")
    assert colors.wanted(io.StringIO())


def test_a_dumb_terminal_gets_none(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")

    assert not colors.wanted(Terminal())


def test_dead_letters_in_a_list_are_trouble(fila, broker: FakeBroker):
    broker.answers["ListQueues"] = admin_pb2.ListQueuesResponse(
        queues=[admin_pb2.QueueInfo(name="orders", depth=3), admin_pb2.QueueInfo(name="orders.dlq", depth=4)]
    )

    out = fila("queue", "list", "--color", "always").out

    assert "\x1b[31m4\x1b[0m" in out
    assert "\x1b[31m3" not in out


def test_colours_do_not_move_columns():
    plain = output.table(("A", "B"), [("x", 1), (Meant("longer", Meaning.TROUBLE), 22)])
    colors.choose("always")
    painted = output.table(("A", "B"), [("x", 1), (Meant("longer", Meaning.TROUBLE), 22)])

    for code in ("\x1b[31m", "\x1b[1m", "\x1b[0m"):
        painted = painted.replace(code, "")
    assert painted == plain == "A        B\nx        1\nlonger  22"


# --- what a payload may say to a terminal ----------------------------------------------------


def test_a_terminal_is_shown_a_payloads_escapes_and_does_not_obey_them():
    shown = output.for_terminal(f"one{EVIL}\ttab\nnext \xff".encode()).decode()

    assert shown == "one\\x1b]0;owned\\x07\\x9b31m\\u202e\ttab\nnext \xff"
    assert output.for_terminal(b"\xff\x1b").decode() == "\\xff\\x1b"


def test_keys_and_headers_in_tables_cannot_steer_a_terminal(fila, broker: FakeBroker):
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(
        per_key_stats=[admin_pb2.PerFairnessKeyStats(key=EVIL, pending_count=1)]
    )

    out = fila("queue", "inspect", "orders").out

    assert "\x1b" not in out
    assert "\x9b" not in out
    assert "\\x1b]0;owned" in out


def test_json_says_the_same_text_without_the_letters_a_terminal_obeys(fila, broker: FakeBroker):
    message = messages_pb2.Message(id="m", payload=EVIL.encode())
    broker.answers["PeekMessages"] = admin_pb2.PeekMessagesResponse(messages=[message])

    out = fila("queue", "peek", "orders", "-o", "json").out

    assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(out)
    assert json.loads(out)["messages"][0]["payload"] == EVIL


def test_a_brokers_error_cannot_steer_a_terminal(fila, broker: FakeBroker):
    broker.answers["GetQueue"] = Refusal(StatusCode.INVALID_ARGUMENT, f"queue {EVIL} is no name")

    assert "\x1b" not in fila("queue", "inspect", "x", "--settings").err


# --- asking before something is lost ---------------------------------------------------------

DESTRUCTIVE = [
    ("queue", "delete", "orders"),
    ("queue", "purge", "orders"),
    ("channel", "delete", "orders", "audit"),
    ("channel", "purge", "orders", "audit"),
    ("key", "purge", "orders", "noisy"),
]


@pytest.mark.parametrize("arguments", DESTRUCTIVE, ids=" ".join)
def test_nothing_is_lost_where_nobody_can_be_asked_and_yes_was_not_said(fila, broker: FakeBroker, arguments):
    ran = fila(*arguments, stdin=b"y\n")

    assert ran.code == 2
    assert "--yes" in ran.err
    assert broker.asked == []
    assert fila(*arguments, "--yes").code == 0


def test_no_means_that_nothing_was_changed(fila, broker: FakeBroker, monkeypatch):
    monkeypatch.setattr("fila_cli.session.click.confirm", lambda *_, **__: False)

    class Asked(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    from fila_cli import main

    monkeypatch.setattr(sys, "stdin", Asked(io.BytesIO(b"")))
    assert main.run(["queue", "delete", "orders"]) == 1
    assert broker.asked == []


# --- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            "config.visibility_timeout_ms must be from 1000 to 43200000, got 100",
            "--visibility-timeout must be from 1s to 12h, got 100ms",
        ),
        (
            "config.retry.cap_ms must be from 5000 to 604800000, got 1000",
            "--retry: the longest delay must be from 5s to 7d, got 1s",
        ),
        (
            "config.weights must be at most 1000 keys, got 1001",
            "--weight must be at most 1000 keys, got 1001",
        ),
        ("queue must not be empty", "queue must not be empty"),
        ("options.dedup_key: at most 128 bytes of UTF-8", "--dedup-key: at most 128 bytes of UTF-8"),
        (
            "payload: at most 1048576 bytes; store it elsewhere",
            "the payload: at most 1048576 bytes; store it elsewhere",
        ),
        (
            "limit must have rates; DeleteLimit takes it away",
            "limit must have rates; 'fila limit delete' takes it away",
        ),
    ],
)
def test_a_bound_is_told_in_the_words_of_the_flag(told, said):
    assert in_words_of_flags(told) == said


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("que", "list"), "'queue'"),
        (("peek", "orders"), "'queue peek'"),
        (("queue", "inspct", "orders"), "'inspect'"),
    ],
)
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(fila, arguments, hint):
    ran = fila(*arguments)

    assert ran.code == 2
    assert hint in ran.err


def test_a_number_that_is_none_is_answered_with_the_numbers_that_are(fila):
    assert "'x' is no whole number from 1 to 1000" in fila("queue", "peek", "orders", "--count", "x").err


def test_a_setting_is_not_set_and_reset_at_once(fila, broker: FakeBroker):
    ran = fila("queue", "update", "orders", "--weight", "a=1", "--reset", "weight")

    assert ran.code == 2
    assert "--weight and --reset weight contradict each other" in ran.err
    assert broker.asked == []


def test_a_header_is_given_once(fila, broker: FakeBroker):
    assert fila("enqueue", "orders", "x", "-H", "a=1", "-H", "a=2").code == 2
    assert broker.asked == []


def test_an_empty_script_is_not_taken_for_one(fila, broker: FakeBroker, tmp_path):
    (tmp_path / "empty.lua").write_text("\n")

    ran = fila("queue", "create", "orders", "--on-enqueue", f"@{tmp_path}/empty.lua")

    assert ran.code == 2
    assert "is empty" in ran.err


# --- one thing at a time ---------------------------------------------------------------------


def test_a_queue_that_exists_is_as_good_where_that_was_said(fila, broker: FakeBroker):
    broker.answers["CreateQueue"] = Refusal(
        StatusCode.ALREADY_EXISTS, 'queue "orders" exists', "QUEUE_EXISTS"
    )

    assert fila("queue", "create", "orders", "--if-not-exists") == (0, "queue orders exists already\n", "")
    assert fila("queue", "create", "orders").code == 1


def test_a_dead_letter_queue_that_was_there_before_is_not_adopted_without_a_word(fila, broker: FakeBroker):
    broker.answers["CreateQueue"] = admin_pb2.CreateQueueResponse(queue_id="foo", adopted_dlq=True)

    assert "foo.dlq was there before" in fila("queue", "create", "foo").out


def test_pausing_a_queue_changes_that_one_setting(fila, broker: FakeBroker):
    assert fila("queue", "pause", "orders").out == "queue orders is paused\n"

    request = broker.request("UpdateQueue")
    assert list(request.update_mask.paths) == ["paused"]
    assert request.config.paused


def test_deleting_a_config_key_that_is_not_there_is_refused(fila, broker: FakeBroker):
    broker.answers["GetConfig"] = Refusal(
        StatusCode.NOT_FOUND, 'config key "nope" is not set', "CONFIG_KEY_NOT_FOUND"
    )

    assert fila("config", "delete", "nope").code == 1
    assert [name for name, _ in broker.asked] == ["GetConfig"]


def test_a_bucket_stands_once_in_the_list_of_config(fila, broker: FakeBroker):
    broker.answers["ListConfig"] = admin_pb2.ListConfigResponse(
        entries=[
            admin_pb2.ConfigEntry(key=key, value="1")
            for key in ("throttle.x", "throttle:x:burst", "throttle:x:rate", "tiers")
        ],
        total_count=4,
    )

    assert json.loads(fila("config", "list", "-o", "json").out)["total_count"] == 2
    assert "throttle:x:rate" in fila("config", "list", "--prefix", "throttle:").out


def test_inspect_says_how_many_keys_it_left_out(fila, broker: FakeBroker):
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(
        quantum=1000,
        active_fairness_keys=1_500,
        per_key_stats=[admin_pb2.PerFairnessKeyStats(key="a", pending_count=2)],
    )

    assert "1499 more keys wait" in fila("queue", "inspect", "orders", "--keys", "1").out


def test_one_of_a_thing_is_told_as_one(fila, broker: FakeBroker):
    waits = events_pb2.LateKey(queue="orders", fairness_key="a", waiting_ms=900, pending=1)
    broker.answers["ListLate"] = events_pb2.ListLateResponse(keys=[waits], waiting_keys=2)
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(
        quantum=1000,
        active_fairness_keys=2,
        per_key_stats=[admin_pb2.PerFairnessKeyStats(key="a", pending_count=2)],
    )
    broker.answers["GetStatus"] = events_pb2.GetStatusResponse(
        data_dir="/data", lost_ranges=1, lost_messages=1, cpus=1, syncs=1
    )

    assert fila("late").out.endswith("1 more key waits\n")
    assert "1 more key waits; --keys lists" in fila("queue", "inspect", "orders", "--keys", "1").out
    status = fila("status").out
    assert "1 range, 1 message\n" in status
    assert "on 1 processor\n" in status
    assert "1 sync\n" in status


def test_ack_names_the_messages_and_says_which_was_refused(fila, broker: FakeBroker):
    from fila.v1 import service_pb2

    broker.answers["AckBatch"] = service_pb2.SettleBatchResponse(
        results=[messages_pb2.ItemStatus(), messages_pb2.ItemStatus(code=9, message="no longer held")]
    )

    ran = fila("ack", "orders", "a", "b")

    assert ran == (1, "1 message acked\n", "fila: 1 of 2 refused, the first: b: no longer held\n")


def test_a_nack_says_why_and_when(fila, broker: FakeBroker):
    fila("nack", "orders", "a", "--error", "card declined", "--delay", "10m", "--lease", "7")

    (item,) = broker.request("NackBatch").items
    assert (item.message_id, item.lease_id, item.error, item.delay_ms) == ("a", 7, "card declined", 600_000)


def test_what_a_status_withholds_is_not_told_as_nothing(fila, broker: FakeBroker):
    withheld = events_pb2.GetStatusResponse(version="0.1.0", disk_level=events_pb2.DISK_LEVEL_OK)
    withheld.started_at.FromSeconds(1_790_000_000)
    broker.answers["GetStatus"] = withheld

    told = fila("status").out
    assert "roomy" in told
    assert "told to admins alone" in told
    assert "nothing" not in told
    assert "bytes" not in told

    broker.answers["GetStatus"] = events_pb2.GetStatusResponse(version="0.1.0", data_dir="/data", cpus=2)
    assert "nothing" in fila("status").out


@pytest.mark.parametrize(
    ("there", "count", "printed"),
    [
        (range(1, 101), 5, range(96, 101)),
        (range(1, 4), 5, range(1, 4)),
        ([*range(1, 4), *range(1_000_000, 1_000_002)], 4, [2, 3, 1_000_000, 1_000_001]),
        (range(1, 9), 2, [7, 8]),  # and a million that a crash left out
        ([], 5, []),
        (range(1, 9), 0, []),
    ],
)
def test_log_tail_begins_so_many_from_the_end_whatever_offsets_were_left_out(
    fila, broker: FakeBroker, there, count, printed
):
    head = 1_000_000 if there == range(1, 9) else max(there, default=0) + 1
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(head_offset=head, tail_offset=1)

    def log(request: admin_pb2.ReadLogRequest):
        found = [offset for offset in there if offset >= request.from_offset]
        for at in range(0, len(found), request.max_batch):
            batch = found[at : at + request.max_batch]
            messages = [messages_pb2.Message(payload=str(offset).encode()) for offset in batch]
            yield admin_pb2.ReadLogResponse(messages=messages, next_offset=batch[-1] + 1)

    broker.answers["ReadLog"] = log

    ran = fila("log", "tail", "orders", "-n", str(count))
    assert (ran.code, ran.out.split()) == (0, [str(offset) for offset in printed])
    assert len(broker.asked) < 60


# --- named brokers ---------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_a_context_in_use_says_where_the_broker_is(fila, broker: FakeBroker, home, monkeypatch):
    address = broker.address
    monkeypatch.delenv("FILA_ADDR")

    assert fila("context", "add", "prod", "--addr", f"http://{address}").code == 0
    assert fila("context", "add", "other", "--addr", "127.0.0.1:1").code == 0
    assert fila("queue", "list").code == 0
    assert fila("queue", "list", "--context", "other").code == 1
    fila("context", "use", "other")
    assert fila("queue", "list").code == 1
    assert "*  other" in fila("context", "list").out.replace("   ", "  ")
    assert fila("queue", "list", "--context", "nobody").code == 2


def test_an_address_wins_over_the_context_in_use(fila, broker: FakeBroker, home):
    fila("context", "add", "prod", "--addr", "127.0.0.1:1")

    assert fila("queue", "list").code == 0  # FILA_ADDR is the fake's


def test_what_is_typed_wins_over_the_environment(fila, broker: FakeBroker, home, monkeypatch):
    address = broker.address
    assert fila("context", "add", "fake", "--addr", f"http://{address}").code == 0
    assert fila("context", "add", "none", "--addr", "127.0.0.1:1").code == 0
    monkeypatch.setenv("FILA_ADDR", "127.0.0.1:1")

    assert fila("queue", "list").code == 1
    assert fila("queue", "list", "--context", "fake").code == 0
    assert fila("--context", "fake", "queue", "list").code == 0
    assert fila("queue", "list", "--addr", address, "--context", "none").code == 0
    monkeypatch.setenv("FILA_CONTEXT", "fake")
    assert fila("queue", "list").code == 1


def test_a_broken_file_of_contexts_is_named(fila, broker: FakeBroker, home, monkeypatch):
    monkeypatch.delenv("FILA_ADDR")
    (home / "fila").mkdir()
    (home / "fila" / "contexts.json").write_text("[]")

    ran = fila("queue", "list")

    assert ran.code == 1
    assert "contexts.json" in ran.err


# --- how far a long command has come ---------------------------------------------------------


def test_progress_says_rate_and_what_is_left():
    times = iter([0.0, 10.0])
    progress = Progress("dead letter", 400, now_s=lambda: next(times))
    progress.done = 100

    assert progress.line() == "100 of 400 dead letters, 10/s, 30s left"


# --- what is there instead of a broker -------------------------------------------------------


def test_a_broker_without_tls_is_told_in_one_line_and_by_nobody_else(broker: FakeBroker):
    command = [sys.executable, "-c", "from fila_cli.main import main; main()", "queue", "list"]
    environ = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}

    done = subprocess.run(
        [*command, "--addr", f"https://{broker.address}"],
        capture_output=True,
        text=True,
        env=environ,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "speaks without TLS" in done.stderr


@pytest.mark.parametrize(
    ("greeting", "told"),
    [(b"-ERR unknown command\r\n", "Redis protocol"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "web server")],
)
def test_another_port_is_told_by_what_it_speaks(greeting, told):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(64)
                connection.sendall(greeting)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert told in diagnosis("127.0.0.1", listening.getsockname()[1], by_tls=False)
        thread.join(5)
