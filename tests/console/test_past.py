"""Ranges of days come from a Prometheus, of what the reader may see; one that is no help breaks nothing."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila import NewMessage
from fila.principals import Identity, Permission
from fila_console import prometheus
from fila_console.cells import State
from fila_console.pages.past import PastTopic, Wanted
from fila_console.prometheus import Line, Prometheus, Span
from fila_console.ranges import any_of, end_of, quoted, span_of
from fila_console.settings import BadSetting, Broker, Source, source_of, with_sources
from fila_console.trouble import Trouble
from tests.console.conftest import RunningConsole, live, start_console, until
from tests.console.fake_prometheus import FakePrometheus

SPAN = Span(1_000, 1_020, 10)
WELL = {
    "status": "success",
    "data": {
        "resultType": "matrix",
        "result": [{"metric": {"a": "b"}, "values": [[1000, "1.5"], [1020, "NaN"]]}],
    },
}


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    server = FakePrometheus()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


# Settings.


def test_a_prometheus_is_named_by_its_address_and_the_labels_of_its_broker():
    assert source_of("http://prometheus:9090/") == Source("http://prometheus:9090")
    assert source_of("https://p.example/prom?instance=fila:9464&job=a%22b") == Source(
        "https://p.example/prom", (("instance", "fila:9464"), ("job", 'a"b'))
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prometheus:9090",
        "ftp://p:9090",
        "file:///etc/passwd",
        "http://",
        "http://p:x",
        "http://p:0",
        "http://p#a",
        "http://me:secret@p",
        "http://p\n",
        "http://p y",
        "http://p?x",
        "http://p?__name__=up",
        "http://p?a-b=c",
        "http://p?fila_fairness_key=acme",
        "http://p?messaging_destination_name=orders",
    ],
)
def test_what_is_no_prometheus_is_refused_at_the_start(text):
    with pytest.raises(BadSetting) as refused:
        source_of(text)
    assert "secret" not in str(refused.value)


def test_a_file_of_authorities_that_has_none_is_named_at_the_start(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(BadSetting, match=r"ca\.pem has no certificate"):
        Prometheus(source_of("https://prometheus:9090"), str(file))


def test_with_several_brokers_each_prometheus_says_whose():
    brokers = [Broker("prod", "http://localhost:1"), Broker("test", "http://localhost:2")]
    prod, test = with_sources(brokers, ["test=http://p:9090?job=t=1"])
    assert (prod.prometheus, test.prometheus) == (None, Source("http://p:9090", (("job", "t=1"),)))
    for wrong in (["http://p"], ["other=http://p"], ["test=http://p", "test=http://q"]):
        with pytest.raises(BadSetting):
            with_sources(brokers, wrong)


# Queries.


@given(st.text())
def test_a_text_in_a_query_ends_where_it_ends_and_is_the_same_text(text):
    query = quoted(text)
    inside = query[1:-1]
    assert not re.search(r"[\x00-\x1f\x7f]", query)
    assert re.fullmatch(r'(?:[^"\\]|\\["\\]|\\x[0-9a-f]{2})*', inside)
    read = re.sub(r'\\(?:x(..)|(["\\]))', lambda found: found[2] or chr(int(found[1], 16)), inside)
    assert read == text.encode("utf-8", "replace").decode()


def test_a_name_in_a_pattern_matches_itself_alone():
    assert any_of(["a.*b", "c|d", "e\nf"]) == r'"a\\.\\*b|c\\|d|e\x0af"'


def test_a_range_has_360_steps_that_stay_where_they_are():
    first, next_ = span_of(86_400, 1_700_000_000), span_of(86_400, 1_700_000_100)
    assert (len(first.times), first.step) == (360, 240)
    assert first.begin % 240 == next_.begin % 240 == 0
    assert end_of("2026-03-01T09:30Z", 1.8e9) == 1_772_357_400
    assert end_of("2036-03-01T09:30Z", 1.8e9) == 1_800_000_000


# What comes back.


def lines(address: str) -> Any:
    return asyncio.run(Prometheus(source_of(address)).lines("up", SPAN))


def test_values_stand_at_their_steps_and_what_is_no_number_is_a_gap(fake):
    fake.body = json.dumps(WELL).encode()
    [line] = lines(fake.url)
    assert (line.labels, line.values) == ({"a": "b"}, [1.5, None, None])


def told(**changes: Any) -> bytes:
    return json.dumps({**WELL, **changes}).encode()


@pytest.mark.parametrize(
    ("body", "status", "headers", "said"),
    [
        (b"<html>", 200, {}, "not that of a Prometheus"),
        (b"", 200, {}, "not that of a Prometheus"),
        (b"\xff\xfe", 200, {}, "not that of a Prometheus"),
        (b"[]", 200, {}, "not that of a Prometheus"),
        (b'"success"', 200, {}, "not that of a Prometheus"),
        (b"[" * 100_000, 200, {}, "not that of a Prometheus"),
        (told(status="error"), 200, {}, "not that of a Prometheus"),
        (told(data={"resultType": "vector", "result": []}), 200, {}, "not that of a Prometheus"),
        (told(data={"resultType": "matrix", "result": [{}]}), 200, {}, "not that of a Prometheus"),
        (
            told(data={"resultType": "matrix", "result": [{"metric": [], "values": [[0, "1"]]}]}),
            200,
            {},
            "not that of a Prometheus",
        ),
        (
            told(data={"resultType": "matrix", "result": [{"metric": {}, "values": [["x", "y"]]}]}),
            200,
            {},
            "not that of a Prometheus",
        ),
        (b" " * (prometheus.ANSWER_BYTES_MAX + 1), 200, {}, "longer than 4 MiB"),
        (b"", 302, {"location": "http://169.254.169.254/"}, "sends elsewhere"),
        (b'{"error":"secret"}', 400, {}, r"refused the question \(status 400\)"),
        (b"x", 503, {}, r"refused the question \(status 503\)"),
        (b"x", 200, {"content-length": "9"}, "Nothing that can be read"),
    ],
)
def test_an_answer_that_is_none_is_said_in_words(fake, body, status, headers, said):
    fake.body, fake.status, fake.headers = body, status, headers
    with pytest.raises(Trouble) as failed:
        lines(fake.url)
    assert re.search(said, failed.value.text)
    assert "secret" not in failed.value.text
    assert len(fake.queries) == 1


def test_one_that_is_away_or_slow_is_said_in_words(fake, monkeypatch):
    with pytest.raises(Trouble, match="was of no help") as failed:
        lines("http://127.0.0.1:1")
    assert failed.value.text == "Nothing that can be read came from it."

    monkeypatch.setattr(prometheus, "ANSWER_S_MAX", 0.1)
    fake.wait_s = 0.4
    with pytest.raises(Trouble) as failed:
        lines(fake.url)
    assert failed.value.text == "It did not answer within 0.1 s."


def test_of_very_many_lines_the_first_fifty_are_taken(fake):
    fake.body = told(data={"resultType": "matrix", "result": [{"metric": {}, "values": []}] * 1_000})
    assert len(lines(fake.url)) == prometheus.LINES_MAX


# Who sees what.


@pytest.fixture
def kept(keyed, fake) -> Iterator[RunningConsole]:
    """A console that was told of the Prometheus, of a broker that asks for keys and has two queues."""
    with keyed.client() as client:
        for queue in ("past-a", "past-b"):
            client.create_queue(queue, fairness_key_header="tenant")
            client.enqueue_many(queue, [NewMessage(payload=b"x", headers={"tenant": STRANGE})])
    console = start_console(keyed.server.addresses["grpc"], "--prometheus", f"{fake.url}?job=fila")
    yield console
    console.stop()
    with keyed.client() as client:
        client.delete_queue("past-a")
        client.delete_queue("past-b")


STRANGE = 'a"b\n\u202ec'


def asked(console: RunningConsole, **query: str) -> Any:
    return console.get("/b/broker/past?" + urlencode(query))


def test_an_admin_sees_all_queues_and_any_one_and_a_key_by_its_exact_name(keyed, kept, fake):
    kept.log_in(keyed.admin_key)
    assert asked(kept).status == 200
    until(lambda: len(fake.queries) == 7)
    assert all('{messaging_destination_name!~".*[.]dlq",job="fila"}' in query for query in fake.queries)

    fake.queries.clear()
    assert asked(kept, queue="past-a", range="7d").status == 200
    until(lambda: len(fake.queries) == 8)
    assert all('{messaging_destination_name="past-a",job="fila"}' in query for query in fake.queries)

    fake.queries.clear()
    assert asked(kept, queue="past-a", key=STRANGE, range="3d", until="2026-03-01T09:30Z").status == 200
    until(lambda: len(fake.queries) == 5)
    key = 'fila_fairness_key="a\\"b\\x0a\u202ec"'
    where = (
        f'{{messaging_destination_name="past-a",messaging_consumer_group_name="default",{key},job="fila"}}'
    )
    assert all(where in query for query in fake.queries)


def test_a_reader_of_a_part_sees_its_queues_and_no_other(keyed, kept, fake):
    with keyed.client() as client:
        key = client.create_key("part")
        client.grant("part", view=["past-a"])
    kept.log_in(key)

    assert asked(kept).status == 200
    until(lambda: len(fake.queries) == 7)
    assert asked(kept, queue="past-a").status == 200
    until(lambda: len(fake.queries) == 15)
    refused = asked(kept, queue="past-b"), asked(kept, queue="past-b", key="acme"), asked(kept, queue="none")
    assert [answer.status for answer in refused] == [404, 404, 404]
    assert all(re.search(r'messaging_destination_name=~?"past-a"', query) for query in fake.queries)


def test_a_consumer_of_one_channel_sees_no_key_in_another(keyed, kept, fake):
    with keyed.client() as client:
        client.create_channel("past-a", "audit")
        key = client.create_key("ear")
        client.grant("ear", consume=["past-a:default"])
    kept.log_in(key)
    assert asked(kept, queue="past-a", key="acme", channel="audit").status == 404
    assert asked(kept, queue="past-a", key="acme").status == 200
    until(lambda: len(fake.queries) == 5)
    assert all('group_name="default"' in query for query in fake.queries)


def test_a_producer_sees_a_queue_and_no_key_and_a_tenant_nothing(keyed, kept, fake):
    with keyed.client() as client:
        producer, tenant = client.create_key("maker"), client.create_key("bound", as_tenant="acme")
        client.grant("maker", produce=["past-a"])
        client.grant("bound", view=["past-a"])
    kept.log_in(producer)
    assert asked(kept, queue="past-a").status == 200
    until(lambda: len(fake.queries) == 7)
    assert "fairness_key" not in "".join(fake.queries)
    assert asked(kept, queue="past-a", key="acme").status == 403

    fake.queries.clear()
    kept.log_in(tenant)
    assert [
        asked(kept, **query).status for query in ({}, {"queue": "past-a"}, {"queue": "past-a", "key": "acme"})
    ] == [403] * 3
    assert fake.queries == []


class Reader:
    """A key whose rights somebody takes away while its page is open."""

    def __init__(self) -> None:
        self.permissions = [Permission(right="admin", queue="", channel="")]
        self.queues_seen = ["a", "b"]

    async def who(self) -> Identity:
        return Identity(principal="reader", permissions=self.permissions, auth_enabled=True)

    async def queues(self) -> Any:
        return [SimpleNamespace(name=each) for each in self.queues_seen]


class Kept:
    """A Prometheus that answers at once."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    async def lines(self, query: str, span: Span) -> list[Line]:
        self.queries.append(query)
        return [Line({}, [1.0] * len(span.times))]


async def looked(topic: PastTopic, reader: Any) -> State:
    """Until the answers came."""
    while not (state := await topic.look(reader)).plots["waiting"].times:
        pass
    return state


async def test_who_loses_a_right_while_the_page_is_open_keeps_no_line_of_before(monkeypatch):
    now_s = 1_772_357_400.0
    monkeypatch.setattr(time, "time", lambda: now_s)
    reader: Any = Reader()
    kept: Any = Kept()
    topic = PastTopic(kept, (), Wanted("", "", "", "7d", ""))
    await looked(topic, reader)
    assert all('name!~".*[.]dlq"' in query for query in kept.queries)

    kept.queries.clear()
    reader.permissions = [Permission(right="view", queue="a", channel="")]
    reader.queues_seen = ["a"]
    now_s += 10
    await looked(topic, reader)
    assert len(kept.queries) == 7, "asked anew, however long the step is"
    assert all('name=~"a"' in query for query in kept.queries)

    reader.queues_seen = []
    now_s += 10
    with pytest.raises(Trouble, match="Name a queue"):
        await topic.look(reader)
    await topic.close()


@pytest.mark.parametrize("query", [{}, {"queue": "past-a"}, {"queue": "past-a", "key": "acme"}])
def test_numbers_of_several_brokers_that_are_added_up_are_told_as_such(keyed, kept, fake, query):
    kept.log_in(keyed.admin_key)
    until(lambda: "waiting" in asked(kept, **query).text and len(fake.queries) > 4)
    assert "added up" not in asked(kept, **query).text

    fake.sources = 3
    told = "These numbers are those of 3 brokers added up"
    until(lambda: told in asked(kept, **query, range="6h").text)
    identity = "messaging_destination_name" + (
        ", messaging_consumer_group_name, fila_fairness_key" if "key" in query else ""
    )
    counted = [each for each in fake.queries if "count without" in each]
    assert all(each.startswith(f"count(count without ({identity}) (fila_") for each in counted)
    assert all('job="fila"' in each for each in counted)


def test_what_was_asked_for_wrongly_is_said(keyed, kept, fake):
    kept.log_in(keyed.admin_key)
    for query in (
        {"range": "8d"},
        {"until": "yesterday"},
        {"key": "acme"},
        {"queue": "past-a", "range": "1h) or up"},
    ):
        answer = asked(kept, **query)
        assert answer.status == 400
        assert re.search("range|moment|queue", answer.text)
    assert fake.queries == []


def test_a_console_without_a_prometheus_says_which_option_names_one(console):
    answer = console.get("/b/broker/past")
    assert answer.status == 404
    assert "--prometheus" in answer.text
    assert ">Past<" not in console.get("/b/broker/").text


@pytest.mark.e2e
@pytest.mark.needs("chromium")
@pytest.mark.costly("a browser, and views one after the other")
def test_the_address_keeps_view_filter_and_range_and_a_failure_stands_above_the_lines(broker, fake, page):
    from fila.sync import FilaClient

    with FilaClient.connect(broker.addresses["grpc"]) as client:
        client.create_queue("past-c")
    console = start_console(broker.addresses["grpc"], "--prometheus", fake.url)
    page.set_viewport_size({"width": 390, "height": 900})
    live(page, console.url + "/b/broker/past?queue=past-c&key=%0A&until=2026-03-01T09:30Z")
    page.get_by_role("link", name="7d").click()
    assert page.url.endswith("past?queue=past-c&key=%0A&until=2026-03-01T09%3A30Z&range=7d")
    page.wait_for_selector("body[data-live=yes]", state="attached")
    page.get_by_text("2026-02-22 09:40 to 2026-03-01 09:12 UTC, a point each 28 min").wait_for()
    assert page.get_by_role("textbox", name="Key").input_value() == "\\n"
    page.locator(".plot-table summary").first.click()
    until(lambda: page.locator(".plot-table tbody tr").count() == 60)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    page.get_by_role("button", name="Show").click()
    assert "line=%5Cn" in page.url
    fake.status = 503
    page.get_by_role("link", name="6h").click()
    page.locator("[data-text=said]", has_text="It refused the question (status 503).").wait_for()
    assert page.locator("#band").is_hidden()
    page.goto("about:blank")
    console.stop()
