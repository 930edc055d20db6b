"""A task keeps several frames under way; when one fails, it and those behind it are staged again, in order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import grpc
import pyarrow as pa
import pytest

import pyspark_fila.writing as writing
from pyspark_fila.connection import Connection
from pyspark_fila.options import WriteOptions
from pyspark_fila.wire import sink_pb2 as pb


class Failed(grpc.RpcError):
    pass


class Future:
    def __init__(self, answer: Any, fails: bool) -> None:
        self._answer, self._fails = answer, fails
        self.cancelled = False

    def result(self) -> Any:
        assert not self.cancelled
        if self._fails:
            raise Failed
        return self._answer

    def cancel(self) -> None:
        self.cancelled = True


class Broker:
    """Takes frames in order; what is sent ahead fails where the test says so, and behind that as a gap."""

    def __init__(self, fails: set[int], published: int = 1 << 30) -> None:
        self.frames: dict[int, list[bytes]] = {}
        self.calls: list[tuple[str, int]] = []
        self.under_way = self.most = 0
        self._fails, self._published = fails, published

    def stage_ahead(self, request: Any) -> Future:
        self.calls.append(("ahead", request.frame))
        fails = request.frame in self._fails or request.frame > len(self.frames)
        return Future(None if fails else self._take(request), fails)

    def stage(self, request: Any) -> Any:
        self.calls.append(("again", request.frame))
        assert request.frame <= len(self.frames), "a gap"
        return self._take(request)

    def _take(self, request: Any) -> Any:
        if request.frame >= self._published:
            return pb.StageResponse(already_published=True)
        payloads = [message.payload for message in request.messages]
        assert self.frames.setdefault(request.frame, payloads) == payloads
        return pb.StageResponse(messages=sum(map(len, self.frames.values())), checksum=len(self.frames))


def staged(monkeypatch: pytest.MonkeyPatch, broker: Broker, count: int) -> Any:
    context = SimpleNamespace(partitionId=lambda: 3, taskAttemptId=lambda: 7)
    monkeypatch.setattr(writing.TaskContext, "get", staticmethod(lambda: context))
    monkeypatch.setattr(writing, "BrokerSink", lambda *_: broker)
    options = WriteOptions(
        Connection("broker:5555", 1000),
        queue="q",
        batch_size=10,
        sink_id="",
        sink_version=None,
        accept_gap=False,
    )
    rows = pa.RecordBatch.from_pydict({"payload": [str(number).encode() for number in range(count)]})
    return writing._Task(options, "s", 1, 0).stage_all(iter([rows]))


@pytest.mark.parametrize("fails", [set(), {0}, {4}, {2, 6}, {9}])
def test_every_frame_is_staged_once_and_in_order_whichever_fails(monkeypatch, fails):
    broker = Broker(fails)
    told = staged(monkeypatch, broker, 95)

    assert [payload for number in sorted(broker.frames) for payload in broker.frames[number]] == [
        str(number).encode() for number in range(95)
    ]
    assert (told.messages, told.checksum, told.partition, told.attempt) == (95, 10, 3, 7)


def test_no_more_frames_are_under_way_than_may_be(monkeypatch):
    broker = Broker(fails={0})
    staged(monkeypatch, broker, 200)
    ahead = [frame for how, frame in broker.calls[: broker.calls.index(("again", 0))]]
    assert len(ahead) == writing.UNDER_WAY_MAX


def test_a_task_stops_where_its_batch_was_published_before(monkeypatch):
    broker = Broker(set(), published=0)
    told = staged(monkeypatch, broker, 200)
    assert broker.frames == {}
    assert told.messages == 0
    assert len(broker.calls) <= writing.UNDER_WAY_MAX
