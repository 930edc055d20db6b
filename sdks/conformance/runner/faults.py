"""The faults that are planted: mistakes an SDK could make, each with the scenarios that must notice one.

A change gets each message that passes and yields what passes instead (meddler.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .meddler import Change, Fault


def enqueued(change: Callable[[Any], None]) -> Change:
    """Change each message that is stored, however it travels."""

    def changed(method: str, request: Any) -> Iterable[Any]:
        if method == "Enqueue":
            change(request)
        elif method == "EnqueueBatch":
            for message in request.messages:
                change(message)
        elif method == "EnqueueStream":
            for message in request.batch.messages:
                change(message)
        yield request

    return changed


def batches(change: Callable[[Any], None]) -> Change:
    """Change each batch that is stored."""

    def changed(method: str, request: Any) -> Iterable[Any]:
        if method == "EnqueueStream":
            change(request.batch)
        elif method == "EnqueueBatch":
            change(request)
        yield request

    return changed


def requests(change: Callable[[Any], None], *methods: str) -> Change:
    """Change the requests of some methods."""

    def changed(method: str, request: Any) -> Iterable[Any]:
        if method in methods:
            change(request)
        yield request

    return changed


def settled(change: Callable[[Any], None]) -> Change:
    """Change each nack, however it travels."""

    def changed(method: str, request: Any) -> Iterable[Any]:
        if method == "Nack":
            change(request)
        elif method == "NackBatch":
            for item in request.items:
                change(item)
        elif method == "ConsumeSession" and request.WhichOneof("request") == "nack":
            change(request.nack)
        yield request

    return changed


def replace(owner: Any, field: str, items: Iterable[Any]) -> None:
    """Let a repeated field hold these items. They are copied first: clearing the field would take them along."""
    copies = [type(item).FromString(item.SerializeToString()) for item in items]
    owner.ClearField(field)
    getattr(owner, field).extend(copies)


def reverse(batch: Any) -> None:
    """The messages in the wrong order."""
    replace(batch, "messages", [*batch.messages][::-1])


def twice(batch: Any) -> None:
    """Every message again."""
    replace(batch, "messages", [*batch.messages] * 2)


def clear(*fields: str) -> Callable[[Any], None]:
    """Forget fields."""

    def cleared(message: Any) -> None:
        for field in fields:
            message.ClearField(field)

    return cleared


def no_option(field: str) -> Callable[[Any], None]:
    """Forget an option of an enqueue."""

    def cleared(message: Any) -> None:
        if message.HasField("options"):
            message.options.ClearField(field)

    return cleared


def cut_payload(message: Any) -> None:
    """Payloads end at 64 KiB."""
    message.payload = message.payload[:65536]


def session(frame: str, change: Callable[[Any], None]) -> Change:
    """Change one kind of frame of a session."""

    def changed(method: str, request: Any) -> Iterable[Any]:
        if method == "ConsumeSession" and request.WhichOneof("request") == frame:
            change(request)
        yield request

    return changed


def begun_twice(method: str, request: Any) -> Iterator[Any]:
    """What is begun is told, and told again."""
    yield request
    if method == "ConsumeSession" and request.WhichOneof("request") == "begun":
        yield request


def nack_as_ack(method: str, request: Any) -> Iterator[Any]:
    """Failures are reported as done."""
    if method == "ConsumeSession" and request.WhichOneof("request") == "nack":
        request.ack.CopyFrom(request.nack)
    yield request


def deliver_twice(method: str, response: Any) -> Iterator[Any]:
    """Each frame of deliveries reaches the program twice."""
    yield response
    if method == "ConsumeSession" and response.WhichOneof("response") == "delivery":
        yield response


def lose_every_other(method: str, response: Any) -> Iterator[Any]:
    """Every second message of a delivery never reaches the program."""
    if method == "ConsumeSession" and response.WhichOneof("response") == "delivery":
        replace(response.delivery, "messages", [*response.delivery.messages][::2])
    yield response


def unlimited(request: Any) -> None:
    """Whatever the program asked for, the stream holds a thousand."""
    request.open.max_in_flight = 1000


def keep_all(request: Any) -> None:
    """Leaving gives nothing back: begun is said of everything by an open that does not track."""
    request.close.release = False


def no_tracking(request: Any) -> None:
    """The session does not say that it tracks what it has begun."""
    request.open.tracks_begun = False


def in_order(method: str, response: Any) -> Iterator[Any]:
    """Results are handed out in the wrong order."""
    if method in ("EnqueueStream", "EnqueueBatch"):
        replace(response, "results", [*response.results][::-1])
    yield response


def acks_without_leases(method: str, request: Any) -> Iterator[Any]:
    """Acks settle whatever lease is current."""
    if method == "Ack":
        request.ClearField("lease_id")
    elif method == "AckBatch":
        for item in request.items:
            item.ClearField("lease_id")
    yield request


def whole_mask(request: Any) -> None:
    """An update names more than the program changed."""
    request.update_mask.paths.append("visibility_timeout_ms")


NO_FAULT = Fault("no fault at all", ())
"""What stands in front of the broker must not itself be what the scenarios notice."""

FAULTS = [
    Fault("a dedup key is dropped", ("a second enqueue with a dedup key",), enqueued(no_option("dedup_key"))),
    Fault(
        "a delay is dropped", ("a message is not ready before its delay",), enqueued(no_option("delay_ms"))
    ),
    Fault(
        "a moment is dropped", ("a message can be delivered at a moment",), enqueued(no_option("deliver_at"))
    ),
    Fault(
        "a time to live is dropped",
        ("a message that nobody leased in its time",),
        enqueued(no_option("ttl_ms")),
    ),
    Fault("headers are dropped", ("headers come back as they were sent",), enqueued(clear("headers"))),
    Fault("large payloads are cut", ("a payload of one mebibyte goes through",), enqueued(cut_payload)),
    Fault("the order of a batch is lost", ("a consumer receives what was stored",), batches(reverse)),
    Fault(
        "results are matched to the wrong messages",
        ("one bad message of many", "many messages are stored in order"),
        response=in_order,
    ),
    Fault("an enqueue is sent twice", ("more messages than one frame holds",), batches(twice)),
    Fault("a nack is sent as an ack", ("a message out of attempts becomes a dead letter",), nack_as_ack),
    Fault(
        "a nack's error is dropped",
        ("an error text may hold any unicode", "a message out of attempts"),
        settled(clear("error")),
    ),
    Fault("a nack's delay is dropped", ("a nack may say when to try again",), settled(clear("delay_ms"))),
    Fault(
        "the prefetch is ignored", ("a fixed prefetch holds so many messages",), session("open", unlimited)
    ),
    Fault("messages reach the program twice", ("a thousand messages",), response=deliver_twice),
    Fault(
        "messages get lost in the client", ("a consumer receives what was stored",), response=lose_every_other
    ),
    Fault(
        "the channel is dropped",
        ("a channel that is not there ends the loop",),
        session("open", lambda request: request.open.ClearField("channel")),
    ),
    Fault(
        "a pull ignores how many are wanted",
        ("a pull takes at most what it asks for",),
        requests(lambda request: setattr(request, "max_messages", 100), "Lease"),
    ),
    Fault("what is begun is said twice", ("a fresh consumer of slow work",), begun_twice),
    Fault("an ack does not name its lease", ("a pulled message whose lease ended",), acks_without_leases),
    Fault(
        "an update's mask names too much",
        ("an update changes what it names",),
        requests(whole_mask, "UpdateQueue"),
    ),
    Fault(
        "a refused enqueue passes as stored",
        ("a queue that is not there is named", "without batching"),
        swallowed="Enqueue",
    ),
    Fault("error details are not read", ("a queue that exists cannot be made again",), without_details=True),
]
