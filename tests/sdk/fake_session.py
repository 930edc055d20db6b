"""One ConsumeSession of the fake broker: what it was told, and the rules by which its leases end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from fila.v1 import messages_pb2, service_pb2

if TYPE_CHECKING:
    from tests.sdk.fake_broker import FakeBroker, Queue

Response = service_pb2.ConsumeSessionResponse


class FakeSession:
    """What one session has been told so far, and the leases it holds."""

    def __init__(
        self,
        broker: FakeBroker,
        queue: Queue,
        opened: service_pb2.ConsumeSessionRequest.Open,
        consumer_id: int,
    ) -> None:
        self.broker = broker
        self.queue = queue
        self.asked = opened
        self.consumer_id = consumer_id
        self.tracks = opened.tracks_begun and not broker.old
        self.window = opened.max_in_flight or 256
        self.leases: dict[int, messages_pb2.Message] = {}
        self.begun: set[int] = set()
        self.answers: deque[Response] = deque()
        self.answered = asyncio.Event()
        self.over = False
        self._grace: asyncio.TimerHandle | None = None
        self._lost = self._resume(opened.resume) if opened.HasField("resume") and not broker.old else []

    # Opening.

    def opened(self) -> Response:
        answer = Response.Opened(consumer_id=self.consumer_id)
        if self.tracks:
            self.broker.tracked[self.consumer_id] = self
            answer.visibility_timeout_ms = self.queue.config.visibility_timeout_ms
            answer.disconnect_grace_ms = int(self.broker.grace_s * 1000)
            answer.max_lease_renewal_ms = self.renewal_ms
            answer.lost_lease_ids.extend(self._lost)
        return Response(opened=answer)

    @property
    def renewal_ms(self) -> int:
        if self.broker.renewal_ms is not None:
            return self.broker.renewal_ms
        return self.asked.max_lease_renewal_ms if self.asked.HasField("max_lease_renewal_ms") else 600_000

    def _resume(self, resume: service_pb2.ConsumeSessionRequest.Resume) -> list[int]:
        """Take over what the broken session holds still; return what it does not."""
        old = self.broker.tracked.pop(resume.consumer_id, None)
        if old is None:
            return list(resume.lease_ids)
        if old._grace is not None:
            old._grace.cancel()
        held = {lease for lease in old.leases if lease in self.queue.leased}
        self.leases = {lease: old.leases[lease] for lease in resume.lease_ids if lease in held}
        self.begun = {lease for lease in old.begun if lease in self.leases}
        old.leases.clear()
        self.give_back(sorted(held.difference(self.leases)))
        return [lease for lease in resume.lease_ids if lease not in self.leases]

    # Delivering.

    @property
    def room(self) -> int:
        return max(0, self.window - sum(lease in self.queue.leased for lease in self.leases))

    def took(self, delivered: Iterable[messages_pb2.Message]) -> None:
        self.leases |= {message.metadata.lease_id: message for message in delivered}
        if not self.tracks:
            self.broker.expire_later(self.queue, delivered)

    # What comes up.

    async def listen(self, requests: AsyncIterator[service_pb2.ConsumeSessionRequest]) -> None:
        async for request in requests:
            kind = request.WhichOneof("request")
            if kind not in ("ack", "nack"):
                self.broker.frames.append(request)
            if kind in ("ack", "nack"):
                settle = request.ack if kind == "ack" else request.nack
                self.broker.settle_frames.append(len(settle.lease_ids))
                await self.broker.answering.wait()
                self.answers.append(self._settled(settle, nack=kind == "nack"))
            elif kind == "close":
                self._close(release=request.close.release)
            elif not self.broker.old:
                self._heard(request)
            self.answered.set()

    def _heard(self, request: service_pb2.ConsumeSessionRequest) -> None:
        kind = request.WhichOneof("request")
        if kind == "begun":
            held = [lease for lease in request.begun.lease_ids if lease in self.queue.leased]
            self.begun.update(held)
            if lost := set(request.begun.lease_ids).difference(held):
                self.revoke(lost, "LEASE_LOST")
        elif kind == "window":
            self.window = request.window.size
            self.give_back(request.window.give_back)
        elif kind == "alive" and not self.broker.silent:
            self.answers.append(Response(alive=Response.Alive(sequence=request.alive.sequence)))

    def _settled(self, settle: service_pb2.Settle, *, nack: bool) -> Response:
        answer = Response.Settled(sequence=settle.sequence)
        wishes = service_pb2.SettleItem(
            error=settle.error,
            dead_letter=settle.dead_letter,
            release=settle.release,
            feedback=settle.feedback,
        )
        if settle.HasField("delay_ms"):
            wishes.delay_ms = settle.delay_ms
        for lease_id in settle.lease_ids:
            status = self.broker.settle(self.queue, lease_id, nack=wishes if nack else None)
            if status.code:
                answer.failures.add(lease_id=lease_id, status=status)
        return Response(settled=answer)

    # How leases end.

    def revoke(self, lease_ids: Iterable[int], reason: str) -> None:
        """The broker ends leases of this session."""
        self.answers.append(Response(revoked=Response.Revoked(lease_ids=lease_ids, reason=reason)))
        self.answered.set()

    def give_back(self, lease_ids: Iterable[int]) -> None:
        for lease_id in lease_ids:
            message = self.queue.leased.pop(lease_id, None)
            if message is not None:
                self.queue.returned.append(lease_id)
                self.queue.put_back(message, was_begun=not self.tracks or lease_id in self.begun)

    def _close(self, *, release: bool) -> None:
        self.over = True
        self.broker.tracked.pop(self.consumer_id, None)
        self.give_back(
            [lease for lease in self.leases if release or (self.tracks and lease not in self.begun)]
        )
        if self.tracks:
            self.broker.expire_later(
                self.queue, [m for lease, m in self.leases.items() if lease in self.queue.leased]
            )

    def stream_ended(self) -> None:
        """Without a close it can be resumed for the grace."""
        if self.over or not self.tracks or self.consumer_id not in self.broker.tracked:
            return
        self._grace = asyncio.get_running_loop().call_later(self.broker.grace_s, self._gone)

    def _gone(self) -> None:
        self.broker.tracked.pop(self.consumer_id, None)
        for lease_id in self.leases:
            if lease_id in self.begun:
                self.broker.expire(self.queue, lease_id)
            else:
                self.give_back([lease_id])
