"""The page of limits: what each allows, what is used of it, and what a shadow would hold."""

from __future__ import annotations

import html
import re

import pytest

from fila.sync import FilaClient
from tests.console.conftest import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

LIMITS = "/b/broker/limits"


@pytest.fixture
def client(broker):
    with FilaClient.connect(broker.addresses["grpc"]) as connected:
        connected.create_queue("calls", throttle_key_headers=["customer"])
        yield connected
        connected.delete_queue("calls")


def words(answer) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", answer.text)).split())


def test_a_limit_is_listed_with_its_parts_and_what_waits_for_it(console, client):
    client.set_limit(
        "paid:*",
        rates=[{"per_second": 2, "burst": 5}, {"per_second": 1500, "burst": 90_000, "unit": "cost"}],
        max_in_flight=1,
        budget={"amount": 5000, "period_ms": "24h", "unit": "cost"},
        learn={"min": 1, "max": 100},
    )
    for _ in range(2):
        client.enqueue("calls", b"", {"customer": "paid:acme"})
    (held,) = client.lease("calls", 2)
    text = words(console.get(f"{LIMITS}?prefix=paid:"))

    assert "paid:* 2 messages a second, 5 at once 1,500 of cost a second, 90,000 at once" in text
    assert "learns from 1 to 100 a second 1 in flight 5,000 of cost in each day 1 " in text
    assert client.list_limits("paid:").limits[0].waiting == 1
    held.ack()
    client.delete_limit("paid:*")


def test_a_throttle_key_is_told_with_what_is_left_and_used(console, client):
    client.set_limit("used:*", budget={"amount": 40, "period_ms": "1h"})
    client.enqueue("calls", b"", {"customer": "used:acme"})
    (message,) = client.lease("calls")
    text = words(console.get(f"{LIMITS}?key=used:acme"))
    message.ack()

    assert "its limit used:* at most 40 messages in each hour in flight 1" in text
    assert "used of the budget 1 of 40 the next period begins" in text
    client.delete_limit("used:*")


def test_a_key_that_nothing_limits_is_said_so(console, client):
    assert "Nothing limits stranger." in words(console.get(f"{LIMITS}?key=stranger"))


def test_what_a_shadow_would_have_held_is_told(console, client):
    client.set_limit("tried:*", max_in_flight=1, shadow=True)
    for _ in range(3):
        client.enqueue("calls", b"", {"customer": "tried:acme"})
    for message in client.lease("calls", 3):
        message.ack()
    (told,) = client.list_limits("tried:").limits

    assert told.would_hold_total == 2
    assert "tried:* shadow 1 in flight" in words(console.get(f"{LIMITS}?prefix=tried:"))
    assert "would have held 2" in words(console.get(f"{LIMITS}?prefix=tried:"))
    client.delete_limit("tried:*")


def test_a_name_with_markup_is_shown_as_it_is(console, client):
    client.set_limit("<b>bold", max_in_flight=1)
    answer = console.get(LIMITS)

    assert "&lt;b&gt;bold" in answer.text
    assert "<b>bold" not in answer.text
    client.delete_limit("<b>bold")


def test_a_bucket_of_a_queue_leads_to_its_limit_only_who_may_see_that(keyed):
    address = f"{LIMITS}?key=narrow"
    with keyed.client() as client:
        client.create_queue("held", throttle_key_headers=["t"])
        client.set_config("throttle.narrow", "0.001,1")
        for _ in range(2):
            client.enqueue("held", b"", {"t": "narrow"})
        looker = client.create_key("looker")
        client.grant("looker", view=["held"])

    def shown(key: str) -> str:
        keyed.console.log_in(key)
        told = ""

        def is_told() -> bool:
            nonlocal told
            told = keyed.console.get("/b/broker/queues/held").text
            return ">narrow<" in told

        until(is_told)
        return told

    menu = f'<a href="{LIMITS}">Limits</a>'
    assert f'href="{address}"' in (told := shown(keyed.admin_key))
    assert menu in told
    assert keyed.console.get(address).status == 200
    told = shown(looker)
    assert "limits?key=" not in told
    assert "Limits are for admins to see" in told
    assert menu not in told
    assert keyed.console.get(address).status == 403, "where it would have led"
    keyed.console.cookie = ""
    with keyed.client() as client:
        client.delete_queue("held")
