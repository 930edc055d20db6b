"""Who may come in at all: by peer, by key, by certificate; and what a wrong key costs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from fila_server import errors
from fila_server.access import keys
from fila_server.access.admission import Admission
from fila_server.access.directory import Directory
from fila_server.access.failures import (
    DELAY_S_MAX,
    FREE_FAILURES,
    ROWS_MAX,
    Failures,
    is_loopback,
    network_of,
)
from fila_server.access.records import GrantRecord, KeyRecord, PrincipalRecord
from fila_server.access.rights import ADMIN, PRODUCE
from fila_server.access.table import REDIS
from fila_server.config.kinds import AddressOrOff
from fila_server.config.schema import Config, Metrics
from fila_server.config.sections import Auth
from fila_server.core.requests.rights_table import Rights
from fila_server.events import PER_KIND_A_SECOND, RING
from fila_server.operations.denials import Denials
from fila_server.services.identity import address_of
from fila_server.serving import _scraper
from fila_server.telemetry.prometheus import MetricsPage


async def _stored(_kind: int, _frame: bytes) -> bytes:
    return b""


def gateway(data_dir: Path, **given: Any) -> Admission:
    table = Rights()
    directory = Directory(_stored, table, str(data_dir), wall_ms=lambda: 1000, mono_ns=lambda: 0)
    if given.get("is_on"):
        table.switch_on()
    return Admission(
        table, directory, Failures(lambda: 0.0), wall_ms=lambda: 1000, **{"is_on": False, **given}
    )


def test_without_keys_only_this_machine_is_served_and_others_are_told_how_to_allow_them(tmp_path: Path):
    shut = gateway(tmp_path)
    for here in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert shut.enter(None, here, encrypted=False).is_admin
    for elsewhere in ("10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "", "nonsense"):
        with pytest.raises(errors.Unauthenticated, match="allow_anonymous"):
            shut.enter(None, elsewhere, encrypted=True)
    assert gateway(tmp_path, allow_anonymous=True).enter(None, "10.0.0.1", encrypted=False).is_admin


async def test_a_key_comes_from_afar_by_tls_or_where_plaintext_is_allowed(tmp_path: Path):
    text, key = keys.make(os.urandom)
    for allowed in (False, True):
        with_keys = gateway(tmp_path, is_on=True, allow_plaintext=allowed)
        await with_keys.directory.change(
            [
                PrincipalRecord("anna", 1, grants=(GrantRecord(rights=ADMIN, queue="*"),)),
                KeyRecord(key.id, "anna", key.digest, 1),
            ],
            [],
        )
        assert with_keys.enter(text.encode(), "10.0.0.1", encrypted=True).name == "anna"
        assert with_keys.enter(text.encode(), "127.0.0.1", encrypted=False).key_id == key.id
        if allowed:
            assert with_keys.enter(text.encode(), "10.0.0.1", encrypted=False).name == "anna"
        else:
            with pytest.raises(errors.Unauthenticated, match="allow_plaintext"):
                with_keys.enter(text.encode(), "10.0.0.1", encrypted=False)


async def test_a_certificate_stands_for_the_caller_that_its_names_say_and_a_key_wins(tmp_path: Path):
    with_keys = gateway(tmp_path, is_on=True)
    text, key = keys.make(os.urandom)
    await with_keys.directory.change(
        [
            PrincipalRecord("shop.example", 1, grants=(GrantRecord(rights=PRODUCE, queue="*"),)),
            PrincipalRecord("anna", 1),
            KeyRecord(key.id, "anna", key.digest, 1),
        ],
        [],
    )
    names = ("other.example", "shop.example")
    assert with_keys.enter(None, "10.0.0.1", encrypted=True, names=names).name == "shop.example"
    assert with_keys.enter(text.encode(), "10.0.0.1", encrypted=True, names=names).name == "anna"
    with pytest.raises(errors.Unauthenticated, match="certificate"):
        with_keys.enter(None, "10.0.0.1", encrypted=True, names=("nobody.example",))


async def test_an_admin_is_one_as_long_as_the_right_is_there(tmp_path: Path):
    with_keys = gateway(tmp_path, is_on=True)
    text, key = keys.make(os.urandom)
    admin = PrincipalRecord("anna", 1, grants=(GrantRecord(rights=ADMIN, queue="*"),))
    await with_keys.directory.change([admin, KeyRecord(key.id, "anna", key.digest, 1)], [])
    caller = with_keys.enter(text.encode(), "127.0.0.1", encrypted=False)
    with_keys.check(caller, REDIS["CONFIG"])
    assert with_keys.may_watch(caller, "")
    await with_keys.directory.change([PrincipalRecord("anna", 1)], [])
    with pytest.raises(errors.PermissionDenied):
        with_keys.check(caller, REDIS["CONFIG"])
    assert not with_keys.may_watch(caller, "")
    assert not with_keys.may_watch(caller, "orders")


def scraper(data_dir: Path, page: str) -> Callable[[str, bytes | None], None]:
    config = Config(auth=Auth(enabled=True), metrics=Metrics(listen_addr=AddressOrOff(page)))
    return _scraper(gateway(data_dir, is_on=True), config)


def test_metrics_ask_for_a_key_where_others_reach_the_port(tmp_path: Path):
    scraper(tmp_path, "127.0.0.1:9464")("127.0.0.1", None)
    for page, address in (("0.0.0.0:9464", "127.0.0.1"), ("0.0.0.0:9464", "10.0.0.1")):
        with pytest.raises(errors.Unauthenticated):
            scraper(tmp_path, page)(address, None)


def test_a_wrong_key_waits_longer_each_time_and_its_neighbours_do_not():
    failures = Failures(lambda: 0.0)
    delays = [failures.add("10.0.0.1", "some") for _ in range(FREE_FAILURES + 12)]
    assert delays[:FREE_FAILURES] == [0.0] * FREE_FAILURES
    assert delays == sorted(delays)
    assert delays[-1] == DELAY_S_MAX
    assert failures.add("10.0.0.2", "other") == 0.0
    assert failures.add("10.0.0.3", "some") == DELAY_S_MAX, "the key id is known from elsewhere"


def test_the_table_of_failures_is_bounded():
    failures = Failures(lambda: 0.0)
    for n in range(2 * ROWS_MAX):
        failures.add(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "")
    assert len(failures._rows) == ROWS_MAX


def test_one_household_is_one_address():
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2:ffff::1")
    assert network_of("::ffff:10.0.0.1") == "10.0.0.1"
    assert not is_loopback("")


def test_a_peers_address_is_read_as_grpc_writes_it():
    assert address_of("ipv4:10.0.0.1:4711") == "10.0.0.1"
    assert address_of("ipv6:%5B2001:db8::1%5D:4711") == "2001:db8::1"


def test_refusals_are_told_in_sums():
    later: list[Any] = []
    before = RING.head
    denials = Denials(lambda _seconds, tell: later.append(tell), lambda: 0.0)
    for n in range(1000):
        denials.add("wrong_key", f"key-{n}" if n >= 500 else "same", "10.0.0.1")
    [tell] = later
    tell()
    told, _ = RING.after(before - 1, 1000)
    heard = [(event.kind, event.details["why"], event.principal, event.count) for event in told]
    assert heard[0] == ("access.denied", "wrong_key", "same", 500)
    assert len(heard) == PER_KIND_A_SECOND
    assert heard[-1] == ("access.denied", "others", "", 500 - (PER_KIND_A_SECOND - 2))
    assert sum(count for *_, count in heard) == 1000


async def test_a_wrong_key_is_kept_waiting_at_the_metrics_page_too():
    waited: list[str] = []

    async def wait() -> None:
        waited.append("as long as it takes")

    def refuse(_address: str, _key: bytes | None) -> None:
        error = errors.Unauthenticated("the key is not valid")
        error.before_reported = wait
        raise error

    page = MetricsPage(cast("Any", None), cast("Any", None), refuse)
    told = await page._answer(b"GET /metrics HTTP/1.1\r\nAuthorization: Bearer fila_a_b\r\n\r\n")

    assert (told.split()[1], len(waited)) == (b"401", 1)
