"""The pages in a browser: each is live, says what the broker says, and does what its buttons say."""

from __future__ import annotations

import re
import time

import pytest

from fila import NewMessage
from fila.sync import FilaClient
from tests.console.conftest import live, until, within

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("chromium")]

HOME = "/b/broker/"
WIDTHS = (360, 1280, 3840)


@pytest.fixture(scope="module")
def client(broker):
    with FilaClient.connect(broker.addresses["grpc"]) as connected:
        yield connected


@pytest.fixture(scope="module")
def orders(client):
    """A queue with a flooder, a paused key, a script and dead letters."""
    script = 'function on_enqueue(msg)\n  return { fairness_key = msg.headers["tenant"] or "nobody" }\nend\n'
    client.create_queue(
        "orders", fairness_key_header="tenant", weights={"acme": 3}, max_attempts=1, on_enqueue_script=script
    )
    client.enqueue_many(
        "orders", [NewMessage(headers={"tenant": "globex"}, payload=b"flood") for _ in range(400)]
    )
    client.enqueue_many(
        "orders", [NewMessage(headers={"tenant": "acme"}, payload=b'{"n": 1}') for _ in range(3)]
    )
    client.set_key_policy("orders", "umbrella", paused=True)
    client.enqueue("orders", b"held", {"tenant": "umbrella"})
    for number in range(6):
        (message,) = client.lease("orders")
        client.nack("orders", message.id, error=f"card {number} was declined", dead_letter=True)
    return "orders"


PAGES = {
    "overview": "",
    "queue": "queues/orders",
    "key": "queues/orders/key?key=globex",
    "dead letters": "queues/orders.dlq/dead-letters",
    "policy": "queues/orders/policy",
    "log": "queues/orders/log",
    "events": "events",
    "no such queue": "queues/none",
}
LIVE = ("overview", "queue", "key", "dead letters", "events")


def shown(page, name: str) -> str:
    text: str = page.locator(f"[data-text='{name}']").first.inner_text()
    return text


def numbers_of(text: str) -> int:
    return int(re.sub(r"[^0-9]", "", text))


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_no_page_scrolls_sideways(console, orders, page, axe, name):
    page.goto(console.url + HOME + PAGES[name])
    if name in LIVE:
        page.wait_for_selector("body[data-live=yes]", state="attached")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = axe(page)
        assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == [], scheme
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        until(lambda width=width: page.evaluate("() => innerWidth") == width)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), width


def test_a_number_moves_within_two_seconds_and_is_the_brokers(console, orders, client, page):
    live(page, console.url + HOME + "queues/orders")
    before = client.get_stats("orders").depth
    until(lambda: numbers_of(shown(page, "number-waiting")) == before)

    def moves(number):
        messages = [NewMessage(headers={"tenant": "globex"}, payload=b"x") for _ in range(7)]
        began_s = time.monotonic()
        client.enqueue_many("orders", messages)
        until(lambda: numbers_of(shown(page, "number-waiting")) == before + 7 * (number + 1))
        return time.monotonic() - began_s

    within(2.0, moves)
    assert client.get_stats("orders").depth == numbers_of(shown(page, "number-waiting"))


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
    until(lambda: "At most 2 messages in hand" in page.locator(".preview").inner_text())
    page.get_by_role("button", name="Set").click()
    until(lambda: "at most 2 in hand" in page.locator("#said").inner_text())

    (policy,) = client.list_key_policies("flooded", fairness_key="floods")
    assert (policy.weight, policy.max_in_flight, policy.rate_per_second, policy.paused) == (5, 2, 12.5, False)
    page.get_by_role("button", name="Pause").click()
    until(lambda: client.list_key_policies("flooded", fairness_key="floods")[0].paused)
    until(lambda: "is paused" in shown(page, "headline"))
    page.get_by_role("button", name="Resume").click()
    until(lambda: not client.list_key_policies("flooded", fairness_key="floods")[0].paused)


@pytest.mark.parametrize("value", ["1001", "x", "-1", "1e3"])
def test_a_weight_that_cannot_be_is_refused_in_words(console, orders, page, value):
    page.goto(console.url + HOME + "queues/orders/key?key=acme")
    page.get_by_label("Weight").evaluate(
        "(field, value) => { field.removeAttribute('pattern'); field.value = value; }", value
    )
    page.get_by_role("button", name="Set").click()
    until(lambda: "whole number from 0 to 1,000" in page.locator("#said").inner_text())


def test_dead_letters_are_looked_at_moved_back_and_dropped(console, orders, client, page):
    live(page, console.url + HOME + "queues/orders.dlq/dead-letters")
    until(lambda: "6 dead letters" in shown(page, "depth"))
    groups = page.locator(".groups a").all_inner_texts()
    assert any("card # was declined" in each for each in groups)

    page.locator("tbody tr a").first.click()
    until(lambda: "was declined" in page.locator("#letter").inner_text())
    page.locator("tbody input[name=offset]").first.check()
    page.get_by_role("button", name="Move back").click()
    until(lambda: "1 letter moved back to orders" in page.locator("#said").inner_text())
    assert client.get_stats("orders.dlq").depth == 5

    page.reload()
    page.locator("tbody input[name=offset]").nth(0).check()
    page.get_by_role("button", name="Drop").click()
    until(lambda: "Nothing was dropped" in page.locator("#said").inner_text())
    page.get_by_label("for good").check()
    page.get_by_role("button", name="Drop").click()
    until(lambda: "1 letter dropped" in page.locator("#said").inner_text())
    assert client.get_stats("orders.dlq").depth == 4
    until(lambda: "4 dead letters" in shown(page, "depth"))


def test_a_policy_is_compared_before_it_is_saved(console, client, page):
    client.create_queue("policed", fairness_key_header="tenant")
    page.goto(console.url + HOME + "queues/policed/policy")
    page.get_by_label("Failures until it is a dead letter").fill("7")
    page.get_by_label("on_enqueue").fill('function on_enqueue(msg)\n  return { fairness_key = "one" }\nend')
    # Each of the two is asked about: the answer to the second tells of both.
    until(
        lambda: {"+7", "+  return"} <= set(re.findall(r"\+7|\+  return", page.locator("#diff").inner_text()))
    )
    assert client.get_queue("policed").config.max_attempts != 7
    page.get_by_role("button", name="Save").click()
    until(lambda: "Saved: 2 settings" in page.locator("#said").inner_text())
    config = client.get_queue("policed").config
    assert (config.max_attempts, config.fairness_key_header) == (7, "tenant")
    assert 'fairness_key = "one"' in config.on_enqueue_script


def test_a_change_over_somebody_elses_is_refused(console, client, page):
    client.create_queue("shared")
    page.goto(console.url + HOME + "queues/shared/policy")
    client.update_queue("shared", max_attempts=3)
    page.get_by_label("Failures until it is a dead letter").fill("9")
    page.get_by_role("button", name="Save").click()
    until(lambda: "Somebody else changed it" in page.locator("#said").inner_text())
    assert client.get_queue("shared").config.max_attempts == 3


def test_a_script_the_broker_refuses_is_told_with_its_line(console, client, page):
    client.create_queue("scripted")
    page.goto(console.url + HOME + "queues/scripted/policy")
    page.get_by_label("on_enqueue").fill("function on_enqueue(msg)\n  return {{\nend")
    page.get_by_role("button", name="Save").click()
    until(lambda: re.search(r"The broker refused it.*line|:3:", page.locator("#said").inner_text()))


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


def test_events_come_in_until_somebody_scrolls(console, orders, client, page):
    live(page, console.url + HOME + "events?kind=key")
    client.set_key_policy("orders", "acme", weight=4)
    until(lambda: "weight=4" in page.locator("tbody tr").first.inner_text())


def row_with_focus(page) -> str:
    """Which row of the page has the focus; empty where none has."""
    place: str = page.evaluate("() => document.activeElement.closest('main tbody tr')?.dataset.id ?? ''")
    return place


def test_keys_of_the_keyboard_search_walk_and_help(console, orders, client, page):
    client.create_queue("another", exist_ok=True)
    live(page, console.url + HOME)
    until(lambda: page.locator("main tbody tr").count() >= 2)
    page.keyboard.press("?")
    page.locator("#help").wait_for()
    page.keyboard.press("Escape")
    page.locator("#help").wait_for(state="hidden")
    page.keyboard.press("/")
    page.locator("#search").wait_for()
    page.keyboard.type("order")
    until(lambda: "orders" in page.locator("#found").inner_text())
    page.keyboard.press("Escape")
    page.locator("#search").wait_for(state="hidden")
    page.keyboard.press("j")
    first = until(lambda: row_with_focus(page))
    page.keyboard.press("j")
    until(lambda: row_with_focus(page) not in ("", first))
    page.keyboard.press("k")
    until(lambda: row_with_focus(page) == first)
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues/**")


def test_a_key_pressed_right_after_a_dialog_closed_is_the_pages(console, orders, page):
    live(page, console.url + HOME)
    page.keyboard.press("/")
    page.locator("#search").wait_for()
    # In one task: until the browser paints next, the field of the closed dialog has the focus still.
    walked = page.evaluate(
        """() => {
          const field = document.getElementById("search-field");
          document.getElementById("search").close();
          field.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true, cancelable: true }));
          return document.activeElement.closest("main tbody tr") !== null;
        }"""
    )
    assert walked


def test_a_key_pressed_in_a_field_is_the_fields(console, orders, page):
    page.goto(console.url + HOME + "queues/orders/key?key=acme")
    page.get_by_label("Weight").press("j")
    page.get_by_label("Weight").press("?")
    assert page.get_by_label("Weight").input_value() == "j?"
    assert not page.locator("#help").is_visible()


def test_nothing_moves_but_data(console, orders, client, page):
    page.add_init_script(
        "window.shifts = []; new PerformanceObserver((list) => { for (const each of list.getEntries()) "
        "window.shifts.push(each.value, ...each.sources.map((one) => (one.node && one.node.outerHTML || one.node && "
        "one.node.textContent || '?').slice(0, 120))); }).observe({ type: 'layout-shift', buffered: true });"
    )
    for path in ("", "queues/orders", "queues/orders/key?key=globex"):
        live(page, console.url + HOME + path)
        for number in range(2):
            before = shown(page, "at")
            client.enqueue("orders", b"x", {"tenant": f"new-{number}"})
            until(lambda before=before: shown(page, "at") != before)
        assert page.evaluate("() => window.shifts") == [], path


STREAMS_COUNTED = """
  window.streams = [];
  window.EventSource = class extends EventSource {
    constructor(address) { super(address); window.streams.push(this); }
  };
  let state = "visible";
  Object.defineProperty(document, "visibilityState", { get: () => state });
  window.turn = (to) => { state = to; document.dispatchEvent(new Event("visibilitychange")); };
"""
"""Lets a test see a page's streams, and hide it as another tab does that is put before it."""


def open_streams(page) -> int:
    number: int = page.evaluate(
        "() => window.streams.filter((each) => each.readyState !== EventSource.CLOSED).length"
    )
    return number


def test_a_hidden_page_asks_for_nothing_and_goes_on_when_it_is_seen(console, orders, page):
    page.add_init_script(STREAMS_COUNTED)
    live(page, console.url + HOME)
    assert open_streams(page) == 1
    page.evaluate("() => window.turn('hidden')")
    assert open_streams(page) == 0
    before = shown(page, "at")
    page.evaluate("() => window.turn('visible')")
    assert open_streams(page) == 1
    until(lambda: shown(page, "at") != before)


def test_eight_tabs_of_one_browser_load(console, orders, chromium):
    """A browser opens six connections to a console: the tabs that are not seen must hold none of them."""
    context = chromium.new_context()
    context.add_init_script(STREAMS_COUNTED)
    tabs = [context.new_page() for _ in range(8)]
    for place, tab in enumerate(tabs):
        if place:
            tabs[place - 1].evaluate("() => window.turn('hidden')")
        live(tab, console.url + HOME)
    assert all("UTC" in shown(tab, "at") for tab in tabs)
    context.close()


# Strangers' texts.

CORPUS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "'-alert(1)-'",
    "javascript:alert(1)",
    "{{7*7}}${7*7}#{7*7}",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "<hx-partial hx-get=/x hx-trigger=load>",
    "\u202egnp.exe\u0000\u001b[31m",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href=javascript:alert(1)>x</a>",
    "]]><!--<p hx-on:click=alert(1)>",
]


def test_no_text_of_a_stranger_becomes_a_script(console, client, page, complaints):
    script = "-- </textarea><script>alert(1)</script>\nfunction on_enqueue(msg)\n  return {}\nend"
    client.create_queue("xss", fairness_key_header="tenant", max_attempts=1, throttle_key_headers=["bucket"])
    for text in CORPUS:
        safe = text.replace("\u0000", "")
        client.enqueue("xss", text.encode(), {"tenant": safe, "bucket": safe, "note": safe})
        client.enqueue("xss", b'{"a": "%b"}' % safe.replace('"', "'").encode(), {"tenant": safe})
        client.set_key_policy("xss", safe, weight=2)
    for message in client.lease("xss", 6):
        client.nack("xss", message.id, error=" ".join(CORPUS), dead_letter=True)
    client.update_queue("xss", on_enqueue_script=script)
    paths = [
        "",
        "queues/xss",
        "queues/xss/policy",
        "queues/xss/log",
        "queues/xss.dlq/dead-letters",
        "events?queue=xss",
    ]
    paths += ["queues/xss/key?key=" + _quoted(text) for text in CORPUS[:4]]
    for path in paths:
        page.goto(console.url + HOME + path)
        if path in ("", "queues/xss") or "key?" in path or "dlq" in path:
            page.wait_for_selector("body[data-live=yes]", state="attached")
        # No element came of any text: what was put in is there as text, and nothing else.
        assert (
            page.locator(
                "main script, main iframe, main img, main svg[onload], main [onerror], main [hx-trigger=load]"
            ).count()
            == 0
        )
        assert "alert(1)" in page.locator("main").inner_html() or path in ("", "queues/xss/policy"), path
    page.goto(console.url + HOME + "queues/xss.dlq/dead-letters")
    for offset in page.locator("tbody tr a").all_inner_texts():
        page.get_by_role("link", name=offset, exact=True).click()
        until(lambda offset=offset: page.locator("#letter dd").first.inner_text() == offset)
        assert page.locator("#letter script, #letter img").count() == 0
    page.keyboard.press("/")
    page.locator("#search").wait_for()
    page.keyboard.type("<img src=x onerror=alert(1)>")
    until(lambda: "onerror=alert(1)>" in page.locator("#found").inner_text())
    assert page.locator("#found img").count() == 0
    assert complaints == []


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
