"""ReadLog shows nothing that a power cut could take back."""

import struct
import threading

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.native.storeprobe import StoreProbe
from tests.waiting import GIVE_UP_S

FRAMES = 1


def offsets(piece: bytes | None) -> list[int]:
    return [m.metadata.offset for m in admin.ReadLogResponse.FromString(piece or b"").messages]


def test_a_message_is_shown_once_it_is_synced(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q", b"synced")
    engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"not yet"))
    engine.run_pass()
    reader = engine.core.log_reader(admin.ReadLogRequest(queue="q").SerializeToString())
    pieces: list[bytes | None] = []
    thread = threading.Thread(target=lambda: pieces.append(reader.read()))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()

    engine.commit()
    thread.join(GIVE_UP_S)

    assert [offsets(piece) for piece in pieces] == [[1, 2]]


def test_under_os_a_message_is_shown_without_a_sync(engine: DrivenEngine) -> None:
    engine.create_queue("q", durability=admin.DURABILITY_OS)
    engine.enqueue("q")
    engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"more"))
    engine.run_pass()

    reader = engine.core.log_reader(admin.ReadLogRequest(queue="q").SerializeToString())

    assert offsets(reader.read()) == [1, 2]


def test_a_queue_that_is_not_there_is_told_at_the_first_read(engine: DrivenEngine) -> None:
    reader = engine.core.log_reader(admin.ReadLogRequest(queue="nowhere").SerializeToString())
    with pytest.raises(errors.QueueNotFound):
        reader.read()


def test_what_cannot_be_read_is_told_once_all_before_it_was_shown(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for payload in (b"a", b"damaged", b"c"):
        engine.enqueue("q", payload)
    engine.stop()
    store = StoreProbe(str(engine.directory))
    keys = [struct.pack(">QQ", queue, 2) for queue in range(1, 50)]
    [damaged] = [key for key in keys if store.get(FRAMES, key) is not None]
    store.write([(FRAMES, damaged, None)])
    store.close()
    engine.reopen()

    reader = engine.core.log_reader(admin.ReadLogRequest(queue="q").SerializeToString())
    assert offsets(reader.read()) == [1]
    with pytest.raises(errors.LogDamaged, match=r"offset 2 to below 3 .* read on with from_offset 3"):
        reader.read()

    behind = engine.core.log_reader(admin.ReadLogRequest(queue="q", from_offset=3).SerializeToString())
    assert offsets(behind.read()) == [3]
