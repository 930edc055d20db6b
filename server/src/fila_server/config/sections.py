"""Sections whose values are plain: who may connect, what is staged, what is told elsewhere; and what a section is."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

_DAY_MS = 24 * 3600 * 1000


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file."""


class Auth(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may connect. What each key may do is set at run time (docs/security.md)."""

    enabled: Annotated[
        bool,
        Meta(
            description="Whether everybody needs a key, clients of this machine too. The first start writes an admin's "
            "key to DATA_DIR/bootstrap-key."
        ),
    ] = False
    bootstrap_key_file: Annotated[
        str,
        Meta(
            description="File with the first admin's key, for the first start; instead of DATA_DIR/bootstrap-key. "
            "Empty makes a key up."
        ),
    ] = ""


class Tls(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Encrypted connections, on both protocols. Files are read again when they change; connections stay."""

    cert_file: Annotated[
        str, Meta(description="Certificate chain, PEM. Empty: connections are not encrypted.")
    ] = ""
    key_file: Annotated[str, Meta(description="Private key of the certificate, PEM.")] = ""
    client_ca_file: Annotated[
        str,
        Meta(
            description="Authorities of client certificates, PEM. A certificate's DNS or URI name is then the "
            "principal of its connection, where the call has no key."
        ),
    ] = ""
    require_client_cert: Annotated[
        bool, Meta(description="Whether a connection needs a certificate of `client_ca_file`'s.")
    ] = False
    min_version: Annotated[
        Literal["1.2", "1.3"],
        Meta(description="The oldest TLS that is spoken."),
    ] = "1.2"
    ciphers: Annotated[
        str,
        Meta(
            description="Ciphers of TLS 1.2, as OpenSSL lists them, such as `ECDHE+AESGCM`; TLS 1.3 has its own. "
            "Empty: those with forward secrecy and authenticated encryption."
        ),
    ] = ""


class Sinks(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Batches that are staged aside and published once, as Spark writes them."""

    staged_bytes_max: Annotated[
        int,
        Meta(
            ge=2**20,
            le=2**40,
            description="Bytes staged and not published yet, over all sinks; each frame counts 1 KiB besides. "
            "What would exceed it is refused until something is published or dropped.",
        ),
    ] = 2**30
    attempts_max: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Attempts (a task of a batch, each try) that one sink may have staged at a time; a "
            "further one is refused.",
        ),
    ] = 10_000
    sinks_max: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Sinks that are remembered, so that a batch published twice is known; a new one "
            "beyond that is refused.",
        ),
    ] = 10_000
    orphan_age_ms: Annotated[
        int,
        Meta(
            ge=60_000,
            le=30 * _DAY_MS,
            description="What a sink has staged is dropped when it is not published for so long after it last "
            "staged anything, while the server runs.",
        ),
    ] = _DAY_MS


class Telemetry(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Metrics and traces sent to a collector."""

    otlp_endpoint: Annotated[
        str,
        Meta(description="OTLP collector, for example `http://collector:4317`. Empty sends nothing."),
    ] = ""
    service_name: Annotated[str, Meta(min_length=1, description="`service.name` of what is sent.")] = "fila"
    metrics_interval_ms: Annotated[
        int, Meta(ge=100, le=3_600_000, description="How often metrics are sent.")
    ] = 10_000
    trace_sample: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="Of so many sampled traces, the messages of one get spans of the broker's; needs "
            "otlp_endpoint. 0: none.",
        ),
    ] = 0

    @property
    def makes_spans(self) -> bool:
        """Whether any message may get a span."""
        return self.trace_sample > 0 and bool(self.otlp_endpoint)

    def engine_settings(self) -> dict[str, int | str]:
        """What the core needs: the largest lower half of a trace's id, a random number, that gets spans; or nothing."""
        return {"telemetry.trace_low_max": 2**64 // self.trace_sample - 1} if self.makes_spans else {}
