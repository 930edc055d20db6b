"""The rules of the log once more, slow and in plain Python: what the compiled ones are compared with.

Written from the drawings in record.pxd, reading.pxd and owning.pxd. Nothing here calls compiled code. A mutant is one
of these classes with a rule left out: the simulation must find each (log_interleavings.py).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

TAKEOVER, PASS, PART, BARRIER = 1, 2, 3, 4
NOTHING, TERM, WHOLE, PIECE, LAST_PIECE, BARRED, HALT = range(7)
WAITS, CONFIRMED, READS, RESIGNS, HALTS = range(5)
GOOD, FOREIGN, NEWER, CUT_SHORT, LONG, ALTERED, WRONG = range(7)
(
    BAD_RECORD,
    OTHER_CLUSTER,
    NEWER_FORMAT,
    OTHER_CHAIN,
    BROKEN_PARTS,
    GAP,
    CUT,
    BEGINS_LATER,
    CHANGED,
    FOUNDED,
    ANEW,
) = range(1, 12)

NO_TERM = (-1, 0)
_ALL = 2**64 - 1
_FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def mark(content: bytes) -> int:
    """Folds sixteen bytes a step: the high half of a product on its low half."""

    def fold(one: int, other: int) -> int:
        product = one * other
        return product & _ALL ^ product >> 64

    at = _FIRST ^ len(content)
    whole = len(content) // 16 * 16
    for first, second in struct.iter_unpack("<QQ", content[:whole] + content[whole:].ljust(16, b"\0")):
        at = fold(first ^ _FIRST, second ^ at)
    return fold(at ^ _SECOND, _FIRST)


def encode(**fields: Any) -> bytes:
    kind = fields["kind"]
    head = struct.pack(
        "<BBBBQqQQQqq", 0xF1, 1, kind, fields.get("flags", 0), fields.get("node", 0), *fields.get("term", NO_TERM),
        fields.get("seq", 0), fields.get("chain", 0), fields.get("wall_ms", 0), fields.get("live_bytes", 0),
    )  # fmt: skip
    body = fields.get("body", b"") if kind in (PASS, PART) else b""
    if kind == PART:
        body = struct.pack("<HH", fields["part"], fields["parts"]) + body
    if kind == TAKEOVER:
        numbers = fields.get("nonce", 0), fields.get("cluster", bytes(16))
        body = struct.pack("<Q16sIH", *numbers, fields.get("incarnation", 0), fields.get("format", 0))
        for name in ("name", "peer_addr", "client_addr"):
            text = fields.get(name, "").encode()
            body += bytes([len(text)]) + text
    return sealed(head + body)


def sealed(content: bytes) -> bytes:
    return content + struct.pack("<I", crc32c(content))


def decode(content: bytes) -> tuple[int, dict[str, Any]]:
    if content[:1] != b"\xf1":
        return FOREIGN, {}
    if len(content) > 1 and content[1] != 1:
        return NEWER, {}
    if len(content) < 64:
        return CUT_SHORT, {}
    if len(content) > 900_000:
        return LONG, {}
    if struct.pack("<I", crc32c(content[:-4])) != content[-4:]:
        return ALTERED, {}
    names = ("kind", "flags", "node", "offset", "nonce", "seq", "chain", "wall_ms", "live_bytes")
    fields: dict[str, Any] = dict(zip(names, struct.unpack("<BBQqQQQqq", content[2:60]), strict=True))
    flags = fields["flags"] if fields["kind"] == TAKEOVER else fields.pop("flags")
    if flags > (fields["kind"] == TAKEOVER) or fields["kind"] not in (TAKEOVER, PASS, PART, BARRIER):
        return NEWER, {}
    fields["term"] = fields.pop("offset"), fields.pop("nonce")
    body = content[60:-4]
    if fields["term"][0] < -1 or not _fill(fields, body):
        return WRONG, {}
    return GOOD, fields


def _fill(fields: dict[str, Any], body: bytes) -> bool:
    """The fields of its kind; whether its body is one."""
    kind = fields["kind"]
    if kind == BARRIER:
        return not body
    if kind == PASS:
        fields["body"] = body
        return True
    if kind == PART:
        if len(body) < 4:
            return False
        fields["part"], fields["parts"] = struct.unpack("<HH", body[:4])
        fields["body"] = body[4:]
        return bool(fields["part"] < fields["parts"] <= 4096)
    if len(body) < 30:
        return False
    names = ("nonce", "cluster", "incarnation", "format")
    fields |= dict(zip(names, struct.unpack("<Q16sIH", body[:30]), strict=True))
    if (fields["seq"] or fields["chain"]) and fields["incarnation"] < 2:
        return False
    rest = body[30:]
    for name in ("name", "peer_addr", "client_addr"):
        if not rest or len(rest) < 1 + rest[0]:
            return False
        fields[name], rest = rest[1 : 1 + rest[0]].decode(errors="replace"), rest[1 + rest[0] :]
    return not rest


@dataclass
class Reader:
    """log_take, from its drawing."""

    format_max: int = 1
    cluster: bytes | None = None
    position: int = -1
    mark: int = 0
    term: tuple[int, int] = NO_TERM
    incarnation: int = 0
    seq: int = 0
    chain: int = 0
    pieces: list[int] = field(default_factory=list)
    """The count that each part of the pass under way named."""
    wall_ms: int = 0
    node: int = 0
    begun_ms: int = 0
    short: int = 0
    """Terms in a row before the one that is."""
    terms: int = 0
    passes: int = 0
    barriers: int = 0
    part_records: int = 0
    stale: int = 0
    void_bids: int = 0
    halted: int = 0

    def halt(self, why: int) -> int:
        self.halted = why
        return HALT

    def take(self, offset: int, content: bytes) -> int:
        if self.halted:
            return HALT
        if offset != self.position + 1:
            return self.halt(GAP)
        fault, record = decode(content)
        if fault:
            return self.halt(BAD_RECORD)
        taken = (
            self.take_bid(offset, record) if record["kind"] == TAKEOVER else self.take_other(record, content)
        )
        if taken != HALT:
            self.position, self.mark = offset, mark(content)
        return taken

    def is_late(self, record: dict[str, Any]) -> bool:
        if record["incarnation"] == self.incarnation:
            return bool(record["term"] != self.term)
        return bool(record["incarnation"] < self.incarnation)

    def stands_elsewhere(self, record: dict[str, Any]) -> bool:
        if record["incarnation"] <= self.incarnation:
            return False
        chain = record["chain"] if record["incarnation"] > 1 else self.chain
        return (record["term"], record["seq"], chain) != (self.term, self.seq, self.chain)

    def take_bid(self, offset: int, record: dict[str, Any]) -> int:
        if self.cluster is not None and record["cluster"] != self.cluster:
            return self.halt(OTHER_CLUSTER)
        if self.is_late(record):
            self.void_bids += 1
            return NOTHING
        if record["format"] > self.format_max:
            return self.halt(NEWER_FORMAT)
        if self.stands_elsewhere(record):
            return self.halt(ANEW)
        self.cluster, self.incarnation = record["cluster"], record["incarnation"]
        short = self.short_terms
        if short and record["flags"]:
            short = self.short
        self.term, self.seq, self.pieces = (offset, record["nonce"]), 0, []
        self.terms += 1
        self.node, self.begun_ms, self.short = record["node"], record["wall_ms"], short
        self.wall_ms = record["wall_ms"]
        return TERM

    @property
    def short_terms(self) -> int:
        is_short = self.term != NO_TERM and float(self.wall_ms) - float(self.begun_ms) < 10_000
        return self.short + 1 if is_short else 0

    def comes_next(self, record: dict[str, Any]) -> bool:
        return self.term != NO_TERM and record["term"] == self.term and record["seq"] == self.seq

    def take_other(self, record: dict[str, Any], content: bytes) -> int:
        if not self.comes_next(record):
            self.stale += 1
            return NOTHING
        if record["chain"] != self.chain:
            return self.halt(OTHER_CHAIN if self.chain else FOUNDED)
        return self.follow(record, mark(content))

    def follow(self, record: dict[str, Any], after: int) -> int:
        kind, taken = record["kind"], {PASS: WHOLE, BARRIER: BARRED}.get(record["kind"], PIECE)
        if kind == PART:
            if record["part"] != len(self.pieces) or any(count != record["parts"] for count in self.pieces):
                return self.halt(BROKEN_PARTS)
            self.part_records += 1
            self.pieces.append(record["parts"])
            if len(self.pieces) == record["parts"]:
                self.pieces, taken = [], LAST_PIECE
        elif self.pieces:
            return self.halt(BROKEN_PARTS)
        self.passes += taken in (WHOLE, LAST_PIECE)
        self.barriers += taken == BARRED
        self.seq += 1
        self.chain, self.wall_ms = after, record["wall_ms"]
        return taken

    def rebase(self, end: int) -> None:
        self.halted, self.position, self.mark, self.pieces = 0, end - 1, 0, []

    def stands(self, content: bytes) -> bool:
        if not self.halted and mark(content) != self.mark:
            self.halt(CHANGED)
        return not self.halted

    def reaches(self, start: int, end: int) -> bool:
        if not self.halted and end <= self.position:
            self.halt(CUT)
        elif not self.halted and start > self.position + 1:
            self.halt(BEGINS_LATER)
        return not self.halted

    def state(self) -> dict[str, Any]:
        same = (
            "position",
            "mark",
            "term",
            "incarnation",
            "seq",
            "chain",
            "wall_ms",
            "node",
            "begun_ms",
            "short_terms",
            "terms",
            "passes",
            "barriers",
        )
        found = {
            name: getattr(self, name) for name in (*same, "part_records", "stale", "void_bids", "halted")
        }
        parts = self.pieces[0] if self.pieces else 0
        return found | {"part": len(self.pieces), "parts": parts, "cluster": self.cluster or bytes(16)}


@dataclass
class Appended:
    """A record of the term that is not confirmed yet."""

    content: bytes
    report: tuple[int, int] | None = None
    """Offset and broker."""


class Owner:
    """A reader, and the owner's four rules."""

    reader_kind = Reader

    def __init__(self) -> None:
        self.reader = self.reader_kind()
        self.begin()

    def begin(self) -> None:
        self.appended: dict[int, Appended] = {}
        self.first = self.added = 0
        self.broker = -1
        self.is_over = self.is_reading = self.has_looked = False
        self.seq, self.chain = self.reader.seq, self.reader.chain

    def take(self, offset: int, content: bytes) -> int:
        return self.reader.take(offset, content)

    def stands(self, content: bytes) -> bool:
        return self.reader.stands(content)

    def reaches(self, start: int, end: int) -> bool:
        return self.reader.reaches(start, end)

    def next_stamp(self) -> tuple[tuple[int, int], int, int]:
        return self.reader.term, self.seq, self.chain

    def add(self, content: bytes) -> int:
        tag, self.added = self.added, self.added + 1
        self.appended[tag] = Appended(content)
        self.seq, self.chain = self.seq + 1, mark(content)
        return tag

    def take_back(self) -> None:
        self.added -= 1
        record = decode(self.appended.pop(self.added).content)[1]
        self.seq, self.chain = record["seq"], record["chain"]

    def report(self, tag: int, offset: int, broker: int, error: int) -> None:
        if tag in self.appended:
            self.is_over = self.is_over or error != 0
            self.appended[tag].report = max(offset, -1), broker

    def confirm(self) -> tuple[int, int]:
        self.appended.pop(self.first)
        self.first += 1
        self.is_reading = False
        return CONFIRMED, self.first - 1

    def next(self) -> tuple[int, int]:
        for step, holds in ((HALTS, self.reader.halted), (RESIGNS, self.is_over), (READS, self.is_reading)):
            if holds:
                return step, 0
        oldest = self.appended.get(self.first)
        if oldest is None or oldest.report is None:
            return WAITS, 0
        return self.judge(oldest.content, *oldest.report)

    def judge(self, content: bytes, offset: int, broker: int) -> tuple[int, int]:
        if 0 <= offset <= self.reader.position:
            self.reader.halt(CUT)
            return HALTS, 0
        if offset == self.reader.position + 1 and broker == self.broker and broker >= 0:
            return self.confirm_at(offset, content)
        self.broker, self.is_reading, self.has_looked = broker, True, False
        return READS, 0

    def confirm_at(self, offset: int, content: bytes) -> tuple[int, int]:
        self.reader.position, self.reader.mark = offset, mark(content)
        self.reader.follow(decode(content)[1], self.reader.mark)
        return self.confirm()

    def read(self, offset: int, content: bytes) -> tuple[int, int]:
        if not self.has_looked:
            self.has_looked = True
            if offset != self.reader.position:
                self.reader.halt(GAP)
            return (READS if self.reader.stands(content) else HALTS), 0
        taken = self.reader.take(offset, content)
        if taken in (HALT, NOTHING):
            return (HALTS if taken == HALT else READS), 0
        if taken == TERM:
            self.is_over = True
            return RESIGNS, 0
        if self.first not in self.appended or self.appended[self.first].content != content:
            self.reader.halt(CHANGED)
            return HALTS, 0
        return self.confirm()

    @property
    def reads_from(self) -> int:
        return self.reader.position + self.has_looked

    @property
    def position(self) -> int:
        return self.reader.position

    @property
    def term(self) -> tuple[int, int]:
        return self.reader.term

    @property
    def halted(self) -> int:
        return self.reader.halted
