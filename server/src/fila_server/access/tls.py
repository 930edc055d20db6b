"""Certificates of both protocols: read once, and again when their files change, so that no connection is dropped."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from fila_server import errors
from fila_server.config.sections import Tls as Settings
from fila_server.config.together import check_tls

log = structlog.get_logger("fila_server.access")

LOOK_EVERY_S = 2.0
ENDS_SOON_S = 14 * 86_400.0
"""A certificate that ends within so long is warned of, at the start, when it is read anew, and once a day."""
WARN_EVERY_S = 86_400.0
HANDSHAKE_TURNS_MAX = 8
"""With oneself; two are enough."""

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: those that HTTP/2 leaves (RFC 9113, 9.2.2)."""


@dataclass(frozen=True, slots=True)
class Files:
    """What the files held when they were read last."""

    certificate: bytes
    key: bytes
    client_authorities: bytes | None


class Tls:
    """The settings `tls.*`, and the files they name."""

    def __init__(self, settings: Settings) -> None:
        """Raises ConfigInvalid when a file or a setting is missing, or a file is not what it should be."""
        self._settings = settings
        self._stamp: tuple[int, ...] = ()
        self._at_change: list[Callable[[Files], None]] = []
        check_tls(settings)
        self.is_on = bool(settings.cert_file)
        if not self.is_on:
            return
        self.files = self._read()
        self._check()
        self._stamp = self._times()
        self._warned_s = 0.0

    @property
    def asks_for_certificates(self) -> bool:
        """Whether clients may be known by a certificate."""
        return self.is_on and bool(self._settings.client_ca_file)

    @property
    def requires_certificates(self) -> bool:
        """Whether a connection without one is refused."""
        return self.is_on and self._settings.require_client_cert

    @property
    def newest_only(self) -> bool:
        """Whether TLS 1.3 alone is spoken."""
        return self._settings.min_version == "1.3"

    @property
    def ciphers(self) -> str:
        """Of TLS 1.2."""
        return self._settings.ciphers or CIPHERS

    def at_change(self, use: Callable[[Files], None]) -> None:
        """Call `use` with the files whenever they hold something else that fits together."""
        self._at_change.append(use)

    def look(self) -> Files | None:
        """Read the files again if they changed; what they hold now, or None. A bad set leaves the old one in use."""
        times = self._times()
        if not self.is_on or times == self._stamp:
            return None
        self._stamp = times
        try:
            files = self._read()
            self._check()  # certificate and key belong together, before anything is replaced
            for use in self._at_change:
                use(files)
        except (errors.ConfigInvalid, OSError) as error:
            log.warning("tls.reload_failed", detail=str(error))
            return None
        self.files = files
        log.info("tls.reloaded", cert_file=self._settings.cert_file)
        self._warned_s = 0.0
        return files

    def warn_of_end(self, now_s: float) -> None:
        """Say once a day that the server's certificate ends soon, or that clients refuse it; `now_s` is Unix time."""
        if not self.is_on or now_s - self._warned_s < WARN_EVERY_S:
            return
        self._warned_s = now_s
        settings = self._settings
        try:
            ends_s = _end_of(settings.cert_file, settings.key_file)
        except ssl.SSLCertVerificationError as error:
            log.warning(
                "tls.certificate_refused",
                cert_file=settings.cert_file,
                detail=f"clients refuse it: {error.verify_message}. Put another in its place; no restart is needed",
            )
            return
        except (OSError, ValueError) as error:
            log.warning("tls.certificate_not_read", cert_file=settings.cert_file, detail=_words(error))
            return
        if ends_s - now_s < ENDS_SOON_S:
            log.warning(
                "tls.certificate_ends",
                cert_file=settings.cert_file,
                ends=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends_s)),
                detail="put another in its place before; no restart is needed",
            )

    async def watch(self) -> None:
        """Look at the files for as long as the server runs."""
        while self.is_on:
            self.warn_of_end(time.time())
            await asyncio.sleep(LOOK_EVERY_S)
            self.look()

    def _check(self) -> None:
        """Raise ConfigInvalid unless OpenSSL takes all of it together, and say which setting is at fault. The edge's
        threads then make contexts of their own."""
        settings = self._settings
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.set_ciphers(self.ciphers)
        except ssl.SSLError:
            raise errors.ConfigInvalid(
                f"tls.ciphers: OpenSSL knows no cipher of {settings.ciphers!r}; leave it empty, or write such as "
                "ECDHE+AESGCM",
                key="tls.ciphers",
            ) from None
        try:
            context.load_cert_chain(settings.cert_file, settings.key_file, password=_no_password)
            if settings.client_ca_file:
                context.load_verify_locations(settings.client_ca_file)
        except (ssl.SSLError, ValueError) as error:
            raise errors.ConfigInvalid(
                f"the files of [tls] do not fit together: {_words(error)}. cert_file is the chain, the server's own "
                "certificate first; key_file its key, without a password",
                key="tls.cert_file",
            ) from None

    def _read(self) -> Files:
        settings = self._settings
        return Files(
            _bytes_of("tls.cert_file", settings.cert_file),
            _bytes_of("tls.key_file", settings.key_file),
            _bytes_of("tls.client_ca_file", settings.client_ca_file) if settings.client_ca_file else None,
        )

    def _times(self) -> tuple[int, ...]:
        settings = self._settings
        stamps = []
        for name in (settings.cert_file, settings.key_file, settings.client_ca_file):
            try:
                stamps.append(Path(name).stat().st_mtime_ns if name else 0)
            except OSError:
                stamps.append(-1)
        return tuple(stamps)


def _bytes_of(setting: str, name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise errors.ConfigInvalid(
            f"{setting}: {name} cannot be read: {error.strerror}", key=setting
        ) from None


def _end_of(cert_file: str, key_file: str) -> float:
    """Unix time of the end of the server's certificate, which a client tells that trusts nothing else.

    Raises ssl.SSLCertVerificationError where that client refuses it: it has ended, or is for another use.
    """
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(cert_file, key_file, password=_no_password)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cert_file)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, answering = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    for _ in range(HANDSHAKE_TURNS_MAX):
        # Each goes as far as it can with what the other has said.
        with contextlib.suppress(ssl.SSLWantReadError):
            asking.do_handshake()
            reported = asking.getpeercert()
            assert reported is not None
            return float(ssl.cert_time_to_seconds(str(reported["notAfter"])))
        with contextlib.suppress(ssl.SSLWantReadError):
            answering.do_handshake()
    raise ValueError("no handshake comes about with it")


def _no_password() -> str:
    raise ValueError("the key has a password")


def _words(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
