"""What the console changes, pressed in a browser; the effect is asked of the broker."""

from __future__ import annotations

import re

import pytest

from fila import NewMessage
from fila.sync import FilaClient
from fila_console.differences import in_one_line, settings_back
from tests.console.conftest import live, shown, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("chromium")]

HOME = "/b/broker/"


@pytest.fixture(scope="module")
def client(broker):
    with FilaClient.connect(broker.addresses["grpc"]) as connected:
        yield connected


def bury(client, queue: str, errors: list[str]) -> None:
    """Dead letters that died of these."""
    messages = [NewMessage(headers={"tenant": "acme"}, payload=b'{"n": %d}' % n) for n in range(len(errors))]
    client.enqueue_many(queue, messages)
    left = [*errors]
    while left:
        for message in client.lease(queue, len(left)):
            client.nack(queue, message.id, error=left.pop(0), dead_letter=True)


def said(page, place: str = "#said") -> str:
    text: str = page.locator(place).inner_text()
    return text


def test_a_key_is_slowed_from_the_overview_by_what_the_page_says(console, client, page):
    """The way of somebody who was called: read who floods, press the button, set a cap; the broker has it."""
    client.create_queue("flooded", fairness_key_header="tenant")
    client.enqueue_many(
        "flooded", [NewMessage(headers={"tenant": "floods"}, payload=b"x") for _ in range(50)]
    )
    live(page, console.url + HOME + "queues/flooded/key?key=floods")
    page.get_by_label("Weight").fill("5")
    page.get_by_label("Most in hand at once").fill("2")
    page.get_by_label("Most delivered a second").fill("12.5")
    until(lambda: "At most 2 messages in hand" in said(page, ".preview"))
    assert "Weight 5 instead of 1." in said(page, ".preview")
    page.get_by_role("button", name="Set").click()
    until(lambda: "at most 2 in hand" in page.locator("#said").inner_text())

    (policy,) = client.list_key_policies("flooded", fairness_key="floods")
    assert (policy.weight, policy.max_in_flight, policy.rate_per_second, policy.paused) == (5, 2, 12.5, False)
    page.get_by_label("Why").fill("they sent it all twice")
    page.get_by_role("button", name="Pause").click()
    until(lambda: client.list_key_policies("flooded", fairness_key="floods")[0].paused)
    until(lambda: "is paused" in shown(page, "headline"))
    until(lambda: "by 127.0.0.1: they sent it all twice" in shown(page, "paused").replace("\n", " "))
    page.get_by_role("button", name="Resume").click()
    until(lambda: not client.list_key_policies("flooded", fairness_key="floods")[0].paused)


def test_what_a_slower_key_would_do_is_told_as_the_broker_forecasts_it(console, client, page):
    client.create_queue("foreseen", fairness_key_header="tenant")
    messages = [
        NewMessage(headers={"tenant": each}, payload=b"x") for each in ("flood", "small") for _ in range(300)
    ]
    client.enqueue_many("foreseen", messages)
    # The forecast goes by the pace it saw.
    for _ in range(3):
        for message in client.lease("foreseen", 20):
            client.ack("foreseen", message.id)
    page.goto(console.url + HOME + "queues/foreseen/key?key=flood")
    page.get_by_label("Most delivered a second").fill("0.5")
    until(lambda: "The last of" in said(page, ".preview"))
    told = client.preview_key_policy("foreseen", "flood", rate_per_second=0.5)
    assert f"The last of {told.pending} that wait" in said(page, ".preview")
    assert "At most 0.5/s delivered" in said(page, ".preview")
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        until(lambda width=width: page.evaluate("() => innerWidth") == width)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), width
    assert client.list_key_policies("foreseen", fairness_key="flood")[0].rate_per_second == 0


def test_a_suggested_number_is_put_into_its_field_and_told_before_it_is_set(console, client, page):
    """What was asked for and what it would change are gone from the page once it is so."""
    client.create_queue("suggested", fairness_key_header="tenant", weights={"flood": 8})
    client.enqueue_many(
        "suggested", [NewMessage(headers={"tenant": "flood"}, payload=b"x") for _ in range(50)]
    )
    live(page, console.url + HOME + "queues/suggested/key?key=flood#rate")
    assert page.evaluate("() => document.activeElement.id") == "rate"
    assert "it waits, and the backlog grows" in page.locator("label[for=rate]").inner_text()
    assert "half of the 8 it has now" in page.locator("#weight-suggested").inner_text()
    page.locator("#weight-suggested button").first.click()
    assert page.get_by_label("Weight").input_value() == "4"
    until(lambda: "Weight 4 instead of 8." in said(page, ".preview"))
    page.get_by_role("button", name="Set").click()
    until(lambda: "weight 4" in said(page))
    until(lambda: "instead of" not in said(page, ".preview") and "before you press" in said(page, ".preview"))
    assert page.get_by_label("Weight").input_value() == ""
    (policy,) = client.list_key_policies("suggested", fairness_key="flood")
    assert policy.weight == 4
    until(lambda: "half of the 4 it has now" in page.locator("#weight-suggested").inner_text())


def test_a_weight_that_cannot_be_is_refused_in_words(console, client, page):
    client.create_queue("weighed")
    page.goto(console.url + HOME + "queues/weighed/key?key=acme")
    for value in ("1001", "x", "-1", "1e3"):
        page.get_by_label("Weight").evaluate(
            "(field, value) => { field.removeAttribute('pattern'); field.value = value; }", value
        )
        page.locator("#said").evaluate("(place) => { place.textContent = ''; }")
        page.get_by_role("button", name="Set").click()
        until(lambda: "whole number from 0 to 1,000" in said(page))


@pytest.mark.costly("a browser, and keys one after the other")
def test_a_key_is_the_same_key_whatever_its_characters(console, client, page):
    key, queue = " a\rb\n\0\\n=\u202e ", "odd"
    client.create_queue(queue, fairness_key_header="tenant")
    client.enqueue(queue, b"x", {"tenant": key})
    page.goto(console.url + HOME + f"queues/{queue}")
    page.locator("[data-table=keys] tbody tr a").first.click()
    page.wait_for_url(lambda url: "/key?" in url)
    page.get_by_role("button", name="Pause").click()
    until(lambda: "paused" in said(page))
    assert "From a shell" not in said(page), "no shell hands on a NUL"
    (policy,) = client.list_key_policies(queue, fairness_key=key)
    assert policy.paused

    # The weights of a queue stand in lines, a key in each.
    page.goto(console.url + HOME + f"queues/{queue}/policy")
    page.get_by_label("Weights").fill(in_one_line(key) + "=7")
    page.get_by_role("button", name="Save").click()
    until(lambda: "Saved" in said(page))
    assert client.get_queue(queue).config.weights == {key: 7}
    page.reload()
    page.get_by_label("A lease lasts").fill("31000")
    until(lambda: "+31000" in said(page, "#diff"))
    assert "weights" not in said(page, "#diff"), "what nobody touched is no change"


# Dead letters.


def letters_page(console, client, page, queue: str, errors: list[str]) -> str:
    client.create_queue(queue, fairness_key_header="tenant", max_attempts=1)
    bury(client, queue, errors)
    live(page, console.url + HOME + f"queues/{queue}.dlq/dead-letters")
    until(lambda: f"{len(errors)} dead letter" in shown(page, "depth"))
    return f"{queue}.dlq"


def test_dead_letters_are_looked_at_moved_back_and_dropped(console, client, page):
    dlq = letters_page(console, client, page, "mourned", [f"card {n} was declined" for n in range(6)])
    groups = page.locator(".groups a").all_inner_texts()
    assert any("card # was declined" in each for each in groups)

    assert "card 0 was declined" in said(page, "#letter"), "the first one, before any is chosen"
    page.locator("tbody tr a").nth(1).click()
    until(lambda: "card 1 was declined" in said(page, "#letter"))
    page.locator("tbody input[name=offset]").first.check()
    page.get_by_role("button", name="Move back").click()
    until(lambda: "1 letter moved back to mourned" in said(page))
    assert client.get_stats(dlq).depth == 5

    page.get_by_role("link", name="Load anew").click()
    until(lambda: page.locator("tbody input[name=offset]").count() == 5)
    page.locator("tbody input[name=offset]").nth(0).check()
    page.get_by_role("button", name="Drop", exact=True).click()
    until(lambda: "Nothing was dropped" in said(page))
    page.locator("#letters").get_by_label("for good").check()
    page.get_by_role("button", name="Drop", exact=True).click()
    until(lambda: "1 letter dropped" in said(page))
    assert client.get_stats(dlq).depth == 4
    until(lambda: "4 dead letters" in shown(page, "depth"))


def test_where_there_is_no_letter_there_is_no_box_for_one(console, client, page):
    letters_page(console, client, page, "unmourned", [])
    assert page.get_by_text("There are no dead letters.").is_visible()
    assert page.locator("#letter").count() == page.get_by_text("One letter").count() == 0


def test_a_letter_goes_back_in_another_form(console, client, page):
    dlq = letters_page(console, client, page, "edited", ["no such street"])
    page.get_by_text("Edit and send back").click()
    page.get_by_label("Headers").fill('{"tenant": "acme", "note": "a\\rb"}')
    page.get_by_label("Payload").fill('{"n": 1,\n "street": "ü"}')
    page.get_by_role("button", name="Send back").click()
    until(lambda: "Sent back to edited as" in said(page, "#said-edit"))

    (message,) = client.lease("edited")
    assert message.payload == '{"n": 1,\n "street": "ü"}'.encode()
    assert (message.headers["tenant"], message.headers["note"]) == ("acme", "a\rb")
    assert message.headers["fila-edited-from"]
    assert message.id in said(page, "#said-edit")
    assert client.get_stats(dlq).depth == 0


def test_headers_that_are_no_texts_by_name_are_refused_in_words(console, client, page):
    dlq = letters_page(console, client, page, "headed", ["no"])
    page.get_by_text("Edit and send back").click()
    for text in ('{"a": 1}', "[]", "[" * 10_000, "tenant=acme"):
        page.get_by_label("Headers").fill(text)
        page.get_by_role("button", name="Send back").click()
        until(lambda: "The headers cannot be read" in said(page, "#said-edit"))
        page.evaluate("() => { document.getElementById('said-edit').textContent = ''; }")
    assert client.get_stats(dlq).depth == 1


def move_back(page, group: str, per_second: str, meant: str) -> None:
    """Press the button that has the broker move a group of the letters."""
    page.locator(".groups a", has_text=group).click()
    page.get_by_text("Many at once").click()
    until(lambda: meant in said(page, ".bulk .preview"))
    page.get_by_label("Most a second").fill(per_second)
    page.get_by_role("button", name="Move them back").click()
    until(lambda: "Started; it goes on" in said(page))


@pytest.mark.costly("thousands of letters, and a browser")
def test_many_letters_are_moved_by_the_broker_and_a_closed_tab_stops_nothing(console, client, page):
    """At first so slowly that none of what the page tells of it is gone before a busy machine looks."""
    errors = ["timed out"] * 30 + [f"card {n} was declined" for n in range(50)]
    dlq = letters_page(console, client, page, "many", errors)
    move_back(page, "card #", "0.5", "Meant: 50 of 80 letters")
    until(lambda: "Moving back letters with" in shown(page, "operation"))
    page.goto("about:blank")
    moved = client.get_stats("many").depth
    until(lambda: client.get_stats("many").depth > moved)
    (slow,) = client.list_operations(dlq)
    assert (slow.state, slow.request.rate_per_second) == ("running", 0.5)
    client.cancel_operation(dlq, slow.id)
    (slow,) = until(lambda: [each for each in client.list_operations(dlq) if each.state == "cancelled"])

    left = 50 - slow.done
    live(page, console.url + HOME + f"queues/{dlq}/dead-letters")
    move_back(page, "card #", "50", f"Meant: {left} of {30 + left} letters")
    page.goto("about:blank")
    (operation,) = until(lambda: [each for each in client.list_operations(dlq) if each.state == "done"])
    assert (operation.done, operation.stuck, operation.request.rate_per_second) == (left, 0, 50.0)
    assert (client.get_stats("many").depth, client.get_stats(dlq).depth) == (50, 30)
    live(page, console.url + HOME + f"queues/{dlq}/dead-letters")
    until(lambda: "Done at" in shown(page, "operation"))
    assert f"{left} letters moved back" in shown(page, "operation")
    page.get_by_role("button", name="Cancel it").wait_for(state="hidden")


def test_an_operation_is_cancelled_from_another_page(console, client, page):
    dlq = letters_page(console, client, page, "slow", ["no"] * 60)
    client.start_operation(dlq, "redrive", rate_per_second=0.25)
    page.get_by_role("button", name="Cancel it").click()
    until(lambda: "Cancelled at" in said(page))
    (operation,) = client.list_operations(dlq)
    assert operation.state == "cancelled"
    assert client.get_stats(dlq).depth > 30


def test_many_letters_are_dropped_only_where_it_is_meant(console, client, page):
    dlq = letters_page(console, client, page, "doomed", ["no"] * 5)
    page.get_by_text("Many at once").click()
    page.get_by_role("button", name="Drop them").click()
    until(lambda: "Nothing was dropped" in said(page))
    page.locator(".bulk").get_by_label("for good").check()
    page.get_by_role("button", name="Drop them").click()
    until(lambda: client.get_stats(dlq).depth == 0)


def test_the_messages_of_a_living_queue_are_no_dead_letters(console, client, page):
    client.create_queue("living", fairness_key_header="tenant")
    client.enqueue("living", b"alive")
    page.goto(console.url + HOME + "queues/living/dead-letters")
    assert page.url.endswith("queues/living.dlq/dead-letters")
    assert "There are no dead letters" in page.locator("main").inner_text()


# Policy.


def test_a_policy_is_compared_before_it_is_saved(console, client, page):
    client.create_queue("policed", fairness_key_header="tenant")
    page.goto(console.url + HOME + "queues/policed/policy")
    page.get_by_label("Failures until it is a dead letter").fill("7")
    page.get_by_label("on_enqueue").fill('function on_enqueue(msg)\n  return { fairness_key = "one" }\nend')
    # Each of the two is asked about: the answer to the second tells of both.
    until(lambda: "+7" in said(page, "#diff") and "+  return" in said(page, "#diff"))
    assert client.get_queue("policed").config.max_attempts != 7
    page.get_by_role("button", name="Save").click()
    until(lambda: "Saved as version 2: 2 settings" in said(page))
    config = client.get_queue("policed").config
    assert (config.max_attempts, config.fairness_key_header) == (7, "tenant")
    assert 'fairness_key = "one"' in config.on_enqueue_script
    until(lambda: "Nothing differs" in said(page, "#diff"))

    # The page goes on from what it saved.
    page.get_by_label("Failures until it is a dead letter").fill("8")
    page.get_by_role("button", name="Save").click()
    until(lambda: "Saved as version 3: 1 setting" in said(page))
    assert client.get_queue("policed").config.max_attempts == 8


def test_a_version_is_compared_and_gone_back_to_with_a_word_why(console, client, page):
    client.create_queue("versioned", fairness_key_header="tenant", weights={"acme": 3}, retry="fixed:5s")
    page.goto(console.url + HOME + "queues/versioned/policy")
    page.get_by_label("Failures until it is a dead letter").fill("7")
    page.get_by_label("Why").fill("they gave up too early")
    page.get_by_role("button", name="Save").click()
    until(lambda: "they gave up too early" in said(page, "main"))
    assert client.list_queue_versions("versioned")[0].comment == "they gave up too early"
    client.update_queue(
        "versioned", retry={"base_ms": 9000}, weights={}, retention={"soft_bytes": 10}, paused=True
    )

    page.reload()
    until(lambda: "retry.base_ms" in said(page, "main"))
    page.get_by_role("link", name="1", exact=True).click()
    until(lambda: "Version 1, against what is in force (version 3)" in said(page, "#version"))
    told = said(page, "#version")
    assert all(
        each in told for each in ("-7", "+acme=3", "-base_ms=9000", "+base_ms=5000", "-soft_bytes=10", "-yes")
    )
    page.locator("#back-comment").fill("as it was")
    page.get_by_role("button", name="Go back to version 1").click()
    page.wait_for_url(lambda url: url.endswith("/policy?set=4"))
    assert "Version 4 is in force" in said(page)

    first, now = client.get_queue_version("versioned", 1), client.get_queue("versioned")
    assert (settings_back(first.config, now.config), now.version) == ({}, 4)
    newest, *_ = client.list_queue_versions("versioned")
    assert newest.comment == "as it was"
    assert page.get_by_label("Failures until it is a dead letter").input_value() == str(
        now.config.max_attempts
    )


def test_a_change_over_somebody_elses_is_refused_and_says_whose(console, client, page):
    client.create_queue("shared")
    page.goto(console.url + HOME + "queues/shared/policy")
    page.get_by_role("link", name="1", exact=True).click()
    client.update_queue("shared", max_attempts=3, comment="night shift")
    page.get_by_label("Failures until it is a dead letter").fill("9")
    page.get_by_role("button", name="Save").click()
    until(lambda: "Somebody else changed it" in said(page))
    assert all(each in said(page) for each in ("Version 2", "max_attempts", "night shift", "of version 1"))
    assert client.get_queue("shared").config.max_attempts == 3
    assert page.get_by_label("Failures until it is a dead letter").input_value() == "9"


def test_a_script_the_broker_refuses_is_told_with_its_line(console, client, page):
    client.create_queue("scripted")
    page.goto(console.url + HOME + "queues/scripted/policy")
    page.get_by_label("on_enqueue").fill("function on_enqueue(msg)\n  return {{\nend")
    page.get_by_role("button", name="Save").click()
    until(lambda: re.search(r"The broker refused it.*line|:3:", said(page)))


def test_a_policy_is_tried_on_the_newest_messages_and_changes_nothing(console, client, page):
    client.create_queue("tried", fairness_key_header="tenant", max_attempts=1)
    bury(client, "tried", ["no"])
    tenants = ["acme", "acme", "bad"]
    client.enqueue_many("tried", [NewMessage(headers={"tenant": each}, payload=b"x") for each in tenants])
    page.goto(console.url + HOME + "queues/tried/policy")
    page.get_by_label("on_enqueue").fill(
        'function on_enqueue(msg)\n  if msg.headers.tenant == "bad" then error("no such tenant") end\n'
        '  return { fairness_key = "vip", weight = 7 }\nend'
    )
    page.get_by_label("on_failure").fill(
        'function on_failure(msg)\n  return { action = "retry", delay_ms = 700 }\nend'
    )
    page.get_by_role("tab", name="Dry run").click()
    page.get_by_role("button", name="Try it on them").click()
    until(lambda: "would be routed otherwise" in said(page, "#tried"))

    told = said(page, "#tried")
    dry = client.dry_run_policy(
        "tried",
        on_enqueue_script=page.get_by_label("on_enqueue").input_value(),
        on_failure_script=page.get_by_label("on_failure").input_value(),
    )
    changed = sum(1 for each in dry.messages if each.before != each.after)
    assert changed
    assert f"{changed} of the {len(dry.messages)} newest message" in told
    assert "key acme → vip; weight 1 → 7" in told
    assert "no such tenant" in told
    assert "1 of 1 dead letter would be tried again" in told
    assert "700 ms" in told
    assert not client.get_queue("tried").config.on_enqueue_script


# The log.


def test_a_channel_is_moved_after_its_effect_was_told(console, client, page):
    client.create_queue("logged", retention={"soft_period_ms": "1h"})
    client.enqueue_many("logged", [b"%d" % number for number in range(10)])
    left = 10
    while left:
        for message in client.lease("logged", left):
            client.ack("logged", message.id)
            left -= 1
    page.goto(console.url + HOME + "queues/logged/log")
    assert page.locator("tbody tr").count() == 10
    page.get_by_label("To offset").fill("4")
    until(
        lambda: (
            "7 messages it is done with would be delivered again"
            in page.locator("#seek .preview").inner_text()
        )
    )
    page.get_by_label("I read what it does").check()
    page.get_by_role("button", name="Move").click()
    until(lambda: "is at offset 4" in page.locator("#said").inner_text())
    assert client.get_stats("logged", channel="default").depth == 7


# One message.


def test_a_delayed_message_is_seen_and_taken_back(console, client, page):
    client.create_queue("reminders")
    reminder = client.enqueue("reminders", b"trial ends", delay_ms=3_600_000)
    page.goto(console.url + HOME + "queues/reminders/message")
    page.get_by_label("Its id").fill(str(reminder))
    page.get_by_role("button", name="Show").click()
    until(lambda: "delayed until" in page.locator("tbody").inner_text())
    assert "What happened before: not recorded: history is off." in page.locator("main").inner_text()
    page.get_by_label("It shall not be delivered").check()
    page.get_by_role("button", name="Take it back").click()
    until(lambda: "it waited, and is gone" in page.locator("#said").inner_text())
    assert client.get_stats("reminders").depth == 0
    page.get_by_role("button", name="Take it back").click()
    until(lambda: "It was not found" in page.locator("#said").inner_text())
