"""A stream knows its queue: it goes on from no offset of another one, of one made anew, or above the log's end."""

from __future__ import annotations

import pytest
from told_log import Clock, ToldLog, at, progress

from pyspark_fila.errors import DataLoss, OptionInvalid
from pyspark_fila.options import parse_options
from pyspark_fila.queue_progress import CHANNEL_MOVES_S
from pyspark_fila.ranges import LogRange, _check_nothing_was_taken, _Gaps

OLD = {"offset": 11, "lost": 0}
"""As checkpoints of older versions have it: without a queue."""


@pytest.mark.parametrize("channel", ["", "spark"])
@pytest.mark.parametrize("held", [range(1, 6), range(1, 101)])
def test_a_queue_made_anew_is_refused_with_what_was_and_what_is(channel, held):
    log = ToldLog(range(1, 11), soft_ms=0 if channel else 1000)
    told = progress(log, **{"channel": channel} if channel else {})
    assert told.next_end(at(1), 0) == at(11)
    log.make_anew(held)
    for asked in (progress(log, **{"channel": channel} if channel else {}), told):
        asked.fix_end()
        with pytest.raises(
            DataLoss,
            match=rf'"orders" was made anew.*creation id 1, read up to offset 10.*1 to {held[-1]},.*id 11',
        ):
            asked.next_end(at(11), 0)
    assert log.channels == {}, "nothing was done to the new queue"


def test_where_loss_is_allowed_the_queue_made_anew_is_read_from_its_beginning_and_counted(caplog):
    log = ToldLog(range(1, 11), soft_ms=0)
    told = progress(log, failOnDataLoss="false", channel="spark")
    told.next_end(at(1), 0)
    log.make_anew(range(21, 101))
    told.fix_end()
    moved = told.next_end(at(11, lost=3), 0)
    assert moved == at(21, lost=3, creation="11", remade=1)
    assert told.kept_range(at(11, lost=3), moved).start == told.kept_range(at(11, lost=3), moved).end
    assert "no longer keeps" not in caplog.text, "its offsets are not those of the old one"
    end = told.next_end(moved, 0)
    assert end == at(101, lost=3, creation="11", remade=1)
    part = told.kept_range(moved, end)
    assert (part.start, part.end, part.creation) == (21, 101, "11")
    assert log.channels == {"spark": 21}, "what is unread of the new queue is kept from its beginning on"


def test_a_queue_made_anew_while_an_available_now_run_goes_on_is_read_to_its_end():
    log, clock = ToldLog(range(1, 11)), Clock()
    told = progress(log, clock, failOnDataLoss="false")
    told.fix_end()
    log.make_anew(range(1, 101))
    clock.now += 1
    assert told.next_end(told.next_end(at(5), 0), 0)["offset"] == 101


def test_the_checkpoint_of_another_queue_is_refused_by_its_name():
    log = ToldLog(range(1, 101))
    with pytest.raises(
        DataLoss, match=r'checkpoint is of queue "parcels", read up to offset 10.*queue "orders" now has'
    ):
        progress(log).next_end(at(11, queue="parcels"), 0)
    allowed = progress(log, failOnDataLoss="false")
    assert allowed.next_end(at(11, queue="parcels"), 0) == at(1, remade=1)


def test_a_log_shorter_than_the_checkpoint_is_refused_or_counted_and_gone_on_behind_what_is_there():
    log = ToldLog(range(1, 11))
    with pytest.raises(
        DataLoss, match=r"is shorter than the checkpoint, which has read up to offset 99.*1 to 10,"
    ):
        progress(log).next_end(at(100), 0)
    allowed = progress(log, failOnDataLoss="false")
    moved = allowed.next_end(at(100), 0)
    assert moved == at(11, lost=89)
    log.offsets.append(11)
    log.head = 12
    assert progress(log, failOnDataLoss="false").next_end(moved, 0) == at(12, lost=89)


def test_an_old_checkpoint_takes_on_the_identity_at_its_first_batch():
    log = ToldLog(range(1, 11))
    told = progress(log)
    assert told.next_end(OLD, 0) == OLD, "nothing to read, nothing to write down"
    log.offsets.append(11)
    log.head = 12
    told.fix_end()
    end = told.next_end(OLD, 0)
    assert end == at(12)
    assert (told.kept_range(OLD, end).start, told.kept_range(OLD, end).end) == (11, 12)


def test_an_old_checkpoint_ahead_of_the_log_is_refused_or_begins_anew():
    log = ToldLog(range(1, 6))
    with pytest.raises(DataLoss, match="is shorter than the checkpoint"):
        progress(log).next_end(OLD, 0)
    assert progress(log, failOnDataLoss="false").next_end(OLD, 0) == at(1, remade=1)


def test_a_batch_that_is_replayed_in_a_queue_made_anew_reads_nothing_of_it():
    log = ToldLog(range(1, 101))
    log.make_anew(range(1, 101))
    with pytest.raises(DataLoss, match="was made anew"):
        progress(log).kept_range(at(1), at(51))
    part = progress(log, failOnDataLoss="false").kept_range(at(1), at(51))
    assert part.start == part.end


def test_a_channel_is_not_moved_in_a_queue_that_was_made_anew_since_the_last_look():
    log, clock = ToldLog(range(1, 101)), Clock()
    told = progress(log, clock, channel="spark", pollIntervalMs=3_600_000)
    told.initial()
    clock.now += CHANNEL_MOVES_S
    log.make_anew(range(1, 6))
    log.channels["spark"] = 1
    with pytest.raises(DataLoss, match="was made anew"):
        told.next_end(at(51), 0)
    assert log.channels == {"spark": 1}


def test_a_broker_that_tells_no_creation_id_is_judged_by_name_and_length():
    log = ToldLog(range(1, 101))
    log.creation = ""
    assert progress(log).next_end(at(11), 0) == at(101, creation="")
    with pytest.raises(DataLoss, match="shorter"):
        progress(log).next_end(at(111), 0)


def test_a_checkpoint_of_a_newer_version_is_refused_with_what_it_says():
    with pytest.raises(
        OptionInvalid, match=r"says epoch, which this version .* does not know: a newer one wrote it"
    ):
        progress(ToldLog(range(1, 6))).next_end({**at(1), "epoch": 3}, 0)


def test_a_stream_that_would_begin_behind_the_log_is_refused():
    with pytest.raises(
        OptionInvalid, match="startingOffset: is 50, and the next offset of queue orders is 11"
    ):
        progress(ToldLog(range(1, 11)), startingOffset=50).initial()
    assert progress(ToldLog(range(1, 11)), startingOffset=11).initial() == at(11)


@pytest.mark.parametrize("allowed", ["true", "false"])
def test_a_task_that_has_read_another_queue_than_was_planned_fails_whatever_is_allowed(allowed):
    log = ToldLog(range(1, 101))
    options = parse_options({"queue": "orders", "failOnDataLoss": allowed})
    planned = LogRange(1, 51, creation="1", queue="orders")
    _check_nothing_was_taken(log, options, planned, _Gaps(1))
    log.make_anew(range(1, 101))
    with pytest.raises(
        DataLoss, match='"orders" was made anew while it was read: creation id 1 before, 11 now'
    ):
        _check_nothing_was_taken(log, options, planned, _Gaps(1))
