"""Answers leave by the outbox their token names: the asyncio loop's, or a reading thread's own."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.v1 import admin_pb2, service_pb2
from fila_server import errors
from fila_server.core.protocol import commands
from fila_server.core.runtime.engine import CoreEngine
from tests.native.outboxlock import OutboxLock

SETTINGS: dict[str, int | str] = {"storage.durability": "os"}
OUTBOX_SHIFT = 56
OUTBOXES_MAX = 17
MESSAGES = 1000
MANY_CHANNELS = 40
"""So many that a frame of MESSAGES is revealed to them in several passes."""


@pytest.fixture
def engine(tmp_path):
    opened = CoreEngine(str(tmp_path / "data"), SETTINGS, mono_ns=1, wall_ns=time.time_ns(), seed=1)
    yield opened
    opened.close()


def is_told(engine: CoreEngine) -> bool:
    return bool(select.select([engine.wake_fd], [], [], 0)[0])


def ask(engine: CoreEngine, token: int) -> None:
    engine.submit(commands.LIST_QUEUES, token, admin_pb2.ListQueuesRequest().SerializeToString())
    engine.run_pass(2, time.time_ns())


def test_an_answer_to_a_threads_token_is_not_the_loops(engine):
    number = engine.open_outbox()
    ask(engine, number << OUTBOX_SHIFT | 7)
    assert not is_told(engine)
    assert engine.drain() == []


def test_the_loops_answers_come_to_the_loop_beside_other_outboxes(engine):
    engine.open_outbox()
    ask(engine, 7)
    assert is_told(engine)
    assert [(token, kind) for token, kind, _, _ in engine.drain()] == [(7, commands.REPLY)]


def test_the_loop_is_told_once_of_what_it_has_not_taken_and_anew_of_what_comes_then(engine):
    for _ in range(2):
        ask(engine, 7)
        ask(engine, 8)
        assert os.eventfd_read(engine.wake_fd) == 1
        assert [token for token, *_ in engine.drain()] == [7, 8]
        ask(engine, 9)
        assert is_told(engine)
        assert [token for token, *_ in engine.drain()] == [9]
        assert not is_told(engine)


def test_outboxes_are_numbered_and_bounded(engine):
    assert [engine.open_outbox() for _ in range(OUTBOXES_MAX - 1)] == list(range(1, OUTBOXES_MAX))
    with pytest.raises(OSError, match="no eventfd"):
        engine.open_outbox()


def test_an_answer_for_an_outbox_that_never_was_goes_to_the_loop(engine):
    """It finds no waiter there; it must not be lost sight of, or written past the table."""
    ask(engine, 200 << OUTBOX_SHIFT | 7)
    assert [token for token, *_ in engine.drain()] == [200 << OUTBOX_SHIFT | 7]


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """What is open stays so; nothing more can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_outbox_that_cannot_have_an_eventfd_is_none(engine):
    """Else nobody would wake the thread whose answers it holds."""
    with no_descriptors(), pytest.raises(OSError, match="no eventfd") as raised:
        engine.open_outbox()
    assert raised.value.errno == errno.EMFILE
    assert engine.open_outbox() == 1, "it took no place"


def test_a_start_without_a_descriptor_for_the_answers_says_so(tmp_path):
    with no_descriptors(), pytest.raises(OSError, match="no eventfd for the answers") as raised:
        CoreEngine(str(tmp_path / "data"), SETTINGS, mono_ns=1, wall_ns=time.time_ns(), seed=1)
    assert raised.value.errno == errno.EMFILE
    assert not (tmp_path / "data").exists()


def test_closing_gives_the_descriptors_back(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for round_ in range(3):
        opened = CoreEngine(
            str(tmp_path / f"data{round_}"), SETTINGS, mono_ns=1, wall_ns=time.time_ns(), seed=1
        )
        opened.open_outbox()
        opened.close()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_start_that_fails_leaves_no_descriptor_behind(engine, tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with pytest.raises(errors.DataDirInUse):
            CoreEngine(str(tmp_path / "data"), SETTINGS, mono_ns=1, wall_ns=time.time_ns(), seed=1)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def work(engine: CoreEngine) -> int:
    touched = engine.counters()["work"]
    assert isinstance(touched, int)
    return touched


def waits_at(thread: threading.Thread) -> int:
    """The address that the thread names to the kernel in the call it sleeps in; 0 while it runs."""
    words = Path(f"/proc/self/task/{thread.native_id}/syscall").read_text().split()
    return int(words[1], 16) if len(words) > 1 and words[0] != "-1" else 0


@pytest.mark.parametrize("channels", [1, MANY_CHANNELS])
def test_frames_are_revealed_before_a_pass_asks_for_an_outbox(tmp_path, channels: int):
    """Else the loop's thread would wait at its outbox, the GIL in hand, for as long as a reveal takes."""
    engine = CoreEngine(str(tmp_path / "data"), {}, mono_ns=1, wall_ns=time.time_ns(), seed=1)
    create = admin_pb2.CreateQueueRequest(name="q")
    engine.submit(commands.CREATE_QUEUE, 1, create.SerializeToString())
    for number in range(1, channels):
        channel = admin_pb2.CreateChannelRequest(queue="q", channel=f"c{number}")
        engine.submit(commands.CREATE_CHANNEL, 100 + number, channel.SerializeToString())
    batch = service_pb2.EnqueueBatchRequest(queue="q")
    for _ in range(MESSAGES):
        batch.messages.add(payload=b"x")
    engine.submit(commands.ENQUEUE_BATCH, 2, batch.SerializeToString())
    engine.run_pass(2, time.time_ns())
    engine.commit()
    engine.drain()
    before = work(engine)
    reveal = threading.Thread(target=engine.run_pass, args=(3, time.time_ns()))
    with OutboxLock(engine) as lock:
        reveal.start()
        while reveal.is_alive() and waits_at(reveal) != lock.address:
            pass
        revealed = work(engine) - before
    reveal.join()
    assert revealed >= MESSAGES
    for _ in range(channels):
        engine.run_pass(3, time.time_ns())
    told = [token for token, *_ in engine.drain()]
    assert told == [1, *range(101, 100 + channels), 2]
    engine.close()


def test_a_frame_the_mailbox_refused_can_be_submitted_again(tmp_path):
    engine = CoreEngine(
        str(tmp_path / "data"),
        SETTINGS | {"scheduler.command_channel_capacity": 16},
        mono_ns=1,
        wall_ns=time.time_ns(),
        seed=1,
    )
    parsed = engine.parse(commands.ENQUEUE, service_pb2.EnqueueRequest(queue="q").SerializeToString())
    for token in range(16):
        engine.submit(commands.LISTENED, token, b"")
    with pytest.raises(errors.Overloaded):
        engine.submit_parsed(1, parsed)
    engine.run_pass(2, time.time_ns())
    engine.submit_parsed(1, parsed)
    with pytest.raises(ValueError, match="submitted already"):
        engine.submit_parsed(1, parsed)
    engine.close()
