"""The levers: limits, queues and channels, messages by hand, who may do what; each with its line and its way back."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from fila.sync import FilaClient
from tests import forked_python
from tests.console.conftest import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HOME = "/b/broker/"
NO_PARTS = {"rates": "", "slots": "", "budget": "", "budget_from": "", "learn": ""}


@pytest.fixture(scope="module")
def client(broker):
    with FilaClient.connect(broker.addresses["grpc"]) as connected:
        yield connected


@pytest.fixture
def queue(client, request):
    """A queue for each test."""
    name = f"levers-{abs(hash(request.node.name)) % 10**8}"
    client.create_queue(name, fairness_key_header="tenant")
    yield name
    client.delete_queue(name)


def words(answer: Any) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", answer.text)).split())


def posted(console: Any, path: str, **fields: str) -> Any:
    return console.post(HOME + path, {"csrf": console.get(HOME + "limits").csrf, **fields})


def undone(console: Any, answer: Any) -> Any:
    """Press the button that goes back."""
    path = html.unescape(re.search(r'hx-post="([^"]+)"', answer.text)[1])
    fields = re.findall(r'name="([^"]+)" value="([^"]*)"', answer.text)
    return console.post(path, {name: html.unescape(value) for name, value in fields})


def shell(broker: Any, line: str) -> None:
    """Run a line that a page shows."""
    prelude = f'fila() {{ {shlex.quote(forked_python.program())} -c "from fila_cli.main import main; main()" "$@"; }}; '
    environ = {"FILA_ADDR": broker.addresses["grpc"], "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        ["bash", "-c", prelude + line], env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def line_in(answer: Any) -> str:
    return html.unescape(re.findall(r"<code>(fila [^<]+)</code>", answer.text)[-1])


def limit_of(client: Any, name: str) -> Any:
    return next((each.limit for each in client.list_limits(name).limits if each.limit.name == name), None)


# Limits.

WHOLE = NO_PARTS | {
    "rates": "60/m\r\n1000cost/h,90",
    "slots": "4",
    "budget": "5000cost/day",
    "budget_from": "2026-03-01T00:00Z",
    "learn": "0.5..1000",
    "shadow": "",
}


def test_a_limit_is_set_as_the_form_says_and_the_line_says_the_same(broker, console, client):
    answer = posted(console, "limits/set", name="form:*", **WHOLE)
    by_form = limit_of(client, "form:*")
    line = line_in(answer).replace("form:*", "line:*")
    shell(broker, line)
    by_line = limit_of(client, "line:*")

    assert answer.status == 200, answer.text
    assert "holds from now on" in words(answer)
    assert not by_form.shadow
    assert (by_form.rates, by_form.budget, by_form.learn) == (by_line.rates, by_line.budget, by_line.learn)
    assert (by_form.max_in_flight, by_form.budget.amount) == (4, 5000)
    for name in ("form:*", "line:*"):
        client.delete_limit(name)


def test_a_limit_that_was_new_goes_away_again_and_one_that_was_there_comes_back(console, client):
    new = posted(console, "limits/set", name="undo:*", **NO_PARTS | {"slots": "3"})
    before = limit_of(client, "undo:*")
    changed = posted(console, "limits/set", name="undo:*", **NO_PARTS | {"rates": "5/s,20"})
    assert limit_of(client, "undo:*").max_in_flight == 0
    assert undone(console, changed).status == 200
    assert limit_of(client, "undo:*") == before
    deleted = posted(console, "limits/delete", name="undo:*", sure="yes")
    assert limit_of(client, "undo:*") is None
    undone(console, deleted)
    assert limit_of(client, "undo:*") == before
    undone(console, new)
    assert limit_of(client, "undo:*") is None


def test_a_limit_is_deleted_only_by_somebody_who_is_sure(console, client):
    client.set_limit("kept:*", max_in_flight=1)

    assert posted(console, "limits/delete", name="kept:*").status == 400
    assert limit_of(client, "kept:*") is not None
    client.delete_limit("kept:*")


def test_what_was_spent_of_a_budget_is_said_and_taken_back(console, client, queue):
    client.update_queue(queue, throttle_key_headers=["customer"])
    client.set_limit("spent:*", budget={"amount": 40, "period_ms": "1h"})
    client.enqueue(queue, b"", {"customer": "spent:acme"})
    (held,) = client.lease(queue)
    answer = posted(console, "limits/reset", key="spent:acme", spent="12.5")
    assert client.get_limit("spent:acme").spent == 12.5
    undone(console, answer)
    assert client.get_limit("spent:acme").spent == 1
    held.ack()
    client.delete_limit("spent:*")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"rates": "60"}, "'60' is no rate; write it like 60/m"),
        ({"rates": "1/s\n1/m\n1/h\n1/d\n2/d"}, "up to four rates"),
        ({"slots": "many"}, "Slots are a whole number"),
        ({"budget": "5000/fortnight"}, "a budget's period is minute, hour, day, week, or"),
        ({"budget_from": "2026-03-01"}, "needs a budget"),
        ({"slots": "1", "learn": "fast"}, "'fast' are no bounds"),
        ({}, "needs a rate, slots or a budget"),
    ],
)
def test_what_is_no_limit_is_refused_in_words_and_sets_nothing(console, client, fields, said):
    answer = posted(console, "limits/set", name="wrong:*", **NO_PARTS | fields)

    assert answer.status == 400
    assert said.replace("four", "4") in words(answer)
    assert limit_of(client, "wrong:*") is None


def test_a_preview_says_what_differs_and_whom_it_touches(console, client):
    client.set_limit("seen:*", max_in_flight=2, shadow=True)
    asked = urlencode(NO_PARTS | {"name": "seen:*", "slots": "9"})
    text = words(console.get(f"{HOME}limits/preview?{asked}"))
    client.delete_limit("seen:*")

    assert "The shadow would have held 0 messages; from now on it holds them." in text
    assert "Slots 2 9 Shadow yes none" in text
    assert "fila limit set 'seen:*' --slots 9" in text


def test_a_preview_says_who_waits_for_the_limit_and_gains_by_it(console, client, queue):
    client.update_queue(queue, throttle_key_headers=["customer"])
    client.set_limit("slow:*", rates=[{"per_second": 0.1, "burst": 1}])
    for tenant in ("one", "two"):
        for _ in range(3):
            client.enqueue(queue, b"", {"tenant": tenant, "customer": "slow:acme"})
    client.lease(queue, 6)
    asked = urlencode(NO_PARTS | {"name": "slow:*", "rates": "1/s,1"})
    text = words(console.get(f"{HOME}limits/preview?{asked}"))
    lower = words(console.get(f"{HOME}limits/preview?{asked.replace('1%2Fs', '1%2Fm')}"))
    by_key = console.get(f"{HOME}limits?key=slow:acme")
    client.delete_limit("slow:*")

    assert re.search(
        r"These keys gain\. Their [56] messages wait for it up to (50\.0 s|1 min 00 s) as it is", text
    )
    assert "one " + queue in text
    assert "two " + queue in text
    assert "These keys wait longer." in lower
    assert "Change slow:*" in words(by_key), "who looks at a throttle key is about to change its limit"


@pytest.mark.needs("chromium")
def test_a_limit_is_tried_as_a_shadow_and_undone_in_a_browser(console, client, page):
    page.goto(console.url + HOME + "limits")
    page.get_by_label("Name", exact=False).first.fill("shop:*")
    page.get_by_label("Slots").fill("2")
    page.get_by_label("Try it as a shadow").check()
    until(lambda: "--slots 2 --shadow" in page.locator(".preview").inner_text())
    page.get_by_role("button", name="Set it").click()
    until(lambda: "is a shadow now" in page.locator("#said-set").inner_text())
    assert limit_of(client, "shop:*").shadow
    page.get_by_role("button", name="Undo: delete it").click()
    until(lambda: "is deleted" in page.locator("#said-set").inner_text())
    assert limit_of(client, "shop:*") is None


# A queue.


def test_a_queue_is_made_and_deleted_by_its_name(console, client):
    made = posted(console, "create-queue", name="by-hand", fairness_header="tenant")
    assert made.headers["HX-Redirect"] == HOME + "queues/by-hand/policy"
    assert client.get_queue("by-hand").config.fairness_key_header == "tenant"
    assert posted(console, "queues/by-hand/delete", name="by-han").status == 400
    assert client.get_queue("by-hand")
    assert posted(console, "queues/by-hand/delete", name="by-hand").headers["HX-Redirect"] == HOME
    assert "by-hand" not in {each.name for each in client.list_queues()}


def test_a_message_is_sent_by_hand_and_its_line_sends_the_same(broker, console, client, queue):
    answer = posted(
        console,
        f"queues/{queue}/publish",
        payload="it's ü",
        headers="tenant=acme\r\nkind=a=b",
        delay="",
        dedup="",
    )
    shell(broker, line_in(answer))
    first, second = client.peek(queue)

    assert (first.payload, first.headers) == ("it's ü".encode(), {"tenant": "acme", "kind": "a=b"})
    assert (second.payload, second.headers) == (first.payload, first.headers)
    assert f"id={first.id}" in answer.text


def test_a_message_by_hand_waits_and_is_sent_once_where_that_is_asked_for(console, client, queue):
    for _ in range(2):
        posted(console, f"queues/{queue}/publish", payload="x", headers="", delay="3600", dedup="one")
    (only,) = client.peek(queue)

    assert client.get_message(queue, str(only.id)).state == "delayed"


def test_a_reminder_is_moved_by_hand_and_its_line_moves_it_too(broker, console, client, queue):
    reminder = {"payload": "x", "headers": "", "dedup": "trial"}
    posted(console, f"queues/{queue}/publish", **reminder, at="2099-03-01T09:30Z")
    moved = posted(console, f"queues/{queue}/publish", **reminder, at="2099-03-02T09:30Z", replace="yes")
    (only,) = client.peek(queue)
    told = client.get_message(queue, str(only.id))

    assert (told.state, told.until) == ("delayed", datetime(2099, 3, 2, 9, 30, tzinfo=UTC))
    assert line_in(moved) == (f"fila enqueue {queue} x --at 2099-03-02T09:30Z --dedup-key trial --replace")
    shell(broker, line_in(moved))
    assert [each.id == only.id for each in client.peek(queue)] == [False]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"at": "tomorrow", "dedup": "d"}, "Write it like 2026-03-01T09:30Z, in UTC"),
        ({"at": "2099-03-01T09:30Z", "delay": "5"}, "Say how long it waits, or when it is due"),
        ({"replace": "yes"}, "Give the dedup key of the message that gives way"),
    ],
)
def test_what_says_nothing_clear_of_when_it_is_due_or_what_it_replaces_is_not_sent(
    console, client, queue, more, why
):
    answer = posted(console, f"queues/{queue}/publish", payload="x", headers="", **more)

    assert (answer.status, why in answer.text) == (400, True)
    assert client.peek(queue) == []


def test_what_waits_is_dropped_of_one_key_or_of_all(console, client, queue):
    for key in ("acme", "acme", "initech"):
        client.enqueue(queue, b"", {"tenant": key})

    assert posted(console, f"queues/{queue}/purge", key="acme").status == 400
    one = posted(console, f"queues/{queue}/purge", key="acme", channel="", sure="yes")
    assert "2 messages of acme dropped" in words(one)
    assert line_in(one) == f"fila queue purge {queue} --key acme"
    assert "1 message dropped" in words(
        posted(console, f"queues/{queue}/purge", key="", channel="", sure="yes")
    )


def test_a_channel_is_added_emptied_and_deleted(console, client, queue):
    client.enqueue(queue, b"")
    client.update_queue(queue, retention={"soft_period_ms": "1h"})
    posted(console, f"queues/{queue}/channels/create", channel="audit", start="oldest", idle="60")
    assert {each.name: each.depth for each in client.list_channels(queue)} == {"audit": 1, "default": 1}
    posted(console, f"queues/{queue}/purge", channel="audit", key="", sure="yes")
    assert {each.name: each.depth for each in client.list_channels(queue)} == {"audit": 0, "default": 1}
    assert posted(console, f"queues/{queue}/channels/delete", channel="audit").status == 400
    posted(console, f"queues/{queue}/channels/delete", channel="audit", sure="yes")
    assert [each.name for each in client.list_channels(queue)] == ["default"]


def test_a_paused_queue_in_which_nothing_waits_says_since_when_and_why(console, client, queue):
    posted(console, f"queues/{queue}/pause", paused="yes", comment="it is moved")
    page = words(console.get(f"{HOME}queues/{queue}"))
    assert "‖ paused since " in page
    assert ": it is moved" in page
    posted(console, f"queues/{queue}/pause", paused="no")
    assert "‖ paused since " not in words(console.get(f"{HOME}queues/{queue}"))


def test_a_channel_is_paused_with_a_reason_and_resumed_by_its_way_back(broker, console, client, queue):
    client.create_channel(queue, "audit")
    answer = posted(
        console, f"queues/{queue}/channels/pause", channel="audit", paused="yes", comment="it is rebuilt"
    )
    assert line_in(answer) == f"fila channel pause {queue} audit --reason 'it is rebuilt'"
    audit, default = client.list_channels(queue)
    assert (audit.paused, audit.pause.comment, default.paused) == (True, "it is rebuilt", False)
    page = words(console.get(f"{HOME}queues/{queue}/manage"))
    assert "audit ‖ paused since " in page
    assert ": it is rebuilt" in page

    undone(console, answer)
    assert not client.list_channels(queue)[0].paused
    shell(broker, line_in(answer))
    assert client.list_channels(queue)[0].pause.comment == "it is rebuilt"
    shell(broker, f"fila channel resume {queue} audit")
    assert not client.list_channels(queue)[0].paused


def test_a_key_that_was_slowed_goes_back_to_what_it_was(console, client, queue):
    client.set_key_policy(queue, "acme", weight=3, rate_per_second=7, burst=9)
    answer = posted(console, f"queues/{queue}/key?key=acme", weight="5", rate="2", cap="1", paused="yes")
    assert line_in(answer) == " && ".join(
        f"fila key {act}"
        for act in (
            f"weight {queue} acme 5",
            f"rate {queue} acme 2",
            f"cap {queue} acme 1",
            f"pause {queue} acme",
        )
    )
    undone(console, answer)
    (now,) = client.list_key_policies(queue, fairness_key="acme")

    assert (now.weight, now.rate_per_second, now.burst, now.max_in_flight, now.paused) == (3, 7, 9, 0, False)


def test_a_key_that_no_shell_can_hand_on_has_no_line(console, queue):
    answer = posted(console, f"queues/{queue}/key?key=a%00b", weight="5", rate="2")
    assert "weight 5" in words(answer)
    assert "From a shell" not in words(answer)


def test_retry_retention_and_durability_are_settings_of_the_page_and_its_line_sets_them(
    broker, console, client, queue
):
    asked = {
        "retry": "fixed:7s,jitter=0.25",
        "retention_soft_period_ms": "3600000",
        "retention_hard_bytes": "1000000",
        "durability": "os",
        "ttl_to_dlq": "yes",
        "disconnect_grace_ms": "9000",
    }
    line = line_in(posted(console, f"queues/{queue}/policy/diff", **asked))
    saved = posted(console, f"queues/{queue}/policy", version="1", comment="", **asked)
    by_form = client.get_queue(queue).config
    client.create_queue(f"{queue}-line", fairness_key_header="tenant")
    shell(broker, line.replace(queue, f"{queue}-line"))
    by_line = client.get_queue(f"{queue}-line").config
    client.delete_queue(f"{queue}-line")

    assert saved.status == 200, saved.text
    assert (by_form.retry.kind, by_form.retry.base_ms, by_form.retry.jitter) == ("fixed", 7_000, 0.25)
    assert (by_form.retention.soft_period_ms, by_form.retention.hard_bytes) == (3_600_000, 1_000_000)
    assert (by_form.durability, by_form.ttl_to_dlq, by_form.disconnect_grace_ms) == ("os", True, 9_000)
    assert by_form == by_line


# Who may.


def test_a_key_that_may_only_look_is_offered_no_lever_and_told_which_right_each_needs(keyed):
    with keyed.client() as client:
        client.create_queue("seen")
        client.enqueue_many("seen", [b"x", b"y"])
        (leased,) = client.lease("seen", 1)
        client.nack("seen", leased.id, error="declined", dead_letter=True)
        (waits,) = client.peek("seen", max_messages=1)
        (dead,) = client.peek("seen.dlq", max_messages=1)
        key = client.create_key("looker")
        client.grant("looker", view=["seen", "seen.dlq"], consume=["seen.dlq"])
    keyed.console.log_in(key)
    for path, right in {
        "": "manage.",
        "schedules": "manage.",
        "queues/seen": "manage on seen.",
        "queues/seen/key?key=a": "manage on seen.",
        "queues/seen/manage": "manage on seen.",
        f"queues/seen/message?id={waits.id}": "cancel on seen.",
        "queues/seen.dlq/dead-letters": "manage on seen.dlq.",
        f"queues/seen.dlq/dead-letters/letter?offset={dead.offset}": "manage on seen.dlq.",
    }.items():
        answer = keyed.console.get(HOME + path)
        assert answer.status == 200, path
        assert not re.search(r'<form[^>]*hx-post="/b/broker/', answer.text), path
        assert f"that needs the right to {right}" in words(answer), path
    keyed.console.cookie = ""


def test_a_key_that_may_manage_some_queues_is_offered_to_make_one(keyed):
    with keyed.client() as client:
        key = client.create_key("maker")
        client.grant("maker", manage=["made.*"])
    keyed.console.log_in(key)
    for path, lever in {"": "create-queue", "schedules": "schedules/create"}.items():
        answer = keyed.console.get(HOME + path)
        assert f'hx-post="{HOME}{lever}' in answer.text
        assert "needs the right" not in words(answer)
    keyed.console.cookie = ""


def test_an_admin_makes_keys_and_gives_rights_which_hold_at_once(keyed):
    keyed.console.log_in(keyed.admin_key)

    def sent(path: str, **fields: str) -> Any:
        token = keyed.console.get(HOME + "access").csrf
        return keyed.console.post(f"{HOME}access/{path}", {"csrf": token, **fields})

    made = sent("create", name="shop", days="1", tenant="")
    key = re.search(r'class="new-key">([^<]+)<', made.text)[1]
    assert made.headers["Cache-Control"] == "no-store"
    given = sent("grant", name="shop", right="view", pattern="orders.*", act="give")
    with keyed.client(key) as shop:
        assert [(each.right, each.queue) for each in shop.who_am_i().permissions] == [("view", "orders.*")]
        undone(keyed.console, given)
        assert shop.who_am_i().permissions == []
        key_id = shop.who_am_i().key_id
    page = words(keyed.console.get(HOME + "access?prefix=sho"))
    assert f"shop nothing {key_id}" in page
    assert key not in page
    assert sent("revoke", key_id=key_id).status == 400
    assert "is revoked" in words(sent("revoke", key_id=key_id, sure="yes"))
    with keyed.client() as client:
        assert client.get_principal("shop").keys == []
    keyed.console.cookie = ""


def test_a_key_that_is_no_admins_is_told_so_on_the_page_of_access(keyed):
    with keyed.client() as client:
        key = client.create_key("nobody")
    keyed.console.log_in(key)
    answer = keyed.console.get(HOME + "access")
    keyed.console.cookie = ""

    assert answer.status == 403
