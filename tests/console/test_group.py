"""The page of a group: how its nodes are, another one is let serve, and nothing of it where the broker is alone."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest

from fila.v1 import cluster_pb2 as pb
from tests.cli.fake_broker import FakeBroker, Refusal
from tests.console.conftest import RunningConsole, start_console

pytestmark = [pytest.mark.e2e]

HOME = "/b/broker/"
OWNER, STANDBY, GONE = pb.NODE_ROLE_OWNER, pb.NODE_ROLE_STANDBY, pb.NODE_ROLE_GONE


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[FakeBroker, FakeBroker]]:
    both = FakeBroker(), FakeBroker()
    yield both
    for each in both:
        each.stop()


@pytest.fixture(scope="module")
def console(nodes) -> Iterator[RunningConsole]:
    running = start_console(",".join(each.address for each in nodes))
    yield running
    running.stop()


@pytest.fixture
def group(nodes: tuple[FakeBroker, FakeBroker]) -> tuple[FakeBroker, FakeBroker]:
    for each in nodes:
        each.answers.clear()
        each.asked.clear()
    told = status(
        node("fila-1", OWNER, position=4_711, in_sync=True),
        node("fila-2", STANDBY, position=4_699, behind_records=12, in_sync=True, clock_offset_ms=4),
        node(
            "fila-3", STANDBY, behind_records=9, clock_offset_ms=-3_600_000,
            lacks="its clock is off", differing_settings=["limits.headers_max"],
        ),
        pb.ClusterNode(peer_addr="10.0.0.4:5556", role=GONE),
    )  # fmt: skip
    nodes[0].answers["GetClusterStatus"] = told
    return nodes


def node(name: str, role: pb.NodeRole, *, minutes: int = 90, **more: Any) -> pb.ClusterNode:
    told = pb.ClusterNode(
        node=name, role=role, version="0.1.0", store_format=3, log_format=1, peer_addr=f"{name}:5556", **more
    )
    told.since.FromDatetime(datetime.now(UTC) - timedelta(minutes=minutes, seconds=20))
    return told


def status(*nodes: pb.ClusterNode, term: int = 4096) -> pb.GetClusterStatusResponse:
    return pb.GetClusterStatusResponse(
        group="orders", term=term, nodes=nodes, takeovers=3, skipped_records=2, unconfirmed_records=7
    )


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def page_of(console: RunningConsole) -> str:
    # What was asked a second ago is shown again within a second: a page of another query is the same watch.
    answer = console.get(HOME + "group")
    assert answer.status == 200, answer.text
    return words(answer.text)


def preview(console: RunningConsole, act: str, name: str = "") -> str:
    return words(console.get(f"{HOME}group/preview?act={act}&node={name}").text)


def sent(console: RunningConsole, act: str, **fields: str) -> Any:
    token = console.get(HOME + "group").csrf
    return console.post(f"{HOME}group/{act}", {"csrf": token, **fields})


def test_each_node_is_told_with_its_role_and_why_it_would_not_take_over(console, group):
    page = page_of(console)

    assert "fila-1 serves orders; 2 of 4 nodes in sync." in page
    assert (
        "term 4096, 7 records (0 bytes) not confirmed yet, 3 takeovers since it started, 2 records skipped"
        in page
    )
    assert "fila-1 serves 1 h 30 min 0 \u2013 0 ms 0.1.0 3/1" in page
    assert "fila-2 standby, in sync 1 h 30 min 12 \u2013 +4 ms 0.1.0 3/1" in page
    assert (
        "fila-3 ▲ standby: its clock is off 1 h 30 min 9 limits.headers_max -3,600,000 ms 0.1.0 3/1" in page
    )
    assert "10.0.0.4:5556 ● it has never answered" in page
    assert f'href="{HOME}group"' in console.get(HOME + "limits").text


def test_a_move_says_first_what_it_does_and_why_it_would_not(console, group):
    best = preview(console, "move")
    assert best.startswith(
        "fila-1 finishes what is in hand and stops; fila-2 has read all but 12 records and takes over."
    )
    assert "without a dedup key" in best
    assert best.endswith("From a shell: fila cluster move")
    assert preview(console, "move", "fila-2").endswith("fila cluster move fila-2")
    assert (
        preview(console, "move", "fila-3")
        == "fila-3 cannot take over: its clock is off. Nothing would happen."
    )
    assert "it serves already" in preview(console, "move", "fila-1")
    assert "the group has no such node" in preview(console, "move", "fila-9")

    group[0].answers["GetClusterStatus"] = status(node("fila-1", OWNER), node("fila-2", GONE))
    assert (
        preview(console, "move")
        == "No standby can take over. fila-2: it answers no probe. Nothing would happen."
    )


def test_a_move_is_over_when_the_other_node_serves_and_has_a_way_back(console, group):
    def moved(request: pb.MoveOwnerRequest) -> pb.MoveOwnerResponse:
        now = status(node("fila-2", OWNER, in_sync=True), node("fila-1", STANDBY), term=4200)
        group[0].answers["GetClusterStatus"] = now
        return pb.MoveOwnerResponse(node="fila-2", term=4096)

    group[0].answers["MoveOwner"] = moved
    answer = sent(console, "move", node="fila-2")

    assert (
        words(answer.text)
        == "fila-2 serves. From a shell: fila cluster move fila-2 Undo: move back to fila-1"
    )
    assert group[0].request("MoveOwner").node == "fila-2"
    assert 'name="node" value="fila-1"' in answer.text


def test_a_move_that_another_node_won_is_said(console, group):
    def moved(request: pb.MoveOwnerRequest) -> pb.MoveOwnerResponse:
        group[0].answers["GetClusterStatus"] = status(node("fila-3", OWNER), term=4200)
        return pb.MoveOwnerResponse(node="fila-2", term=4096)

    group[0].answers["MoveOwner"] = moved
    told = words(sent(console, "move", node="").text)
    assert told.startswith("fila-2 was told to take over, and fila-3 did: look at the log of fila-2.")


def test_a_refused_move_is_told_in_the_brokers_words(console, group):
    group[0].answers["MoveOwner"] = Refusal(
        grpc.StatusCode.FAILED_PRECONDITION, "fila-3 cannot take over: its clock is off"
    )
    assert "fila-3 cannot take over: its clock is off" in words(sent(console, "move", node="fila-3").text)


def test_a_node_that_is_gone_is_removed_by_somebody_who_is_sure(console, group):
    group[0].answers["RemoveNode"] = pb.RemoveNodeResponse(peer_addr="10.0.0.4:5556")
    assert sent(console, "remove", node="10.0.0.4:5556").status == 400
    assert preview(console, "remove", "10.0.0.4:5556").endswith("fila cluster remove 10.0.0.4:5556")
    assert preview(console, "remove", "fila-2").startswith(
        "fila-2 answers: it is standby. Only a node that is gone"
    )

    told = words(sent(console, "remove", node="10.0.0.4:5556", sure="yes").text)
    assert told.startswith("10.0.0.4:5556 does not count any more, until it answers.")
    assert group[0].request("RemoveNode").node == "10.0.0.4:5556"


def test_where_no_node_serves_each_that_answers_says_how_it_is(console, group):
    def said(own: str, other: str, **more: Any) -> pb.GetClusterStatusResponse:
        return status(node(own, STANDBY, **more), node(other, GONE, lacks="it answers no probe"))

    group[0].answers["GetClusterStatus"] = said("fila-1", "fila-2", lacks="its clock is off")
    group[1].answers["GetClusterStatus"] = said("fila-2", "fila-1", lacks="the disk is low")
    told = preview(console, "move")
    assert told == ("No standby can take over. fila-2: the disk is low. Nothing would happen.")
    group[1].answers["GetClusterStatus"] = status(
        node("fila-2", OWNER, in_sync=True), node("fila-1", STANDBY)
    )
    assert "fila-2 cannot take over: it serves already" in preview(console, "move", "fila-2")


def test_a_broker_alone_has_no_page_of_a_group_and_no_menu_that_leads_to_one(start):
    alone = FakeBroker()
    console = start(alone.address)
    page, other = console.get(HOME + "group"), console.get(HOME + "limits")
    alone.stop()

    assert page.status == 404
    assert "This broker is alone" in page.text
    assert f'href="{HOME}group"' not in page.text + other.text


def test_the_page_is_for_admins(keyed):
    with keyed.client() as client:
        key = client.create_key("no-admin")
        client.grant("no-admin", manage=["*"])
    keyed.console.log_in(key)
    page, other = keyed.console.get(HOME + "group"), keyed.console.get(HOME + "schedules")
    keyed.console.cookie = ""

    assert page.status == 403
    assert f'href="{HOME}group"' not in other.text
