"""`fila top`: what each key does, what a narrow screen keeps, and that a broker may be away."""

from __future__ import annotations

import io
import json

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console

from fila.v1 import admin_pb2, events_pb2
from fila_cli.cockpit.cockpit import Call, Cockpit, Screen
from fila_cli.cockpit.looks import KeyLooks, QueueLooks
from fila_cli.cockpit.screen import render
from fila_cli.cockpit.terminal import names_of
from fila_cli.cockpit.views import share_bar, sparkline
from tests.cli.fake_broker import FakeBroker

EVIL = "\x1b]0;owned\x07"


def queue(name: str, depth: int = 0, **more) -> admin_pb2.QueueInfo:
    return admin_pb2.QueueInfo(name=name, depth=depth, **more)


def queues(*listed: admin_pb2.QueueInfo) -> admin_pb2.ListQueuesResponse:
    return admin_pb2.ListQueuesResponse(queues=listed)


def key(name: str, pending: int = 0, weight: int = 1, **more) -> admin_pb2.PerFairnessKeyStats:
    more.setdefault("oldest_age_ms", 1_000 if pending else 0)
    return admin_pb2.PerFairnessKeyStats(key=name, pending_count=pending, weight=weight, **more)


def keys(*listed: admin_pb2.PerFairnessKeyStats) -> admin_pb2.GetStatsResponse:
    return admin_pb2.GetStatsResponse(per_key_stats=listed, active_fairness_keys=len(listed))


def at_queues(*listed: admin_pb2.QueueInfo) -> Cockpit:
    cockpit = Cockpit()
    cockpit.take(cockpit.look, queues(*listed), 0.0)
    return cockpit


def at_keys(*listed: admin_pb2.PerFairnessKeyStats) -> Cockpit:
    cockpit = Cockpit(queue="orders")
    cockpit.take(cockpit.look, keys(*listed), 0.0)
    return cockpit


def shown(
    cockpit: Cockpit, width: int = 100, height: int = 24, now_s: float = 0.0, color: bool = False
) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=color, no_color=not color)
    picture = render(
        cockpit, address="http://localhost:5555", clock="12:00:00", now_s=now_s, width=width, height=height
    )
    console.print(picture)
    return out.getvalue()


def test_a_key_with_nothing_but_delays_is_due_nothing_and_takes_nothing_from_others_due():
    looks = KeyLooks()
    for at_s, served in ((0.0, 0.0), (1.0, 10.0)):
        looks.take(keys(key("acme", 5, served_cost_total=served), key("later", 3, oldest_age_ms=0)), at_s)

    assert [(row.name, row.due) for row in looks.rows] == [("acme", 1.0), ("later", None)]


def test_the_clock_is_left_out_where_it_has_no_room():
    cockpit = at_keys(key("acme", 5))

    assert "12:00:00" in shown(cockpit, width=60)
    assert "12:" not in shown(cockpit, width=50).splitlines()[0]
    assert "…" not in shown(cockpit, width=50).splitlines()[0]


def test_a_wide_screen_says_since_when_its_total_counts():
    began = Timestamp(seconds=1_772_438_400)
    later = Timestamp(seconds=1_772_450_000)
    cockpit = at_queues(
        queue("new", acked_total=40, totals_since=later), queue("orders", acked_total=2, totals_since=began)
    )

    assert "42 acked since 2026-03-02T08:00:00Z" in shown(cockpit, width=120)
    assert "acked since" not in shown(cockpit, width=119)


# --- looks -----------------------------------------------------------------------------------


def test_rates_are_differences_and_a_restart_is_not_a_negative_one():
    looks = QueueLooks()
    for at_s, total in ((0.0, 100), (2.0, 160), (4.0, 5)):
        looks.take(queues(queue("orders", enqueued_total=total)), at_s)

    assert list(looks.rows[0].trail.into) == [30.0, 0.0]


def test_a_keys_share_is_set_against_what_its_weight_is_due_among_those_that_may_go():
    looks = KeyLooks()
    for at_s, served in ((0.0, 0.0), (1.0, 10.0)):
        looks.take(
            keys(
                key("acme", 5, weight=3, served_cost_total=served),
                key("noisy", 50, weight=1, served_cost_total=3 * served),
                key("stopped", 9, weight=6, paused=True),
            ),
            at_s,
        )

    by_name = {row.name: row for row in looks.rows}
    assert (by_name["acme"].share, by_name["acme"].due) == (0.25, 0.75)
    assert by_name["stopped"].due is None


def test_what_a_key_without_a_backlog_takes_is_nobody_elses_due():
    looks = KeyLooks()
    for at_s, served in ((0.0, 0.0), (1.0, 10.0)):
        looks.take(
            keys(
                key("acme", 5, served_cost_total=served),
                key("noisy", 50, served_cost_total=served),
                key("quick", 0, weight=3, served_cost_total=3 * served),
            ),
            at_s,
        )

    assert [(row.name, row.share, row.due) for row in looks.rows] == [
        ("acme", 0.2, 0.2),
        ("noisy", 0.2, 0.2),
        ("quick", 0.6, None),
    ]


def test_dead_letters_are_those_that_lie_in_the_dead_letter_queue_now():
    cockpit = at_queues(queue("orders", 3, dead_lettered_total=99), queue("orders.dlq", 4))

    assert [(row.name, row.dead) for row in cockpit.rows] == [("orders", 4)]
    cockpit.press("d")
    assert {row.name for row in cockpit.rows} == {"orders", "orders.dlq"}


def test_a_sparkline_is_as_wide_as_it_should_be_and_highest_where_most_was():
    assert sparkline([], 4) == "    "
    assert sparkline([0.0, 4.0, 8.0], 4) == " ▁▅█"
    assert sparkline([0.0] * 9, 4) == "▁▁▁▁"


def test_under_half_its_due_is_trouble():
    assert "bold red" in {str(span.style) for span in share_bar(0.1, 0.5).spans}
    assert "bold red" not in {str(span.style) for span in share_bar(0.3, 0.5).spans}


# --- keys ------------------------------------------------------------------------------------


def test_enter_goes_from_queues_to_keys_to_why_and_escape_back():
    cockpit = at_queues(queue("orders", 9), queue("mails", 2))

    cockpit.press("enter")
    assert cockpit.look == Call("keys", queue="orders")
    cockpit.take(cockpit.look, keys(key("acme", 5)), 1.0)
    cockpit.press("enter")
    assert cockpit.look == Call("explain", queue="orders", key="acme")
    cockpit.press("escape")
    cockpit.press("escape")

    assert cockpit.look == Call("queues")


def test_an_answer_to_a_screen_that_was_left_is_dropped():
    cockpit = at_queues(queue("orders", 9))
    before = cockpit.look
    cockpit.press("enter")

    cockpit.take(before, queues(), 1.0)

    assert cockpit.keys.stats is None
    assert [row.name for row in cockpit.queues.rows] == ["orders"]


def test_the_mark_stays_with_its_queue_when_the_order_changes():
    cockpit = at_queues(queue("a", 9), queue("b", 5))
    cockpit.press("down")

    cockpit.take(cockpit.look, queues(queue("a", 1), queue("b", 5)), 1.0)

    assert cockpit.chosen == 0
    assert cockpit.chosen_row.name == "b"


def test_sorting_goes_through_the_columns_and_turns_round():
    cockpit = at_queues(queue("a", 1, in_flight=5), queue("b", 9))
    assert [row.name for row in cockpit.rows] == ["b", "a"]

    cockpit.press("S")
    assert [row.name for row in cockpit.rows] == ["a", "b"]
    cockpit.press("s")

    assert cockpit.sorted_by == "FLIGHT"
    assert [row.name for row in cockpit.rows] == ["a", "b"]


def test_a_filter_is_typed_kept_and_dropped():
    cockpit = at_queues(queue("orders", 1), queue("mails", 2))

    for pressed in ("/", "O", "r", "q", "backspace", "enter"):
        cockpit.press(pressed)
    assert [row.name for row in cockpit.rows] == ["orders"]
    assert not cockpit.is_over
    cockpit.press("escape")

    assert len(cockpit.rows) == 2


@pytest.mark.parametrize("answer", ["n", "escape", "enter", "q"])
def test_nothing_is_changed_unless_somebody_says_yes(answer):
    cockpit = at_keys(key("acme", 5))

    assert cockpit.press("p") is None
    assert "pause acme of orders: why, or nothing" in shown(cockpit)
    cockpit.press("enter")
    assert "pause acme of orders?" in shown(cockpit)
    assert cockpit.press(answer) is None
    assert "nothing was changed" in shown(cockpit)
    assert not cockpit.is_over


def test_a_paused_key_is_resumed_and_a_queue_is_paused():
    cockpit = at_keys(key("acme", 5, paused=True))
    cockpit.press("p")
    assert cockpit.press("y") == Call("pause_key", queue="orders", key="acme", paused=False)

    cockpit = at_queues(queue("orders", 9))
    for pressed in ("p", "enter"):
        assert cockpit.press(pressed) is None
    assert cockpit.press("y") == Call("pause_queue", queue="orders", paused=True)


def test_why_something_is_paused_is_typed_and_told_before_it_is_done():
    cockpit = at_keys(key("acme", 5))
    for pressed in ("p", *"it floods", "enter"):
        assert cockpit.press(pressed) is None
    assert 'pause acme of orders ("it floods")?' in shown(cockpit)
    assert cockpit.press("y") == Call(
        "pause_key", queue="orders", key="acme", paused=True, reason="it floods"
    )

    cockpit.press("p")
    cockpit.press("escape")
    assert "why" not in shown(cockpit)
    assert cockpit.press("y") is None, "there is nothing to confirm"


def test_a_weight_is_typed_and_asked_once_more():
    cockpit = at_keys(key("acme", 5))

    for pressed in ("w", "1", "2", "enter"):
        assert cockpit.press(pressed) is None
    assert "give acme of orders the weight 12?" in shown(cockpit)

    assert cockpit.press("y") == Call("weigh", queue="orders", key="acme", weight=12)


def in_channels(answer: admin_pb2.GetStatsResponse, *names: str) -> admin_pb2.GetStatsResponse:
    answer.channels.extend(admin_pb2.ChannelInfo(name=name) for name in names)
    return answer


def test_each_channel_of_a_queue_has_its_own_keys_and_shares():
    cockpit = Cockpit(queue="orders")
    for at_s, served in ((0.0, 0.0), (1.0, 10.0)):
        listed = keys(key("acme", 5, served_cost_total=served), key("globex", 5))
        cockpit.take(cockpit.look, in_channels(listed, "audit", "default"), at_s)

    assert [row.due for row in cockpit.keys.rows] == [None, None], "who is due what is each channel's own"
    assert "c channel" in shown(cockpit)

    cockpit.press("c")
    assert cockpit.look == Call("keys", queue="orders", channel="audit")
    cockpit.take(cockpit.look, in_channels(keys(key("acme", 5)), "audit", "default"), 2.0)
    assert "fila top > orders > audit" in shown(cockpit)
    assert [row.due for row in cockpit.keys.rows] == [1.0]
    cockpit.press("enter")
    assert cockpit.look == Call("explain", queue="orders", channel="audit", key="acme")

    for pressed in ("escape", "c", "c"):
        cockpit.press(pressed)
    assert cockpit.look == Call("keys", queue="orders")


def test_a_queue_of_one_channel_has_none_to_choose():
    cockpit = at_keys(key("acme", 5))

    cockpit.press("c")

    assert cockpit.look == Call("keys", queue="orders")
    assert "c channel" not in shown(cockpit)


@pytest.mark.parametrize("typed", ["", "x", "1001", "-1"])
def test_what_is_no_weight_is_refused_before_anybody_is_asked(typed):
    cockpit = at_keys(key("acme", 5))

    for pressed in ("w", *typed, "enter"):
        cockpit.press(pressed)

    assert cockpit.pending is None
    assert "a weight is a number from 1 to 1000" in shown(cockpit)


def test_keys_of_terminals_have_names_and_what_is_unknown_types_nothing():
    assert names_of("\x1b[A\x1bOBq\r\x7f\x1b[5~ü\x1b") == [
        "up", "down", "q", "enter", "backspace", "page-up", "ü", "escape"
    ]  # fmt: skip
    assert names_of("\x1b[99;5Zx") == ["x"]
    assert names_of("\x03") == ["ctrl-c"]


# --- screens ---------------------------------------------------------------------------------


def busy() -> Cockpit:
    cockpit = Cockpit()
    for at_s in range(20):
        cockpit.take(
            cockpit.look,
            queues(
                queue("orders", 12_345, in_flight=40, active_consumers=4, active_fairness_keys=6, oldest_age_ms=61_000,
                      enqueued_total=at_s * at_s * 10, delivered_total=at_s * 90, breaker_state="BREAKER_STATE_OPEN"),
                queue("a-queue-with-a-name-that-is-rather-long", 3, paused=True),
                queue("orders.dlq", 4),
            ),
            float(at_s),
        )  # fmt: skip
    return cockpit


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_screen_and_what_matters_is_there(width):
    picture = shown(busy(), width=width)

    assert max(len(line) for line in picture.splitlines()) <= width
    for word in ("orders", "12,345", "IN/S", "OUT/S", "DEAD", "circuit open", "paused", "q quit"):
        assert word in picture, word
    assert ("█" in picture) == (width >= 100)


@pytest.mark.parametrize("width", [60, 100])
def test_keys_show_share_and_due_at_any_width(width):
    cockpit = at_keys(key("acme", 5, weight=3), key("noisy", 50, throttled=True, max_in_flight=4))
    cockpit.take(
        cockpit.look,
        keys(key("acme", 5, weight=3, served_cost_total=9), key("noisy", 50, throttled=True)),
        1.0,
    )

    picture = shown(cockpit, width=width)

    assert max(len(line) for line in picture.splitlines()) <= width
    assert "100% of 100%" in picture
    assert "throttled" in picture


def test_more_rows_than_fit_are_counted_and_the_chosen_one_is_in_sight():
    cockpit = at_queues(*(queue(f"q{number:03}", 1000 - number) for number in range(100)))
    for _ in range(60):
        cockpit.press("down")

    picture = shown(cockpit, height=20)

    assert len(picture.splitlines()) <= 20
    assert "q060" in picture
    assert "of 100" in picture


def test_a_broker_that_is_away_is_said_and_the_last_look_stays():
    cockpit = at_queues(queue("orders", 9))
    cockpit.miss(10.0)
    cockpit.miss(12.0)

    picture = shown(cockpit, now_s=14.0)

    assert "no answer for 4s, trying again" in picture
    assert "orders" in picture
    cockpit.take(cockpit.look, queues(queue("orders", 1)), 15.0)
    assert "no answer" not in shown(cockpit)


def test_the_explanation_says_when_it_will_go():
    cockpit = at_keys(key("acme", 5))
    cockpit.press("enter")
    answer = admin_pb2.ExplainKeyResponse(state="STATE_NOT_ITS_TURN", pending=5, weight=2)
    answer.head_forecast.CopyFrom(events_pb2.Forecast(earliest_ms=2_000, likely_ms=3_000, latest_ms=5_000))
    cockpit.take(cockpit.look, answer, 1.0)

    picture = shown(cockpit, width=60)

    assert "in 2s to 5s, most likely 3s" in picture
    assert "Esc back" in picture


def test_names_cannot_steer_the_terminal():
    cockpit = at_queues(queue(EVIL, 9))
    assert "\x1b]" not in shown(cockpit)
    cockpit.press("enter")

    assert "\x1b]" not in shown(cockpit)
    assert cockpit.screen is Screen.KEYS


def test_every_key_that_does_something_is_in_the_help():
    cockpit = at_queues(queue("orders"))
    cockpit.press("?")

    picture = shown(cockpit)

    assert "pause or resume what is chosen" in picture
    cockpit.press("q")
    assert not cockpit.is_over, "any key leaves the help and does nothing else"


# --- once ------------------------------------------------------------------------------------


def test_one_look_asks_one_call_a_tick(fila, broker: FakeBroker):
    broker.answers["ListQueues"] = queues(queue("orders", 5), queue("mails", 2))

    ran = fila("top", "--once", "--interval", "1ms", "-o", "json")

    assert [name for name, _ in broker.asked] == ["ListQueues", "ListQueues"]
    assert [row["queue"] for row in json.loads(ran.out)["queues"]] == ["orders", "mails"]


def test_one_look_at_a_queues_keys_as_json(fila, broker: FakeBroker):
    broker.answers["GetStats"] = keys(key("acme", 5, weight=3))

    ran = fila("top", "orders", "--once", "--interval", "1ms", "-o", "json")

    (row,) = json.loads(ran.out)["keys"]
    assert (row["key"], row["pending"], row["due"], row["share"]) == ("acme", 5, 1.0, None)
    assert (row["oldest_ms"], row["paused"], row["cap"]) == (1_000, False, None)
