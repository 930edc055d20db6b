"""Fila-Limited: what a provider refused, told with a settlement as a header.

Fila-Limited: 30                     it asked for 30 seconds, as its Retry-After said
Fila-Limited:                        it did not say for how long
Fila-Limited: 30; limit=openai       of one of the message's throttle keys; without it of each that learns
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from google.protobuf.message import Message

from fila.v1.service_pb2 import (
    AckBatchRequest,
    AckRequest,
    LimitFeedback,
    NackBatchRequest,
    NackRequest,
    SettleItem,
)
from fila_http.problems import invalid

HEADER = "fila-limited"
SETTLEMENTS = (AckRequest, NackRequest, AckBatchRequest, NackBatchRequest)
RETRY_AFTER_S_MAX = 300
"""A limit closes for so long at most: then the provider is asked again."""

_VALUE = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,9})?)?\s*(?:;\s*limit=(.*))?", re.DOTALL)


def take_limited(request: Message, value: str) -> None:
    """Every message that the request settles was refused. Raises Problem."""
    if not isinstance(request, SETTLEMENTS):
        raise invalid(
            "Fila-Limited is taken with what settles messages: .../ack and .../nack, and their batches"
        )
    found = _VALUE.fullmatch(value)
    if found is None:
        raise invalid(
            "Fila-Limited must be the seconds that the provider asked for, or empty, and then may say ; limit=KEY; a "
            f"date is none, got {value[:40]!r}"
        )
    seconds, limit = found.groups()
    retry_after_ms = math.ceil(min(float(seconds or 0), RETRY_AFTER_S_MAX) * 1000)
    feedback = LimitFeedback(
        limit=(limit or "").strip(), kind=LimitFeedback.KIND_LIMITED, retry_after_ms=retry_after_ms
    )
    if isinstance(request, AckRequest):
        request.feedback.append(feedback)
        return
    is_nack = isinstance(request, NackRequest | NackBatchRequest)
    settled: Iterable[NackRequest | SettleItem] = (
        (request,) if isinstance(request, NackRequest) else request.items
    )
    for each in settled:
        each.feedback.append(feedback)
        if is_nack and seconds and not (each.HasField("delay_ms") or each.release or each.dead_letter):
            each.delay_ms = retry_after_ms  # where no limit learns of it
