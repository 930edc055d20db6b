"""Where metrics and spans go: one OTLP collector, which learns from both the same about who sends."""

from __future__ import annotations

import logging
from typing import TypedDict

from grpc import StatusCode
from opentelemetry.sdk.resources import Resource

from fila_server.version import version

EXPORT_S_MAX = 10.0


class Connection(TypedDict):
    """What every exporter of the SDK takes."""

    endpoint: str
    insecure: bool | None
    timeout: float
    retryable_error_codes: frozenset[StatusCode]


def connection_to(endpoint: str, timeout_s: float = EXPORT_S_MAX) -> Connection:
    """Return how `endpoint` is reached. A failed export is not tried again: its callers have a newer one by then."""
    # One line when it begins to fail is enough, and its callers write that; the SDK would write one each time.
    logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)
    return {
        "endpoint": endpoint,
        "insecure": None if "://" in endpoint else True,
        "timeout": min(timeout_s, EXPORT_S_MAX),
        # None in practice: the SDK takes an empty set for "the default ones".
        "retryable_error_codes": frozenset({StatusCode.DATA_LOSS}),
    }


def resource_of(service_name: str) -> Resource:
    """Return what every metric and span says of its sender."""
    return Resource.create(
        {"service.name": service_name, "service.version": version(), "messaging.system": "fila"}
    )
