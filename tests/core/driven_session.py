"""A consumer's stream on a driven engine: frames up, frames down, and WRITTEN where it is said to be read."""

from typing import Any

from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused

Frame = service.ConsumeSessionResponse


class DrivenSession:
    """One ConsumeSession. What came is in `messages`, `revoked` and `answers`; `ended` holds the status of its end."""

    def __init__(
        self,
        engine: DrivenEngine,
        queue: str = "q",
        *,
        tracks_begun: bool = True,
        holder: bytes = b"",
        **open_: Any,
    ) -> None:
        """`holder` is what the edge puts behind the opening: whose the session is."""
        self.engine = engine
        self.messages: list[messages.Message] = []
        self.revoked: list[tuple[str, list[int]]] = []
        self.answers: list[Frame] = []
        self.ended: tuple[int, str] | None = None
        opening = service.ConsumeSessionRequest(open={"queue": queue, "tracks_begun": tracks_begun, **open_})
        self.token = engine.submit(commands.SESSION_OPEN, opening.SerializeToString() + holder)
        engine.others += engine.settle_down()
        status, payload = engine.answer_of(self.token)
        if status:
            raise Refused(status, messages.ItemStatus.FromString(payload))
        self.opened = Frame.FromString(payload).opened
        self.read()

    def say(self, **frame: Any) -> None:
        self.engine.submit(commands.SESSION, service.ConsumeSessionRequest(**frame), self.token)
        self.read()

    def read(self, *, written: bool = True) -> list[messages.Message]:
        """Take what has come; with `written` the transport took it, too. Returns the messages that are new."""
        before = len(self.messages)
        while True:
            self.engine.others += self.engine.settle_down()
            mine = [out for out in self.engine.others if out[0] == self.token]
            if not mine:
                return self.messages[before:]
            self.engine.others = [out for out in self.engine.others if out[0] != self.token]
            for _, kind, status, payload in mine:
                if kind == commands.END:
                    self.ended = (status, messages.ItemStatus.FromString(payload).reason)
                    continue
                self._take(Frame.FromString(payload))
                if kind == commands.DELIVERY and written:
                    self.engine.submit(commands.WRITTEN, b"", self.token)

    def _take(self, frame: Frame) -> None:
        kind = frame.WhichOneof("response")
        if kind == "delivery":
            self.messages.extend(frame.delivery.messages)
        elif kind == "revoked":
            self.revoked.append((frame.revoked.reason, list(frame.revoked.lease_ids)))
        else:
            self.answers.append(frame)

    @property
    def payloads(self) -> list[bytes]:
        return [message.payload for message in self.messages]

    def lease_ids(self, *places: int) -> list[int]:
        """Of the messages at these places of `messages`; of all without any."""
        chosen = [self.messages[place] for place in places] if places else self.messages
        return [message.metadata.lease_id for message in chosen]

    def begin(self, *places: int) -> None:
        self.say(begun={"lease_ids": self.lease_ids(*places)})

    def breaks(self) -> None:
        """Its connection is gone."""
        self.engine.submit(commands.CONSUMER_CLOSE, b"", self.token)
        self.engine.others += self.engine.settle_down()

    def resumed(self, *places: int, **open_: Any) -> "DrivenSession":
        """A new stream that goes on with the leases at these places."""
        resume = {
            "consumer_id": self.opened.consumer_id,
            "lease_ids": self.lease_ids(*places) if places else [],
        }
        return DrivenSession(self.engine, resume=resume, **open_)
