"""What is kept of keys, links and names as time goes on, and what a change costs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fila.v1 import auth_pb2 as pb
from fila_server import errors
from fila_server.access.admission import Admission, Caller
from fila_server.access.directory import Directory
from fila_server.access.failures import Failures
from fila_server.config.schema import Limits
from fila_server.core.requests.rights_table import Rights
from fila_server.operations import links
from fila_server.operations.keyring import Keyring
from fila_server.operations.links import TenantLinks

DAY_MS = 86_400_000


class Office:
    """An admin's calls, over a store that keeps nothing and a clock that is set by hand."""

    def __init__(self, data_dir: Path) -> None:
        self.now_ms = 10 * DAY_MS
        table = Rights()
        table.switch_on()
        self.directory = Directory(
            self._stored, table, str(data_dir), wall_ms=lambda: self.now_ms, mono_ns=lambda: 0
        )
        admission = Admission(
            table, self.directory, Failures(lambda: 0.0), is_on=True, wall_ms=lambda: self.now_ms
        )
        broker: Any = SimpleNamespace(queue_configs={"orders": None, "mail": None})
        self.keyring = Keyring(broker, admission, Limits())
        self.links = TenantLinks(broker, admission, Limits(), self.keyring)
        self.admin = Caller(1, "anna", "first", "", True, "127.0.0.1")

    @staticmethod
    async def _stored(_kind: int, _frame: bytes) -> bytes:
        return b""

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
    third = await office.make_link(1000)

    assert set(office.directory.keys) == {second, third}
    assert set(office.directory.principals) == {f"link/{second}", f"link/{third}"}


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
