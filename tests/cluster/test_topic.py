"""What is wrong with the topic of a group is said before anything is written, and told while the group serves."""

from __future__ import annotations

import threading

import pytest
from structlog.testing import capture_logs

from fila_server.cluster.topic import ASK_AGAIN_S, LOOK_AGAIN_S, NotReported, Topic, TopicKeeper, faults
from fila_server.errors import StartError

GOOD = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
}


def keeper(*looks: Topic | NotReported, accepts_weak: bool = False) -> TopicKeeper:
    said = iter(looks)

    def look() -> Topic:
        topic = next(said)
        if isinstance(topic, NotReported):
            raise topic
        return topic

    return TopicKeeper("orders", look, accepts_weak=accepts_weak)


def test_a_topic_as_the_page_says_it_is_taken() -> None:
    assert faults(Topic(3, GOOD)) == []


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("min.insync.replicas", "1", "Set it to 2"),
        ("unclean.leader.election.enable", "true", "Set it to false"),
        ("cleanup.policy", "compact", "Set it to delete"),
        ("cleanup.policy", "compact,delete", "Set it to delete"),
        ("retention.ms", "604800000", "Set it to -1"),
        ("retention.bytes", "1073741824", "Set it to -1"),
        ("max.message.bytes", "999999", "Set it to 1000000 or more"),
    ],
)
def test_a_setting_that_breaks_a_promise_is_named_with_its_value_and_what_to_do(
    setting: str, value: str, remedy: str
) -> None:
    (found,) = faults(Topic(3, GOOD | {setting: value}))

    assert found.startswith(f"{setting} is {value}: ")
    assert remedy in found


def test_two_replicas_are_too_few() -> None:
    (found,) = faults(Topic(2, GOOD))

    assert "it has 2 replicas" in found
    assert found.endswith("Give it 3 replicas")


def test_what_the_brokers_do_not_tell_is_no_fault() -> None:
    assert faults(Topic(3, {})) == []


def test_a_start_is_refused_with_everything_that_is_wrong() -> None:
    weak = Topic(1, GOOD | {"retention.ms": "1000"})

    with pytest.raises(StartError, match=r"the topic orders cannot .* 1 replicas.*retention\.ms is 1000"):
        keeper(weak).begin()


def test_a_group_of_a_test_takes_any_topic_and_says_what_is_wrong_afterwards() -> None:
    topic = keeper(Topic(1, GOOD), accepts_weak=True)

    topic.begin()
    assert topic.wait_s == 0
    with capture_logs() as said:
        topic.look_again()

    (line,) = said
    assert line["event"] == "cluster.topic_weak"
    assert line["log_level"] == "error"


def test_brokers_that_do_not_tell_keep_nobody_from_starting_and_are_asked_again_soon() -> None:
    topic = keeper(NotReported("not authorized"), NotReported("not authorized"), Topic(3, GOOD))

    with capture_logs() as said:
        topic.begin()
        assert topic.wait_s == ASK_AGAIN_S
        topic.look_again()
    assert [line["event"] for line in said] == ["cluster.topic_not_reported"], "once, until they tell"

    topic.look_again()
    assert topic.wait_s == LOOK_AGAIN_S


def test_a_topic_that_somebody_changes_is_told_of_and_the_node_goes_on() -> None:
    topic = keeper(Topic(3, GOOD), Topic(3, GOOD | {"unclean.leader.election.enable": "true"}))
    topic.begin()

    with capture_logs() as said:
        topic.look_again()

    assert [line["event"] for line in said] == ["cluster.topic_weak"]


def test_nobody_is_asked_once_the_node_leaves() -> None:
    ends = threading.Event()
    ends.set()

    keeper(accepts_weak=True).keep(ends)
