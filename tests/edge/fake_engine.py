"""A core that says what a test tells it to, through the real seam: submit, eventfd, drain."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Sequence

from fila.v1 import admin_pb2
from fila.v1.messages_pb2 import ItemStatus
from fila_server import errors
from fila_server.core.protocol import commands
from fila_server.core.requests.rights_table import Rights

Answer = Callable[[bytes], tuple[int, bytes]]
"""From a frame to (status, payload) of its REPLY."""


def ok(payload: bytes = b"") -> Answer:
    return lambda _frame: (errors.OK, payload)


def refused(error: errors.FilaServerError) -> Answer:
    return lambda _frame: (error.status, item_status(error))


def item_status(error: errors.FilaServerError) -> bytes:
    return ItemStatus(code=error.status, message=error.message, reason=error.reason).SerializeToString()


class FakeParsed:
    """One parsed frame; remembers how it was routed."""

    def __init__(self, kind: int, frame: bytes) -> None:
        self.kind = kind
        self.frame = frame
        self.routed: list[tuple[object, ...]] = []

    def staged(self) -> tuple[str, str]:
        return "orders", "sink"

    def queues(self) -> set[bytes]:
        return {b"orders"}

    def unrefused(self) -> range:
        return range(1)

    def queue(self, i: int) -> bytes:
        return b"orders"

    def frame_bytes(self) -> int:
        return len(self.frame)

    def pack(
        self, indices: Sequence[int], at: int, count_max: int, bytes_max: int, fairness_header: bytes = b""
    ) -> tuple[int, bytes]:
        return 1, self.frame

    def route(
        self, indices: Sequence[int], at: int, count: int, routings: bytes, start: int
    ) -> tuple[int, str | None, int]:
        self.routed += [(i, routings[start:]) for i in indices[at : at + count]]
        return count, None, len(routings)


class FakeLogReader:
    """Gives out the pieces it was made with; `may_read` holds a read back."""

    def __init__(self, pieces: list[bytes], may_read: threading.Event) -> None:
        self._pieces = list(pieces)
        self._may_read = may_read

    def read(self) -> bytes | None:
        self._may_read.wait(30)
        return self._pieces.pop(0) if self._pieces else None


class FakeEngine:
    """Answers the kinds in `answers`, keeps every other frame in `submitted` until the test answers it."""

    def __init__(self) -> None:
        self.rights = Rights()
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK)
        self.answers: dict[int, Answer] = {
            commands.LIST_QUEUES: ok(),
            commands.LIST_CONFIG: ok(),
            commands.ACCESS_READ: ok(),
        }
        self.submitted: list[tuple[int, int, bytes]] = []
        self.refuse_next: list[errors.FilaServerError] = []
        self.parsed: list[FakeParsed] = []
        self.log_pieces: list[bytes] = []
        self.may_read_log = threading.Event()
        self.may_read_log.set()
        self.started = False
        self.stopped = False
        self._arrived = asyncio.Event()
        self._outbox: list[tuple[int, int, int, bytes]] = []

    # --- the seam -------------------------------------------------------------------------

    def submit(self, kind: int, token: int, frame: bytes) -> None:
        if self.refuse_next:
            raise self.refuse_next.pop(0)
        self.submitted.append((kind, token, frame))
        self._arrived.set()
        answer = self.answers.get(kind)
        if answer is not None:
            status, payload = answer(frame)
            self.say(token, commands.REPLY, payload, status)

    def parse(self, kind: int, frame: bytes, caller: int | None = None, now_ns: int = 0) -> FakeParsed:
        self.parsed.append(FakeParsed(kind, frame))
        return self.parsed[-1]

    def submit_parsed(self, token: int, parsed: FakeParsed) -> None:
        self.submit(parsed.kind, token, parsed.frame)

    def drain(self) -> list[tuple[int, int, int, bytes]]:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.wake_fd)
        said, self._outbox = self._outbox, []
        return said

    def log_reader(self, request: bytes) -> FakeLogReader:
        return FakeLogReader(self.log_pieces, self.may_read_log)

    @property
    def stirs(self) -> int:
        return 0

    def open_report(self) -> dict[str, int]:
        return {}

    def start(self) -> None:
        self.started = True

    def stop(self) -> None:
        self.stopped = True

    # --- for tests ------------------------------------------------------------------------

    def say(self, token: int, reply_kind: int, payload: bytes = b"", status: int = errors.OK) -> None:
        self._outbox.append((token, reply_kind, status, payload))
        os.eventfd_write(self.wake_fd, 1)

    def fail(self, token: int, reply_kind: int, error: errors.FilaServerError) -> None:
        self.say(token, reply_kind, item_status(error), error.status)

    def of(self, kind: int) -> list[tuple[int, bytes]]:
        """Every (token, frame) submitted with this kind, oldest first."""
        return [(token, frame) for submitted, token, frame in self.submitted if submitted == kind]

    async def until(self, kind: int, count: int = 1) -> list[tuple[int, bytes]]:
        """Wait for `count` frames of this kind."""
        async with asyncio.timeout(30):
            while len(self.of(kind)) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.of(kind)


class FakeAdmin:
    """Queues in a dict, so that the mirror and the admin calls have something to agree with."""

    def __init__(self, engine: FakeEngine) -> None:
        self.configs: dict[str, admin_pb2.QueueConfig] = {}
        self.values: dict[str, str] = {}
        engine.answers |= {
            commands.CREATE_QUEUE: self._create,
            commands.UPDATE_QUEUE: self._update,
            commands.DELETE_QUEUE: self._delete,
            commands.GET_QUEUE: self._get,
            commands.LIST_QUEUES: self._list,
            commands.SET_CONFIG: ok(),
            commands.OPERATION_RECORDS_READ: ok(),
        }

    def _create(self, frame: bytes) -> tuple[int, bytes]:
        request = admin_pb2.CreateQueueRequest.FromString(frame)
        if request.name in self.configs:
            return refused(errors.QueueExists(request.name))(frame)
        self.configs[request.name] = request.config
        self.configs.setdefault(request.name + ".dlq", admin_pb2.QueueConfig())
        return errors.OK, admin_pb2.CreateQueueResponse(queue_id=request.name).SerializeToString()

    def _update(self, frame: bytes) -> tuple[int, bytes]:
        request = admin_pb2.UpdateQueueRequest.FromString(frame)
        self.configs[request.queue] = request.config
        return errors.OK, admin_pb2.UpdateQueueResponse(config=request.config).SerializeToString()

    def _delete(self, frame: bytes) -> tuple[int, bytes]:
        request = admin_pb2.DeleteQueueRequest.FromString(frame)
        if self.configs.pop(request.queue, None) is None:
            return refused(errors.QueueNotFound(request.queue))(frame)
        self.configs.pop(request.queue + ".dlq", None)
        return errors.OK, b""

    def _get(self, frame: bytes) -> tuple[int, bytes]:
        request = admin_pb2.GetQueueRequest.FromString(frame)
        config = self.configs.get(request.queue)
        if config is None:
            return refused(errors.QueueNotFound(request.queue))(frame)
        response = admin_pb2.GetQueueResponse(queue=request.queue, config=config)
        return errors.OK, response.SerializeToString()

    def _list(self, _frame: bytes) -> tuple[int, bytes]:
        infos = [admin_pb2.QueueInfo(name=name) for name in sorted(self.configs)]
        return errors.OK, admin_pb2.ListQueuesResponse(queues=infos).SerializeToString()
