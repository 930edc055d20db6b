"""A tenant's page: its own numbers by its link alone, gone when the link is, and beside whatever login there is."""

from __future__ import annotations

import re
import time

import pytest

from fila import NewMessage
from tests.console.conftest import shown, until
from tests.waiting import within

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ENDS_S_MAX = 2.0


@pytest.fixture(scope="module")
def linked(keyed):
    """A queue that acme shares with a rival who has much more."""
    with keyed.client() as client:
        client.create_queue("shared", fairness_key_header="tenant", exist_ok=True)
        client.enqueue_many("shared", [NewMessage(payload=b"x", headers={"tenant": "acme"})] * 3)
        client.enqueue_many("shared", [NewMessage(payload=b"x", headers={"tenant": "globex"})] * 777)
    return keyed


def new_link(keyed, **given):
    with keyed.client() as client:
        return client.create_tenant_link("shared", "acme", **given)


def opened(tab, keyed, key):
    tab.goto("about:blank")
    tab.goto(f"{keyed.console.url}/t#{key}")
    tab.wait_for_selector("body[data-live=yes]", state="attached")
    return tab


def test_a_link_shows_its_tenants_numbers_as_they_change_and_nobody_elses(linked, page, axe):
    requests = []

    def sent(request) -> None:
        requests.append(request)

    page.on("request", sent)
    key = new_link(linked).key
    opened(page, linked, key)

    assert shown(page, "waiting") == "3"
    assert "acme in shared" in shown(page, "headline")
    with linked.client() as client:
        client.enqueue("shared", b"x", {"tenant": "acme"})
    until(lambda: shown(page, "waiting") == "4")
    text = page.content()
    assert "globex" not in text
    assert "777" not in text
    assert axe(page) == []
    for request in requests:
        assert key not in request.url
        assert "cookie" not in request.headers
    assert [request.method for request in requests if key in str(request.headers)] == ["POST"]


def test_a_revoked_link_empties_its_page_within_two_seconds(linked, page):
    def attempt(_: int) -> float:
        made = new_link(linked)
        opened(page, linked, made.key)
        with linked.client() as client:
            client.revoke_tenant_link("shared", made.link.link_id)
        began_s = time.monotonic()
        page.wait_for_selector("body[data-over=yes]", state="attached")
        return time.monotonic() - began_s

    within(ENDS_S_MAX, attempt)
    assert "has ended" in shown(page, "headline")
    assert page.locator("[data-text='waiting']").count() == 0


def test_a_link_ends_by_itself_and_says_so(linked, page):
    """It is seen alive first; one that ended before a busy machine looked is followed by one with more time."""
    for seconds in (2, 6, 18):
        page.goto("about:blank")
        page.goto(f"{linked.console.url}/t#{new_link(linked, ttl=f'{seconds}s').key}")
        page.wait_for_selector("body[data-live=yes], body[data-over=yes]", state="attached")
        if was_alive := page.locator("[data-text='waiting']").count():
            break
    assert was_alive
    page.wait_for_selector("body[data-over=yes]", state="attached")

    page.reload()

    page.wait_for_selector("body[data-over=yes]", state="attached")
    assert "has ended" in shown(page, "headline")


@pytest.mark.parametrize(
    "end", ["", "#", "#fila_nobody_" + "x" * 44, "#<script>alert(1)</script>", "#fila_cut"]
)
def test_what_is_no_link_shows_nothing_and_says_why(linked, page, end):
    page.goto("about:blank")
    page.goto(f"{linked.console.url}/t{end}")
    page.wait_for_selector("body[data-over=yes]", state="attached")

    assert re.search("no link|has ended", shown(page, "headline"))


def test_a_key_that_may_do_more_is_no_link(linked, page):
    page.goto(f"{linked.console.url}/t#{linked.admin_key}")
    page.wait_for_selector("body[data-over=yes]", state="attached")

    assert "not a link's key" in shown(page, "headline")


def test_a_tenants_own_key_is_no_link_though_it_may_only_look(linked, page):
    with linked.client() as client:
        key = client.create_key("looks-only", as_tenant="acme")
        client.grant("looks-only", view=["shared"])
    page.goto(f"{linked.console.url}/t#{key}")
    page.wait_for_selector("body[data-over=yes]", state="attached")

    assert "not a link's key" in shown(page, "headline")


def test_an_operators_login_is_neither_used_nor_replaced(linked, page):
    page.goto(f"{linked.console.url}/b/broker/login")
    page.fill("#key", linked.admin_key)
    page.click("button[type=submit]")
    page.wait_for_url("**/b/broker/")
    before = page.context.cookies()

    opened(page, linked, new_link(linked).key)

    assert shown(page, "waiting").isdecimal()
    assert page.context.cookies() == before
    page.goto(f"{linked.console.url}/b/broker/")
    assert page.url.endswith("/b/broker/"), "still logged in"


def test_the_stream_is_asked_for_by_a_page_of_ours_and_by_its_key_alone(linked):
    linked.console.cookie = ""
    key = new_link(linked).key
    bearer = {"Authorization": f"Bearer {key}"}
    path = "/t/broker/live"

    assert linked.console.post(path, **bearer, Origin="http://evil.example").status == 403
    assert linked.console.post(path, **bearer, Sec_Fetch_Site="cross-site").status == 403
    assert linked.console.post(path).status == 401
    linked.console.log_in(linked.admin_key)
    assert linked.console.post(path).status == 401, "a login is no link"
    linked.console.cookie = ""
    answer = linked.console.get("/t")
    assert answer.status == 200
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_the_audit_says_for_whose_browser_a_change_was(linked):
    linked.console.log_in(linked.admin_key)
    page = linked.console.get("/b/broker/queues/shared/key?key=acme")
    linked.console.post("/b/broker/queues/shared/key?key=acme", {"csrf": page.csrf, "weight": "2"})
    linked.console.cookie = ""

    from fila.v1 import auth_pb2, auth_pb2_grpc
    from tests.access.guarded_server import with_key

    auth = auth_pb2_grpc.FilaAuthStub(with_key(linked.server.channel(), linked.admin_key))
    (record,) = [
        each
        for each in auth.ListAudit(auth_pb2.ListAuditRequest(limit=20)).records
        if each.act == "SetKeyPolicy"
    ]
    assert record.claimed_address == "127.0.0.1"
