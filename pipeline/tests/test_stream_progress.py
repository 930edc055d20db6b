"""Where a micro-batch ends, what is a loss, when the channel moves: on a log told what it holds, at told times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from told_log import HOUR_MS, Clock, ToldLog, at, progress

from pyspark_fila.errors import DataLoss, OptionInvalid
from pyspark_fila.queue_progress import CHANNEL_MOVES_S


def test_a_micro_batch_ends_after_the_limit_or_at_the_head():
    told = progress(ToldLog(range(1, 2001)))
    assert told.next_end(at(1), 1500) == at(1501)
    assert told.next_end(at(1501), 1500) == at(2001)
    assert told.next_end(at(1501), 0) == at(2001)


def test_offsets_that_no_message_has_do_not_use_up_the_limit():
    """After a restart the broker goes on up to a million offsets later."""
    told = progress(ToldLog(range(1, 11), range(1_000_001, 1_000_011)))
    assert told.next_end(at(11), 5) == at(1_000_006)
    part = told.kept_range(at(11), at(1_000_006))
    assert (part.start, part.end) == (1_000_001, 1_000_006)


def test_polling_asks_the_broker_once_an_interval():
    log, clock = ToldLog(range(1, 11)), Clock()
    told = progress(log, clock, pollIntervalMs=500)
    for _ in range(80):
        assert told.next_end(at(11), 0) == at(11)
        clock.now += 0.0125
    assert log.calls.count("bounds") == 2


def test_a_fixed_end_is_never_passed():
    log = ToldLog(range(1, 11))
    told = progress(log)
    told.fix_end()
    log.offsets.extend(range(11, 21))
    log.head = 21
    assert told.next_end(at(1), 0) == at(11)
    assert told.next_end(at(11), 0) == at(11)


def test_a_range_that_retention_took_is_a_loss_and_says_which():
    log = ToldLog(range(501, 1001))
    with pytest.raises(DataLoss, match=r"no longer keeps offsets 100 to 500.*the first that is kept is 501"):
        progress(log).next_end(at(100), 0)
    with pytest.raises(DataLoss, match="offsets 100 to 500"):
        progress(log).kept_range(at(100), at(600))


def test_a_loss_that_is_allowed_is_counted_in_the_offset():
    log = ToldLog(range(501, 1001))
    told = progress(log, failOnDataLoss="false")
    assert told.next_end(at(100, lost=7), 100) == at(601, lost=408)
    assert told.kept_range(at(100), at(601)).start == 501


def test_everything_lost_is_counted_too():
    told = progress(ToldLog(head=1001), failOnDataLoss="false")
    assert told.next_end(at(100), 0) == at(1001, lost=901)


def test_a_jump_of_the_numbers_is_no_loss_for_a_query_that_had_caught_up():
    log, clock = ToldLog(range(1, 11)), Clock()
    told = progress(log, clock)
    assert told.next_end(at(11), 0) == at(11)
    log.offsets, log.head = list(range(1_000_001, 1_000_003)), 1_000_003
    clock.now += 60
    assert told.next_end(at(11), 0) == at(1_000_003)


def test_a_jump_after_longer_than_the_queue_keeps_messages_is_a_loss():
    log, clock = ToldLog(range(1, 11)), Clock()
    told = progress(log, clock)
    told.next_end(at(11), 0)
    log.offsets, log.head = list(range(1_000_001, 1_000_003)), 1_000_003
    clock.now += HOUR_MS / 1000 + 1
    with pytest.raises(DataLoss):
        told.next_end(at(11), 0)


def test_a_channel_keeps_what_is_unread_so_a_jump_is_never_a_loss_without_hard_retention():
    log = ToldLog(range(1_000_001, 1_000_003), soft_ms=0)
    log.channels["spark"] = 11
    assert progress(log, channel="spark").next_end(at(11), 0) == at(1_000_003)
    log.kept = replace(log.kept, hard_period_ms=1000)
    with pytest.raises(DataLoss):
        progress(log, channel="spark").next_end(at(11), 0)


def test_a_channel_that_somebody_deleted_is_a_loss():
    log = ToldLog(range(501, 1001), soft_ms=0)
    with pytest.raises(DataLoss):
        progress(log, channel="spark").next_end(at(100), 0)


def test_a_stream_without_channel_or_retention_is_refused():
    with pytest.raises(
        OptionInvalid, match="option channel: must be given, because queue orders keeps no message"
    ):
        progress(ToldLog(range(1, 11), soft_ms=0)).next_end(at(1), 0)
    assert progress(ToldLog(range(1, 11), soft_ms=0), failOnDataLoss="false").next_end(at(1), 0) == at(11)


def test_the_channel_is_made_where_the_query_begins_and_follows_the_checkpoint_at_a_pace():
    log, clock = ToldLog(range(1, 5001)), Clock()
    told = progress(log, clock, channel="spark", startingOffset=10)
    assert told.initial() == at(10)
    assert log.channels == {"spark": 10}
    for start in (10, 110, 210):
        told.next_end(at(start), 100)
        clock.now += CHANNEL_MOVES_S * 0.4
    assert log.channels == {"spark": 10}
    told.next_end(at(310), 100)
    assert log.channels == {"spark": 310}
    clock.now += CHANNEL_MOVES_S
    told.next_end(at(310), 100)
    assert log.calls.count("seek 310") == 1


def test_a_new_query_takes_an_old_channel_to_its_own_beginning():
    log = ToldLog(range(1, 101))
    log.channels["spark"] = 90
    assert progress(log, channel="spark").initial() == at(1)
    assert log.channels == {"spark": 1}


def test_a_first_offset_that_is_gone_is_a_loss_at_once():
    with pytest.raises(DataLoss):
        progress(ToldLog(range(501, 1001)), startingOffset=5).initial()
    told = progress(ToldLog(range(501, 1001)), startingOffset=5, failOnDataLoss="false")
    assert told.initial() == at(501, lost=496)
