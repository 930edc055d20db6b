"""One client: bytes in, commands carried out in order, replies out in the same order.

    socket ─► decoder ─► next item ─► start ─► slots: [done][done][waiting][done] ─► socket
               (codec.pyx)   │                  a reply leaves when all before it have left
                             └── waits while what runs must be finished first

A client may send many commands without reading a reply, and each must see what those before
it did. So a command starts when nothing runs, or when what runs is of its own lane (lanes.py).

Everything is bounded: what is started, by slots and bytes; what is not, by leaving it in the
decoder and no longer reading from the socket; replies, by making none while the system has not taken
the last ones, and all clients' together by the broker's budget of unwritten answers;
the time all clients take of one turn of the loop, by turns.py.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

import structlog

from fila.v1.service_pb2 import LeaseRequest
from fila_server import commands, errors
from fila_server.broker.pulls import PullWait
from fila_server.edges.redis import codec, encode, replies, verbs
from fila_server.edges.redis.client import Host, Session
from fila_server.edges.redis.entry import Entry, end_of, names_of
from fila_server.edges.redis.lanes import ALONE, LANES, READS, lane_of, size_of

log = structlog.get_logger("fila_server.edges.redis")

SLOTS_MAX = 512
"""Replies a connection may be owed; items beyond it stay unread."""
STARTED_BYTES_MAX = 4 * 1024 * 1024
"""Frames of one connection that the core may be working on."""
READS_MAX = 4
"""Pulls side by side: each may answer with 4 MiB."""
UNSTARTED_BYTES_MAX = 1024 * 1024
"""Input kept for later. Less than this is always read, so that a client's leaving is noticed; with more behind
it a read does not wait."""
FLUSH_BYTES = 64 * 1024
WRITE_HIGH_WATER = 64 * 1024
"""Beyond it no further reply is made until the system has taken all; less counts as written."""
ITEMS_PER_TAKE = 64
LINGER_S = 1.0
"""How long a refused client's further bytes are thrown away, so that it can read why."""


class _Slot:
    """A reply that is owed, in its place in the order."""

    __slots__ = ("is_over", "leased", "read", "reply", "size")

    def __init__(self, size: int = 0, reply: bytes | None = None) -> None:
        self.size = size
        self.reply = reply
        self.read: asyncio.Future[bytes] | None = None
        """A pull in the core, to be taken back when nobody is there for its answer."""
        self.is_over = False
        """Its wait was ended by us before its time."""
        self.leased: bytes | None = None
        """The LeaseResponse behind `reply`, to be given back when the client leaves before it is written."""


class Connection(asyncio.Protocol):
    """The protocol object of one client. Lives on the loop's thread."""

    def __init__(self, server: Host) -> None:
        self.server = server
        self.broker = server.broker
        limits = server.limits
        self._decoder = codec.CommandDecoder(
            limits.payload_bytes_max, limits.batch_messages_max, limits.batch_bytes_max
        )
        self._items: deque[codec.Item] = deque()
        self._is_dry = True
        """The decoder holds no whole command."""
        self._slots: deque[_Slot] = deque()
        self._waiting = 0
        """Slots whose reply is not known yet; all of one lane."""
        self._lane = ALONE
        self._started_bytes = 0
        self._ready_bytes = 0
        self._unwritten: list[int] = []
        """Sizes of the answers whose replies the transport still holds."""
        self._write_paused = False
        self._read_paused = False
        self._saw_eof = False
        self._ending = False
        """Nothing more is started; the connection closes once every reply has left."""
        self._lingering = False
        self.blocked = False
        """A read waits in the core for a message."""
        self._wait = PullWait()
        """That read's."""

    # --- asyncio.Protocol -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the client in, or tell it that there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        # Told when the system does not take what is large, and when it has taken all of it.
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER, low=0)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            # A reader may be blocked for hours; this finds out that its machine is gone.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer = transport.get_extra_info("peername")
        self.session = Session(peer, self.server.now())
        tls = transport.get_extra_info("ssl_object")
        refused: errors.FilaServerError | None = None
        try:
            self.entry = Entry(
                self.server.door,
                peer,
                self.end,
                encrypted=tls is not None,
                names=names_of(tls),
                ends_s=end_of(tls),
            )
        except errors.FilaServerError as error:
            refused = error
        if sock is not None and not self.server.may_be_kept(sock.fileno()):
            # Closed at once: to linger would keep the descriptor, of which there are too few.
            self._ending = True
            self._transport.write(replies.error_reply("ERR", "max number of clients reached"))
            self._transport.close()
        elif refused is not None:
            self._ending = True
            self._transport.write(replies.refusal(refused))
            self._transport.close()
        elif not self.server.admit(self):
            self._answer(replies.error_reply("ERR", "max number of clients reached"))
            self.quit()
            self._flush()
        else:
            self.await_key()

    def await_key(self) -> None:
        """Close after a while unless a key comes, where one is needed."""
        self.entry.await_key(self.abort)

    def data_received(self, data: bytes) -> None:
        """Start what can be started; keep the rest."""
        if self._ending:
            return
        self.entry.received_bytes += len(data)
        self._decoder.feed(data)
        self._is_dry = False
        self.server.turns.enter(self)
        if self.server.turns.is_in_line(self):
            self._steer_reading(out_of_time=True)

    def eof_received(self) -> bool:
        """Answer what was asked for before the client stopped sending. Nothing is waited for: whoever closed both sides
        looks the same, and would be given messages that nobody reads."""
        if self._ending and not self._slots:
            return False
        self._saw_eof = True
        self._wait_is_over()
        self.server.turns.enter(self)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Take reads back out of the core; pushes and acks that were sent on stand."""
        self.quit()
        self._cancel_reads()
        self._all_written()
        for slot in self._slots:
            if slot.leased is not None:
                self.broker.unwritten.give(len(slot.leased))
                self.broker.give_back(slot.leased)
        self._slots.clear()
        if hasattr(self, "entry"):
            self.entry.close()
        self.server.turns.leave(self)
        self.server.forget(self)

    def pause_writing(self) -> None:
        """The client reads too slowly: produce no further replies for now."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._write_paused = False
        self._all_written()
        self.server.turns.enter(self)

    # --- starting items, in order ---------------------------------------------------------

    def work(self, until_ns: int) -> bool:
        """Start what may be started until `until_ns`, and write what is known; True when more could be started."""
        now_ns = self.server.turns.now_ns
        out_of_time = False
        while not self._ending and not self._write_paused and (self._items or self._take()):
            if not self._may_start(self._items[0]) or self._turn_away():
                break
            if out_of_time := now_ns() > until_ns:
                break
            self._start(self._items.popleft())
            if self._ready_bytes >= FLUSH_BYTES:
                self._flush()
        if self._is_dry and not self._items and not self._waiting:
            self._turn_away()
        self._flush()
        self._steer_reading(out_of_time)
        return out_of_time

    def _take(self) -> bool:
        """Decode some more; False when nothing is whole."""
        if self._is_dry:
            return False
        # One by one before AUTH, so that it is known what lies behind it.
        most = ITEMS_PER_TAKE if self.entry.caller else 1
        items = self._decoder.take(most)
        self._is_dry = len(items) < most
        self._items.extend(items)
        return bool(items)

    def _turn_away(self) -> bool:
        """Refuse a client that sent much and no key; True when it was one."""
        if self._ending or self.entry.caller is not None:
            return False
        kept = self._decoder.kept_bytes
        sizes = [size_of(item) for item in self._items]
        if self.entry.is_too_much(kept + sum(sizes), sizes[0] if sizes else kept):
            self._answer(replies.error_reply("NOAUTH", "Authentication required."))
            self.quit()
        return self._ending

    def _may_start(self, item: codec.Item) -> bool:
        if not self._waiting:
            return True
        lane = lane_of(item)
        if lane == ALONE or lane != self._lane:
            return False
        if lane == READS and self._waiting >= READS_MAX:
            return False
        return len(self._slots) < SLOTS_MAX and self._started_bytes < STARTED_BYTES_MAX

    def _start(self, item: codec.Item) -> None:
        kind, body, number = item
        self._lane = lane_of(item)
        if self.entry.caller is None and kind in LANES:
            copies = number if kind == codec.PUSHES else 1
            self._answer(replies.error_reply("NOAUTH", "Authentication required.") * copies)
            return
        call = (
            partial(self.broker.call, caller=self.entry.caller.number)
            if self.entry.caller
            else self.broker.call
        )
        if kind == codec.PUSHES:
            self.server.count_commands(number)
            finish = partial(encode.push_replies, count=number)
            self._expect(len(body), partial(call, commands.ENQUEUE_BATCH, body), finish, copies=number)
            return
        self.server.count_commands(1)
        if kind == codec.PUSH_MANY:
            finish = partial(encode.push_many_reply, count=number)
            self._expect(len(body), partial(call, commands.ENQUEUE_ATOMIC, body), finish)
        elif kind == codec.ACKS and len(body) == 1:
            self._expect(number, partial(call, commands.ACK_BATCH, body[0]), replies.acked)
        elif kind == codec.ACKS:
            self._expect(number, partial(_ack_all, call, body), bytes)
        elif kind == codec.LEASE:
            self._start_read(body, number)
        elif kind == codec.COMMAND:
            self._start_command(body, number)
        else:
            self._answer(body)
            if kind == codec.CLOSE:
                self.quit()

    def _start_read(self, frame: bytes, wait_ms: int) -> None:
        waits = wait_ms > 0 and not self._saw_eof
        if wait_ms and not waits:
            frame = _at_once(frame)
        self.blocked = waits
        self._wait = PullWait()
        finish = partial(replies.leased, wait_ms=wait_ms, protocol=self.session.protocol)
        self._expect(
            len(frame),
            partial(self.broker.lease, frame, self.entry.number, may_wait_for_room=False, wait=self._wait),
            finish,
            is_read=True,
        )
        if waits and self._slots[-1].read is not None:
            self._hold_read(frame, self._slots[-1].read)

    def _hold_read(self, frame: bytes, read: asyncio.Future[bytes]) -> None:
        """A read that waits is over when the right to it is taken back."""
        asked = LeaseRequest.FromString(frame)
        release = self.entry.hold_read(asked.queue, asked.channel, lambda _error: self._end_wait())
        read.add_done_callback(lambda _: release())

    def _start_command(self, args: list[bytes], argc: int) -> None:
        try:
            reply = verbs.run(self, args, argc)
        except errors.FilaServerError as error:
            self._answer(replies.refusal(error))
            return
        if isinstance(reply, bytes):
            self._answer(reply)
        else:
            self._expect(0, lambda: reply, bytes)

    # --- replies, in order ----------------------------------------------------------------

    def _answer(self, reply: bytes) -> None:
        self._slots.append(_Slot(reply=reply))
        self._ready_bytes += len(reply)

    def _expect(
        self,
        size: int,
        begin: Callable[[], Awaitable[bytes]],
        finish: Callable[[bytes], bytes],
        copies: int = 1,
        is_read: bool = False,
    ) -> None:
        """Begin a call of the broker; `finish` makes its answer a reply, a failure is told `copies` times."""
        slot = _Slot(size)
        self._slots.append(slot)
        try:
            work = begin()
        except errors.FilaServerError as error:
            self.blocked = False
            slot.reply = replies.refusal(error) * copies
            return
        if not isinstance(work, asyncio.Future):
            # A hook comes first: the mailbox no longer keeps the order with what would follow.
            if not is_read:
                self._lane = ALONE
            work = asyncio.ensure_future(work)
        slot.read = work if is_read else None
        self._waiting += 1
        self._started_bytes += size
        work.add_done_callback(partial(self._finish, slot, finish, copies))

    def _finish(
        self, slot: _Slot, finish: Callable[[bytes], bytes], copies: int, work: asyncio.Future[bytes]
    ) -> None:
        self._waiting -= 1
        self._started_bytes -= slot.size
        self.blocked = False
        is_read, slot.read = slot.read is not None, None
        try:
            response = work.result()
            slot.reply = finish(response)
            if is_read and self._transport.is_closing():
                self.broker.unwritten.give(len(response))
                self.broker.give_back(response)
            elif is_read:
                slot.leased = response
        except errors.FilaServerError as error:
            slot.reply = replies.refusal(error) * copies
        except asyncio.CancelledError:
            if slot.is_over:
                slot.reply = replies.null_array(self.session.protocol)
            else:
                slot.reply = replies.refusal(errors.Unavailable("the server is shutting down"))
        except Exception:
            log.exception("redis.command_failed")
            slot.reply = replies.INTERNAL * copies
        self.server.turns.enter(self)

    def _flush(self) -> None:
        """Write every reply that has no unknown one before it; then close if that was the last."""
        slots = self._slots
        ready = []
        while slots and (reply := slots[0].reply) is not None:
            ready.append(reply)
            if (leased := slots.popleft().leased) is not None:
                self._unwritten.append(len(leased))
        self._ready_bytes = 0
        if self._transport.is_closing():
            self._all_written()
            return
        if ready:
            self._transport.write(ready[0] if len(ready) == 1 else b"".join(ready))
            if not self._write_paused:
                self._all_written()
        if not slots and self._saw_eof and not self._items and self._is_dry:
            self._transport.close()
        elif not slots and self._ending and not self._lingering:
            self._linger()

    def _all_written(self) -> None:
        """The system has taken every reply, or nobody is left to take them."""
        for size in self._unwritten:
            self.broker.unwritten.give(size)
        self._unwritten.clear()

    def _steer_reading(self, out_of_time: bool) -> None:
        """Stop reading while enough waits to be started, or until our next turn; go on when it does not."""
        is_behind = bool(self._items) or not self._is_dry
        is_full = is_behind and self._decoder.kept_bytes >= UNSTARTED_BYTES_MAX
        if is_full and not self._ending:
            # That a client leaves is seen by reading only: it would hold its place, and be given messages, for as
            # long as it meant to wait.
            self._wait_is_over()
        pause = (is_full or out_of_time) and not self._ending
        if pause != self._read_paused and not self._transport.is_closing():
            self._read_paused = pause
            if pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    # --- the end --------------------------------------------------------------------------

    def quit(self) -> None:
        """Start nothing more; the connection closes when the replies that are owed have left."""
        self._ending = True
        self._items.clear()

    def end(self) -> None:
        """The server stops: end a waiting read, answer what runs, close."""
        self.quit()
        if self.blocked:
            self._cancel_reads()
        if self._slots:
            self._flush()
        else:
            self._transport.close()

    def _wait_is_over(self) -> None:
        """The read that waits goes on as if its time were over: it gets what there is, or null."""
        if self.blocked:
            self._wait.end()

    def _end_wait(self) -> None:
        """Answer the read that waits with null: its client may not have what it waits for any more."""
        for slot in self._slots:
            if slot.read is not None:
                slot.is_over = True
                slot.read.cancel()

    def _cancel_reads(self) -> None:
        # Only these: to stop a SET half-way would leave the broker's mirror behind the core.
        for slot in self._slots:
            if slot.read is not None:
                slot.read.cancel()

    def abort(self) -> None:
        """Close at once, whatever is owed."""
        self._transport.abort()

    def _linger(self) -> None:
        """Close, but take bytes in for a moment longer: a reset would take our last reply away."""
        self._lingering = True
        self._transport.write_eof()
        self.server.loop.call_later(LINGER_S, self._transport.close)


def _at_once(frame: bytes) -> bytes:
    """A read that would wait, made one that gets what is there."""
    asked = LeaseRequest.FromString(frame)
    asked.ClearField("wait_ms")
    return asked.SerializeToString()


async def _ack_all(call: Callable[[int, bytes], Awaitable[bytes]], frames: list[bytes]) -> bytes:
    """An HDEL of more tickets than one frame may hold."""
    return encode.acks_reply([await call(commands.ACK_BATCH, frame) for frame in frames])
