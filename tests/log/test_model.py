"""The log in memory, as simulations use it: what each fault does to a record and to its report."""

from __future__ import annotations

from fila_server.core.log.model import SimulatedEnd, SimulatedLog

STALLED = 1


def ends(count=1):
    log = SimulatedLog()
    return (log, *(SimulatedEnd(log) for _ in range(count)))


def test_a_record_lands_when_it_is_due_and_its_report_says_where():
    _log, end = ends()
    end.slow(delay_ms=10)
    assert end.append(b"one", 7) == 0
    assert not end.turn(9, 0)
    assert end.turn(10, 0)
    assert end.reports() == [(7, 0, 0, 0)]
    assert end.read(0) == ([(0, b"one")], 0, 1)


def test_an_answer_that_is_lost_makes_a_duplicate():
    log, end = ends()
    end.append(b"one", 7)
    log.chances(lost_report=1000)
    end.turn(0, 0)
    assert (len(log), end.reports()) == (1, [])
    log.chances()
    end.turn(0, 0)
    assert (len(log), end.reports()) == (2, [(7, 1, 0, 0)])


def test_a_report_may_lack_the_offset_or_be_an_error_of_a_record_that_is_there_or_is_not():
    log, end = ends()
    for chances, said, there in (
        ({"no_offset": 1000}, (7, -1, 0, 0), True),
        ({"error_landed": 1000}, (7, -1, 0, 1), True),
        ({"error_lost": 1000}, (7, -1, 0, 1), False),
    ):
        before = len(log)
        log.chances(**chances)
        end.append(b"one", 7)
        end.turn(0, 0)
        assert end.reports() == [said]
        assert len(log) == before + there


def test_a_queue_that_is_full_takes_nothing():
    _, end = ends()
    end.slow(sent_max=1)
    assert [end.append(b"one", 1), end.append(b"two", 2)] == [0, STALLED]
    end.turn(0, 0)
    assert end.append(b"two", 2) == 0


def test_while_it_stalls_nothing_lands():
    log, end = ends()
    log.stall(True)
    end.append(b"one", 1)
    assert not end.turn(1_000, 0)
    log.stall(False)
    assert end.turn(1_000, 0)


def test_another_leader_is_another_broker():
    log, end = ends()
    log.move(2)
    end.append(b"one", 1)
    end.turn(0, 0)
    assert end.reports() == [(1, 0, 2, 0)]


def test_a_reader_that_lags_sees_an_earlier_end_and_never_one_before_what_it_saw():
    _, writer, reader = ends(2)
    for number in range(4):
        writer.append(b"%d" % number, number)
        writer.turn(0, 0)
    reader.slow(lag=3)
    assert reader.read(0)[2] == 1
    reader.slow(lag=0)
    assert reader.read(0)[2] == 4
    reader.slow(lag=3)
    assert reader.read(0)[2] == 4


def test_a_log_that_is_cut_gives_its_offsets_out_again():
    log, end = ends()
    for content in (b"one", b"two"):
        end.append(content, 1)
        end.turn(0, 0)
    log.cut(1)
    end.append(b"three", 2)
    end.turn(0, 0)
    assert end.reports()[-1] == (2, 1, 0, 0)
    assert log.content(1) == b"three"


def test_what_is_truncated_is_not_read():
    _, end = ends()
    for content in (b"one", b"two"):
        end.append(content, 1)
        end.turn(0, 0)
    assert end.truncate(3) == "the log ends at 2"
    assert end.truncate(1) == ""
    assert end.read(0) == ([], 1, 2)
    assert end.read(1) == ([(1, b"two")], 1, 2)
