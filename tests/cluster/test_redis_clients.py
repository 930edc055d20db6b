"""What Redis clients are told of a group: each sentence is what one of their libraries goes by."""

from __future__ import annotations

import pytest
from redis._parsers.helpers import parse_sentinel_masters, parse_sentinel_masters_resp3

from fila_server.cluster.standby_redis import KEPT_BYTES, KEPT_WORDS, Conversation, Decoder
from fila_server.config.cluster import Addresses, Cluster, redis_addr
from fila_server.config.kinds import Address, AddressOrOff
from fila_server.edge.redis import sentinel
from fila_server.edge.redis.sentinel import CHANNELS_MAX, Group, Member

OWNER = Member("fila-1", "fila-1.example", 9797, 70)
NEAR = Member("fila-2", "10.0.0.2", 9797, 69)
GONE = Member("fila-3", "10.0.0.3", 9797, 40, is_gone=True)
SILENT = Member("fila-4", "", 0, 70)
AT_OWNER = Group("orders", OWNER, (NEAR, GONE, SILENT), OWNER)
AT_STANDBY = Group("orders", NEAR, (OWNER, GONE), OWNER)
WITHOUT_OWNER = Group("orders", NEAR, (GONE,), None)
READONLY = b"-READONLY elsewhere\r\n"


def decoded(reply: bytes):
    """The one value of a reply."""
    value, rest = _value(reply)
    assert rest == b""
    return value


def _value(data: bytes):
    line, _, rest = data.partition(b"\r\n")
    kind, number = line[:1], line[1:]
    if kind in b"*>%":
        if number == b"-1":
            return None, rest
        found = []
        for _ in range(int(number) * (2 if kind == b"%" else 1)):
            value, rest = _value(rest)
            found.append(value)
        return (dict(zip(found[::2], found[1::2], strict=True)) if kind == b"%" else found), rest
    if kind == b"$" and number != b"-1":
        return rest[: int(number)].decode(), rest[int(number) + 2 :]
    if kind in b"_$":
        return None, rest
    return (int(number) if kind == b":" else line.decode()), rest


def asked(group: Group, *args: bytes, protocol: int = 2):
    return decoded(sentinel.answer(group, args, protocol))


def test_an_owner_and_a_broker_alone_are_masters():
    assert decoded(sentinel.role(None, 2)) == ["master", 0, []]
    assert decoded(sentinel.role(AT_OWNER, 2)) == ["master", 70, [["10.0.0.2", "9797", "69"]]]
    assert sentinel.replication(None) == {"role": "master", "connected_slaves": 0}
    about = sentinel.replication(AT_OWNER)
    assert (about["role"], about["connected_slaves"], about["master_repl_offset"]) == ("master", 1, 70)
    assert about["slave0"] == "ip=10.0.0.2,port=9797,state=online,offset=69,lag=0"


def test_a_standby_is_a_slave_of_the_owner():
    assert decoded(sentinel.role(AT_STANDBY, 2)) == ["slave", "fila-1.example", 9797, "connected", 69]
    assert decoded(sentinel.role(WITHOUT_OWNER, 2)) == ["slave", "", 0, "connect", 69]
    about = sentinel.replication(AT_STANDBY)
    assert (about["role"], about["master_host"], about["master_port"]) == ("slave", "fila-1.example", 9797)
    assert about["master_link_status"] == "up"
    assert sentinel.replication(WITHOUT_OWNER)["master_link_status"] == "down"


@pytest.mark.parametrize("group", [AT_OWNER, AT_STANDBY])
def test_every_node_knows_the_owner_by_the_groups_name(group):
    question = b"get-master-addr-by-name"
    assert asked(group, question, b"orders") == ["fila-1.example", "9797"]
    assert asked(group, question, b"bills") is None
    assert sentinel.answer(WITHOUT_OWNER, (question, b"orders"), 2) == b"*-1\r\n"
    assert sentinel.answer(WITHOUT_OWNER, (question, b"orders"), 3) == b"_\r\n"


@pytest.mark.parametrize(
    ("protocol", "parsed"), [(2, parse_sentinel_masters), (3, parse_sentinel_masters_resp3)]
)
def test_redis_py_takes_the_owner_for_a_master_that_lives(protocol, parsed):
    known = parsed(asked(AT_STANDBY, b"MASTERS", protocol=protocol))["orders"]
    assert known["is_master"]
    assert not known["is_sdown"]
    assert not known["is_odown"]
    assert (known["ip"], known["port"], known["num-other-sentinels"]) == ("fila-1.example", 9797, 2)
    assert parsed(asked(WITHOUT_OWNER, b"MASTERS", protocol=protocol)) == {}


def test_other_nodes_are_sentinels_and_standbys_are_replicas():
    def flags(*question: bytes) -> dict[str, str]:
        return {each["name"]: each["flags"] for each in asked(AT_OWNER, *question, protocol=3)}

    gone = {"fila-3": "s_down,sentinel,disconnected"}
    assert flags(b"SENTINELS", b"orders") == {"fila-2": "sentinel", **gone}
    for word in (b"replicas", b"SLAVES"):
        assert flags(word, b"orders") == {"fila-2": "slave", "fila-3": "s_down,slave,disconnected"}
    assert asked(AT_OWNER, b"MASTER", b"orders", protocol=3)["num-slaves"] == "2"
    ids = {each["runid"] for each in asked(AT_OWNER, b"SENTINELS", b"orders", protocol=3)}
    assert asked(AT_STANDBY, b"MYID") in ids


@pytest.mark.parametrize(
    ("question", "refused"),
    [
        ([b"MASTER", b"bills"], "-ERR No such master with that name: the group is orders"),
        ([b"REPLICAS", b"bills"], "-ERR No such master with that name: the group is orders"),
        ([b"SENTINELS"], "-MPA usage"),
        ([b"MASTER", b"orders", b"now"], "-IPA usage"),
        ([b"FAILOVER", b"orders"], "-ICOM SENTINEL has"),
        ([b"x\r\n+OK"], "-ICOM SENTINEL has"),
    ],
)
def test_what_is_no_question_of_this_group_is_refused_in_one_line(question, refused):
    assert asked(AT_OWNER, *question).startswith(refused)


def said(conversation: Conversation, *lines: bytes):
    return [decoded(conversation.take(line + b"\r\n", READONLY)[0]) for line in lines]


def test_greetings_are_answered_as_redis_does_and_all_else_is_refused():
    talk = Conversation(lambda: AT_STANDBY)
    about, *rest = said(
        talk, b"HELLO 3 AUTH default word SETNAME me", b"CLIENT SETNAME me", b"SELECT 0", b"PING hi", b"RESET"
    )
    assert (about["proto"], about["role"]) == (3, "replica")
    assert rest == ["+OK", "+OK", "hi", "+RESET"]
    assert said(talk, b"HELLO 4") == ["-NOPROTO unsupported protocol version"]
    for line in (b"SET q c", b"RPUSH q m", b"INFO server", b"INFO queues", b"CONFIG GET server", b"SENTINEL",
                 b"CLIENT LIST", b"ROLE now", b"COMMAND", b"SELECT 1", b"SUBSCRIBE"):  # fmt: skip
        assert said(talk, line) == ["-READONLY elsewhere"]


def test_info_says_what_ioredis_looks_for():
    talk = Conversation(lambda: AT_STANDBY)
    for line in (b"INFO", b"info all", b"INFO replication"):
        (text,) = said(talk, line)
        assert "role:slave\r\n" in text
        assert ("loading:0\r\n" in text) is (line != b"INFO replication")


def test_a_subscriber_hears_once_more_than_it_asked_and_no_more_channels_than_the_bound():
    talk = Conversation(lambda: AT_STANDBY)
    before, now = ("10.0.0.9", 1), ("10.0.0.2", 2)
    assert talk.switched(before, now) == b""
    assert said(talk, b"SUBSCRIBE +switch-master") == [["subscribe", "+switch-master", 1]]
    assert said(talk, b"PING") == [["pong", ""]]
    assert decoded(talk.switched(before, now)) == [
        "message",
        "+switch-master",
        "orders 10.0.0.9 1 10.0.0.2 2",
    ]
    names = b" ".join(b"c%d" % number for number in range(CHANNELS_MAX))
    assert said(talk, b"SUBSCRIBE " + names)[0].startswith("-IPA a connection has at most 16 channels")
    for ended in ("+switch-master", None):
        assert said(talk, b"UNSUBSCRIBE") == [["unsubscribe", ended, 0]]
    assert talk.switched(before, now) == b""


def test_a_decoder_keeps_the_beginning_of_what_is_large():
    words = [b"w" * (KEPT_BYTES + 9)] * (KEPT_WORDS + 3)
    packed = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    for step in (1, 7, 300, len(packed)):
        decoder = Decoder()
        found = [
            each for at in range(0, len(packed), step) for each in decoder.commands(packed[at : at + step])
        ]
        assert [len(each) for each in found] == [KEPT_WORDS]
        assert {len(word) for word in found[0]} == {KEPT_BYTES}
    assert list(Decoder().commands(b"*2\r\n$4\r\nPING\r\n$0\r\n\r\nROLE\r\n\r\n*0\r\n")) == [
        [b"PING", b""],
        [b"ROLE"],
    ]


NEAR_PEERS, FAR_PEERS = "127.0.0.1:5556,127.0.0.1:5557", "10.0.0.1:5556,10.0.0.2:5556"


@pytest.mark.parametrize(
    ("peers", "given", "listens", "told"),
    [
        (NEAR_PEERS, "", "127.0.0.1:9797", "127.0.0.1:9797"),
        (NEAR_PEERS, "", "127.0.0.1:0", None),
        (FAR_PEERS, "", "127.0.0.1:9797", None),
        (FAR_PEERS, "", "localhost:9797", None),
        (FAR_PEERS, "", "0.0.0.0:9797", "fila-1:9797"),
        (FAR_PEERS, "", "[::]:9797", "fila-1:9797"),
        (FAR_PEERS, "", "10.0.0.1:9797", "10.0.0.1:9797"),
        (FAR_PEERS, "redis.example:1", "127.0.0.1:0", "redis.example:1"),
    ],
)
def test_a_node_tells_where_its_redis_port_is_if_others_reach_it(peers, given, listens, told):
    cluster = Cluster(peers=Addresses(peers), advertised_redis_addr=AddressOrOff(given))
    assert redis_addr(cluster, Address(listens), "fila-1:5555") == told
