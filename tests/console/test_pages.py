"""The pages in a browser: each is live, says what the broker says, and does what its buttons say."""

from __future__ import annotations

import re
import time

import pytest

from fila import NewMessage
from fila.sync import FilaClient
from fila_console.late import LATE_MS
from tests.console.conftest import live, shown, until
from tests.e2e.conftest import launch, wait_until_started
from tests.waiting import within

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
    client.set_limit("customer:*", rates=[{"per_second": 1}], budget={"amount": 500, "period_ms": "24h"})
    client.set_limit("trial:*", max_in_flight=2, shadow=True)
    client.create_schedule("orders", "nightly", cron="0 2 * * *", time_zone="Europe/Berlin")
    client.create_schedule("orders", "resting", every_ms=60_000, paused=True)
    client.enqueue("orders", b"held", {"tenant": "umbrella"})
    for number in range(6):
        (message,) = client.lease("orders")
        client.nack("orders", message.id, error=f"card {number} was declined", dead_letter=True)
    return "orders"


PAGES = {
    "overview": "",
    "queue": "queues/orders",
    "key": "queues/orders/key?key=globex",
    "dead letters": "queues/orders.dlq/dead-letters?offset=1",
    "policy": "queues/orders/policy",
    "log": "queues/orders/log",
    "message": "queues/orders/message",
    "events": "events",
    "schedules": "schedules",
    "limits": "limits?key=customer:acme",
    "no such queue": "queues/none",
}
PARTS = {"dead letters": ("#letter dd", "#letter .edit"), "policy": ("[aria-label='Versions, table'] a",)}
"""What comes into a page after it."""
LIVE = ("overview", "queue", "key", "dead letters", "events")


def numbers_of(text: str) -> int:
    return int(re.sub(r"[^0-9]", "", text))


@pytest.mark.costly("a page in a browser, judged in each theme")
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_no_page_scrolls_sideways(console, orders, page, axe, name):
    page.goto(console.url + HOME + PAGES[name])
    if name in LIVE:
        page.wait_for_selector("body[data-live=yes]", state="attached")
    for part in PARTS.get(name, ()):
        page.locator(part).first.wait_for()
    page.evaluate(
        "() => { for (const each of document.querySelectorAll('details.bulk, details.edit')) each.open = true; }"
    )
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = axe(page, colours_only=scheme == "dark")
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


def test_events_come_in_until_somebody_scrolls(console, orders, client, page):
    def newest(tab) -> str:
        # Rows change their places once in five seconds.
        tab.clock.fast_forward(5_000)
        text: str = tab.locator("tbody tr").first.inner_text()
        return text

    other = page.context.new_page()
    for tab in (page, other):
        tab.clock.install()
        live(tab, console.url + HOME + "events?kind=key")
    client.set_key_policy("orders", "acme", weight=4)
    until(lambda: "weight=4" in newest(page))

    # Another tab, which nobody scrolls, says what both were told.
    page.locator(".hold .scroll").evaluate(
        "(list) => { list.style.cssText = 'height: 30px; min-height: 0'; list.scrollTop = 20; }"
    )
    for weight in (5, 6):
        client.set_key_policy("orders", "acme", weight=weight)
        until(lambda weight=weight: f"weight={weight}" in newest(other))
        assert "weight=4" in newest(page)
    page.locator(".hold .scroll").evaluate("(list) => { list.scrollTop = 0; }")
    until(lambda: "weight=6" in newest(page))
    other.close()


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


def test_the_search_of_a_queues_page_finds_its_keys(console, orders, page):
    page.goto(console.url + HOME + "queues/orders")
    page.keyboard.press("/")
    page.locator("#search").wait_for()
    page.keyboard.type("glob")
    until(lambda: "Keys of orders that begin so, 1 in all" in page.locator("#found").inner_text())
    page.locator("#found").get_by_role("link", name="globex", exact=False).first.click()
    page.wait_for_url(lambda url: "/queues/orders/key?key=globex" in url)


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


SHIFTS_TOLD = (
    "window.shifts = []; new PerformanceObserver((list) => { for (const each of list.getEntries()) "
    "window.shifts.push(each.value, ...each.sources.map((one) => (one.node && one.node.outerHTML || one.node && "
    "one.node.textContent || '?').slice(0, 120))); }).observe({ type: 'layout-shift', buffered: true });"
)


@pytest.fixture
def steady(tmp_path, start):
    """The console of a broker at which no trouble begins or ends, and a client: what waits is delayed by an hour, but
    for a message that has been paused long enough to be among the late ones."""
    server = wait_until_started(launch(tmp_path / "data", tmp_path / "server.log"))
    with FilaClient.connect(server.addresses["grpc"]) as client:
        client.create_queue("orders", fairness_key_header="tenant", weights={"acme": 3})
        client.set_key_policy("orders", "umbrella", paused=True)
        client.enqueue("orders", b"held", {"tenant": "umbrella"})
        for tenant, count in (("globex", 400), ("acme", 3)):
            message = NewMessage(headers={"tenant": tenant}, payload=b"x", delay_ms=3_600_000)
            client.enqueue_many("orders", [message] * count)
        until(lambda: client.list_late().keys[0].waiting_ms > LATE_MS)
        until(lambda: [each.kind for each in client.get_status().troubles] == ["paused"])
        yield start(server.addresses["grpc"]), client
    server.stop()


@pytest.mark.costly("a browser that draws for seconds")
def test_nothing_moves_but_data(steady, page):
    """A trouble that begins is told above all else, and moves it: here none does, however long this takes."""
    console, client = steady
    tabs = {path: page.context.new_page() for path in ("", "queues/orders", "queues/orders/key?key=globex")}
    for path, tab in tabs.items():
        tab.add_init_script(SHIFTS_TOLD)
        live(tab, console.url + HOME + path)
    for number in range(2):
        before = {path: shown(tab, "at") for path, tab in tabs.items()}
        client.enqueue("orders", b"x", {"tenant": f"new-{number}"}, delay_ms=3_600_000)
        for path, tab in tabs.items():
            until(lambda path=path, tab=tab, before=before: shown(tab, "at") != before[path])
    for path, tab in tabs.items():
        assert tab.evaluate("() => window.shifts") == [], path
        tab.close()


def test_a_page_is_painted_once_all_of_it_came(console, orders, page):
    """Else its header's right side moves, where a slow machine paints between two pieces of the page."""
    for path in ("", "queues/orders", "events"):
        text = page.request.get(console.url + HOME + path).text()
        assert text.count('<link rel="expect" href="#help" blocking="render">') == 1, path
        assert text.index('id="content"') < text.index('id="help"'), path


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


@pytest.mark.costly("eight pages of a browser at once")
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


@pytest.mark.costly("each page of a queue in a browser, and each of its dead letters")
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
        "queues/xss/message?dedup=" + _quoted(CORPUS[0]),
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


REPLACED = """async () => {
  const cells = await import(new URL("cells.js", document.querySelector("script[type=module]").src));
  const row = (id) => ({ id, cells: ["a", "b", "c", "d", "e", "f", "g", "h"].map((each) => ({ t: id + each })) });
  const told = () => document.querySelector("table[data-table=late] tbody").innerText.split(/\\s+/)[0];
  cells.showTables({ late: [row("reading")] });
  const first = told();
  cells.changeTables({ late: { rows: [row("one"), row("two")], order: ["one", "two"] } });
  const then = told();
  cells.changeTables({ late: { order: ["two", "one"] } });
  return [first, then, told()];
}"""


def test_rows_of_which_none_is_there_any_more_give_way_at_once_and_others_keep_their_place(
    console, orders, page
):
    live(page, console.url + HOME)
    assert page.evaluate(REPLACED) == ["readinga", "onea", "onea"]


PLOTTED = """async ([unit, step]) => {
  const main = document.querySelector("script[type=module]").src;
  const plots = await import(new URL("plots.js", main));
  const times = [1772357400, 1772357400 + step];
  plots.showPlots({ shares: { times, series: { acme: [0.25, 150] }, colors: { acme: 0 }, dashed: [], unit, step } });
}"""


@pytest.mark.parametrize(
    ("unit", "step", "written"),
    [
        ("share of cost", 10, ["09:30:10 UTC", "15000 %", "09:30:00 UTC", "25 %"]),
        ("a second", 10, ["09:30:10 UTC", "150/s", "09:30:00 UTC", "0.3/s"]),
        ("messages", 60, ["2026-03-01 09:31 UTC", "150", "2026-03-01 09:30 UTC", "0"]),
        ("seconds", 60, ["2026-03-01 09:31 UTC", "2.5 min", "2026-03-01 09:30 UTC", "0.3 s"]),
    ],
)
def test_a_plot_writes_its_numbers_in_their_unit_and_days_with_their_date(
    console, orders, page, unit, step, written
):
    live(page, console.url + HOME + "queues/orders")
    page.locator(".plot-table summary").click()
    page.evaluate(PLOTTED, [unit, step])
    assert page.locator(".plot-table tbody td").all_inner_texts() == written


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
