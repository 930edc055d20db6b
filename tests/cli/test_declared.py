"""`fila apply`, `diff`, `export`: a file says what queues there shall be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from grpc import StatusCode

from fila.v1 import admin_pb2, events_pb2
from fila_cli.declared import read
from tests.cli.fake_broker import FakeBroker, Refusal

FILE = """
[config]
"throttle.stripe" = "100,200"

[queues.orders]
fairness-header = "tenant"
weight = { acme = 3 }
throttle-header = ["provider"]
intake-header = ["x-signature"]
intake-dedup-header = ["x-delivery"]
key-rate = 2.5
key-burst = 5
key-cap = 4
key-committed = 1.5
key-limit = "tenant:"
visibility-timeout = "5m"
on-enqueue = "@route.lua"
channels = ["default", "audit"]
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "route.lua").write_text("function on_enqueue(m) return {} end\n")
    path = tmp_path / "queues.toml"
    path.write_text(FILE)
    return str(path)


def test_a_queue_that_is_missing_is_made_as_the_file_says(fila, broker: FakeBroker, file):
    broker.answers["GetQueue"] = Refusal(
        StatusCode.NOT_FOUND, 'queue "orders" does not exist', "QUEUE_NOT_FOUND"
    )

    ran = fila("apply", "-f", file)

    assert ran == (
        0, '~ config throttle.stripe unset -> "100,200"\n+ create orders\n2 things changed\n', "",
    )  # fmt: skip
    config = broker.request("CreateQueue").config
    assert (config.fairness_key_header, dict(config.weights), config.visibility_timeout_ms) == (
        "tenant", {"acme": 3}, 300_000,
    )  # fmt: skip
    assert list(config.throttle_key_headers) == ["provider"]
    assert list(config.intake.headers) == ["x-signature"]
    assert list(config.intake.dedup_headers) == ["x-delivery"]
    each_key = config.key_defaults
    assert (each_key.rate_per_second, each_key.burst, each_key.max_in_flight) == (2.5, 5, 4)
    assert each_key.committed_per_second == 1.5
    assert config.key_limit == "tenant:"
    assert config.on_enqueue_script.startswith("function on_enqueue")
    assert list(config.channels) == ["default", "audit"]
    assert broker.request("SetConfig").value == "100,200"


def test_diff_says_what_apply_would_do_and_does_nothing(fila, broker: FakeBroker, file):
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(config=admin_pb2.QueueConfig(max_depth=3))

    out = json.loads(fila("diff", "-f", file, "-o", "json").out)

    update = next(change for change in out["changes"] if change["what"] == "update")
    assert {"fairness_key_header", "weights", "max_depth"} <= set(update["fields"])
    assert {name for name, _ in broker.asked} == {"ListConfig", "GetQueue", "ListChannels"}


def test_diff_says_what_would_become_of_what_in_the_words_of_the_file(fila, broker: FakeBroker, file):
    there = admin_pb2.QueueConfig(
        max_attempts=3,
        max_depth=5,
        weights={"acme": 2},
        on_enqueue_script="return\n",
        dedup_window_ms=300_000,
    )
    there.retry.CopyFrom(admin_pb2.RetryPolicy(kind="KIND_FIXED", base_ms=5_000))
    there.retention.hard_bytes = 1024
    broker.answers |= {
        "GetQueue": admin_pb2.GetQueueResponse(config=there),
        "ListChannels": admin_pb2.ListChannelsResponse(channels=[{"name": "default"}, {"name": "audit"}]),
        "ListConfig": admin_pb2.ListConfigResponse(entries=[{"key": "throttle.stripe", "value": "50,100"}]),
    }
    Path(file).write_text(f"{FILE}max-attempts = 5\nretry = 'exponential:1s..60s'\n")

    config, update, told = fila("diff", file).out.splitlines()

    assert config == '~ config throttle.stripe "50,100" -> "100,200"'
    assert update.removeprefix("~ update orders ").split(", ") == [
        'fairness-header unset -> "tenant"',
        'weight { "acme" = 2 } -> { "acme" = 3 }',
        'throttle-header unset -> ["provider"]',
        'key-rate unset -> "2.5"',
        "key-burst unset -> 5",
        "key-cap unset -> 4",
        'key-committed unset -> "1.5"',
        'key-limit unset -> "tenant:"',
        "on-enqueue 1 line of Lua -> 1 other line of Lua",
        'visibility-timeout 0 -> "5m"',
        "max-attempts 3 -> 5",
        'retry "fixed:5s,jitter=0" -> "exponential:1s..1m,jitter=0"',
        "max-depth 5 -> unset",
        'hard-retention-size "1kb" -> unset',
        'disconnect-grace unset -> "5s"',
        'intake-header unset -> ["x-signature"]',
        'intake-dedup-header unset -> ["x-delivery"]',
    ]
    assert told == "2 things would change"
    changes = json.loads(fila("diff", file, "-o", "json").out)["changes"]
    assert {"name": "max-attempts", "old": "3", "new": "5"} in changes[1]["settings"]


@pytest.mark.parametrize("command", ["apply", "diff"])
def test_the_file_is_an_argument_or_an_option_and_one_of_them(fila, broker: FakeBroker, file, command):
    broker.answers["ListConfig"] = admin_pb2.ListConfigResponse(
        entries=[{"key": "throttle.stripe", "value": "100,200"}]
    )

    assert fila(command, file).out == fila(command, "-f", file).out != ""
    for words in ((), (file, "-f", file)):
        ran = fila(command, *words)
        assert ran.code == 2
        assert "give one FILE" in ran.err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[queues.orders]\nfairnes-header = 'x'\n", "queues.orders.fairnes-header"),
        ("[queues.orders]\nvisibility-timeout = '30'\n", "queues.orders.visibility-timeout"),
        ("[queue]\n", "queue is no table"),
        ("[queues.orders]\nchannels = 'audit'\n", "queues.orders.channels must be a list of names"),
        ("[queues.orders]\nttl-to-dlq = 'no'\n", "queues.orders.ttl-to-dlq must be true or false"),
        ("[config]\ntiers = { gold = 1 }\n", "config.tiers must be text or a number"),
        ("[queues", "queues.toml"),
    ],
)
def test_a_mistake_in_the_file_is_bad_usage_and_names_its_place(
    fila, broker: FakeBroker, tmp_path, text, named
):
    path = tmp_path / "queues.toml"
    path.write_text(text)

    ran = fila("apply", "-f", str(path))

    assert ran.code == 2
    assert named in ran.err
    assert broker.asked == []


def test_what_was_changed_before_a_refusal_is_told(fila, broker: FakeBroker, file):
    broker.answers["GetQueue"] = Refusal(
        StatusCode.NOT_FOUND, 'queue "orders" does not exist', "QUEUE_NOT_FOUND"
    )
    broker.answers["CreateQueue"] = Refusal(StatusCode.INVALID_ARGUMENT, "config.weights: no")

    ran = fila("apply", "-f", file)

    assert ran.code == 1
    assert ran.out == '~ config throttle.stripe unset -> "100,200"\n1 thing changed, and 1 not\n'
    assert "no" in ran.err


SCRIPTS = [
    "function on_enqueue(m)\n\treturn { fairness_key = m.headers['t'] }\nend\n",
    "-- '''' and \"quotes\"\nreturn nil",
    "-- \x7f, \x1b, \r\n, \u202e, é and 😀",
    "\n-- begins with an empty line, ends with a quote\nlocal x = 'y'",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_file_that_export_wrote_asks_for_what_there_is(fila, broker: FakeBroker, tmp_path, script):
    config = admin_pb2.QueueConfig(
        on_enqueue_script=script,
        weights={"é=\n😀": 3, "b": 1},
        visibility_timeout_ms=30_000,
        dedup_window_ms=300_000,
        retry={"kind": admin_pb2.RetryPolicy.KIND_FIXED, "base_ms": 100},
    )
    config.throttle_key_headers.extend(["a", "b c"])
    broker.answers |= {
        "ListQueues": admin_pb2.ListQueuesResponse(queues=[{"name": "orders"}]),
        "GetQueue": admin_pb2.GetQueueResponse(config=config),
        "ListChannels": admin_pb2.ListChannelsResponse(channels=[{"name": "default"}, {"name": "audit"}]),
        "ListConfig": admin_pb2.ListConfigResponse(entries=[{"key": "a.😀", "value": "x\x7f\n"}]),
    }
    path = tmp_path / "queues.toml"

    path.write_text(fila("export").out, encoding="utf-8")

    there = admin_pb2.QueueConfig()
    there.CopyFrom(read(path).queues["orders"])
    assert there.on_enqueue_script == script
    assert dict(there.weights) == {"é=\n😀": 3, "b": 1}
    assert list(there.throttle_key_headers) == ["a", "b c"]
    assert list(there.channels) == ["default", "audit"]
    assert read(path).config == {"a.😀": "x\x7f\n"}


def test_a_script_stands_in_the_file_as_it_was_written(fila, broker: FakeBroker):
    config = admin_pb2.QueueConfig(on_enqueue_script=SCRIPTS[0])
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(config=config)

    assert f"on-enqueue = '''\n{SCRIPTS[0]}'''\n" in fila("export", "orders").out


# --- pauses, and what was set for single keys -----------------------------------------------------


def with_tables(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "keys.toml"
    path.write_text("\n".join(["[queues.orders]", *lines, ""]))
    return str(path)


def there(broker: FakeBroker, *, paused: bool = False, **set_for_acme: float) -> None:
    config = admin_pb2.QueueConfig(max_attempts=20, dedup_window_ms=300_000, paused=paused)
    config.visibility_timeout_ms, config.disconnect_grace_ms = 30_000, 5_000
    kinds = admin_pb2.RetryPolicy
    config.retry.CopyFrom(kinds(kind=kinds.KIND_EXPONENTIAL, base_ms=100, cap_ms=60_000, jitter=1.0))
    config.hook_fallback, config.key_order = admin_pb2.HOOK_FALLBACK_POLICY, admin_pb2.KEY_ORDER_RELAXED
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(config=config)
    policy = events_pb2.KeyPolicy(fairness_key="acme", **set_for_acme)  # type: ignore[arg-type]
    broker.answers["ListKeyPolicies"] = events_pb2.ListKeyPoliciesResponse(
        policies=[policy] if set_for_acme else []
    )


def test_a_pause_is_lifted_only_where_the_file_says_so(fila, broker: FakeBroker, tmp_path):
    there(broker, paused=True)

    assert fila("apply", with_tables(tmp_path)).out == "nothing differs\n"
    said = fila("diff", with_tables(tmp_path, "paused = false"))
    assert said.out == "~ update orders paused true -> unset\n1 thing would change\n"
    fila("apply", with_tables(tmp_path, "paused = false"))
    request = broker.request("UpdateQueue")
    assert (list(request.update_mask.paths), request.config.paused) == (["paused"], False)


WHY = 'the "provider" is down\n\u202e'


def test_why_a_queue_and_a_key_are_paused_is_exported_and_changes_nothing(fila, broker: FakeBroker, tmp_path):
    there(broker, paused=True, weight=3)
    broker.answers["GetQueue"].pause.comment = WHY
    [policy] = broker.answers["ListKeyPolicies"].policies
    policy.paused, policy.pause.comment = True, WHY

    path = tmp_path / "exported.toml"
    path.write_text(exported := fila("export", "--keys", "orders").out)
    assert exported.count('paused = "the \\"provider\\" is down\\n\\U0000202e"\n') == 2
    assert fila("diff", str(path)).out == "nothing differs\n"
    path.write_text(re.sub(r'paused = ".*"', "paused = true", exported))
    assert fila("diff", str(path)).out == "nothing differs\n", "the file does not say why"


def test_a_file_says_why_something_is_paused(fila, broker: FakeBroker, tmp_path):
    there(broker, paused=True, weight=3)
    broker.answers["GetQueue"].pause.comment = "old"
    path = with_tables(tmp_path, 'paused = "new"', "[queues.orders.keys.acme]", 'paused = "its own"')

    assert fila("diff", path).out == (
        '~ update orders paused "old" -> "new"\n~ key orders/acme paused false -> "its own"\n'
        "2 things would change\n"
    )
    fila("apply", path)
    of_queue, of_key = broker.request("UpdateQueue"), broker.request("SetKeyPolicy")
    assert (list(of_queue.update_mask.paths), of_queue.config.paused) == (["paused"], True)
    assert (of_queue.comment, of_key.paused, of_key.comment) == ("new", True, "its own")


def test_a_queue_that_is_made_paused_is_told_why(fila, broker: FakeBroker, tmp_path):
    broker.answers["GetQueue"] = Refusal(StatusCode.NOT_FOUND, "none", "QUEUE_NOT_FOUND")

    fila("apply", with_tables(tmp_path, 'paused = "not yet"'))

    assert broker.request("CreateQueue").config.paused
    assert broker.request("UpdateQueue").comment == "not yet"


def in_channels(broker: FakeBroker, **why: str) -> None:
    """Channels that are paused, and why."""
    there(broker)
    broker.answers["GetQueue"].config.paused_channels.extend(why)
    channels = [admin_pb2.ChannelInfo(name="default"), *(admin_pb2.ChannelInfo(name=name) for name in why)]
    for channel in channels[1:]:
        channel.paused, channel.pause.comment = True, why[channel.name]
    broker.answers["ListChannels"] = admin_pb2.ListChannelsResponse(channels=channels)


def test_which_channels_are_paused_and_why_is_exported_and_changes_nothing(
    fila, broker: FakeBroker, tmp_path
):
    in_channels(broker, audit="it is rebuilt", mail="")
    path = tmp_path / "exported.toml"
    path.write_text(exported := fila("export", "orders").out)

    assert 'paused-channels = { "audit" = "it is rebuilt", "mail" = true }\n' in exported
    assert fila("diff", str(path)).out == "nothing differs\n"
    assert fila("diff", with_tables(tmp_path)).out == "nothing differs\n", "the file does not speak of pauses"


def test_channels_are_paused_and_resumed_as_a_file_says_each_with_its_reason(
    fila, broker: FakeBroker, tmp_path
):
    in_channels(broker, audit="old")
    path = with_tables(tmp_path, 'paused-channels = { mail = "new", sms = true }')

    assert fila("diff", path).out == (
        '~ pauses orders paused-channels { "audit" = "old" } -> { "mail" = "new", "sms" = true }\n'
        "1 thing would change\n"
    )
    fila("apply", path)
    told = [
        (list(each.config.paused_channels), each.comment)
        for name, each in broker.asked
        if name == "UpdateQueue"
    ]
    # The double says of each look that audit is paused, and nothing else.
    assert told == [([], ""), (["audit", "mail"], "new"), (["audit", "sms"], "")]
    assert fila("diff", with_tables(tmp_path, "paused-channels = {}")).out.count("-> unset") == 1


def test_another_reason_of_a_paused_channel_replaces_the_one_there_and_touches_no_other(
    fila, broker: FakeBroker, tmp_path
):
    in_channels(broker, audit="old", mail="mail's own", sms="sms's own")
    path = with_tables(
        tmp_path, 'paused-channels = { audit = "new", mail = "mail\'s own", sms = true, later = "not yet" }'
    )
    broker.answers["GetQueue"].config.paused_channels.append("later")

    assert fila("diff", path).out.endswith("1 thing would change\n")
    fila("apply", path)
    changed = [each for name, each in broker.asked if name == "UpdateQueue" and each.comment != "not yet"]

    assert [(list(each.config.paused_channels), each.comment) for each in changed] == [
        (["mail", "sms", "later", "audit"], "new")
    ]
    same = with_tables(tmp_path, 'paused-channels = { audit = "old", mail = true, sms = true, later = "x" }')
    assert fila("diff", same).out == "nothing differs\n", (
        "why a name without a channel is paused is not known"
    )


@pytest.mark.parametrize(
    ("given", "step"),
    [
        ('["audit", "mail"]', ': write paused-channels = { "audit" = true, "mail" = true }'),
        ("[1]", ""),
        ("{ audit = false, mail = true }", "; leave out a channel that is to go on"),
        ("{ audit = 1 }", ""),
        ('{ audit = "" }', ""),
    ],
)
def test_what_says_of_channels_that_they_are_paused_is_a_table(fila, tmp_path, given, step):
    said = fila("diff", with_tables(tmp_path, f"paused-channels = {given}"))
    assert said.code == 2
    assert (
        'queues.orders.paused-channels must be a table, as { audit = "why" }, or true in place of the reason'
        f"{step}; 'fila diff --help' shows how\n"
    ) in said.err


def test_an_export_says_of_a_paused_name_without_a_channel_that_its_reason_is_not_known(
    fila, broker: FakeBroker, tmp_path
):
    in_channels(broker, audit="it is rebuilt")
    broker.answers["GetQueue"].config.paused_channels.append('lat"er')
    path = tmp_path / "exported.toml"
    path.write_text(exported := fila("export", "orders").out)

    assert (
        '# There is no channel "lat\\"er" yet, so why it is paused is not known here.\n'
        'paused-channels = { "audit" = "it is rebuilt", "lat\\"er" = true }\n'
    ) in exported
    assert exported.count("# There is no channel") == 1
    assert fila("diff", str(path)).out == "nothing differs\n"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            "config.paused_channels[3] must be of A-Z a-z 0-9 . _ -",
            'queues."orders".paused-channels."a b": the name must be of A-Z a-z 0-9 . _ -',
        ),
        (
            "config.paused_channels must be at most 1000, got 1001",
            'queues."orders".paused-channels: must be at most 1000, got 1001',
        ),
    ],
)
def test_a_paused_name_that_the_broker_refuses_is_told_as_the_file_has_it(
    fila, broker: FakeBroker, tmp_path, told, said
):
    there(broker)
    broker.answers["UpdateQueue"] = Refusal(StatusCode.INVALID_ARGUMENT, told, "INVALID_ARGUMENT")

    ran = fila("apply", with_tables(tmp_path, 'paused-channels = { "a b" = true }'))

    assert (ran.code, ran.err) == (1, f"fila: {said}\n")


def test_a_channels_name_that_the_broker_refuses_is_told_by_its_place_in_the_file(
    fila, broker: FakeBroker, tmp_path
):
    broker.answers["GetQueue"] = Refusal(StatusCode.NOT_FOUND, "none", "QUEUE_NOT_FOUND")
    broker.answers["CreateQueue"] = Refusal(
        StatusCode.INVALID_ARGUMENT, "config.channels[1] must be of A-Z", "INVALID_ARGUMENT"
    )

    ran = fila("apply", with_tables(tmp_path, 'channels = ["default", "a b"]'))

    assert (ran.code, ran.err) == (1, "fila: channels[1] must be of A-Z\n")
