"""`fila limit`, and limits in the files of `fila apply`, `diff` and `export`."""

from __future__ import annotations

import json

import pytest

from fila.v1 import admin_pb2, limit_pb2
from fila_cli.limits import BUDGET_TERM, LEARN_TERM, RATE_TERM, limit_of, terms
from tests.cli.fake_broker import FakeBroker

COST, MESSAGES = limit_pb2.Limit.UNIT_COST, limit_pb2.Limit.UNIT_MESSAGES
EXAMPLE = ["--rate", "60/m", "--rate", "1000cost/m", "--slots", "4", "--budget", "5000cost/day"]


def tenants() -> limit_pb2.Limit:
    return limit_of(
        "tenant:*",
        rates=(RATE_TERM.convert("60/m", None, None), RATE_TERM.convert("1000cost/m", None, None)),
        slots=4,
        budget=BUDGET_TERM.convert("5000cost/day", None, None),
    )


def test_a_limit_is_set_as_a_whole_in_one_line(fila, broker: FakeBroker):
    ran = fila("limit", "set", "tenant:*", *EXAMPLE)

    assert ran.code == 0, ran.err
    limit = broker.request("SetLimit").limit
    assert (limit.name, limit.max_in_flight, limit.shadow) == ("tenant:*", 4, False)
    assert [(rate.per_second, rate.burst, rate.unit) for rate in limit.rates] == [
        (1.0, 0.0, MESSAGES), (1000 / 60, 0.0, COST),
    ]  # fmt: skip
    assert (limit.budget.amount, limit.budget.period_ms, limit.budget.unit) == (5000, 86_400_000, COST)


@pytest.mark.parametrize(
    "word",
    ["5/s", "90/m", "1000cost/m", "5/s,20", "15/m", "0.0003/s", "0/s", "7cost/d,100"],
)
def test_a_rate_is_written_as_it_is_read(word):
    rate = RATE_TERM.convert(word, None, None)

    assert terms(limit_of("x", rates=(rate,)))["rate"] == [word]


@pytest.mark.parametrize("word", ["0.5/d", "0.1/d", "1.3/d", "0.01/h", "0.5cost/d,1000000000"])
def test_however_small_a_rate_is_what_is_written_can_be_read(word):
    rate = RATE_TERM.convert(word, None, None)
    written = terms(limit_of("x", rates=(rate,)))["rate"]

    assert [RATE_TERM.convert(each, None, None) for each in written] == [rate]


@pytest.mark.parametrize("word", ["500/day", "5000cost/week", "100/12h", "2.5cost/minute"])
def test_a_budget_is_written_as_it_is_read(word):
    assert terms(limit_of("x", budget=BUDGET_TERM.convert(word, None, None)))["budget"] == word


@pytest.mark.parametrize("word", ["1..1000", "0.1..25"])
def test_bounds_of_what_it_learns_are_written_as_they_are_read(word):
    assert terms(limit_of("x", learn=LEARN_TERM.convert(word, None, None)))["learn"] == word


def test_a_limit_that_learns_is_set_in_one_line(fila, broker: FakeBroker):
    assert fila("limit", "set", "openai", "--rate", "100/s", "--learn", "1..1000").code == 0
    learn = broker.request("SetLimit").limit.learn
    assert (learn.min, learn.max) == (1, 1000)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("x", "--learn", "5"), "are no bounds; write them in messages a second, like 1..1000"),
        (("x", "--learn", "nan..5"), "are no bounds"),
        (("x", "--rate", "60"), "is no rate; write it like 60/m"),
        (("x", "--rate", "-1/s"), "is no rate"),
        (("x", "--rate", "nan/s"), "is no rate"),
        (("x", "--rate", "5/s,0"), "a burst is at least 1, got 0; leave it out for one second's worth"),
        (("x", "--budget", "5"), "is no budget; write it like 500/day"),
        (
            ("x", "--budget", "5/s"),
            "a budget's period is minute, hour, day, week, or a duration from 1s to 366d; got 's'",
        ),
        (("x", "--budget", "5/month"), "Write it like 500/day or 100/12h; what may go each second is a rate"),
        (("x", "--slots", "1000000001"), "is no whole number from 0 to 1000000000"),
        (("x", "--budget", "5/month"), "month"),
        (("c",), "give a part: --rate, --slots or --budget; 'fila limit delete NAME' takes a limit away"),
        (("c", "--slots", "0"), "give a part"),
        (("x", "--budget-from", "2026-01-01T00:00:00Z"), "needs a budget"),
        (("x", *("--rate 1/s " * 5).split()), "up to 4 rates, got 5"),
    ],
)
def test_what_is_no_limit_is_refused_with_what_would_be_one(fila, broker: FakeBroker, words, told):
    ran = fila("limit", "set", *words)

    assert ran.code == 2
    assert told in ran.err
    assert not broker.asked


def test_show_asks_what_messages_with_a_throttle_key_meet(fila, broker: FakeBroker):
    state = limit_pb2.LimitState(
        limit=tenants(), throttle_key="tenant:acme", tokens=[0.5, 12], in_flight=3, spent=1250, held_total=7
    )
    broker.answers["ListLimits"] = limit_pb2.ListLimitsResponse(limits=[state])

    out = fila("limit", "show", "tenant:acme").out

    assert broker.request("ListLimits").throttle_key == "tenant:acme"
    for told in ("tenant:*", "1/s, 1000cost/m", "0.5, 12", "1250 of 5000", "5000cost/day"):
        assert told in out


def test_what_nothing_limits_is_said(fila, broker: FakeBroker):
    ran = fila("limit", "show", "tenant:*")

    assert ran.code == 1
    assert "nothing limits tenant:*; 'fila limit list' lists the limits there are" in ran.err


def test_list_turns_the_pages(fila, broker: FakeBroker):
    def page(request):
        names = {"": ["a", "b"], "b": ["c"]}[request.after]
        limits = [{"limit": {"name": name, "max_in_flight": 1}} for name in names]
        return limit_pb2.ListLimitsResponse(limits=limits, more=not request.after)

    broker.answers["ListLimits"] = page

    listed = json.loads(fila("limit", "list", "-o", "json").out)

    assert [each["limit"]["name"] for each in listed["limits"]] == ["a", "b", "c"]


def test_delete_and_reset(fila, broker: FakeBroker):
    assert fila("limit", "delete", "tenant:*").out == "limit tenant:* deleted\n"
    assert broker.request("DeleteLimit").limit_name == "tenant:*"
    assert fila("limit", "reset", "tenant:acme", "--spent", "1200").code == 0
    assert (broker.request("ResetLimit").throttle_key, broker.request("ResetLimit").spent) == (
        "tenant:acme",
        1200,
    )


def test_what_many_throttle_keys_spent_is_not_set_at_once(fila, broker: FakeBroker):
    ran = fila("limit", "reset", "tenant:*", "--spent", "5")

    assert (ran.code, broker.asked) == (2, [])
    assert "each has a budget of its own: name one of them, as tenant:acme" in ran.err


FILE = """
[limits."tenant:*"]
rate = ["60/m", "1000cost/m"]
slots = 4
budget = "5000cost/day"

[limits.openai]
rate = "5/s,20"
shadow = true
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "limits.toml"
    path.write_text(FILE)
    return str(path)


def test_a_files_limits_are_set_where_they_differ(fila, broker: FakeBroker, file):
    there = limit_pb2.Limit(name="openai", rates=[{"per_second": 5, "burst": 20, "unit": MESSAGES}])
    broker.answers["ListLimits"] = limit_pb2.ListLimitsResponse(
        limits=[{"limit": there}, {"limit": tenants()}]
    )

    assert fila("diff", file).out.splitlines()[0] == "~ limit openai shadow unset -> true"
    assert fila("apply", file).code == 0

    assert broker.request("SetLimit").limit.name == "openai"
    assert broker.request("SetLimit").limit.shadow


def test_a_limit_that_is_missing_is_told_in_the_words_of_the_file(fila, broker: FakeBroker, file):
    told = fila("diff", file).out.splitlines()

    assert told[0] == (
        '~ limit tenant:* rate unset -> ["1/s", "1000cost/m"], slots unset -> 4, budget unset -> "5000cost/day"'
    )
    assert told[-1] == "2 things would change"


def test_export_writes_a_limit_once_and_apply_finds_nothing_to_do(fila, broker: FakeBroker, tmp_path):
    limit = tenants()
    limit.name = "tenant:acme"
    limit.budget.anchor_ms = 1_700_000_000_000
    broker.answers["ListLimits"] = limit_pb2.ListLimitsResponse(limits=[{"limit": limit}])
    broker.answers["ListConfig"] = admin_pb2.ListConfigResponse(
        entries=[{"key": "throttle.tenant:acme", "value": "1,1"}, {"key": "throttle.other", "value": "2,2"}]
    )

    exported = fila("export").out

    assert '"throttle.other"' in exported
    assert "throttle.tenant:acme" not in exported
    (tmp_path / "again.toml").write_text(exported)
    assert fila("diff", str(tmp_path / "again.toml")).out == "nothing differs\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[limits]\nx = 1\n", 'limits."x" must be a table'),
        ("[limits.x]\nrates = ['1/s']\n", "rates is no part of a limit; known are rate, slots"),
        ("[limits.x]\nrate = 'fast'\n", "is no rate; write it like 60/m"),
        ("[limits.x]\nslots = -1\n", "slots must be a whole number from 0 to 1000000000"),
        ("[limits.x]\nshadow = 1\n", "shadow must be true or false"),
    ],
)
def test_a_file_with_what_is_no_limit_is_refused_with_its_place(fila, tmp_path, text, told):
    (tmp_path / "bad.toml").write_text(text)

    ran = fila("apply", str(tmp_path / "bad.toml"))

    assert ran.code == 2
    assert told in " ".join(ran.err.split())
