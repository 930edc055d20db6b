"""The page of schedules: it lists, makes, pauses and deletes them, and its lines for a shell do the same."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
from typing import Any

import pytest

from fila.schedules import Schedule
from fila.sync import FilaClient
from fila_console.wording import moment
from tests import forked_python
from tests.console.conftest import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

HOME = "/b/broker/"
FORM = {
    "to": "",
    "name": "",
    "cron": "",
    "zone": "",
    "every": "",
    "payload": "",
    "headers": "",
    "ttl": "",
    "missed": "one",
}


@pytest.fixture(scope="module")
def client(broker):
    with FilaClient.connect(broker.addresses["grpc"]) as connected:
        yield connected


@pytest.fixture
def reports(client, request):
    """A queue for each test."""
    name = f"reports-{abs(hash(request.node.name)) % 10**8}"
    client.create_queue(name)
    yield name
    client.delete_queue(name)


def made(client: Any, queue: str, name: str = "daily") -> Schedule:
    found: Schedule
    (found,) = [each for each in client.list_schedules(queue).schedules if each.schedule == name]
    return found


def posted(console, act: str, fields: dict[str, str], **query: str) -> Any:
    token = console.get(HOME + "schedules").csrf
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return console.post(f"{HOME}schedules/{act}?{asked}", {"csrf": token, **fields})


def text_of(answer) -> str:
    return html.unescape(re.sub("<[^>]+>", "", answer.text)).strip()


def test_a_schedule_is_listed_with_its_next_five_moments_and_the_line_that_deletes_it(
    console, client, reports
):
    told = client.create_schedule(reports, "daily", cron="0 9 * * 1-5", time_zone="Europe/Berlin")
    page = console.get(f"{HOME}schedules?queue={reports}")

    assert page.status == 200
    assert "0 9 * * 1-5 in Europe/Berlin" in page.text
    assert len(told.next_at) == 5
    assert "<br>".join(moment(each) for each in told.next_at) in page.text
    assert f"fila schedule delete daily --queue {reports}" in page.text


def test_a_schedule_of_another_queue_is_not_in_the_list_of_one(console, client, reports):
    client.create_queue("others", exist_ok=True)
    client.create_schedule("others", "elsewhere", every_ms=60_000)

    assert "elsewhere" not in console.get(f"{HOME}schedules?queue={reports}").text
    assert "elsewhere" in console.get(f"{HOME}schedules").text
    client.delete_schedule("others", "elsewhere")


def test_a_schedule_is_made_as_the_form_says(console, client, reports):
    fields = FORM | {
        "to": reports, "name": "daily", "cron": "30 8 * * *", "zone": "Asia/Tokyo", "payload": '{"report": "sales"}',
        "headers": "tenant=acme\r\nkind=a=b", "ttl": "90.5", "missed": "all",
    }  # fmt: skip
    answer = posted(console, "create", fields, queue=reports)

    assert (answer.status, text_of(answer)) == (200, "daily is made.")
    assert answer.headers["HX-Redirect"].startswith(f"{HOME}schedules?queue={reports}&done=made")
    settings = made(client, reports).settings
    assert (settings.cron, settings.time_zone, settings.every_ms) == ("30 8 * * *", "Asia/Tokyo", 0)
    assert (settings.payload, settings.headers) == (b'{"report": "sales"}', {"tenant": "acme", "kind": "a=b"})
    assert (settings.ttl_ms, settings.missed) == (90_500, "all")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "daily"}, "Give a cron line, or how often in seconds, and not both."),
        ({"name": "daily", "cron": "* * * * *", "every": "60"}, "not both"),
        ({"name": "daily", "cron": "0 0 30 2 *"}, "settings.cron"),
        ({"name": "daily", "cron": "* * * * *", "zone": "Europe/Atlantis"}, "settings.time_zone"),
        ({"name": "daily", "every": "0.5"}, "settings.every_ms"),
        ({"name": "daily", "every": "often"}, "must be a number"),
        ({"name": "a b", "every": "60"}, "schedule"),
        ({"name": "daily", "every": "60", "headers": "tenant"}, "NAME=VALUE"),
        ({"name": "daily", "every": "60", "to": ""}, "Give the queue"),
        ({"name": "daily", "every": "60", "payload": "x" * 4_001}, "too long"),
    ],
)
def test_a_form_that_cannot_be_is_refused_in_words_and_makes_nothing(console, client, reports, fields, said):
    answer = posted(console, "create", FORM | {"to": reports} | fields)

    assert answer.status >= 400
    assert said in text_of(answer)
    assert client.list_schedules(reports).schedules == []


def test_a_schedule_rests_and_goes_on(console, client, reports):
    client.create_schedule(reports, "daily", every_ms=60_000)

    assert (
        text_of(posted(console, "pause", {"paused": "yes", "comment": "in August"}, of=reports, name="daily"))
        == "daily is paused."
    )
    assert made(client, reports).settings.paused
    assert made(client, reports).pause.comment == "in August"
    assert ": in August" in text_of(console.get(f"{HOME}schedules?queue={reports}"))
    assert "Resume daily" in console.get(f"{HOME}schedules?queue={reports}").text
    assert text_of(posted(console, "pause", {"paused": "no"}, of=reports, name="daily")) == "daily goes on."
    assert not made(client, reports).settings.paused


def test_a_schedule_is_deleted_only_by_somebody_who_is_sure(console, client, reports):
    client.create_schedule(reports, "daily", every_ms=60_000)

    assert posted(console, "delete", {}, of=reports, name="daily").status == 400
    assert made(client, reports)
    assert (
        text_of(posted(console, "delete", {"sure": "yes"}, of=reports, name="daily")) == "daily is deleted."
    )
    assert client.list_schedules(reports).schedules == []
    assert "has no" in text_of(posted(console, "delete", {"sure": "yes"}, of=reports, name="daily"))


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "0 9 * * 1-5", "zone": "Europe/Berlin", "payload": "it's; $HOME", "headers": "a=b c\r\nd="},
        {"every": "60", "ttl": "1.5"},
        {"every": "300", "missed": "skip"},
        {"every": "2.25", "payload": "@is no file"},
    ],
)  # fmt: skip
def test_the_line_that_is_shown_makes_what_the_form_makes(broker, console, client, reports, fields):
    asked = FORM | {"to": reports, "name": "by-line"} | fields
    from urllib.parse import urlencode

    line = text_of(console.get(f"{HOME}schedules/line?{urlencode(asked)}"))
    posted(console, "create", asked | {"name": "by-form"})
    prelude = f'fila() {{ {shlex.quote(forked_python.program())} -c "from fila_cli.main import main; main()" "$@"; }}; '
    environ = {"FILA_ADDR": broker.addresses["grpc"], "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        ["bash", "-c", prelude + line], env=environ, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert made(client, reports, "by-line").settings == made(client, reports, "by-form").settings


def test_no_line_is_shown_before_it_is_known_what_it_says(console):
    assert "stands here once" in text_of(console.get(f"{HOME}schedules/line?to=q&name=daily"))


@pytest.mark.needs("chromium")
def test_a_schedule_is_made_paused_and_deleted_in_a_browser(console, client, reports, page):
    page.goto(console.url + f"{HOME}schedules?queue={reports}")
    page.get_by_role("textbox", name="Name", exact=True).fill("<b>ping")
    page.get_by_label("or every").fill("60")
    until(lambda: "--every 60000ms" in page.locator(".preview").inner_text())
    page.get_by_role("button", name="Make it").click()
    until(lambda: "schedule" in page.locator("#said-made").inner_text())
    page.get_by_role("textbox", name="Name", exact=True).fill("ping")
    page.get_by_role("button", name="Make it").click()
    page.get_by_text("ping is made.").wait_for()
    page.get_by_role("button", name="Pause ping").click()
    page.get_by_text("ping is paused.").wait_for()
    assert made(client, reports, "ping").settings.paused
    page.get_by_text("Delete", exact=True).first.click()
    page.get_by_label("It shall fire no more").check()
    page.get_by_role("button", name="Delete ping").click()
    page.get_by_text("ping is deleted.").wait_for()
    assert client.list_schedules(reports).schedules == []
