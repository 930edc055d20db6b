"""How a group is, put together from what its nodes told: each sentence is one that an operator reads."""

from __future__ import annotations

import dataclasses

import msgspec

from fila.v1 import cluster_pb2 as pb
from fila_server.cluster.peers import LINE_BYTES_MAX
from fila_server.cluster.reports import (
    REST,
    SETTINGS_MAX,
    Asked,
    Report,
    differing,
    nodes_of,
    redis_group,
    shared_settings,
)
from fila_server.config.kinds import Address
from fila_server.config.load import settings_by_section
from fila_server.config.schema import Config
from fila_server.operations.cluster import ClusterCalls, Reported
from fila_server.telemetry.group import GONE, HALTED, OWNER, STANDBY, GroupStatus

OWN = Report(
    1, "fila-1", 100, may_bid=False, wall_ms=0, role=OWNER, since_ms=50, version="0.1.0", formats=(3, 1),
    settings={"storage.durability": "aa"},
)  # fmt: skip
NEAR = msgspec.structs.replace(OWN, node=2, name="fila-2", position=98, role=STANDBY)


def asked(report: Report | None, *, clock_ms: int = 0, is_gone: bool = False) -> Asked:
    return Asked("10.0.0.2:5556", report, clock_ms, heard_ms=777, is_gone=is_gone)


def seen(report: Report | None, **more: bool | int):
    return nodes_of("10.0.0.1:5556", OWN, [asked(report, **more)])[1]  # type: ignore[arg-type]


def test_the_node_that_is_asked_is_the_first_and_is_behind_nobody():
    own, near = nodes_of("10.0.0.1:5556", OWN, [asked(NEAR)])
    assert (own.node, own.role, own.behind, own.clock_ms, own.is_synced) == ("fila-1", OWNER, 0, 0, True)
    assert (near.node, near.role, near.behind, near.is_synced) == ("fila-2", STANDBY, 2, True)


def test_an_owner_that_has_heard_a_newer_position_is_behind_it():
    ahead = msgspec.structs.replace(NEAR, position=105)
    own, near = nodes_of("10.0.0.1:5556", OWN, [asked(ahead)])
    assert (own.behind, near.behind) == (5, 0)
    assert nodes_of("10.0.0.1:5556", OWN, [asked(ahead, is_gone=True)])[0].behind == 0


def test_a_node_that_lacks_something_or_halts_is_not_in_sync_and_says_why():
    lacking = seen(msgspec.structs.replace(NEAR, lacks="the log is not read to its end"))
    assert (lacking.role, lacking.is_synced, lacking.lacks) == (
        STANDBY,
        False,
        "the log is not read to its end",
    )
    halted = seen(msgspec.structs.replace(NEAR, role=HALTED, lacks="the log was cut"))
    assert (halted.role, halted.is_synced) == (HALTED, False)


def test_a_node_that_is_gone_says_since_when_whatever_it_was():
    gone = seen(msgspec.structs.replace(NEAR, role=OWNER), is_gone=True)
    assert (gone.role, gone.since_ms, gone.is_synced) == (GONE, 777, False)
    silent = seen(None)
    assert (silent.peer_addr, silent.node, silent.role) == ("10.0.0.2:5556", "", GONE)


def test_a_clock_that_is_ahead_is_ahead_of_the_node_that_is_asked():
    assert seen(NEAR, clock_ms=-1500).clock_ms == 1500


def test_settings_differ_by_name_also_where_one_node_has_the_default():
    other = msgspec.structs.replace(NEAR, settings={"storage.durability": "ab", "limits.headers_max": "cc"})
    assert seen(other).differing == ("limits.headers_max", "storage.durability")
    assert seen(NEAR).differing == ()
    assert differing({"a": "1"}, {"a": "1"}) == ()


def test_an_earlier_version_says_less_and_is_taken_as_it_is():
    line = b'{"node": 2, "name": "fila-2", "position": 98, "may_bid": true, "wall_ms": 0}'
    old = seen(msgspec.json.decode(line, type=Report))
    assert (old.node, old.role, old.is_synced) == ("fila-2", "", False)


def changed(config: Config, section: str, **values: object) -> Config:
    inner = msgspec.structs.replace(getattr(config, section), **values)
    return msgspec.structs.replace(config, **{section: inner})


def test_defaults_places_and_what_is_one_nodes_own_are_not_told():
    assert shared_settings(Config()) == {}
    own = changed(
        Config(), "server", listen_addr=Address("10.0.0.1:5555"), data_dir="/elsewhere", io_threads=3
    )
    own = changed(own, "history", dir="/elsewhere")
    own = changed(own, "tls", cert_file="/a", key_file="/b")
    own = changed(own, "log", level="debug")
    assert shared_settings(own) == {}


def test_a_setting_is_told_as_a_word_that_another_value_does_not_have():
    words = [shared_settings(changed(Config(), "storage", durability=how)) for how in ("os", "none")]
    assert [list(each) for each in words] == [["storage.durability"]] * 2
    assert words[0] != words[1]
    assert "os" not in words[0].values()


def test_however_many_settings_are_none_of_the_defaults_a_report_stays_a_short_line():
    config = Config()
    for section, settings in settings_by_section().items():
        for key, setting in settings.items():
            if isinstance(setting.default, int) and not isinstance(setting.default, bool):
                config = changed(config, section, **{key: setting.default + 1})
    words = shared_settings(config)
    assert len(words) == SETTINGS_MAX + 1
    assert REST in words
    report = msgspec.structs.replace(
        OWN, name="n" * 63, settings=words, lacks="w" * 300, client_addr="h" * 260, redis_addr="h" * 260
    )
    assert len(msgspec.json.encode(report)) < LINE_BYTES_MAX / 2
    one_more = changed(config, "limits", payload_bytes_max=config.limits.payload_bytes_max + 5)
    assert len(differing(words, shared_settings(one_more))) == 1


def test_what_operators_are_told_is_what_the_node_knows():
    nodes = nodes_of("10.0.0.1:5556", OWN, [asked(NEAR, clock_ms=7), asked(None)])
    group = GroupStatus("orders", nodes, 4711, 2, 30, (5, 600), 3, 9)
    told = pb.GetClusterStatusResponse.FromString(ClusterCalls(lambda: group).status())
    assert (told.group, told.term, told.short_terms, told.takeovers, told.skipped_records) == (
        "orders",
        4711,
        2,
        3,
        9,
    )
    assert (told.unconfirmed_records, told.unconfirmed_bytes) == (5, 600)
    own, near, silent = told.nodes
    assert (own.role, own.node_id, own.in_sync, own.since.ToMilliseconds()) == (
        pb.NODE_ROLE_OWNER,
        1,
        True,
        50,
    )
    assert (near.behind_records, near.clock_offset_ms, near.store_format, near.log_format) == (2, -7, 3, 1)
    assert (silent.role, silent.node, silent.HasField("since")) == (pb.NODE_ROLE_GONE, "", False)
    assert ClusterCalls(lambda: group).counts == (3, 1, 2)
    assert group.owner is nodes[0]
    assert dataclasses.replace(group, nodes=nodes[1:]).owner is None


def test_a_broker_alone_tells_of_no_group():
    alone = ClusterCalls(None)
    assert pb.GetClusterStatusResponse.FromString(alone.status()) == pb.GetClusterStatusResponse()
    assert alone.counts == (1, 0, 0)


def test_each_change_of_another_node_is_told_once():
    reported = Reported()
    reads_on = msgspec.structs.replace(NEAR, lacks="the log is not read to its end")
    halted = msgspec.structs.replace(NEAR, role=HALTED, lacks="the log was cut")

    def told(report: Report | None, **more: bool) -> list[str]:
        nodes = nodes_of("10.0.0.1:5556", OWN, [asked(report, **more)])
        return [f"{kind} {node.node} {node.lacks}" for kind, node in reported.changes(nodes)]

    assert told(None) == []
    assert told(reads_on) == []
    assert told(NEAR) == ["cluster.standby fila-2 "]
    assert told(NEAR) == told(reads_on) == told(NEAR) == []
    assert told(NEAR, is_gone=True) == ["cluster.gone fila-2 it answers no probe"]
    assert told(reads_on) == told(NEAR, is_gone=True) == []
    assert told(NEAR) == ["cluster.standby fila-2 "]
    assert told(halted) == ["cluster.halted fila-2 the log was cut"]
    assert told(halted) == []


def test_redis_clients_are_told_of_each_node_that_has_answered_and_of_the_one_that_serves():
    owner = msgspec.structs.replace(NEAR, redis_addr="fila-2.example:9797")
    own = msgspec.structs.replace(OWN, redis_addr="")
    told = redis_group("orders", own, [asked(owner), asked(None)], owner, serves=False)
    assert [(each.node, each.host, each.port, each.is_gone) for each in told.others] == [
        ("fila-2", "fila-2.example", 9797, False)
    ]
    assert (told.own.node, told.own.port, told.owner) == ("fila-1", 0, told.others[0])
    assert redis_group("orders", own, [asked(owner)], owner, serves=True).is_owner
    gone = redis_group("orders", own, [asked(owner, is_gone=True)], None, serves=False)
    assert (gone.others[0].is_gone, gone.owner) == (True, None)
