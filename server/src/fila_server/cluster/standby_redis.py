"""What a Redis client says to a standby, and what it is told: who serves, and -READONLY to all else.

Client libraries greet a connection before they ask anything (HELLO, AUTH, CLIENT, PING), so greetings get Redis's own
answers. A standby has no keys: it judges none, and what it tells is where its group's nodes are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from fila_server.edge.redis import sentinel
from fila_server.edge.redis.reply_bytes import (
    COMPATIBLE_VERSION,
    OK,
    RESP2,
    RESP3,
    Value,
    encode,
    error_reply,
    integer,
)
from fila_server.edge.redis.sentinel import Group

LINE_BYTES_MAX = 64 * 1024
WORDS_MAX = 1024 * 1024
KEPT_WORDS = 32
KEPT_BYTES = 256
"""Of a command's words no more is kept, and no more of each: nothing that is answered has more."""
ANSWERS_AT_ONCE = 64
"""Of what came in one piece no more commands are answered, since an answer is longer than its question."""

_TEXTS = (b"", b"ALL", b"DEFAULT", b"EVERYTHING")


class Decoder:
    """A connection's bytes as commands; it holds the beginning of one command."""

    def __init__(self) -> None:
        self._line = b""
        self._kept: list[bytes] = []
        self._words = self._skipped = 0

    def commands(self, data: bytes) -> Iterator[list[bytes]]:
        """The words of each command that ends in what came. Raises ValueError at what is none."""
        at = 0
        while at < len(data):
            if self._skipped:
                step = min(self._skipped, len(data) - at)
                self._keep(data[at : at + min(step, max(self._skipped - 2, 0))])
                at, self._skipped = at + step, self._skipped - step
                if not self._skipped:
                    self._words -= 1
                    if not self._words:
                        yield self._taken()
                continue
            end = data.find(b"\n", at)
            self._line += data[at : end if end >= 0 else len(data)]
            if len(self._line) > LINE_BYTES_MAX:
                raise ValueError
            if end < 0:
                return
            line, self._line, at = self._line.removesuffix(b"\r"), b"", end + 1
            if self._words:
                self._skipped = _number(line, b"$", 1 << 30) + 2
                if len(self._kept) < KEPT_WORDS:
                    self._kept.append(b"")
            elif line.startswith(b"*"):
                self._words = _number(line, b"*", WORDS_MAX)
            elif words := line.split(None, KEPT_WORDS):
                yield [word[:KEPT_BYTES] for word in words[:KEPT_WORDS]]

    def _keep(self, part: bytes) -> None:
        # Words behind the last that is kept are added to it, and cut.
        self._kept[-1] = (self._kept[-1] + part[:KEPT_BYTES])[:KEPT_BYTES]

    def _taken(self) -> list[bytes]:
        words, self._kept = self._kept, []
        return words


def _number(line: bytes, sign: bytes, most: int) -> int:
    number = int(line[1:]) if line.startswith(sign) and line[1:].isdigit() and len(line) < 12 else -1
    if not 0 <= number <= most:
        raise ValueError
    return number


class Conversation:
    """One connection: what it speaks, and which channels it hears."""

    def __init__(self, group: Callable[[], Group]) -> None:
        self._group = group
        self._decoder = Decoder()
        self._protocol = RESP2
        self._id = time.time_ns() // 1000
        self.channels: set[bytes] = set()
        self.quits = False

    def take(self, data: bytes, readonly: bytes) -> tuple[bytes, int]:
        """What to write, and how many commands it answers. Raises ValueError at what is no command."""
        replies: list[bytes] = []
        for words in self._decoder.commands(data):
            answered = self._answer(words) if len(replies) < ANSWERS_AT_ONCE else None
            replies.append(readonly if answered is None else answered)
            if self.quits:
                break
        return b"".join(replies), len(replies)

    def switched(self, before: tuple[str, int], now: tuple[str, int]) -> bytes:
        """What it hears once another node serves; nothing where it did not subscribe."""
        if sentinel.SWITCHED not in self.channels:
            return b""
        return sentinel.switched(self._group().name, before, now, self._protocol)

    def _answer(self, words: list[bytes]) -> bytes | None:
        """None: it is refused."""
        match [words[0].upper(), *words[1:]]:
            case [b"PING", *said] if len(said) <= 1:
                return self._pong(said[0] if said else b"")
            case [b"HELLO", *args]:
                return self._hello(args)
            case [b"AUTH", _] | [b"AUTH", _, _] | [b"SELECT", b"0"]:
                return OK
            case [b"CLIENT", word, *_]:
                return self._client(word.upper())
            case [b"RESET"]:
                self._protocol = RESP2
                self.channels.clear()
                return b"+RESET\r\n"
            case [b"QUIT", *_]:
                self.quits = True
                return OK
            case [b"ROLE"]:
                return sentinel.role(self._group(), self._protocol)
            case [b"INFO", *args] if len(args) <= 1:
                return self._info(args[0].upper() if args else b"")
            case [b"SENTINEL", _, *_]:
                return sentinel.answer(self._group(), words[1:], self._protocol)
            case [b"SUBSCRIBE", _, *_]:
                return sentinel.subscribed(self.channels, words[1:], self._protocol)
            case [b"UNSUBSCRIBE", *named]:
                return sentinel.unsubscribed(self.channels, named, self._protocol)
        return None

    def _pong(self, said: bytes) -> bytes:
        if self.channels and self._protocol == RESP2:
            return encode([b"pong", said], RESP2)
        return encode(said, RESP2) if said else b"+PONG\r\n"

    def _hello(self, args: list[bytes]) -> bytes:
        if args and args[0] not in (b"2", b"3"):
            return error_reply("NOPROTO", "unsupported protocol version")
        if args:
            self._protocol = RESP3 if args[0] == b"3" else RESP2
        about: dict[str, Value] = {
            "server": "fila", "version": COMPATIBLE_VERSION, "proto": self._protocol, "id": self._id,
            "mode": "standalone", "role": "replica", "modules": [],
        }  # fmt: skip
        return encode(about, self._protocol)

    def _client(self, word: bytes) -> bytes | None:
        if word in (b"SETINFO", b"SETNAME", b"NO-EVICT"):
            return OK
        return integer(self._id) if word == b"ID" else None

    def _info(self, section: bytes) -> bytes | None:
        about: sentinel.Sections = {"Replication": sentinel.replication(self._group())}
        if section in _TEXTS:
            server = {"redis_version": COMPATIBLE_VERSION, "redis_mode": "standalone", "server_name": "fila"}
            about = {"Server": server, "Persistence": {"loading": 0}, **about}
        elif section != b"REPLICATION":
            return None
        return encode(sentinel.sections(about), RESP2)
