"""Where the broker is, whom a client of it trusts, and as whom it asks; and the process's gRPC channel to it.

What names a file is read on the machine that asks, at each call: a key or a certificate that is renewed is used from
the next call on. The key itself never leaves a call's metadata: Spark would show it in plans and pages.

One channel a process, kept for the life of the worker: Spark reuses its Python workers from task to task. Nothing
here is kept in an object that Spark pickles.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc

from pyspark_fila.errors import OptionInvalid
from pyspark_fila.wire import diagnosis, tls

MESSAGE_BYTES_MAX = 80 << 20
"""Above the broker's largest payload (64 MiB) with its headers."""

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A broker that vanished without a word is noticed by an unanswered ping.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
_KEY = re.compile(r"[!-~]+")

_channels: dict[tuple[int, str, str, str, str, str], tuple[tuple[int, ...], grpc.Channel]] = {}
"""By process and broker: a forked child opens its own, since gRPC's threads are not inherited. With the state of the
files that it was opened with."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The options that say how a broker is reached; each machine opens its own channel from them."""

    address: str
    """`host:port`, with `https://` in front for TLS."""
    timeout_ms: int
    """How long a broker that cannot be reached is tried for."""
    token: str = field(default="", repr=False)
    """The key that is sent with every call."""
    token_file: str = ""
    """The file that has the key; without both it is the environment's FILA_API_KEY."""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    server_name: str = ""

    @property
    def by_tls(self) -> bool:
        """Whether TLS is spoken: the address or one of the four options asks for it."""
        return self.address.startswith("https://") or tls.is_wanted(_any(self))

    @property
    def target(self) -> str:
        """What gRPC calls the address."""
        return urlsplit(self.address).netloc if "://" in self.address else self.address

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return what a call says of who asks. Raises OptionInvalid where the file has no key."""
        key = self.token or self._key_of_file() or os.environ.get("FILA_API_KEY", "").strip()
        return (("authorization", f"Bearer {key}"),) if key else ()

    def channel(self) -> grpc.Channel:
        """Return the process's channel to this broker. Raises OptionInvalid for a file that cannot be used."""
        name = (os.getpid(), self.address, self.ca_file, self.cert_file, self.key_file, self.server_name)
        files = _any(self)
        if self.by_tls:
            try:
                files = tls.with_environment(files)
            except ValueError as problem:
                raise OptionInvalid("certFile", f"on {_machine()}: {problem}") from None
        stamp = tuple(_stamp(file) for file in (files.ca_file, files.cert_file, files.key_file) if file)
        there = _channels.get(name)
        if there is None or there[0] != stamp:
            # The one before goes when its last call is over.
            _channels[name] = stamp, self._opened(files)
        return _channels[name][1]

    def wrong_setting(self) -> str:
        """Return the sentence that says why nobody answers, where waiting would not mend it; empty for no reason."""
        files = tls.with_environment(_any(self)) if self.by_tls else _any(self)
        return str(diagnosis.diagnosis(self.target, files, by_tls=self.by_tls, judges=True))

    def _opened(self, files: Any) -> grpc.Channel:
        if not self.by_tls:
            return grpc.insecure_channel(self.target, _CHANNEL_OPTIONS)
        for name, file in (
            ("caFile", files.ca_file),
            ("certFile", files.cert_file),
            ("keyFile", files.key_file),
        ):
            if file:
                _read(name, file)
        try:
            credentials = tls.credentials(files)
        except tls.CannotBeRead as problem:
            is_authority = files.ca_file and str(problem).startswith(files.ca_file)
            name = "caFile" if is_authority else "certFile"
            raise OptionInvalid(name, f"cannot be used on {_machine()}: {problem}") from None
        options = (*_CHANNEL_OPTIONS, *tls.channel_options(files))
        return grpc.secure_channel(self.target, credentials, options)

    def _key_of_file(self) -> str:
        if not self.token_file:
            return ""
        key = _read("tokenFile", self.token_file).decode(errors="replace").strip()
        if _KEY.fullmatch(key) is None:
            raise OptionInvalid(
                "tokenFile", f"{self.token_file} on {_machine()} must hold one key and nothing more"
            )
        return key


def parse_key(text: str) -> str:
    """Return the key that an option gives. Raises ValueError, which does not repeat it."""
    if _KEY.fullmatch(text) is None:
        raise ValueError("must be a key, of visible ASCII characters alone")
    return text


def _any(connection: Connection) -> Any:
    """As the SDK's functions take it: they look at the four TLS fields, whose names are the same."""
    return connection


def _read(option: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        raise OptionInvalid(option, f"cannot be read on {_machine()}: {problem}") from None


def _stamp(file: str) -> int:
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return 0


def _machine() -> str:
    return socket.gethostname()
