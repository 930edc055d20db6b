"""Settings that are right one by one and not together: judged once all are known, before anything is opened."""

from __future__ import annotations

from ipaddress import ip_address
from itertools import combinations
from urllib.parse import urlsplit

import msgspec

from fila_server.config.cluster import check_cluster
from fila_server.config.kafka import check_kafka
from fila_server.config.kinds import Address
from fila_server.config.schema import Config, History
from fila_server.config.sections import Telemetry, Tls
from fila_server.errors import ConfigInvalid


def check(config: Config) -> None:
    """Raises ConfigInvalid, whose key is the setting to look at first."""
    _check_addresses(config)
    _check_telemetry(config.telemetry)
    _check_history(config.history)
    check_tls(config.tls)
    check_kafka(config.cluster.kafka)
    check_cluster(config.cluster, config.server.listen_addr)


def _check_addresses(config: Config) -> None:
    """Each port is listened on once, or the start would call for a program that holds it."""
    places = {"server.listen_addr": config.server.listen_addr}
    if config.metrics.listen_addr:
        places["metrics.listen_addr"] = Address(config.metrics.listen_addr)
    if config.redis.enabled:
        places["redis.listen_addr"] = config.redis.listen_addr
    if config.cluster.peer_addr:
        places["cluster.peer_addr"] = Address(config.cluster.peer_addr)
    for (name, address), (later, other) in combinations(places.items(), 2):
        if _overlap(address, other):
            raise ConfigInvalid(
                f"{later} and {name} cannot both listen on port {other.port}: give one of them another port",
                key=later,
            )


def _overlap(one: Address, other: Address) -> bool:
    """Whether one of them takes the other's place for certain; the code that binds hosts looks up their names."""
    if not one.port or one.port != other.port:
        return False
    hosts = {"127.0.0.1" if host == "localhost" else host for host in (one.host.lower(), other.host.lower())}
    if len(hosts) == 1:
        return True
    try:
        first, second = (ip_address(host) for host in hosts)
    except ValueError:
        return False
    return first.version == second.version and (first.is_unspecified or second.is_unspecified)


def _check_telemetry(telemetry: Telemetry) -> None:
    try:
        urlsplit(telemetry.otlp_endpoint)
    except ValueError as error:
        raise ConfigInvalid(
            f"telemetry.otlp_endpoint: {telemetry.otlp_endpoint} is no address ({error}). Write such as "
            "http://collector:4317",
            key="telemetry.otlp_endpoint",
        ) from None
    if telemetry.trace_sample and not telemetry.otlp_endpoint:
        raise ConfigInvalid(
            "telemetry.trace_sample: spans are sent to telemetry.otlp_endpoint, which is empty. Set it, or set "
            "telemetry.trace_sample to 0",
            key="telemetry.trace_sample",
        )


def _check_history(history: History) -> None:
    if history.sign_key_file and not history.enabled:
        raise ConfigInvalid(
            "history.sign_key_file is given without history.enabled: nothing would be recorded, and nothing signed. "
            "Set history.enabled to true, or take history.sign_key_file away",
            key="history.sign_key_file",
        )


def check_tls(tls: Tls) -> None:
    """Refuse what would do nothing: the operator believes in guarded connections. Raises ConfigInvalid."""
    defaults = msgspec.structs.asdict(Tls())
    given = [name for name, value in msgspec.structs.asdict(tls).items() if value != defaults[name]]
    if not given:
        return
    missing = [name for name in ("cert_file", "key_file") if name not in given]
    lost = ["connections would not be encrypted"] if missing else []
    if tls.require_client_cert and not tls.client_ca_file:
        missing.append("client_ca_file")
        lost.append("no certificate would be asked for")
    if not missing:
        return
    useless = given if "cert_file" in missing or "key_file" in missing else ["require_client_cert"]
    names = _listed(useless)
    raise ConfigInvalid(
        f"{names} {'is' if len(useless) == 1 else 'are'} given without {_listed(missing)}: {', and '.join(lost)}. "
        f"Give what is missing, or take {names} away",
        key=f"tls.{useless[0]}",
    )


def _listed(names: list[str]) -> str:
    *others, last = [f"tls.{name}" for name in names]
    return f"{', '.join(others)} and {last}" if others else last
