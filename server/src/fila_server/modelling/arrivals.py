"""Other people's logs as a history: their messages come when they came, and the core serves so many workers.

The core runs under the log's own time, in memory, and is recorded as every broker is: so a replay follows what came of
it, a model tries other policies on it, and reports read it. Nobody gives up, and nothing fails.
"""

from __future__ import annotations

import heapq
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from fila.v1 import admin_pb2, messages_pb2, service_pb2
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands
from fila_server.core.runtime.engine import CoreEngine
from fila_server.history_files import columns
from fila_server.history_files.files import RunFiles
from fila_server.operations import rules

QUEUE, RUN = "imported", "imported"
TENANT, COST = "tenant", "cost"
MS = 1_000_000
BATCH = 1_000
STARTED_NS = 1_000 * MS
SETTINGS: dict[str, int | str] = {
    "history.enabled": True,
    "history.headers": "all",
    "storage.min_free_bytes": 0,
    "storage.ballast_bytes": 65_536,
}

Groups = Iterator[tuple[int, list[tuple[str, float, int]]]]
"""A moment in ms since 1970, and what came in it: tenant, cost, and how long it takes in ms."""


def record(arrivals: pa.Table, workers: int, directory: Path, seed: int = 1) -> int:
    """Write the history of `workers` that serve these arrivals; returns when they ended, in ms since 1970.

    arrivals: `at_ms`, which never falls, `tenant`, `cost`, and `took_ms`, less than the longest lease.
    Once a process.
    """
    shared = Path("/dev/shm")  # noqa: S108 - the core syncs what it writes, and nobody reads it again
    folder = tempfile.mkdtemp(prefix="fila-import-", dir=shared if shared.is_dir() else None)
    try:
        serving = _Serving(folder, arrivals.column("at_ms")[0].as_py(), workers, directory, seed)
        try:
            return serving.run(_by_moment(arrivals))
        finally:
            serving.core.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Serving:
    def __init__(self, folder: str, began_ms: int, workers: int, directory: Path, seed: int) -> None:
        self.ahead_ms = began_ms - STARTED_NS // MS
        self.now_ms = began_ms
        self.core = CoreEngine(
            folder,
            SETTINGS,
            mono_ns=STARTED_NS,
            wall_ns=began_ms * MS,
            seed=seed,
        )
        self.files = RunFiles(directory, RUN, sample=1)
        self.tokens = 0
        self.took_ms: dict[int, int] = {}
        """By the offset of what has come, and is not served yet."""
        self.offset = 0
        self.due: list[tuple[int, int, str, int]] = []
        """When which message is done: the moment, its offset, its id, its lease."""
        config = admin_pb2.QueueConfig(
            fairness_key_header=TENANT,
            cost_header=COST,
            visibility_timeout_ms=rules.VISIBILITY_TIMEOUT_MS_MAX,
            durability=admin_pb2.DURABILITY_OS,
        )
        making = admin_pb2.CreateQueueRequest(name=QUEUE, config=rules.complete(config, Limits()))
        self._submit(commands.CREATE_QUEUE, making)
        self._settle_down()
        self.stream = self._submit(
            commands.CONSUME_OPEN,
            service_pb2.ConsumeRequest(queue=QUEUE, max_in_flight=workers, max_batch=min(workers, BATCH)),
        )
        self._settle_down()

    def run(self, groups: Groups) -> int:
        coming = next(groups, None)
        while coming is not None or self.due:
            moments = [self.due[0][0]] if self.due else []
            self.now_ms = max(self.now_ms, min([*moments, coming[0]] if coming is not None else moments))
            self._finish()
            if coming is not None and coming[0] <= self.now_ms:
                self._enqueue(coming[1])
                coming = next(groups, None)
        assert self.core.recording is not None
        self.core.recording.cut()
        self._settle_down()
        self.files.end()
        return self.now_ms

    def _enqueue(self, came: list[tuple[str, float, int]]) -> None:
        for at in range(0, len(came), BATCH):
            batch = service_pb2.EnqueueBatchRequest(queue=QUEUE)
            for tenant, cost, took_ms in came[at : at + BATCH]:
                self.offset += 1
                self.took_ms[self.offset] = took_ms
                batch.messages.add(headers={TENANT: tenant, COST: f"{cost:g}"})
            self._submit(commands.ENQUEUE_BATCH, batch)
            self._settle_down()

    def _finish(self) -> None:
        """Ack what is done by now."""
        items = []
        while self.due and self.due[0][0] <= self.now_ms:
            _, _, message_id, lease_id = heapq.heappop(self.due)
            items.append(service_pb2.SettleItem(message_id=message_id, lease_id=lease_id))
        for at in range(0, len(items), BATCH):
            self._submit(
                commands.ACK_BATCH,
                service_pb2.AckBatchRequest(queue=QUEUE, items=items[at : at + BATCH]),
            )
        if items:
            self._settle_down()

    def _submit(self, kind: int, request: Any) -> int:
        self.tokens += 1
        self.core.submit(kind, self.tokens, request.SerializeToString())
        return self.tokens

    def _settle_down(self) -> None:
        """Passes until nothing more comes of this moment."""
        mono_ns = (self.now_ms - self.ahead_ms) * MS
        while True:
            wanted_ns = self.core.run_pass(mono_ns, self.now_ms * MS)
            busy = self.core.commit() | bool(self.core.load())
            found = self.core.drain()
            for token, kind, status, payload in found:
                if kind == commands.DELIVERY:
                    self._delivered(token, payload)
                elif status:
                    said = messages_pb2.ItemStatus.FromString(payload)
                    raise AssertionError(f"the core refused an import: {said.message or said.reason}")
            self._keep()
            if not (busy or found or (wanted_ns is not None and wanted_ns <= mono_ns)):
                return

    def _delivered(self, token: int, payload: bytes) -> None:
        consumed = service_pb2.ConsumeResponse.FromString(payload)
        for message in [*([consumed.message] if consumed.HasField("message") else []), *consumed.messages]:
            offset = message.metadata.offset
            done_ms = self.now_ms + self.took_ms.pop(offset)
            heapq.heappush(self.due, (done_ms, offset, message.id, message.metadata.lease_id))
        self.core.submit(commands.WRITTEN, token, b"")

    def _keep(self) -> None:
        recording = self.core.recording
        assert recording is not None
        while (block := recording.take()) is not None:
            first_ms, last_ms = block.times
            if first_ms:
                self.files.write(columns.tables(block), first_ms, last_ms)
            block.give_back()


def _by_moment(arrivals: pa.Table) -> Groups:
    names = ("at_ms", "tenant", "cost", "took_ms")
    rows = (
        row
        for batch in arrivals.to_batches(max_chunksize=10_000)
        for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    )
    for at_ms, came in itertools.groupby(rows, key=itemgetter(0)):
        yield at_ms, [(tenant, cost, took_ms) for _, tenant, cost, took_ms in came]
