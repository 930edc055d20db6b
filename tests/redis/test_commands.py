"""Each command of the table, asked of a real server: its replies and the prefixes of its errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fila.v1 import admin_pb2
from tests.e2e.conftest import RunningServer, StartServer
from tests.redis.conftest import Connect, connected_to
from tests.redis.raw_client import ErrorReply, RawClient, Status, command
from tests.waiting import until

pytestmark = pytest.mark.e2e

MANY = 2**63


def assert_error(reply: Any, prefix: str, *words: str) -> None:
    assert isinstance(reply, ErrorReply), reply
    assert reply.split()[0] == prefix, reply
    for word in words:
        assert word in reply, reply


def config_of(admin: Any, queue: str = "orders") -> admin_pb2.QueueConfig:
    config: admin_pb2.QueueConfig = admin.GetQueue(admin_pb2.GetQueueRequest(queue=queue)).config
    return config


def stats_of(admin: Any, queue: str = "orders") -> admin_pb2.GetStatsResponse:
    stats: admin_pb2.GetStatsResponse = admin.GetStats(admin_pb2.GetStatsRequest(queue=queue))
    return stats


def limit(admin: Any, max_depth: int) -> None:
    """Let the queue `orders` hold so many messages; no command of Redis says that."""
    request = admin_pb2.UpdateQueueRequest(queue="orders", config=admin_pb2.QueueConfig(max_depth=max_depth))
    request.update_mask.paths.append("max_depth")
    admin.UpdateQueue(request)


# --- SET, SETNX, DEL ----------------------------------------------------------------------


async def test_set_makes_a_queue_with_only_the_named_channel_and_a_days_hard_retention(
    orders: RawClient, admin: Any
):
    config = config_of(admin)

    assert list(config.channels) == ["mail"]
    assert config.retention.hard_period_ms == 24 * 3600 * 1000
    assert config.visibility_timeout_ms == 30_000
    assert config.max_attempts == 20
    assert (config.retry.base_ms, config.retry.jitter) == (1, 0), "an expired ticket is given on at once"


async def test_set_of_an_existing_queue_is_qae_unless_nx_asks_for_what_is_missing(
    orders: RawClient, admin: Any
):
    assert_error(await orders("SET", "orders", "audit"), "QAE", "SETNX")
    assert await orders("SET", "orders", "audit", "nx") == Status("OK")
    assert await orders("SETNX", "orders", "audit") == Status("OK")
    assert await orders("SETNX", "fresh", "mail") == Status("OK")

    assert {channel.name for channel in stats_of(admin, "orders").channels} == {"mail", "audit"}
    assert [channel.name for channel in stats_of(admin, "fresh").channels] == ["mail"]


async def test_set_takes_no_option_of_redis_but_nx(client: RawClient):
    assert_error(await client("SET", "orders", "mail", "XX"), "IPA", "NX")
    assert_error(await client("SET", "orders", "mail", "EX", "10"), "IPA")


async def test_a_new_channel_starts_at_the_head(orders: RawClient):
    await orders("RPUSH", "orders", "before")
    await orders("SETNX", "orders", "audit")
    await orders("RPUSH", "orders", "after")

    assert [row[2] for row in await orders("HMGET", "orders", "audit", 10)] == [b"after"]


async def test_del_answers_whether_there_was_something(orders: RawClient):
    assert await orders("DEL", "orders", "audit") == 0
    assert await orders("DEL", "orders", "mail") == 1
    assert await orders("DEL", "orders") == 1
    assert await orders("DEL", "orders") == 0
    assert await orders("DEL", "orders", "mail") == 0


# --- RPUSH, HMGET, HDEL -------------------------------------------------------------------


async def test_a_message_lives_from_push_to_ack(orders: RawClient):
    assert await orders("RPUSH", "orders", "a", b"\r\n\x00\xff", "") == 3

    rows = await orders("HMGET", "orders", "mail", 10)
    assert [(row[0], row[2]) for row in rows] == [(1, b"a"), (2, b"\r\n\x00\xff"), (3, b"")]
    assert await orders("HMGET", "orders", "mail", 10) == []

    tickets = [row[1] for row in rows]
    assert all(-MANY <= ticket < MANY for ticket in tickets)
    assert await orders("HDEL", "orders", "mail", *tickets[:2]) == 2
    assert await orders("HDEL", "orders", "mail", *tickets) == 1
    assert await orders("HDEL", "orders", "mail", tickets[0]) == 0


async def test_a_push_of_many_is_all_or_none(orders: RawClient, admin: Any):
    limit(admin, max_depth=5)

    assert_error(await orders("RPUSH", "orders", *range(6)), "ERR", "max_depth")
    assert await orders("HMGET", "orders", "mail", 10) == []
    assert await orders("RPUSH", "orders", *range(5)) == 5


async def test_a_pipeline_of_pushes_has_one_reply_each(orders: RawClient):
    await orders("SET", "bills", "mail")
    orders.send(b"".join(command("RPUSH", name, name) for name in ("orders", "bills", "nowhere", "orders")))

    assert await orders.reply() == 1
    assert await orders.reply() == 1
    assert_error(await orders.reply(), "QNF", "nowhere")
    assert await orders.reply() == 1
    assert [row[2] for row in await orders("HMGET", "orders", "mail", 9)] == [b"orders", b"orders"]
    assert [row[2] for row in await orders("HMGET", "bills", "mail", 9)] == [b"bills"]


async def test_unknown_queues_and_channels_have_their_prefixes(orders: RawClient):
    assert_error(await orders("RPUSH", "nowhere", "m"), "QNF", "nowhere")
    assert_error(await orders("RPUSH", "nowhere", "m", "n"), "QNF")
    assert_error(await orders("HMGET", "nowhere", "mail", 1), "QNF")
    assert_error(await orders("HMGET", "orders", "audit", 1), "CNF", "audit")
    assert_error(await orders("HDEL", "nowhere", "mail", 1), "QNF")
    assert_error(await orders("HDEL", "orders", "audit", 1), "CNF")
    assert_error(await orders("HMSET", "orders", "audit", "ID", 1), "CNF")
    assert_error(await orders("HMSET", "nowhere", "audit", "ID", 1), "QNF")
    assert await orders("SREM", "nowhere", "*") == 0
    assert await orders("SREM", "orders", "audit") == 0


async def test_a_ticket_that_is_no_integer_acks_nothing(orders: RawClient, admin: Any):
    await orders("RPUSH", "orders", "a")
    ((_, ticket, _),) = await orders("HMGET", "orders", "mail", 1)

    for bad in ("x", "", "1.5", " 1", "1e3", str(MANY), str(-MANY - 1), str(2 * MANY), "9" * 40, "-", "+1"):
        assert_error(await orders("HDEL", "orders", "mail", ticket, bad), "IPA", "Invalid Ticket: must be")
    assert stats_of(admin).channels[0].in_flight == 1
    assert await orders("HDEL", "orders", "mail", ticket, MANY - 1, -MANY) == 1


async def test_more_tickets_than_a_frame_holds_are_acked_all_the_same(orders: RawClient, admin: Any):
    for _ in range(3):
        await orders("RPUSH", "orders", *["m"] * 10_000)
    tickets: list[int] = []
    while rows := await orders("HMGET", "orders", "mail", 20_000):
        tickets += [row[1] for row in rows]

    assert await orders("HDEL", "orders", "mail", *tickets[:25_000]) == 25_000
    assert stats_of(admin).channels[0].in_flight == 5_000


@pytest.mark.parametrize("count", ["x", "-1", "1.5", "", str(MANY)])
async def test_a_count_must_be_a_number_of_messages(orders: RawClient, count: str):
    assert_error(await orders("HMGET", "orders", "mail", count), "IPA", "count")


@pytest.mark.parametrize("seconds", ["x", "-1", "nan", "inf", "", "1s", "0x10", "1_0", "86401", "1e308"])
async def test_a_timeout_must_be_seconds_of_at_most_a_day(orders: RawClient, seconds: str):
    assert_error(await orders("HMGET", "orders", "mail", 1, seconds), "IPA", "timeout")


async def test_count_zero_reads_nothing_and_timeout_zero_waits_for_nothing(orders: RawClient):
    assert await orders("HMGET", "orders", "mail", 1, 0) == []
    await orders("RPUSH", "orders", "a")
    assert await orders("HMGET", "orders", "mail", 0) == []
    assert await orders("HMGET", "orders", "mail", 0, 10) == []
    assert len(await orders("HMGET", "orders", "mail", 1, "0.0")) == 1


@pytest.mark.parametrize("seconds", ["1", "0.25", "1e-9", "86400"])
async def test_a_timeout_may_be_any_fraction(orders: RawClient, connect: Connect, seconds: str):
    """What it becomes in milliseconds is asked of the decoder; here a read takes it, and waits."""
    orders.send(command("HMGET", "orders", "mail", 1, seconds) + command("PING"))
    if float(seconds) > 1:
        await (await connect())("RPUSH", "orders", "a")
        assert [row[2] for row in await orders.reply()] == [b"a"]
    else:
        assert await orders.reply() is None
    assert await orders.reply() == Status("PONG")


async def test_the_broker_refusing_is_told_to_each_push(orders: RawClient, admin: Any):
    limit(admin, max_depth=1)
    orders.send(command("RPUSH", "orders", "a") * 3)

    assert await orders.reply() == 1
    for _ in range(2):
        assert_error(await orders.reply(), "ERR", "max_depth", "try again")


# --- HMSET, SREM --------------------------------------------------------------------------


async def test_a_seek_gives_back_what_is_retained(orders: RawClient):
    await orders("RPUSH", "orders", "a", "b", "c")
    await orders("HMGET", "orders", "mail", 3)

    assert await orders("HMSET", "orders", "mail", "id", 2) == 2
    assert [row[0] for row in await orders("HMGET", "orders", "mail", 3)] == [2, 3]
    assert await orders("HMSET", "orders", "mail", "TS", 0) == 2
    assert len(await orders("HMGET", "orders", "mail", 3)) == 3
    assert await orders("HMSET", "orders", "mail", "ts", "1700000000.123456789") == 2
    assert len(await orders("HMGET", "orders", "mail", 3)) == 3
    assert await orders("HMSET", "orders", "mail", "ts", "4102444800.123456789") == 2
    assert await orders("HMGET", "orders", "mail", 3) == []
    assert await orders("HMSET", "orders", "mail", "ID", 2**64 - 1) == 2
    assert await orders("HMSET", "orders", "mail", "TS", "-5.5") == 2


@pytest.mark.parametrize(
    ("by", "value"),
    [("ID", "x"), ("ID", "-1"), ("ID", str(2**64)), ("ID", "1.5"), ("ID", ""), ("ID", "\u0661"), ("TS", "x"),
     ("TS", "nan"), ("TS", "inf"), ("TS", ""), ("TS", "1700000000000"), ("TS", "1" * 50), ("AT", "1")],
)  # fmt: skip
async def test_a_position_must_be_one(orders: RawClient, by: str, value: str):
    assert_error(await orders("HMSET", "orders", "mail", by, value), "IPA")


async def test_srem_empties_one_channel_or_all(orders: RawClient):
    await orders("SETNX", "orders", "audit")
    await orders("RPUSH", "orders", "a")

    assert await orders("SREM", "orders", "mail") == 1
    assert await orders("HMGET", "orders", "mail", 1) == []
    assert await orders("SREM", "orders", "*") == 1
    assert await orders("HMGET", "orders", "audit", 1) == []


# --- INFO, CONFIG -------------------------------------------------------------------------


async def _json(client: RawClient, *args: str) -> Any:
    (text,) = await client(*args)
    return json.loads(text)


async def test_info_counts_clients_and_queues(orders: RawClient, connect: Connect):
    other = await connect()
    await other("PING")
    about = await _json(orders, "INFO", "server")

    assert about["client_count"] == 2
    assert about["blocked_client_count"] == 0
    assert about["queue_count"] == 2
    assert about["thread_count"] >= 1
    assert about["clock"] > 1.7e9


async def test_info_describes_queues_by_prefix(orders: RawClient):
    await orders("SET", "bills", "mail")
    await orders("RPUSH", "orders", "aa", "b")
    await orders("HMGET", "orders", "mail", 1)

    assert list(await _json(orders, "INFO", "queues")) == ["bills", "bills.dlq", "orders", "orders.dlq"]
    about = (await _json(orders, "INFO", "queues.ord"))["orders"]
    assert (about["tail"], about["head"], about["segments_count"]) == (1, 3, 1)
    assert 3 < about["disk_usage"] < 100
    assert about["channels"]["mail"]["tail"] == 1
    assert about["channels"]["mail"]["in_flight_count"] == 1
    assert "last_touched" in about["channels"]["mail"]


async def test_a_bare_info_is_the_text_that_redis_clients_expect(orders: RawClient):
    text = (await orders("INFO")).decode()

    assert "redis_version:" in text
    assert "loading:0\r\n" in text
    assert "connected_clients:1\r\n" in text
    assert_error(await orders("INFO", "weather"), "IPA")


async def test_a_broker_alone_is_a_master_and_no_sentinel(client: RawClient):
    assert await client("ROLE") == [b"master", 0, []]
    assert await client("INFO", "replication") == b"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
    for word in ("SENTINEL", "SUBSCRIBE", "UNSUBSCRIBE"):
        assert_error(await client(word, "masters"), "UCOM")
        assert (await client("COMMAND", "INFO", word))[0] is None


async def test_config_of_the_server_is_kept_and_shown_as_set(start_server: StartServer):
    server = start_server()
    client = await connected_to(server)
    before = await _json(client, "CONFIG", "GET", "server")
    assert before["max_connections"] == 10_000
    assert before["default_queue_config"]["hard_retention_period"] == "1d"
    assert before["set_by_config_set"] == []

    assert await client("CONFIG", "SET", "server.max_connections", "60") == Status("OK")
    assert await client("CONFIG", "SET", "server.default_queue_config.message_timeout", "5s") == Status("OK")
    assert await client("CONFIG", "SET", "server.segment_size", "1gb") == Status("OK")

    after = await _json(client, "config", "get", "SERVER")
    assert after["max_connections"] == 60
    assert after["default_queue_config"]["message_timeout"] == "5s"
    assert after["default_queue_config"]["segment_size"] == "1gb"
    assert after["set_by_config_set"] == ["max_connections", "message_timeout", "segment_size"]
    kept = server.admin.GetConfig(admin_pb2.GetConfigRequest(key="_fila.redis.max_connections"))
    assert kept.value == "60"
    await client("SET", "fresh", "mail")
    assert config_of(server.admin, "fresh").visibility_timeout_ms == 5000
    await client.close()


async def test_what_config_set_keeps_of_a_queue_goes_when_either_protocol_ends_it(
    orders: RawClient, admin: Any
):
    def kept() -> list[str]:
        entries = admin.ListConfig(admin_pb2.ListConfigRequest(prefix="_fila.redis.segment_size/")).entries
        return [entry.key for entry in entries]

    for name in ("one", "two"):
        await orders("SET", name, "mail")
        await orders("CONFIG", "SET", f"queues.{name}.segment_size", "8mb")
    assert len(kept()) == 2

    await orders("DEL", "one")
    admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue="two"))
    until(lambda: not kept())


async def test_config_of_a_queue_changes_what_it_names_and_nothing_else(
    orders: RawClient, admin: Any, server: RunningServer
):
    await orders("SET", "or.ders", "mail")
    for key, value in (
        ("message_timeout", "10s"), ("retention_period", "7d"), ("retention_size", "16mb"),
        ("hard_retention_period", "0"), ("hard_retention_size", "1gb"), ("segment_size", "8mb"),
    ):  # fmt: skip
        assert await orders("CONFIG", "SET", f"queues.or.ders.{key}", value) == Status("OK")

    config = config_of(admin, "or.ders")
    assert config.visibility_timeout_ms == 10_000
    assert config.retention.soft_period_ms == 7 * 86_400_000
    assert config.retention.soft_bytes == 16 * 2**20
    assert config.retention.hard_period_ms == 0
    assert config.retention.hard_bytes == 2**30
    assert config.max_attempts == 20
    shown = await _json(orders, "CONFIG", "GET", "queues.or.")
    assert shown["or.ders"] == {
        "name": "or.ders", "data_directory": str(server.data_dir), "message_timeout": "10s", "segment_size": "8mb",
        "retention_period": "7d", "retention_size": "16mb", "hard_retention_period": "0s",
        "hard_retention_size": "1gb",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "prefix"),
    [
        ("server.data_directory", "x", "IPA"), ("server.max_connections", "0", "IPA"),
        ("server.max_connections", "x", "IPA"), ("server.message_timeout", "0", "IPA"),
        ("server.message_timeout", "13h", "IPA"), ("server.retention_period", "1 fortnight", "IPA"),
        ("server.hard_retention_period", "365001d", "IPA"), ("queues.orders.hard_retention_period", "365001d", "IPA"),
        ("queues.orders.message_timeout", "10ms", "IPA"), ("queues.orders.colour", "red", "IPA"),
        ("queues.orders.retention_size", "1s", "IPA"), ("queues.nowhere.message_timeout", "10s", "QNF"),
        ("queues.message_timeout", "10s", "IPA"), ("maxmemory", "1gb", "IPA"), ("", "", "IPA"),
    ],
)  # fmt: skip
async def test_a_bad_setting_is_refused_and_changes_nothing(
    orders: RawClient, key: str, value: str, prefix: str
):
    async def shown() -> list[Any]:
        return [await _json(orders, "CONFIG", "GET", section) for section in ("server", "queues.orders")]

    before = await shown()
    assert_error(await orders("CONFIG", "SET", key, value), prefix)
    assert await shown() == before


async def test_config_words_that_are_not_ours_are_refused(orders: RawClient):
    assert_error(await orders("CONFIG", "GET", "maxmemory"), "IPA")
    assert_error(await orders("CONFIG", "REWRITE"), "ICOM")
    assert_error(await orders("CONFIG"), "MPA")
    assert_error(await orders("CONFIG", "SET", "server.max_connections"), "MPA")


# --- names and numbers of arguments -------------------------------------------------------


@pytest.mark.parametrize("name", ["", ".hidden", "a b", "a/b", "n" * 256, "\u00e9", "a\r\nb", "*"])
async def test_a_bad_name_is_refused_wherever_it_stands(orders: RawClient, name: str):
    for args in (
        ("SET", name, "mail"), ("SETNX", name, "mail"), ("RPUSH", name, "m"), ("RPUSH", name, "m", "n"),
        ("HMGET", name, "mail", 1), ("HDEL", name, "mail", 1), ("HMSET", name, "mail", "ID", 1),
        ("DEL", name), ("SREM", name, "*"), ("SETNX", "orders", name), ("HMGET", "orders", name, 1),
        ("HDEL", "orders", name, 1), ("HMSET", "orders", name, "ID", 1), ("DEL", "orders", name),
    ):  # fmt: skip
        assert_error(await orders(*args), "IPA")
    assert await orders("PING") == Status("PONG")


async def test_names_of_the_broker_cannot_be_made(client: RawClient):
    assert_error(await client("SET", "_fila.secret", "mail"), "IPA", "_fila")


@pytest.mark.parametrize(
    "args",
    [
        ["RPUSH"], ["RPUSH", "q"], ["HMGET"], ["HMGET", "q", "c"], ["HDEL", "q", "c"], ["HMSET", "q", "c", "ID"],
        ["SET", "q"], ["SETNX", "q"], ["DEL"], ["SREM", "q"], ["CONFIG"], ["ECHO"], ["SELECT"], ["CLIENT"], ["AUTH"],
    ],
)  # fmt: skip
async def test_too_few_parameters_are_mpa(client: RawClient, args: list[str]):
    assert_error(await client(*args), "MPA", args[0])
    assert_error(await client(*[arg.lower() for arg in args]), "MPA", args[0])


@pytest.mark.parametrize(
    "args",
    [
        ["HMGET", "q", "c", "1", "1", "1"], ["HMSET", "q", "c", "ID", "1", "1"], ["SETNX", "q", "c", "NX"],
        ["DEL", "q", "c", "d"], ["SREM", "q", "c", "d"], ["INFO", "server", "queues"], ["PING", "a", "b"],
    ],
)  # fmt: skip
async def test_too_many_parameters_are_ipa(client: RawClient, args: list[str]):
    assert_error(await client(*args), "IPA")


async def test_unknown_commands_say_so_and_the_connection_stays(client: RawClient):
    assert_error(await client("LPUSH", "q", "m"), "UCOM", "ERR unknown command 'LPUSH'")
    assert_error(await client("a\r\nb" * 1000), "UCOM")
    assert_error(await client(""), "UCOM")
    assert await client("PING") == Status("PONG")
