"""The reader's rule: as the slow twin has it over records that are right, late, forged and damaged; what it says."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from fila_server.core.log.reading import LogReading
from fila_server.core.log.record import KIND_BARRIER, KIND_PART, KIND_PASS, KIND_TAKEOVER, encode
from tests.log import twin

RECORDS = 500_000 if os.environ.get("FILA_SOAK") else 10_000
MOVED = 1
CLUSTER, ANOTHER = b"this very broker", b"some other group"


class Forger:
    """Writes records that a reader might meet: mostly the one that comes next, else one that is wrong in a way."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.terms = [twin.NO_TERM, (0, 1), (3, 2)]
        self.written: list[bytes] = []

    def content(self, reader: twin.Reader) -> bytes:
        drawn = self.chance.random()
        if drawn < 0.05 and self.written:
            return self.chance.choice(self.written)
        made = encode(**self._bid(reader)) if drawn < 0.2 else encode(**self._of_a_term(reader))
        self.written = [*self.written[-20:], made]
        return self._damaged(made) if drawn > 0.995 else made

    def _often(self, right: int, *others: int) -> int:
        return right if self.chance.random() < 0.96 else self.chance.choice(others)

    def _bid(self, reader: twin.Reader) -> dict[str, object]:
        self.terms = [*self.terms[-6:], reader.term]
        incarnation = max(0, reader.incarnation + self.chance.choice((0, 0, 0, 0, 1, -1)))
        stands = {"seq": reader.seq, "chain": self._often(reader.chain, 5)} if incarnation > 1 else {}
        return stands | {
            "kind": KIND_TAKEOVER,
            "flags": self.chance.choice((0, 0, 1)),
            "term": reader.term if self.chance.random() < 0.5 else self.chance.choice(self.terms),
            "nonce": self.chance.randrange(8),
            "cluster": CLUSTER if self.chance.random() < 0.99 else ANOTHER,
            "incarnation": incarnation,
            "format": self._often(1, 1, 1, 2),
            "wall_ms": self.chance.randrange(1000),
        }

    def _of_a_term(self, reader: twin.Reader) -> dict[str, object]:
        under_way = len(reader.pieces)
        kind = (
            KIND_PART
            if under_way or self.chance.random() < 0.2
            else self.chance.choice((KIND_PASS, KIND_BARRIER))
        )
        kind = self._often(kind, KIND_PASS, KIND_PART)
        parts = reader.pieces[0] if under_way else self.chance.randrange(1, 4)
        return {
            "kind": kind,
            "term": reader.term if self.chance.random() < 0.9 else self.chance.choice(self.terms),
            "seq": self._often(reader.seq, reader.seq + 1, max(0, reader.seq - 1), 0),
            "chain": self._often(reader.chain, reader.chain, reader.chain, reader.chain, 5),
            "part": min(parts - 1, self._often(under_way, 0, 1)),
            "parts": max(parts, 1),
            "body": self.chance.randbytes(self.chance.randrange(40)),
            "wall_ms": self.chance.randrange(1000),
        }

    def _damaged(self, content: bytes) -> bytes:
        kind = self.chance.randrange(4)
        if kind == 0:
            return content[: self.chance.randrange(len(content))]
        if kind == 1:
            return self.chance.randbytes(self.chance.randrange(200))
        altered = bytearray(content)
        altered[self.chance.randrange(len(altered))] ^= 1 << self.chance.randrange(8)
        return bytes(altered) if kind == 2 else twin.sealed(bytes(altered[:-4]))


def test_records_late_forged_and_damaged_are_skipped_or_halt_the_reader_as_the_twin_says():
    seed = taken = 0
    met: set[int] = set()
    while taken < RECORDS:
        seed += 1
        forger, reader, compiled = Forger(seed), twin.Reader(), LogReading()
        for offset in range(400):
            content = forger.content(reader)
            place = offset if forger.chance.random() < 0.999 else offset + forger.chance.choice((-1, 1))
            wanted = reader.take(place, content)
            assert compiled.take(place, content) == wanted
            assert compiled.state() == reader.state(), f"seed {seed}, offset {offset}"
            if twin.decode(content)[0] != twin.GOOD:
                assert wanted == twin.HALT
            taken += 1
            met.add(wanted)
            if wanted == twin.HALT:
                met.add(-reader.halted)
                assert compiled.why
                assert compiled.take(offset + 1, content) == twin.HALT
                break
    reasons = (
        twin.BAD_RECORD, twin.OTHER_CLUSTER, twin.NEWER_FORMAT, twin.OTHER_CHAIN, twin.BROKEN_PARTS, twin.GAP,
        twin.FOUNDED,
        twin.ANEW,
    )  # fmt: skip
    assert met == {*range(7), *(-reason for reason in reasons)}


def read(*records: bytes, **settings: Any) -> LogReading:
    reader = LogReading(**settings)
    for offset, content in enumerate(records):
        reader.take(offset, content)
    return reader


def bid(term=twin.NO_TERM, nonce=1, **fields) -> bytes:
    given = {
        "kind": KIND_TAKEOVER,
        "term": term,
        "nonce": nonce,
        "cluster": CLUSTER,
        "incarnation": 1,
        "format": 1,
    }
    return encode(**given | fields)


def of_term(reader: LogReading, kind=KIND_PASS, **fields) -> bytes:
    state = reader.state()
    given = {
        "kind": kind,
        "term": state["term"],
        "seq": state["seq"],
        "chain": state["chain"],
        "body": b"writes",
    }
    return encode(**given | fields)


def test_of_two_bids_for_one_term_the_first_in_the_log_wins():
    reader = read(bid(nonce=1), bid(nonce=2))
    state = reader.state()
    assert (state["term"], state["terms"], state["void_bids"]) == ((0, 1), 1, 1)


def test_a_takeover_that_comes_twice_counts_once():
    first = bid(nonce=1)
    assert read(first, first).state()["term"] == (0, 1)


def test_a_newer_incarnation_begins_for_who_stands_where_its_copy_stood():
    reader = read(bid(nonce=1))
    reader.take(1, of_term(reader))
    base = {name: reader.state()[name] for name in ("term", "seq", "chain")}
    reader.rebase(0)
    assert reader.take(0, bid(**base, nonce=2, incarnation=7)) == twin.TERM
    assert (reader.state()["term"], reader.state()["incarnation"]) == ((0, 2), 7)
    assert reader.take(1, bid(term=(0, 2), nonce=3)) == twin.NOTHING, "of an incarnation that is over"
    assert reader.take(2, bid(term=(0, 2), nonce=3, incarnation=7)) == twin.TERM


@pytest.mark.parametrize(
    "other", [{"term": (0, 2)}, {"seq": 2}, {"chain": 5}], ids=lambda other: next(iter(other))
)
def test_who_stands_elsewhere_than_the_copy_of_a_newer_incarnation_halts(other):
    reader = read(bid(nonce=1))
    reader.take(1, of_term(reader))
    base = {name: reader.state()[name] for name in ("term", "seq", "chain")}
    assert reader.take(2, bid(**base | other, nonce=2, incarnation=2)) == twin.HALT
    assert "the group was reseeded" in reader.why


def test_a_log_that_begins_with_a_later_incarnation_makes_nothing_of_nothing():
    reader = read(bid(term=(700, 7), seq=4, chain=9, incarnation=2))
    assert "the group was reseeded" in reader.why


def test_a_term_that_was_handed_over_does_not_count_among_the_short_ones():
    reader = read(bid(nonce=1), bid(term=(0, 1), nonce=2))
    assert reader.state()["short_terms"] == 2
    reader.take(2, bid(term=(1, 2), nonce=3, flags=MOVED))
    assert reader.state()["short_terms"] == 2, "the one that begins, in place of the one that was handed over"
    reader.take(3, of_term(reader, KIND_BARRIER, body=b"", wall_ms=20_000))
    reader.take(4, bid(term=(2, 3), nonce=4, flags=MOVED, wall_ms=20_000))
    assert reader.state()["short_terms"] == 1, "one that lasted ends the row, however it ends"


def test_terms_in_a_row_are_short_by_the_times_of_their_own_records():
    """An idle one is not: its owner appends barriers."""
    reader = read(bid(nonce=1, wall_ms=1_000))
    assert reader.state()["short_terms"] == 1
    reader.take(1, bid(term=(0, 1), nonce=2, wall_ms=90_000))
    reader.take(2, of_term(reader, KIND_BARRIER, body=b"", wall_ms=99_999))
    assert reader.state()["short_terms"] == 2

    reader.take(3, bid(term=(1, 2), nonce=3, wall_ms=200_000))
    assert reader.state()["short_terms"] == 3
    reader.take(4, of_term(reader, KIND_BARRIER, body=b"", wall_ms=210_000))
    assert reader.state()["short_terms"] == 0


def test_a_record_of_a_deposed_term_is_stale():
    reader = read(bid(nonce=1))
    late = of_term(reader)
    reader.take(1, bid(term=(0, 1), nonce=2))
    assert reader.take(2, late) == twin.NOTHING
    assert reader.state()["stale"] == 1


def test_behind_a_hole_all_is_stale():
    reader = read(bid())
    assert reader.take(1, of_term(reader, seq=1)) == twin.NOTHING
    assert reader.take(2, of_term(reader, seq=2)) == twin.NOTHING
    assert reader.take(3, of_term(reader)) == twin.WHOLE


def test_a_term_whose_offset_the_log_gave_out_again_is_another_term():
    reader = read(bid(nonce=1))
    assert reader.take(1, of_term(reader, term=(0, 2))) == twin.NOTHING


def test_a_pass_in_parts_counts_with_the_last():
    reader = read(bid())
    for place, taken in enumerate((twin.PIECE, twin.PIECE, twin.LAST_PIECE)):
        assert reader.take(1 + place, of_term(reader, KIND_PART, part=place, parts=3)) == taken
    assert reader.state()["passes"] == 1


def test_parts_of_a_term_that_ended_are_applied_by_nobody():
    reader = read(bid())
    reader.take(1, of_term(reader, KIND_PART, part=0, parts=2))
    reader.take(2, bid(term=(0, 1), nonce=2))
    assert reader.take(3, of_term(reader)) == twin.WHOLE


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([b"hello"], "offset 1 is none of this log's: nobody else may write to the topic"),
        ([bid()[:-1] + b"?"], "offset 1 was altered: its checksum is another"),
        ([bid()[:40]], "offset 1 is cut short"),
        ([b"\xf1\x02" + bid()[2:]], "offset 1 was written by a newer version of Fila: upgrade this one"),
        ([bid(cluster=ANOTHER)], "takeover at offset 1 is of another cluster"),
        ([bid(term=(0, 1), nonce=2, format=2)], "takeover is at offset 1 writes a newer format: upgrade"),
        (
            [encode(kind=KIND_BARRIER, term=(0, 1), chain=5)],
            "offset 1 follows what no record has: the group began",
        ),
        (
            [encode(kind=KIND_PART, term=(0, 1), part=1, parts=2)],
            "offset 1 breaks off a pass of several parts",
        ),
    ],
)
def test_a_reader_that_cannot_know_what_others_read_halts_and_says_what_it_saw(records, why):
    reader = read(bid(), *records)
    assert reader.is_halted
    assert why in reader.why
    assert reader.state()["position"] == 0
    assert reader.take(1, of_term(reader)) == twin.HALT


def test_a_reader_that_read_anything_of_a_term_knows_what_does_not_follow():
    reader = read(bid(), encode(kind=KIND_BARRIER, term=(0, 1)))
    assert reader.take(2, of_term(reader, chain=5)) == twin.HALT
    assert "offset 2 does not follow the one before it" in reader.why


def test_who_has_the_data_that_a_group_began_with_follows_its_first_record_and_nobody_else():
    first = bid(), encode(kind=KIND_BARRIER, term=(0, 1), chain=5)
    assert read(*first).state()["halted"] == twin.FOUNDED
    copy, looker = read(*first, chain=5), read(*first)
    looker.follows(5)
    assert looker.take(1, first[1]) == twin.BARRED
    for reader in (copy, looker):
        assert reader.state()["barriers"] == 1
        assert reader.take(2, of_term(reader)) == twin.WHOLE
    assert copy.state() == looker.state()


def test_a_log_of_another_cluster_is_told_from_the_first_takeover_on():
    assert "another cluster's log" in read(bid(), cluster=ANOTHER).why


def test_an_offset_that_does_not_follow_halts_the_reader():
    reader = read(bid())
    reader.take(2, of_term(reader))
    assert reader.why == "offset 2 does not follow 0: the topic is compacted, or a transaction wrote to it"


def test_a_log_that_lost_its_end_or_its_beginning_halts_the_reader():
    reader = read(bid())
    assert reader.reaches(0, 1)
    assert reader.reaches(1, 5)
    assert not reader.reaches(0, 0)
    assert reader.why == "the log ends before offset 0, and offset 0 was read: it lost its end"
    reader = read(bid())
    assert not reader.reaches(9, 20)
    assert reader.why == "the log begins at offset 9, and what comes after 0 is gone: only a copy has it"


def test_a_last_record_that_is_another_one_now_halts_the_reader():
    reader = read(bid(nonce=1))
    assert reader.stands(bid(nonce=1))
    assert not reader.stands(bid(nonce=2))
    assert reader.why.startswith("the record at offset 0 is not the one that was read there")
