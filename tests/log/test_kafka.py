"""The log over Kafka's protocol, on three brokers that break as told."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from fila_server.cluster.kafka_settings import all_settings, library
from fila_server.core.log.kafka import KafkaLog, LogRefused
from fila_server.core.log.owning import LogOwner
from fila_server.core.log.record import KIND_PASS, KIND_TAKEOVER, encode
from fila_server.core.runtime.store_copy import StoreCopy
from fila_server.errors import StoreError
from tests.log import twin
from tests.log.running_brokers import QUICK, WAIT_MS, reports, written

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]

PRODUCE = 0
TOO_LARGE, DUPLICATE_SEQUENCE = 10, 46


def contents(log):
    """All records, and where the log begins and ends."""
    found: list[bytes] = []
    start = end = -1
    while start < 0 or not 0 <= end <= len(found):
        records, start, end = log.read(len(found), wait_ms=WAIT_MS)
        assert [offset for offset, _ in records] == list(range(len(found), len(found) + len(records)))
        found += [content for _, content in records]
    return found, start, end


def test_what_is_appended_is_read_back_in_order_with_what_the_reports_said(opened):
    log = opened("steady")
    said = written(log, *(b"record %d" % tag for tag in range(500)))
    assert [(tag, offset, error) for tag, offset, _, error in said] == [(tag, tag, 0) for tag in range(500)]
    assert {broker for _, _, broker, _ in said} == {1}
    assert contents(log) == ([b"record %d" % tag for tag in range(500)], 0, 500)


def test_a_log_takes_as_many_records_as_may_be_under_way_and_the_next_once_one_is_reported(opened):
    """librdkafka's thread would not rest while more of them waited in it."""
    log = opened("under-way")
    assert [log.append(b"record", tag) for tag in range(6)] == [True] * 5 + [False]
    reports(log, 5)
    assert log.append(b"record", 5)
    reports(log, 1)


def test_a_reader_goes_where_it_is_told_to_and_learns_where_the_log_ends(opened):
    log = opened("places")
    written(log, *(b"record %d" % number for number in range(20)))
    for first in (12, 3, 19):
        assert log.read(first, room=1, wait_ms=WAIT_MS)[0] == [(first, b"record %d" % first)]
    assert log.read(9_000, wait_ms=WAIT_MS) == ([], 0, 20)


def test_records_come_with_the_end_that_the_log_had(opened):
    """In a log that goes on nobody waits for its end to rest."""
    log = opened("ends")
    written(log, b"one", b"two", b"three")
    records, start, end = log.read(0, room=1, wait_ms=WAIT_MS)
    assert records == [(0, b"one")]
    assert (start, end) == (-1, 3)


def test_a_record_whose_answer_is_lost_has_its_report_all_the_same(brokers, opened):
    """The broker took it, and was gone before it said so: it is sent again, and may be in the log twice."""
    log = opened("lost")
    log.append(b"before", 0)
    reports(log, 1)
    brokers.do("rtt 1 400")
    log.append(b"lost", 1)
    assert log.reports(wait_ms=100) == []
    brokers.do("down 1")
    brokers.do("rtt 1 0")
    brokers.do("up 1")
    (said,) = reports(log, 1)
    assert (said[0], said[3]) == (1, 0)
    found = contents(log)[0]
    assert found[0] == b"before"
    assert set(found[1:]) == {b"lost"}


def test_a_failed_record_is_reported_with_an_error_and_none_behind_its_report_is_taken(brokers, opened):
    log = opened("failed")
    log.append(b"before", 0)
    reports(log, 1)
    brokers.do(f"error {PRODUCE} {TOO_LARGE} 1")
    log.append(b"failed", 1)
    [(tag, _, _, error)] = reports(log, 1)
    assert (tag, error != 0) == (1, True)
    taken = 2
    try:
        while taken < 20:
            log.append(b"behind", taken)
            taken += 1
    except LogRefused:
        pass  # the library takes no more, once it knows
    said = reports(log, taken - 2)
    assert all(error != 0 for _, _, _, error in said)
    assert contents(opened("failed", appends=False))[0] == [b"before"]


def test_a_report_without_an_offset_says_so(brokers, opened):
    """The broker has the record from an attempt whose answer was lost, and does not tell where."""
    log = opened("unknown")
    log.append(b"before", 0)
    reports(log, 1)
    brokers.do(f"error {PRODUCE} {DUPLICATE_SEQUENCE} 1")
    log.append(b"known already", 1)
    ((tag, offset, _, error),) = reports(log, 1)
    assert (tag, offset, error) == (1, -1, 0)


def test_a_leader_that_moves_is_followed_and_its_reports_name_it(brokers, opened):
    log = opened("moved")
    log.append(b"one", 0)
    first = reports(log, 1)
    brokers.do("leader moved 2")
    log.append(b"two", 1)
    second = reports(log, 1)
    assert [(tag, broker, error) for tag, _, broker, error in first + second] == [(0, 1, 0), (1, 2, 0)]
    assert contents(log)[0] == [b"one", b"two"]


def test_an_owner_serves_by_this_log_and_reads_back_what_it_cannot_know(brokers, opened):
    """The rule over real reports: confirmed unread from the same broker, read back when the leader moved."""
    log, owner = opened("owned"), LogOwner()
    bid = encode(kind=KIND_TAKEOVER, nonce=5, cluster=b"0123456789abcdef", incarnation=1, format=1, name="a")
    log.append(bid, 0)
    reports(log, 1)
    for offset, content in log.read(0, wait_ms=WAIT_MS)[0]:
        assert owner.take(offset, content) == twin.TERM
    owner.begin()
    met = []
    for number, move in enumerate(("", "", "leader owned 3", "")):
        if move:
            brokers.do(move)
        met.append(_served(log, owner, number))
    assert met == ["read", "unread", "read", "unread"]
    log.append(
        encode(kind=KIND_TAKEOVER, term=owner.term, nonce=6, cluster=b"0123456789abcdef", incarnation=1), 9
    )
    reports(log, 1)
    assert _served(log, owner, 9) == "over"


def _served(log, owner, number):
    term, seq, chain = owner.next_stamp()
    content = encode(kind=KIND_PASS, term=term, seq=seq, chain=chain, body=b"%d" % number)
    assert log.append(content, owner.add(content))
    for report in reports(log, 1):
        owner.report(*report)
    step, how = owner.next()[0], "unread"
    while step == twin.READS:
        how = "read"
        for offset, found in log.read(owner.reads_from, wait_ms=WAIT_MS)[0]:
            step = owner.read(offset, found)[0]
            if step != twin.READS:
                break
    return how if step == twin.CONFIRMED else "over"


def test_a_leader_that_hangs_is_left_and_nothing_is_lost(brokers, opened):
    log = opened("hung", **{"socket.timeout.ms": "1000", "request.timeout.ms": "500"})
    log.append(b"one", 0)
    reports(log, 1)
    brokers.do("rtt 1 60000")
    log.append(b"two", 1)
    mover = threading.Timer(0.2, brokers.do, ["leader hung 2"])
    mover.start()
    try:
        (said,) = reports(log, 1)
    finally:
        mover.join()
        brokers.do("rtt 1 0")
    assert (said[0], said[3]) == (1, 0)
    brokers.do("down 1")  # what it has not answered yet is gone with it
    brokers.do("up 1")
    assert set(contents(opened("hung", appends=False))[0]) == {b"one", b"two"}


def test_a_topic_that_is_missing_or_no_log_and_brokers_that_are_away_are_told(brokers):
    with pytest.raises(
        LogRefused, match="topic wide has 3 partitions; a log is a topic of one: make another"
    ):
        brokers.log("wide")
    with pytest.raises(LogRefused, match=r"the brokers do not answer: .*refused"):
        KafkaLog(library(), "steady", all_settings("127.0.0.1:1", QUICK), wait_ms=1_000)
    with pytest.raises(LogRefused, match=r"librdkafka refuses sasl.magic: No such configuration property"):
        brokers.log("steady", **{"sasl.magic": "1"})


def test_a_library_that_is_not_there_is_told():
    script = "from fila_server.core.log.kafka import KafkaLog; KafkaLog('/no/where.so.1', 'steady', {})"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (
        "LogRefused: cannot load librdkafka: /no/where.so.1: cannot open shared object file" in found.stderr
    )


def test_a_log_that_cannot_be_truncated_says_why(opened):
    """The mock cluster knows no DeleteRecords."""
    with pytest.raises(LogRefused, match="the log was not truncated"):
        opened("steady").truncate(3)


def test_a_log_that_was_opened_to_be_read_takes_nothing_and_is_no_copys(opened, tmp_path):
    log = opened("steady", appends=False)
    with pytest.raises(LogRefused, match="opened to be read only: open it with appends"):
        log.append(b"one", 0)
    with pytest.raises(LogRefused, match="opened to be read only"):
        log.reports()
    with pytest.raises(
        StoreError, match="the log was opened to be read only, and a copy needs one with appends"
    ):
        StoreCopy(str(tmp_path), {}, log, node=1, cluster=bytes(16))
    assert not any(tmp_path.iterdir())
