"""What the console was told at its start, checked before anything is opened."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

DEFAULT_LISTEN = "127.0.0.1:8080"
DEFAULT_BROKER = "http://localhost:5555"
_BROKER_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_NAMED_SOURCE = re.compile(rf"({_BROKER_NAME.pattern})=(.*)", re.DOTALL)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_LISTED = re.compile(r"(?:(https?)://)?((?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(?::\d{1,5})?)")


class BadSetting(ValueError):
    """A setting that cannot be; the text says which, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Source:
    """A Prometheus that keeps a broker's metrics."""

    address: str
    """`http://host:port`, with the path under which its API is, without a slash at the end."""
    labels: tuple[tuple[str, str], ...] = ()
    """What tells this broker's series from those of others."""


def source_of(text: str) -> Source:
    """The Prometheus of an address; the query of the address names labels. Raises BadSetting."""
    example = "write it like http://prometheus:9090, or http://prometheus:9090?instance=fila:9464"
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        labels = tuple(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else ()
        )
    except ValueError as error:
        raise BadSetting(f"{text!r} is no address of a Prometheus; {example}") from error
    if not is_address or parts.fragment or not text.isascii() or not text.isprintable() or " " in text:
        raise BadSetting(f"{text!r} is no address of a Prometheus; {example}")
    if "@" in parts.netloc:
        raise BadSetting(
            "the address of a Prometheus has a name or password in it, and programs' arguments are seen "
            "by all on this machine; put a proxy before it that logs in"
        )
    for name, _ in labels:
        if not _LABEL.fullmatch(name) or name.startswith(("__", "fila_", "messaging_")):
            raise BadSetting(f"{name!r} is no label that tells brokers apart; {example}")
    return Source(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", labels)


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker the console shows."""

    name: str
    """Its name in addresses: a-z, 0-9 and -."""
    address: str
    """`http://host:port`, `https://host:port`; of a group those of all nodes, with commas between them."""
    prometheus: Source | None = None
    """Who keeps its metrics for longer than the broker does."""

    def __post_init__(self) -> None:
        if not _BROKER_NAME.fullmatch(self.name):
            raise BadSetting(f"{self.name!r} is no name for a broker: 1 to 32 of a-z, 0-9 and -")
        for address in self.addresses:
            parts = urlsplit(address)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
                raise BadSetting(f"{address!r} is no broker's address; write it like {DEFAULT_BROKER}")

    @property
    def addresses(self) -> list[str]:
        """Each of them."""
        return self.address.split(",")


def with_sources(brokers: Sequence[Broker], texts: Sequence[str]) -> list[Broker]:
    """Each broker with its Prometheus: `NAME=URL`, or `URL` where there is one broker. Raises BadSetting."""
    found: dict[str, Source] = {}
    for text in texts:
        named = _NAMED_SOURCE.fullmatch(text)
        name = named[1] if named is not None else brokers[0].name
        if named is None and len(brokers) > 1:
            raise BadSetting(f"whose metrics {text} has is not clear; write --prometheus {name}={text}")
        if name not in {broker.name for broker in brokers}:
            raise BadSetting(f"--prometheus names {name!r}, and no --broker has that name")
        if name in found:
            raise BadSetting(f"--prometheus names {name!r} twice")
        found[name] = source_of(named[2] if named is not None else text)
    return [replace(broker, prometheus=found.get(broker.name)) for broker in brokers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of it."""

    brokers: Sequence[Broker]
    """At least one; the first is where `/` leads."""
    listen: str = DEFAULT_LISTEN
    """`host:port`."""
    allowed_hosts: Sequence[str] = ()
    """Names, with their port unless it is the scheme's own, by which browsers may reach the console; `https://` before
    one says that a proxy ends TLS there."""
    allow_plaintext: bool = False
    """Serve other machines without TLS."""
    read_only: bool = False
    """Refuse every change."""
    ca_file: str = ""
    """Authorities to trust with https brokers."""
    cert_file: str = ""
    key_file: str = ""
    host: str = field(init=False)
    port: int = field(init=False)

    def __post_init__(self) -> None:
        if not self.brokers:
            raise BadSetting("no broker is named; give one with --addr or --broker NAME=ADDRESS")
        names = [broker.name for broker in self.brokers]
        if len(set(names)) != len(names):
            raise BadSetting("two brokers have one name; each needs its own in --broker NAME=ADDRESS")
        host, port = _host_and_port(self.listen)
        object.__setattr__(self, "host", host)
        object.__setattr__(self, "port", port)
        for name in self.allowed_hosts:
            if not _LISTED.fullmatch(name):
                raise BadSetting(
                    f"{name!r} is no host; write --allow-host console.example, host:port, or https://console.example "
                    "where a proxy ends TLS"
                )
        if bool(self.cert_file) != bool(self.key_file):
            raise BadSetting("TLS takes both --tls-cert and --tls-key")
        for file in (self.cert_file, self.key_file, self.ca_file):
            if file and not Path(file).is_file():
                raise BadSetting(f"{file} is no file")
        if not self.is_loopback and not self.by_tls and not self.allow_plaintext:
            raise BadSetting(
                f"{self.listen} reaches other machines, and keys would cross the network unprotected. Give --tls-cert "
                "and --tls-key, or --allow-plaintext behind a proxy that ends TLS, or listen on 127.0.0.1"
            )

    @property
    def by_tls(self) -> bool:
        """Whether this process ends TLS."""
        return bool(self.cert_file)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback

    def origins(self, port: int) -> dict[str, frozenset[str]]:
        """What a browser may send as `Host`, and as `Origin` with it, in lower case, when `port` is the one that was
        opened."""
        scheme = "https" if self.by_tls else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        own = {host}
        if self.is_loopback:
            own |= {"localhost", "127.0.0.1", "[::1]"}
        if host in ("0.0.0.0", "[::]"):  # noqa: S104 - compared, not bound
            own = set()
        default_port = 443 if self.by_tls else 80
        named = {f"{name}:{port}" for name in own} | (own if port == default_port else set())
        known = {name.lower(): {f"{scheme}://{name.lower()}"} for name in named}
        for name in self.allowed_hosts:
            listed = _LISTED.fullmatch(name.lower())
            assert listed is not None
            known.setdefault(listed[2], set()).add(f"{listed[1] or scheme}://{listed[2]}")
        return {name: frozenset(origins) for name, origins in known.items()}


def _host_and_port(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        if host != "localhost":
            ipaddress.ip_address(host)
        number = int(port)
        if not 0 <= number <= 65_535:
            raise ValueError
    except ValueError:
        raise BadSetting(f"{listen!r} is no place to listen; write it like {DEFAULT_LISTEN}") from None
    return host, number
