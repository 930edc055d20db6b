"""The owner's four rules about reports: as the slow twin has them, and each by itself."""

from __future__ import annotations

import random

import pytest

from fila_server.core.log.owning import LogOwner
from fila_server.core.log.record import KIND_BARRIER, KIND_PART, KIND_PASS, KIND_TAKEOVER, encode
from tests.log import twin

CLUSTER = b"this very broker"
SCRIPTS = 400


def bid(term=twin.NO_TERM, nonce=1) -> bytes:
    return encode(kind=KIND_TAKEOVER, term=term, nonce=nonce, cluster=CLUSTER, incarnation=1, format=1)


def owner(kind=LogOwner):
    """One whose takeover is at offset 0."""
    made = kind()
    assert made.take(0, bid()) == twin.TERM
    made.begin()
    return made


def appended(of, kind=KIND_PASS, **fields) -> tuple[int, bytes]:
    term, seq, chain = of.next_stamp()
    content = encode(kind=kind, term=term, seq=seq, chain=chain, **fields)
    return of.add(content), content


def confirmed_once(of) -> bytes:
    """A first record: nobody knows a broker before, so it is read back."""
    tag, content = appended(of)
    of.report(tag, 1, 3, 0)
    assert of.next() == (twin.READS, 0)
    assert of.reads_from == 0
    assert of.read(0, bid()) == (twin.READS, 0)
    assert of.reads_from == 1
    assert of.read(1, content) == (twin.CONFIRMED, tag)
    return content


def test_the_offset_behind_the_last_one_from_the_same_broker_is_confirmed_unread():
    of = owner()
    confirmed_once(of)
    tag, _ = appended(of)
    assert of.next() == (twin.WAITS, 0)
    of.report(tag, 2, 3, 0)
    assert of.next() == (twin.CONFIRMED, tag)
    assert of.next() == (twin.WAITS, 0)
    assert of.position == 2


def test_records_are_confirmed_in_order_whatever_the_order_of_reports():
    of = owner()
    confirmed_once(of)
    first, second = appended(of)[0], appended(of)[0]
    of.report(second, 3, 3, 0)
    assert of.next() == (twin.WAITS, 0)
    of.report(first, 2, 3, 0)
    assert [of.next(), of.next()] == [(twin.CONFIRMED, first), (twin.CONFIRMED, second)]


def test_an_error_on_any_record_ends_the_term():
    of = owner()
    confirmed_once(of)
    first, second = appended(of)[0], appended(of)[0]
    of.report(second, -1, -1, 10)
    of.report(first, 2, 3, 0)
    assert of.next() == (twin.RESIGNS, 0)


@pytest.mark.parametrize(("offset", "broker"), [(2, 4), (-1001, 3), (4, 3)])
def test_another_broker_a_gap_and_no_offset_are_read_back(offset, broker):
    of = owner()
    last = confirmed_once(of)
    tag, content = appended(of)
    of.report(tag, offset, broker, 0)
    assert of.next() == (twin.READS, 0)
    assert of.read(1, last) == (twin.READS, 0)
    assert of.read(2, last) == (twin.READS, 0)  # a duplicate, which is stale
    assert of.read(3, content) == (twin.CONFIRMED, tag)


def test_an_effective_takeover_on_the_way_ends_the_term_and_a_void_one_does_not():
    of = owner()
    last = confirmed_once(of)
    tag, _content = appended(of)
    of.report(tag, 4, 3, 0)
    of.next()
    of.read(1, last)
    assert of.read(2, bid(nonce=8)) == (twin.READS, 0)
    assert of.read(3, bid(term=(0, 1), nonce=9)) == (twin.RESIGNS, 0)
    assert of.next() == (twin.RESIGNS, 0)


def test_an_offset_that_was_known_already_says_that_the_log_was_cut():
    of = owner()
    confirmed_once(of)
    tag, _ = appended(of)
    of.report(tag, 1, 3, 0)
    assert of.next() == (twin.HALTS, 0)
    assert of.halted == twin.CUT


def test_an_owner_whose_last_record_is_another_one_now_halts():
    of = owner()
    confirmed_once(of)
    tag, content = appended(of)
    of.report(tag, -1, 3, 0)
    of.next()
    assert of.read(1, content) == (twin.HALTS, 0)
    assert of.halted == twin.CHANGED


def test_an_owner_that_finds_a_record_of_its_term_which_it_did_not_write_halts():
    of = owner()
    last = confirmed_once(of)
    term, seq, chain = of.next_stamp()
    tag, _ = appended(of)
    of.report(tag, -1, 3, 0)
    of.next()
    of.read(1, last)
    assert of.read(2, encode(kind=KIND_BARRIER, term=term, seq=seq, chain=chain)) == (twin.HALTS, 0)


def test_a_record_that_the_log_did_not_take_was_never_added():
    of = owner()
    confirmed_once(of)
    stamp = of.next_stamp()
    tag, _ = appended(of)
    of.take_back()
    assert of.next_stamp() == stamp
    assert appended(of, body=b"another")[0] == tag
    of.report(tag, 2, 3, 0)
    assert of.next() == (twin.CONFIRMED, tag)


def test_a_report_that_comes_when_reading_has_confirmed_its_record_changes_nothing():
    of = owner()
    confirmed_once(of)
    of.report(0, 1, 3, 0)
    of.report(0, -1, 3, 7)
    assert of.next() == (twin.WAITS, 0)


def test_reports_and_what_is_read_back_lead_where_the_twin_goes():
    for seed in range(SCRIPTS):
        chance = random.Random(seed)
        log = [bid()]
        both = owner(), owner(twin.Owner)
        tags: list[tuple[int, bytes]] = []
        for _ in range(60):
            drawn = chance.random()
            if drawn < 0.4:
                kind = chance.choice((KIND_PASS, KIND_BARRIER, KIND_PART))
                more = {"part": 0, "parts": 1} if kind == KIND_PART else {}
                made = [
                    appended(of, kind, body=chance.randbytes(4) if kind == KIND_PASS else b"", **more)
                    for of in both[:1]
                ]
                made.append((both[1].add(made[0][1]), made[0][1]))
                assert made[0] == made[1]
                tags.append(made[0])
            elif drawn < 0.75 and tags:
                tag, content = tags.pop(0)
                log += [content] * chance.choice((1, 1, 1, 1, 2))
                log += [bid(term=(0, 1), nonce=5)] if chance.random() < 0.02 else []
                offset = chance.choice((*[len(log) - 1] * 8, -1, 1, len(log)))
                for of in both:
                    of.report(tag, offset, 3 + (seed + tag) // 9 % 2, int(seed % 9 == tag))
            steps = [of.next() for of in both]
            assert steps[0] == steps[1], f"seed {seed}"
            if steps[0][0] == twin.READS:
                first = both[0].reads_from
                assert first == both[1].reads_from
                for place in range(first, len(log)):
                    found = [of.read(place, log[place]) for of in both]
                    assert found[0] == found[1], f"seed {seed}"
                    if found[0][0] != twin.READS:
                        break
            assert both[0].position == both[1].position
            assert both[0].halted == both[1].halted
            assert both[0].next_stamp() == both[1].next_stamp()
