"""Every way to say no, as application/problem+json (RFC 9457)."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

import grpc
import orjson

from fila.errors import AnswerLost, FilaError, Overloaded, Unavailable

Code = grpc.StatusCode

STATUS_BY_CODE = {
    Code.INVALID_ARGUMENT: 400,
    Code.OUT_OF_RANGE: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.ABORTED: 409,
    Code.FAILED_PRECONDITION: 409,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.UNIMPLEMENTED: 501,
    Code.UNAVAILABLE: 503,
    Code.DEADLINE_EXCEEDED: 504,
}
"""Any other is 500."""

RETRY_AFTER_S = 1
"""What 429 and 503 suggest where the broker said nothing."""

BOUND_BROKEN = "LIMIT_EXCEEDED"
"""The reason of whatever is larger, or more, than the gateway takes."""

DETAIL_CHARACTERS_MAX = 1000
"""A detail may repeat what was sent, which may be long."""


class Problem(Exception):
    """A refusal: the HTTP status, a sentence for people, and two words for programs."""

    def __init__(
        self, status: int, reason: str, detail: str, code: Code, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.detail = (
            detail if len(detail) <= DETAIL_CHARACTERS_MAX else f"{detail[:DETAIL_CHARACTERS_MAX]} ..."
        )
        self.code = code
        self.headers = headers or {}

    def members(self) -> dict[str, Any]:
        """What the body says."""
        return {
            "type": f"urn:fila:{self.reason}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "reason": self.reason,
            "code": self.code.name,
        }

    def body(self) -> bytes:
        """The members as JSON."""
        return orjson.dumps(self.members())


def invalid(detail: str, *, status: int = 400, reason: str = "INVALID_FIELD") -> Problem:
    """The request itself is wrong; the detail names the field, the bound, and what to do."""
    return Problem(status, reason, detail, Code.INVALID_ARGUMENT)


def too_large(detail: str) -> Problem:
    """A body beyond its bound."""
    return Problem(413, BOUND_BROKEN, detail, Code.INVALID_ARGUMENT)


def busy(detail: str) -> Problem:
    """The gateway is at a bound of its own."""
    return Problem(503, "OVERLOADED", detail, Code.RESOURCE_EXHAUSTED, {"Retry-After": str(RETRY_AFTER_S)})


def unavailable(detail: str) -> Problem:
    """The gateway can't serve now."""
    return Problem(503, "UNAVAILABLE", detail, Code.UNAVAILABLE, {"Retry-After": str(RETRY_AFTER_S)})


def from_error(error: FilaError) -> Problem:
    """What the broker said, or that it said nothing."""
    code = error.code
    if isinstance(error, Unavailable) and code is not Code.DEADLINE_EXCEEDED:
        code = Code.UNAVAILABLE  # of the transport's own words none means anything over HTTP
    status = STATUS_BY_CODE.get(code, 500)
    headers = {}
    if status in (429, 503):
        asked_s = error.retry_after_s if isinstance(error, Overloaded) else None
        headers["Retry-After"] = str(max(RETRY_AFTER_S, math.ceil(asked_s or 0)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    reason = error.reason or ("ANSWER_LOST" if isinstance(error, AnswerLost) else code.name)
    return Problem(status, reason, str(error), code, headers)
