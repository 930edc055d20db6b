"""Each part alone: words, cells, hours, logins, payloads, settings, and the house rules of pages."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.answers import KeyState
from fila_console import payloads, wording
from fila_console.cells import Plot, State, cell, line_points, row
from fila_console.logins import IDLE_S_MAX, LOGINS_MAX, Logins
from fila_console.series import STEPS_MAX, Hour, Part, Parts
from fila_console.settings import BadSetting, Broker, Settings

ROOT = Path(__file__).resolve().parents[2]
HERE = Broker("broker", "http://localhost:1")

# Words.


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("plain", "plain"),
        ("a\u202eb", "a\\u{202e}b"),
        ("\x00\x1b[2J", "\\u{0}\\u{1b}[2J"),
        ("two\nlines\tand", "two\nlines\tand"),
        ("zero\u200bwidth", "zero\\u{200b}width"),
        ("漢字 ü 😀", "漢字 ü 😀"),
        ("\ud800", "\\u{d800}"),
    ],
)
def test_what_hides_or_reorders_text_is_shown_as_its_code(text, read):
    assert wording.shown(text) == read


@pytest.mark.parametrize(
    ("number", "read"),
    [(0, "0"), (0.1, "0.1"), (2.5, "2.5"), (1_000, "1,000"), (1e6, "1,000,000"), (9e12, "9,000,000,000,000")],
)
def test_an_amount_has_no_exponent(number, read):
    assert wording.amount(number) == read


def test_a_name_with_a_line_break_is_no_twin_of_one_with_a_blank():
    assert wording.named("x\ny\tz") == "x\\u{a}y\\u{9}z"
    assert wording.named("x y") == "x y"


@pytest.mark.parametrize(
    ("milliseconds", "read"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (59_990, "59.9 s"),
        (245_000, "4 min 05 s"),
        (3_600_000, "1 h 00 min"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_an_age_has_its_unit(milliseconds, read):
    assert wording.age(milliseconds) == read


def test_numbers_have_units_and_times_their_zone():
    assert wording.rate(None) == wording.UNKNOWN
    assert (wording.rate(0.01), wording.rate(12.34), wording.rate(1234.5)) == ("0.6/min", "12.3/s", "1,234/s")
    assert (wording.size(1023), wording.size(1536), wording.size(5 << 40)) == ("1023 B", "1.5 KiB", "5.0 TiB")
    assert wording.counted(1, "message") == "1 message"
    assert wording.clock(datetime(2026, 3, 2, 14, 2, 10, tzinfo=UTC)) == "14:02:10 UTC"
    assert wording.part(0.004) == "< 1 %"


# Cells.


def state(**texts: str) -> State:
    made = State()
    made.texts = {name: cell(text) for name, text in texts.items()}
    return made


def test_only_what_differs_travels():
    before, now = state(a="1", b="2"), state(a="1", b="3")
    before.tables["t"] = [row("x", ["1"]), row("y", ["2"])]
    now.tables["t"] = [row("y", ["2"]), row("x", ["9"])]
    changes = now.changes_since(before)

    assert changes["texts"] == {"b": {"t": "3"}}
    assert changes["tables"]["t"]["rows"] == [row("x", ["9"])]
    assert changes["tables"]["t"]["order"] == [row("y", [""])["id"], row("x", [""])["id"]]
    assert now.changes_since(now)["tables"] == {}


@given(st.text(), st.text())
def test_rows_are_told_apart_by_names_that_a_page_can_carry(one, other):
    first, second = row(one, []), row(other, [])
    assert first["id"].isalnum()
    assert (first["id"] == second["id"]) == (one == other)


def test_of_a_plot_the_newest_point_travels_and_all_of_it_when_that_is_not_enough():
    before = Plot([10, 20], {"a": [1.0, None]})

    assert Plot([10, 20], {"a": [1.0, None]}).changes_since(before) is None
    assert Plot([10, 20, 30], {"a": [1.0, None, 3.0]}).changes_since(before)["values"] == {"a": 3.0}
    for other in (Plot([10, 20, 30], {"b": [1.0, 2.0, 3.0]}), Plot([50], {"a": [1.0]}), Plot([], {"a": []})):
        assert other.changes_since(before) == other.whole()
    assert Plot([], {"a": []}).changes_since(None) == Plot([], {"a": []}).whole()


def test_a_small_line_has_gaps_where_nothing_was_recorded():
    points = line_points([1.0, None, 2.0, 3.0])
    assert points.count("M") == 2
    assert line_points([None, None]) == ""


# An hour.


def test_what_was_not_recorded_is_a_gap_and_never_zero():
    hour = Hour()
    hour.put(1000, {"a": 4.0})
    hour.put(1003, {"a": 6.0})
    hour.put(1030, {"a": 1.0})
    times, series = hour.series(["a"], 1030)

    assert times == [1000, 1010, 1020, 1030]
    assert series["a"] == [5.0, None, None, 1.0]


def test_an_hour_is_no_longer_than_an_hour():
    hour = Hour()
    for at in range(0, 8000, 10):
        hour.put(at, {"a": 1.0})
    times, _ = hour.series(["a"], 7990)
    assert (len(times), times[-1]) == (STEPS_MAX, 7990)


# Which part was a key's.


def reading(**served: float) -> list[KeyState]:
    """Each with what it was served so far, of which all was its due."""
    return [
        KeyState(fairness_key=key, state="not_its_turn", served_total=cost, due_total=cost)
        for key, cost in served.items()
    ]


def test_a_burst_of_the_last_second_is_a_part_of_what_was_delivered_meanwhile():
    parts = Parts()
    for second in range(5):
        parts.read(second, 100, reading(acme=60, globex=40))
    parts.read(5, 300, reading(acme=220, globex=80))

    assert parts.of("acme") == Part(0.8, 0.8)
    assert parts.of("globex") == Part(0.2, 0.2)


def test_a_key_that_came_late_has_its_part_of_what_was_delivered_since():
    parts = Parts()
    parts.read(0, 0, reading(acme=0))
    parts.read(1, 100, reading(acme=100, globex=0))
    parts.read(2, 120, reading(acme=110, globex=10))

    assert parts.of("globex") == Part(0.5, 0.5)
    assert parts.of("acme").served == pytest.approx(110 / 120)


def test_no_part_is_known_before_a_second_reading_and_where_nothing_was_delivered():
    parts = Parts()
    parts.read(0, 50, reading(acme=50))
    assert parts.of("acme") == Part(None, None)
    parts.read(1, 50, reading(acme=50, globex=0))
    assert parts.of("acme") == parts.of("globex") == parts.of("never") == Part(None, None)


def test_counters_that_began_anew_say_nothing_until_they_were_seen_twice():
    parts = Parts()
    parts.read(0, 100, reading(acme=60, globex=40))
    parts.read(1, 110, reading(acme=70, globex=0))
    assert (parts.of("acme").served, parts.of("globex").served) == (1.0, None), "globex was idle, and is new"
    parts.read(2, 4, reading(acme=4, globex=0))
    assert parts.of("acme") == Part(None, None), "the broker started anew"
    parts.read(3, 14, reading(acme=9, globex=5))
    assert parts.of("acme").served == 0.5


def test_a_key_is_due_all_of_it_at_most():
    parts = Parts()
    parts.read(0, 0, [KeyState(fairness_key="a", state="throttled")])
    parts.read(1, 10, [KeyState(fairness_key="a", state="throttled", served_total=2.0, due_total=40.0)])
    assert parts.of("a") == Part(0.2, 1.0)


# Logins.


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_login_that_is_not_used_ends_after_twelve_hours():
    clock = Clock()
    logins = Logins(clock)
    cookie = logins.begin("broker", "key", "anna")
    clock.now_s = IDLE_S_MAX - 1
    assert logins.of(cookie).keys == {"broker": "key"}
    clock.now_s += IDLE_S_MAX
    assert logins.keys_in_use() >= {("broker", "key")}
    clock.now_s += 1
    assert logins.of(cookie) is None
    assert logins.keys_in_use() == set()


def test_logins_are_bounded_and_the_oldest_goes():
    logins = Logins(Clock())
    first, second = logins.begin("broker", "1", ""), logins.begin("broker", "2", "")
    logins.of(first)
    for number in range(LOGINS_MAX - 1):
        logins.begin("broker", str(number), "")
    assert len(logins) == LOGINS_MAX
    assert logins.of(first) is not None
    assert logins.of(second) is None


def test_a_new_login_has_a_new_cookie_and_keeps_the_other_brokers():
    logins = Logins(Clock())
    first = logins.begin("one", "a", "")
    second = logins.begin("two", "b", "", first)
    assert first != second
    assert logins.of(first) is None
    assert logins.of(second).keys == {"one": "a", "two": "b"}
    logins.forget_key("one", "a")
    assert logins.of(second).keys == {"two": "b"}


# Settings.


@pytest.mark.parametrize(
    ("given_settings", "said"),
    [
        ({"listen": "nowhere"}, "no place to listen"),
        ({"listen": "10.0.0.1:8080"}, "--allow-plaintext"),
        ({"listen": "[::]:8080"}, "--allow-plaintext"),
        ({"allowed_hosts": ["a b"]}, "is no host"),
        ({"allowed_hosts": ["ftp://a"]}, "is no host"),
        ({"cert_file": "x"}, "both --tls-cert and --tls-key"),
        ({"brokers": [Broker("a", "http://x:1"), Broker("a", "http://y:1")]}, "one name"),
    ],
)
def test_a_setting_that_cannot_be_is_named(given_settings, said):
    with pytest.raises(BadSetting, match=said):
        Settings(**{"brokers": [HERE]} | given_settings)


def test_a_wildcard_answers_to_listed_names_only():
    settings = Settings(
        brokers=[HERE], listen="0.0.0.0:80", allow_plaintext=True, allowed_hosts=["Console.example"]
    )
    assert settings.origins(80) == {"console.example": {"http://console.example"}}
    assert settings_of("127.0.0.1:8080").origins(8080)["localhost:8080"] == {"http://localhost:8080"}


def test_a_name_where_a_proxy_ends_tls_is_listed_with_its_scheme():
    settings = settings_of("127.0.0.1:8080", "https://console.example", "other.example:81")
    assert settings.origins(8080)["console.example"] == {"https://console.example"}
    assert settings.origins(8080)["other.example:81"] == {"http://other.example:81"}


def settings_of(listen, *hosts):
    return Settings(brokers=[HERE], listen=listen, allowed_hosts=hosts)


# Payloads.


def test_a_megabyte_of_brackets_is_text_and_ends_nothing():
    payload = b"[" * (1 << 20)
    assert payloads.as_json(payload) is None
    assert payloads.as_json(b"[" * 60_000) is None
    assert "bytes more" in payloads.as_text(payload)
    assert "bytes more" in payloads.as_hex(payload)


@pytest.mark.parametrize(
    ("payload", "typed"),
    [(b"two\nlines", "two\nlines"), (b"", ""), (b"a\rb", None), (b"a\0b", None), (b"\xff", None)],
)
def test_what_a_text_field_would_change_is_not_put_into_one(payload, typed):
    assert payloads.as_typed(payload) == typed


def test_payloads_are_shown_as_what_they_are():
    assert payloads.as_json(b' {"a": [1]}') == '{\n  "a": [\n    1\n  ]\n}'
    assert payloads.as_json(b"plain") is None
    assert payloads.as_text(b"\xff\x00ok") == "\ufffd\\u{0}ok"
    assert payloads.as_hex(b"\x00az").endswith(".az")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_spreadsheet_takes_an_export_for_a_formula(text):
    assert payloads.cell_of_csv(text).startswith("\"'")
    assert payloads.cell_of_csv('a"b,c') == '"a""b,c"'


# House rules of the pages.


def sources(pattern: str) -> list[Path]:
    return sorted((ROOT / "console/src/fila_console").rglob(pattern))


def test_no_template_switches_escaping_off():
    for path in sources("*.html"):
        text = path.read_text()
        for way in ("|safe", "| safe", "autoescape false", "Markup"):
            assert way not in text, (path.name, way)


def test_no_script_of_ours_makes_elements_of_text():
    for path in sources("*.js"):
        text = path.read_text()
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert way not in text, (path.name, way)


def test_every_colour_stands_in_the_list_of_colours():
    rules = (ROOT / "console/src/fila_console/static/console.css").read_text()
    below = rules[rules.index("*, *::before") :]
    assert "#" not in below.replace("#000", "#000") or not __import__("re").findall(
        r":\s*#[0-9a-f]{3,6}", below
    )


def test_sizes_and_weights_are_those_of_the_house():
    rules = (ROOT / "console/src/fila_console/static/console.css").read_text()
    sizes = set(re.findall(r"font-size: (\d+)px", rules)) | set(re.findall(r"font: 400 (\d+)px", rules))
    assert sizes <= {"12", "14", "16", "20", "28"}
    assert set(re.findall(r"font-weight: (\d+);", rules)) <= {"400", "600"}
