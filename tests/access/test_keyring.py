"""What is kept of keys, links and names as time goes on, and what a change costs."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fila.v1 import auth_pb2 as pb
from fila.v1.admin_pb2 import Intake, QueueConfig
from fila_server import errors
from fila_server.access import records
from fila_server.access.admission import Admission, Caller
from fila_server.access.directory import PRINCIPALS_MAX, Directory
from fila_server.access.failures import Failures
from fila_server.access.records import PrincipalRecord
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands, seam_frames
from fila_server.core.requests.rights_table import Rights
from fila_server.operations import forgetting, keyring, links
from fila_server.operations.forgetting import Forgetting
from fila_server.operations.keyring import Keyring
from fila_server.operations.links import TenantLinks
from tests.access.test_store_of_keys import Store

DAY_MS = 86_400_000


class Office:
    """An admin's calls, over a store that keeps nothing and a clock that is set by hand."""

    def __init__(self, data_dir: Path) -> None:
        self.now_ms = 10 * DAY_MS
        self.store = Store()
        self.audit: Any = []
        table = Rights()
        table.switch_on()
        self.directory = Directory(
            self._stored, table, str(data_dir), wall_ms=lambda: self.now_ms, mono_ns=lambda: 0
        )
        self.admission = admission = Admission(
            table, self.directory, Failures(lambda: 0.0), is_on=True, wall_ms=lambda: self.now_ms
        )
        orders = QueueConfig(intake=Intake(headers=["x-signature"]))
        broker: Any = SimpleNamespace(queue_configs={"orders": orders, "mail": QueueConfig()})
        self.keyring = Keyring(broker, admission, Limits())
        self.links = TenantLinks(broker, admission, Limits(), self.keyring)
        self.forgetting = Forgetting(admission, self.keyring)
        self.everybody = Caller(None, "anonymous", "", "", True, "127.0.0.1")
        self.admin = Caller(1, "anna", "first", "", True, "127.0.0.1")

    async def _stored(self, kind: int, frame: bytes) -> bytes:
        if kind == commands.ACCESS_CHANGE and (said := seam_frames.AccessChange.FromString(frame).audit):
            self.audit.append(json.loads(said))
        return await self.store.call(kind, frame)

    async def make_key(self, name: str, expires_after_ms: int = 0, as_tenant: str = "") -> str:
        request = pb.CreateKeyRequest(name=name, expires_after_ms=expires_after_ms, as_tenant=as_tenant)
        made = pb.CreateKeyResponse.FromString(await self.keyring.create_key(request, self.admin))
        return made.key_id

    async def revoke(self, key_id: str) -> None:
        await self.keyring.revoke_key(pb.RevokeKeyRequest(key_id=key_id), self.admin)

    async def grant(self, name: str, right: Any) -> None:
        permission = pb.Permission(right=right, queue="" if right == pb.RIGHT_ADMIN else "orders")
        await self.keyring.grant(pb.GrantRequest(name=name, permissions=[permission]), self.admin)

    async def bound(self, name: str, streams: int) -> None:
        request = pb.SetQuotasRequest(name=name, quotas=pb.Quotas(streams=streams))
        await self.keyring.set_quotas(request, self.admin)

    async def forget(self, name: str, **given: bool) -> pb.Principal:
        request = pb.ForgetPrincipalRequest(name=name, **given)
        answer = await self.forgetting.forget(request, self.admin)
        return pb.ForgetPrincipalResponse.FromString(answer).principal

    @property
    def names(self) -> set[str]:
        return set(self.directory.principals)

    async def make_link(self, ttl_ms: int, queue: str = "orders") -> str:
        request = pb.CreateTenantLinkRequest(queue=queue, fairness_key="acme", ttl_ms=ttl_ms)
        return pb.CreateTenantLinkResponse.FromString(
            await self.links.create(request, self.admin)
        ).link.link_id


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


async def test_a_link_is_kept_for_a_day_after_its_end_and_then_makes_room(office: Office):
    first = await office.make_link(1000)
    office.now_ms += DAY_MS + 999
    second = await office.make_link(1000)
    assert set(office.directory.keys) == {first, second}

    office.now_ms += 1
    await office.forgetting.look()

    assert set(office.directory.keys) == {second}
    assert office.names == {f"link/{second}"}


@pytest.mark.parametrize(("bound", "queue"), [("LINKS_MAX", "mail"), ("LINKS_A_QUEUE_MAX", "orders")])
async def test_links_that_ended_within_the_day_count(
    office: Office, monkeypatch: pytest.MonkeyPatch, bound: str, queue: str
):
    monkeypatch.setattr(links, bound, 2)
    for _ in range(2):
        await office.make_link(1000)
    office.now_ms += DAY_MS + 999
    with pytest.raises(errors.LimitExceeded, match="at most 2"):
        await office.make_link(1000, queue)

    office.now_ms += 1
    await office.make_link(1000, queue)


# Links that produce, and what their gateway is told.


async def make_address(office: Office, ttl_ms: int = 0, **given: Any) -> pb.CreateTenantLinkResponse:
    request = pb.CreateTenantLinkRequest(queue="orders", ttl_ms=ttl_ms, right=pb.RIGHT_PRODUCE, **given)
    return pb.CreateTenantLinkResponse.FromString(await office.links.create(request, office.admin))


async def whose(office: Office, key: str, queue: str) -> pb.WhoAmIResponse:
    caller = office.admission.enter(key.encode(), "127.0.0.1", encrypted=False)
    return pb.WhoAmIResponse.FromString(await office.keyring.who_am_i(pb.WhoAmIRequest(queue=queue), caller))


async def test_an_address_may_produce_to_its_queue_alone_and_has_no_end_unless_one_is_given(office: Office):
    forever = await make_address(office)
    for_an_hour = await make_address(office, 3_600_000, fairness_key="acme")

    for made, tenant in ((forever, ""), (for_an_hour, "acme")):
        told = await whose(office, made.key, "")
        assert [(each.right, each.queue) for each in told.permissions] == [(pb.RIGHT_PRODUCE, "orders")]
        assert (told.tenant, made.link.right) == (tenant, pb.RIGHT_PRODUCE)
    assert (forever.link.HasField("expires_at"), for_an_hour.link.HasField("expires_at")) == (False, True)
    office.now_ms += 400 * DAY_MS
    await office.forgetting.look()
    assert [key.id for key in office.directory.keys.values()] == [forever.link.link_id]
    listed = await office.links.listed(pb.ListTenantLinksRequest(queue="orders"), office.everybody)
    assert [each.link_id for each in pb.ListTenantLinksResponse.FromString(listed).links] == [
        forever.link.link_id
    ]


async def test_links_without_an_end_are_listed_last_and_count(
    office: Office, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(links, "LINKS_MAX", 2)
    forever = await make_address(office)
    viewing = await office.make_link(1000)
    listed = await office.links.listed(pb.ListTenantLinksRequest(), office.everybody)
    found = pb.ListTenantLinksResponse.FromString(listed).links
    assert [(each.link_id, each.right) for each in found] == [
        (viewing, pb.RIGHT_VIEW),
        (forever.link.link_id, pb.RIGHT_PRODUCE),
    ]
    with pytest.raises(errors.LimitExceeded, match="at most 2"):
        await make_address(office)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"right": pb.RIGHT_CONSUME}, "right must be view or produce"),
        ({"right": pb.RIGHT_ADMIN, "fairness_key": "acme"}, "right must be view or produce"),
        ({"right": pb.RIGHT_VIEW}, "fairness_key must not be empty"),
        ({"right": pb.RIGHT_PRODUCE, "ttl_ms": 3651 * DAY_MS}, "10 years"),
    ],
)
async def test_a_link_for_anything_else_is_refused(office: Office, given: dict[str, Any], said: str):
    with pytest.raises(errors.FilaServerError, match=said):
        await office.links.create(pb.CreateTenantLinkRequest(queue="orders", **given), office.admin)


async def test_who_may_produce_is_told_what_the_queue_takes_from_senders_headers_and_nobody_else(
    office: Office,
):
    address = await make_address(office)
    viewing = pb.CreateTenantLinkResponse.FromString(
        await office.links.create(
            pb.CreateTenantLinkRequest(queue="orders", fairness_key="acme"), office.admin
        )
    )
    told = await whose(office, address.key, "orders")
    assert list(told.intake.headers) == ["x-signature"]
    for key, queue in (
        (address.key, ""),
        (address.key, "mail"),
        (address.key, "nowhere"),
        (viewing.key, "orders"),
    ):
        assert not (await whose(office, key, queue)).HasField("intake")


# A name that an admin forgets.


async def test_a_name_goes_with_all_it_has_and_the_audit_keeps_it(office: Office):
    await office.make_key("boss")
    await office.grant("boss", pb.RIGHT_ADMIN)
    key_id = await office.make_key("acme-shop", as_tenant="acme")
    await office.grant("acme-shop", pb.RIGHT_PRODUCE)
    await office.bound("acme-shop", 8)

    would = await office.forget("acme-shop", validate_only=True)
    assert office.names == {"boss", "acme-shop"}
    gone = await office.forget("acme-shop")

    assert would == gone
    assert (gone.tenant, [key.key_id for key in gone.keys], gone.quotas.streams) == ("acme", [key_id], 8)
    assert [(each.right, each.queue) for each in gone.permissions] == [(pb.RIGHT_PRODUCE, "orders")]
    assert office.names == {"boss"}
    assert [key.principal for key in office.directory.keys.values()] == ["boss"]
    assert [(act["act"], act["queue"]) for act in office.audit[-1:]] == [("ForgetPrincipal", "acme-shop")]
    with pytest.raises(errors.NotFound, match='no principal "acme-shop"'):
        await office.forget("acme-shop")


async def test_a_forgotten_name_that_is_made_again_has_nothing_of_the_first_ones(office: Office):
    await office.make_key("acme-shop", as_tenant="acme")
    await office.grant("acme-shop", pb.RIGHT_PRODUCE)
    await office.forget("acme-shop")

    await office.make_key("acme-shop")

    again = office.directory.principals["acme-shop"]
    assert (again.tenant, again.grants) == ("", ())


async def test_the_last_admin_is_forgotten_by_force_alone_also_in_a_trial(office: Office):
    await office.make_key("boss")
    await office.grant("boss", pb.RIGHT_ADMIN)
    for trial in (True, False):
        with pytest.raises(errors.Conflict, match="last admin"):
            await office.forget("boss", validate_only=trial)
    await office.forget("boss", force=True)
    assert office.names == set()


async def test_the_name_of_a_link_goes_with_the_link(office: Office):
    link_id = await office.make_link(0)
    await office.forget(f"link/{link_id}")
    assert (office.names, office.directory.keys) == (set(), {})


# Names that go by themselves.


async def test_a_name_with_nothing_left_goes_after_a_day(office: Office):
    await office.revoke(await office.make_key("job-1"))
    office.now_ms += DAY_MS - 1
    await office.forgetting.look()
    assert office.names == {"job-1"}

    office.now_ms += 1
    await office.forgetting.look()

    assert office.names == set()
    assert (office.audit[-1]["act"], office.audit[-1]["queue"]) == ("ForgetPrincipal", "job-1")


async def test_what_has_anything_left_stays(office: Office):
    await office.make_key("key")
    for name in ("grant", "quota"):
        await office.revoke(await office.make_key(name))
    await office.revoke(await office.make_key("tenant", as_tenant="acme"))
    await office.grant("grant", pb.RIGHT_PRODUCE)
    await office.bound("quota", 8)
    office.now_ms += 9 * DAY_MS
    await office.forgetting.look()
    assert office.names == {"key", "grant", "quota", "tenant"}

    # The day begins with the last thing that goes.
    await office.keyring.revoke_grant(pb.RevokeGrantRequest(name="grant"), office.admin)
    await office.bound("quota", 0)
    office.now_ms += DAY_MS - 1
    await office.forgetting.look()
    assert office.names == {"key", "grant", "quota", "tenant"}
    office.now_ms += 1
    await office.forgetting.look()
    assert office.names == {"key", "tenant"}


async def test_a_change_that_leaves_a_name_with_nothing_gives_it_no_further_day(office: Office):
    await office.revoke(await office.make_key("job"))
    office.now_ms += DAY_MS - 1
    await office.bound("job", 0)
    office.now_ms += 1
    await office.forgetting.look()
    assert office.names == set()


async def test_a_name_that_gets_something_again_within_the_day_stays(office: Office):
    await office.revoke(await office.make_key("job"))
    office.now_ms += DAY_MS // 2
    key_id = await office.make_key("job")
    office.now_ms += DAY_MS
    await office.forgetting.look()
    assert office.names == {"job"}

    await office.revoke(key_id)
    office.now_ms += DAY_MS - 1
    await office.forgetting.look()
    assert office.names == {"job"}


async def test_a_key_goes_a_day_after_its_end_and_its_name_a_day_later(office: Office):
    await office.make_key("job", expires_after_ms=1000)
    office.now_ms += DAY_MS + 999
    await office.forgetting.look()
    assert office.directory.keys

    office.now_ms += 1
    await office.forgetting.look()
    assert (office.directory.keys, office.names) == ({}, {"job"})
    assert (office.audit[-1]["act"], office.audit[-1]["queue"]) == ("ForgetKey", "job")

    office.now_ms += DAY_MS
    await office.forgetting.look()
    assert office.names == set()


async def test_the_day_goes_on_over_a_restart_and_begins_anew_for_names_of_older_servers(
    office: Office, tmp_path: Path
):
    await office.revoke(await office.make_key("late"))
    office.now_ms += 1000
    await office.revoke(await office.make_key("early"))
    old = PrincipalRecord("old", 1)
    office.store.records[b"p/old"] = records.encode(old)
    whole = records.Sum({key: value for key, value in office.store.records.items() if key != b"!"})
    marker = records.encode(whole.marker(records.decode_marker(office.store.copy).changes))
    office.store.records[b"!"] = office.store.copy = marker
    again = Office(tmp_path)
    again.store, again.now_ms = office.store, office.now_ms + DAY_MS - 1000
    await again.directory.load()

    await again.forgetting.look()

    assert again.names == {"early", "old"}
    again.now_ms += DAY_MS
    await again.forgetting.look()
    assert again.names == set()


# Room.


async def test_more_names_than_there_is_room_for_are_made_and_revoked_in_a_row_and_none_is_refused(
    office: Office, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keyring, "PRINCIPALS_MAX", 20)
    await office.make_key("stays")
    for job in range(200):
        await office.revoke(await office.make_key(f"job-{job}"))
        office.now_ms += 1

    assert office.names == {"stays", *(f"job-{job}" for job in range(181, 200))}
    made = [act for act in office.audit if act["act"] == "CreateKey"]
    assert made[-1]["details"]["forgotten"] == "job-180"


async def test_who_has_had_nothing_for_longest_makes_room_also_after_a_restart(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keyring, "PRINCIPALS_MAX", 3)
    for name in ("z-first", "a-second", "back-again"):
        await office.revoke(await office.make_key(name))
        office.now_ms += 1
    await office.grant("back-again", pb.RIGHT_PRODUCE)
    again = Office(tmp_path)
    again.store, again.now_ms = office.store, office.now_ms
    await again.directory.load()

    for each in (office, again):
        await each.make_key("one")
        assert each.names == {"a-second", "back-again", "one"}
        await each.make_key("two")
        assert each.names == {"back-again", "one", "two"}
        with pytest.raises(errors.LimitExceeded):
            await each.make_key("three")


async def test_where_every_name_has_something_a_new_one_is_refused_with_the_way_out(
    office: Office, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keyring, "PRINCIPALS_MAX", 2)
    await office.make_key("one")
    await office.make_key("two")
    for new in (office.make_key("three"), office.grant("three", pb.RIGHT_PRODUCE), office.make_link(1000)):
        with pytest.raises(errors.LimitExceeded, match="fila auth forget NAME"):
            await new

    await office.forget("one")
    await office.make_key("three")
    assert office.names == {"two", "three"}


async def test_a_key_that_ended_a_day_ago_makes_room_and_one_that_ended_since_does_not(
    office: Office, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keyring, "KEYS_MAX", 2)
    link_id = await office.make_link(1000)
    await office.make_key("job", expires_after_ms=2000)
    office.now_ms += DAY_MS + 999
    with pytest.raises(errors.LimitExceeded, match="keys must be at most 2"):
        await office.make_key("new")

    office.now_ms += 1
    await office.make_key("new")
    assert f"link/{link_id}" not in office.names
    assert office.names == {"job", "new"}
    office.now_ms += 1000
    await office.make_key("newer")
    assert {key.principal for key in office.directory.keys.values()} == {"new", "newer"}


async def test_a_look_makes_a_bounded_number_of_changes(office: Office, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(forgetting, "CHANGES_A_LOOK", 3)
    for job in range(5):
        await office.revoke(await office.make_key(f"job-{job}"))
    office.now_ms += DAY_MS
    assert [await office.forgetting.look() for _ in range(3)] == [3, 2, 0]
    assert office.names == set()


@pytest.mark.parametrize(
    "made", [pytest.param(600, marks=pytest.mark.costly("a write that is synced for each")),
             pytest.param(100_000, marks=[pytest.mark.soak, pytest.mark.costly("a hundred thousand of them")])],
)  # fmt: skip
async def test_a_key_for_each_job_is_made_and_revoked_however_many_there_were(
    office: Office, monkeypatch: pytest.MonkeyPatch, made: int
):
    room = min(made // 2, PRINCIPALS_MAX)
    monkeypatch.setattr(keyring, "PRINCIPALS_MAX", room)
    office.audit = deque(maxlen=1)
    for job in range(made):
        await office.revoke(await office.make_key(f"job-{job}"))
        office.now_ms += 1

    assert (office.directory.keys, len(office.names)) == ({}, room)
