"""Owners and standbys over random interleavings: every answer is true, and a rule that is left out is found."""

from __future__ import annotations

import pytest

from tests.log import twin
from tests.simulation import log_interleavings
from tests.simulation.log_interleavings import Wrong

SEEDS = 100


def test_every_answer_is_true_over_stopped_owners_lost_reports_and_failed_records():
    seen = log_interleavings.run(1, SEEDS)
    assert seen.answers > 10 * SEEDS
    assert seen.takeovers > 3 * SEEDS
    assert seen.resigned > SEEDS / 2
    assert seen.halted  # in the runs whose log is cut


def test_the_slow_twin_keeps_the_same_promises():
    log_interleavings.run(1, SEEDS // 4, twin.Owner)


class OnTheAckAlone(twin.Owner):
    """Takes a report for a confirmation, wherever the record is."""

    def judge(self, content, offset, broker):
        return self.confirm_at(offset if offset >= 0 else self.reader.position + 1, content)


class GoesOnAfterAFailedRecord(twin.Owner):
    """Tells nobody of the record that failed, and serves on."""

    def report(self, tag, offset, broker, error):
        super().report(tag, offset, -2 if error else broker, 0)

    def next(self):
        while (oldest := self.appended.get(self.first)) and oldest.report == (-1, -2):
            self.reader.seq, self.reader.chain = self.reader.seq + 1, twin.mark(oldest.content)
            self.confirm()
        return super().next()


class AnyTerm(twin.Reader):
    def comes_next(self, record):
        return self.term != twin.NO_TERM and record["seq"] == self.seq


class AnySeq(twin.Reader):
    def comes_next(self, record):
        return self.term != twin.NO_TERM and record["term"] == self.term


class AnyBid(twin.Reader):
    """The last takeover wins, whatever it deposes."""

    def is_late(self, record):
        return record["nonce"] != self.term[1]


def reading(kind):
    return type(kind.__name__, (twin.Owner,), {"reader_kind": kind})


@pytest.mark.parametrize(
    "mutant",
    [OnTheAckAlone, GoesOnAfterAFailedRecord, reading(AnyTerm), reading(AnySeq), reading(AnyBid)],
    ids=lambda mutant: mutant.__name__,
)
def test_a_rule_that_is_left_out_is_found(mutant):
    with pytest.raises(Wrong):
        log_interleavings.run(1, SEEDS, mutant)
