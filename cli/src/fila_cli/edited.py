"""Dead letters moved back with other headers: stored anew in the queue they came from, then dropped where they lay.

Each is enqueued before it is dropped, with a dedup key made of its id. So one that is interrupted in between is there
twice, or, when it is begun again within the queue's dedup window, once. None is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fila_cli.failures import BrokerError
from fila_cli.progress import Progress
from fila_cli.session import Session, Stopped

if TYPE_CHECKING:
    from fila.v1.messages_pb2 import Message

_PAGE = 500
_PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class HeaderEdits:
    """What to change: headers to give, and headers to take away."""

    given: dict[str, str] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.given or self.removed)

    def of(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers as they will be."""
        kept = {name: value for name, value in headers.items() if name not in self.removed}
        return kept | self.given


def check_one_channel(session: Session, letters: Sequence[Message]) -> None:
    """Raise where an edited message would come to channels that its letter has nothing to do with."""
    from fila.v1 import admin_pb2

    for queue in sorted({message.metadata.dead_letter.source_queue for message in letters}):
        request = admin_pb2.ListChannelsRequest(queue=queue)
        channels = session.admin.ListChannels(request, timeout=session.timeout_s).channels
        if len(channels) > 1:
            raise BrokerError(
                f"{queue} has {len(channels)} channels, and a message with other headers is a new one, which comes to "
                "all of them; redrive without edits moves it back into its own"
            )


def move_edited(session: Session, dlq: str, letters: Sequence[Message], edits: HeaderEdits) -> int:
    """Return how many were moved. Raises Stopped with how many were."""
    from fila.v1 import events_pb2

    refused = ""
    with Progress("dead letter", len(letters), told_as="moved back") as progress:
        try:
            for page in _pages(letters):
                stored, problem = _store(session, page, edits)
                refused = refused or problem
                if stored:
                    drop = events_pb2.DropDeadLettersRequest(dlq_queue=dlq, offsets=stored)
                    session.admin.DropDeadLetters(drop, timeout=session.timeout_s)
                progress.add(len(stored))
        except KeyboardInterrupt:
            raise Stopped(f"{progress.summary()} moved back; the rest stay in {dlq}") from None
    if refused:
        raise BrokerError(f"{progress.summary()} moved back; the rest stay in {dlq}: {refused}")
    return progress.done


def _pages(letters: Sequence[Message]) -> list[list[Message]]:
    pages: list[list[Message]] = [[]]
    size = 0
    for letter in letters:
        if pages[-1] and (len(pages[-1]) == _PAGE or size + len(letter.payload) > _PAGE_BYTES):
            pages.append([])
            size = 0
        pages[-1].append(letter)
        size += len(letter.payload)
    return pages


def _store(session: Session, page: Sequence[Message], edits: HeaderEdits) -> tuple[list[int], str]:
    """Return the offsets of the letters that are stored anew, and why the first of the others is not."""
    from fila.v1 import service_pb2

    request = service_pb2.EnqueueBatchRequest()
    for letter in page:
        request.messages.add(
            queue=letter.metadata.dead_letter.source_queue,
            headers=edits.of(dict(letter.headers)),
            payload=letter.payload,
            options=service_pb2.EnqueueOptions(dedup_key=f"redrive:{letter.id}"),
        )
    answer = session.service.EnqueueBatch(request, timeout=session.timeout_s)
    stored = [
        letter.metadata.offset
        for letter, result in zip(page, answer.results, strict=True)
        if not result.error.code
    ]
    problems = [result.error.message for result in answer.results if result.error.code]
    return stored, problems[0] if problems else ""
