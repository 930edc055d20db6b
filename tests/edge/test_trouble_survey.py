"""What a look gathers: pages that come round, beginnings of pauses, and loss until it is acknowledged."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fila.v1 import events_pb2
from fila_server import events
from fila_server.access.admission import Caller
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations import pauses, trouble_survey
from fila_server.operations.trouble_facts import ACKNOWLEDGED, Circuit, Facts
from fila_server.operations.trouble_survey import TroubleSurvey
from fila_server.telemetry.snapshot import Snapshot, Totals

NOW_MS = 1_700_000_000_000
Found = seam_frames.TroublesFound


class Core:
    """Answers pages from a list, and keeps records as the store does."""

    def __init__(self) -> None:
        self.runtime_config: dict[str, str] = {}
        self.pages: list[Any] = []
        self.asked: list[tuple[int, int, int]] = []
        self.records: dict[bytes, bytes] = {}
        self.read: list[bytes] = []

    async def call(self, kind: int, frame: bytes) -> bytes:
        if kind == commands.TROUBLES_PAGE:
            page = seam_frames.TroublesPage.FromString(frame)
            self.asked.append((page.part, page.cursor, page.capacity))
            found = self.pages.pop(0) if self.pages else Found()
            return bytes(found.SerializeToString())
        if kind == commands.OPERATION_RECORDS_CHANGE:
            self.change(frame)
            return b""
        asked = seam_frames.OperationRecordsPage.FromString(frame)
        self.read.append(asked.prefix)
        below = asked.below or asked.prefix + b"\xff"
        keys = sorted(
            (key for key in self.records if key.startswith(asked.prefix) and key < below), reverse=True
        )
        reply = seam_frames.OperationRecords()
        for key in keys[: asked.most]:
            reply.records.add(key=key, value=self.records[key])
        return bytes(reply.SerializeToString())

    def change(self, frame: bytes) -> None:
        change = seam_frames.OperationRecordsChange.FromString(frame)
        for prefix in change.prefixes:
            self.records = {key: value for key, value in self.records.items() if not key.startswith(prefix)}
        for record in change.records:
            if record.value:
                self.records[record.key] = record.value
            else:
                self.records.pop(record.key, None)


class Judge:
    """Keeps the facts instead of judging them."""

    def __init__(self) -> None:
        self.facts: list[Facts] = []
        self.held: list[float] = []
        self.is_settled = False

    def look(self, facts: Facts, _now_s: float, _wall_ms: int) -> bool:
        self.facts.append(facts)
        return self.is_settled

    def hold(self, now_s: float) -> None:
        self.held.append(now_s)


def snapshot(**totals: int) -> Snapshot:
    empty: dict[str, Any] = dict.fromkeys(Snapshot.__struct_fields__, 0)
    lists: dict[str, Any] = {name: [] for name in ("refused", "sync_us", "batch", "queues", "keys", "limits")}
    counted = Totals(**(dict.fromkeys(Totals.__struct_fields__, 0) | totals))
    return Snapshot(**(empty | lists | {"totals": counted}))


class Surveyed:
    def __init__(self, core: Core | None = None) -> None:
        self.core = core or Core()
        self.judge = Judge()
        self.circuits = [Circuit("q", "on_failure")]
        self.survey = TroubleSurvey(self.core, self.judge, lambda: self.circuits)  # type: ignore[arg-type]

    async def look(self, at_ms: int = NOW_MS, **totals: int) -> Facts:
        await self.survey.look(snapshot(**totals), 0.0, at_ms)
        await asyncio.sleep(0)
        return self.judge.facts[-1]


@pytest.fixture(autouse=True)
def ring(monkeypatch: pytest.MonkeyPatch) -> events.Ring:
    made = events.Ring(1)
    monkeypatch.setattr("fila_server.operations.damage.RING", made)
    return made


@pytest.fixture
def surveyed() -> Surveyed:
    return Surveyed()


def unserved(*queues: str, **more: int) -> Any:
    return Found(unserved=[{"queue": queue.encode(), "channel": b"default"} for queue in queues], **more)


async def test_a_round_is_judged_once_its_last_page_is_there(
    surveyed: Surveyed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(trouble_survey, "PAGES_A_LOOK", 2)
    surveyed.core.pages = [unserved("a", cursor=10, capacity=64), unserved("b", cursor=40, capacity=64)]

    await surveyed.survey.look(snapshot(), 0.0, NOW_MS)
    assert surveyed.judge.facts == [], "what was not come by yet would seem to be over"
    facts = await surveyed.look()
    assert [row.queue for row in facts.unserved] == ["a", "b"]
    assert surveyed.core.asked == [(0, 0, 0), (0, 10, 64), (0, 40, 64), (1, 0, 0)]
    assert not (await surveyed.look()).unserved, "a new round knows nothing of the last"
    assert facts.circuits == [Circuit("q", "on_failure")]


async def test_what_is_settled_is_not_asked_for_again_until_something_stirs(surveyed: Surveyed):
    judge, asked = surveyed.judge, surveyed.core.asked
    same = snapshot()

    async def look_costs(of: Snapshot, at_s: float) -> int:
        before = len(asked)
        await surveyed.survey.look(of, at_s, NOW_MS)
        return len(asked) - before

    assert await look_costs(same, 10.0)
    assert await look_costs(same, 20.0), "time may still bring something"
    judge.is_settled = True
    assert await look_costs(same, 30.0)
    assert not await look_costs(same, 40.0)
    assert (len(judge.facts), judge.held) == (3, [40.0])
    surveyed.circuits = []
    assert await look_costs(same, 50.0), "a circuit closed"
    assert await look_costs(snapshot(), 60.0), "something stirred"


async def test_a_round_that_began_before_something_stirred_settles_nothing(
    surveyed: Surveyed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(trouble_survey, "PAGES_A_LOOK", 2)
    surveyed.judge.is_settled = True
    surveyed.core.pages = [unserved("a", cursor=10, capacity=64), unserved("b", cursor=40, capacity=64)]
    await surveyed.survey.look(snapshot(), 0.0, NOW_MS)
    same = snapshot()
    await surveyed.survey.look(same, 2.0, NOW_MS)
    asked = len(surveyed.core.asked)

    await surveyed.survey.look(same, 4.0, NOW_MS)

    assert len(surveyed.core.asked) > asked


async def test_no_more_rows_are_kept_than_are_followed(surveyed: Surveyed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(trouble_survey, "KEPT_MAX", 3)
    surveyed.core.pages = [unserved("a", "b", cursor=1, capacity=8), unserved("c", "d")]

    assert [row.queue for row in (await surveyed.look()).unserved] == ["a", "b", "c"]


def paused(*keys: str, is_queue: bool = False) -> Any:
    rows = [{"queue": b"q", "fairness_key": key.encode(), "ready": 1, "is_queue": is_queue} for key in keys]
    return Found(paused=rows)


def caller(name: str, number: int | None = 7, peer: str = "") -> Caller:
    return Caller(number, name, key_id="", tenant="", is_admin=False, peer=peer)


ALICE = caller("alice")


async def pause(
    core: Core, key: str | None, at_ms: int, by: Caller = ALICE, comment: str = "", *, is_paused: bool = True
) -> None:
    name = pauses.of_queue("q") if key is None else pauses.of_key("q", key)
    core.change(await pauses.changed(core.call, name, by, at_ms, is_paused=is_paused, comment=comment))


async def test_a_pause_is_told_since_when_and_by_whom_and_few_are_read_again(
    surveyed: Surveyed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(trouble_survey, "AGAIN_A_LOOK", 1)
    core = surveyed.core
    await pause(core, "ab", NOW_MS - 1)
    await pause(core, "a", NOW_MS - 5000)
    await pause(core, None, NOW_MS - 7000, caller("", None, "10.0.0.7"))
    core.read.clear()
    for _ in range(2):
        core.pages = [paused("a", "unknown"), Found()]
        found = {each.fairness_key: (each.since_ms, each.by) for each in (await surveyed.look()).pauses}
        assert found == {"a": (NOW_MS - 5000, "alice"), "unknown": (0, "")}
    assert sorted(core.read) == [*[b"pause/q/key/a"] * 2, b"pause/q/key/unknown", b"trouble/"]

    name = pauses.of_channel("q", "audit")
    core.change(await pauses.changed(core.call, name, caller("bob"), NOW_MS - 9000, is_paused=True))
    core.pages = [Found(paused=[{"queue": b"q", "channel": b"audit", "ready": 1}]), Found()]
    [of_channel] = (await surveyed.look()).pauses
    assert (of_channel.channel, of_channel.since_ms, of_channel.by) == ("audit", NOW_MS - 9000, "bob")

    core.pages = [paused("", is_queue=True), Found()]
    [of_queue] = (await surveyed.look()).pauses
    assert (of_queue.since_ms, of_queue.by, of_queue.is_queue) == (NOW_MS - 7000, "10.0.0.7", True)


async def test_who_pauses_what_is_paused_changes_nothing_and_resuming_forgets():
    core = Core()
    await pause(core, "a", NOW_MS)
    await pause(core, "a", NOW_MS + 1000, caller("bob"))
    assert await pauses.read(core.call, pauses.of_key("q", "a")) == pauses.Paused(NOW_MS, "alice")

    await pause(core, "a", NOW_MS + 2000, is_paused=False)
    assert await pauses.read(core.call, pauses.of_key("q", "a")) is None
    await pause(core, "a", NOW_MS + 3000, caller("bob"))
    assert await pauses.read(core.call, pauses.of_key("q", "a")) == pauses.Paused(NOW_MS + 3000, "bob")


async def test_who_pauses_what_is_paused_may_say_why_and_silence_leaves_the_reason():
    core = Core()
    await pause(core, "a", NOW_MS)
    assert core.records == {b"pause/q/key/a": b'{"since_ms":1700000000000,"by":"alice"}'}, "as it was before"
    await pause(core, "a", NOW_MS + 1000, caller("bob"), "the provider is down")
    await pause(core, "a", NOW_MS + 2000, caller("eve"))
    assert await pauses.read(core.call, pauses.of_key("q", "a")) == pauses.Paused(
        NOW_MS, "alice", "the provider is down"
    )

    await pause(core, "a", NOW_MS, is_paused=False)
    await pause(core, "a", NOW_MS, comment="again")
    assert await pauses.read(core.call, pauses.of_key("q", "a")) == pauses.Paused(NOW_MS, "alice", "again")


async def test_a_new_reason_is_told_at_the_next_look(surveyed: Surveyed):
    core = surveyed.core
    for why in ("the provider is down", "it is being mended"):
        await pause(core, "a", NOW_MS, comment=why)
        core.pages = [paused("a"), Found()]
        [told] = (await surveyed.look()).pauses
        assert (told.comment, told.by) == (why, "alice")


@pytest.mark.parametrize("keys", [1, 2, 7])
async def test_pauses_of_many_keys_are_read_in_pages_and_who_made_them_only_where_one_may_know(
    keys: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pauses, "PAGE", 3)
    core = Core()
    names = [f"k{number}" for number in range(keys)]
    for name in names:
        await pause(core, name, NOW_MS, comment=f"why {name}")
        await pause(core, f"{name}/x", NOW_MS, comment="another key's")
    policies = [events_pb2.KeyPolicy(fairness_key=name, paused=True) for name in (*names, "before records")]
    policies.append(events_pb2.KeyPolicy(fairness_key="goes on"))

    await pauses.tell_of_keys(core.call, "q", policies, lambda _: False)
    assert [each.pause.comment for each in policies] == [*(f"why {name}" for name in names), "", ""]
    assert {each.pause.by for each in policies} == {""}
    await pauses.tell_of_keys(core.call, "q", policies, lambda principal: principal == "alice")
    assert [each.pause.by for each in policies] == ["alice"] * keys + ["", ""]


async def test_a_queue_takes_the_beginnings_of_its_pauses_along():
    core = Core()
    await pause(core, "a", NOW_MS)
    await pause(core, None, NOW_MS)
    core.records[b"pause/queue/key/a"] = b"another queue's"

    core.change(pauses.forgotten("q"))
    assert list(core.records) == [b"pause/queue/key/a"]


async def test_loss_is_told_until_it_is_acknowledged_also_after_a_restart(surveyed: Surveyed):
    assert (await surveyed.look()).lost is None
    lost = (await surveyed.look(NOW_MS + 1000, lost_ranges=2, lost_messages=9)).lost
    assert lost == (NOW_MS + 1000, 2, 9)
    lost = (await surveyed.look(NOW_MS + 2000, lost_ranges=3, lost_messages=10)).lost
    assert lost == (NOW_MS + 1000, 3, 10), "since the first of it"

    again = Surveyed(surveyed.core)
    assert (await again.look(NOW_MS + 9000)).lost == (NOW_MS + 1000, 3, 10)
    surveyed.core.runtime_config[ACKNOWLEDGED] = "2023-11-14T22:13:21Z"
    assert (await again.look(NOW_MS + 9000)).lost is not None, "it grew after that moment"
    surveyed.core.runtime_config[ACKNOWLEDGED] = "2023-11-14T22:13:22Z"
    assert (await again.look(NOW_MS + 9000)).lost is None
    assert (await again.look(NOW_MS + 9500, lost_ranges=1)).lost == (NOW_MS + 9500, 1, 0), "a new loss"


async def test_damage_that_the_start_met_is_told_unless_it_is_told_as_loss(
    surveyed: Surveyed, ring: events.Ring
):
    ring.add(NOW_MS - 3000, "store.damage_found", 1, {})
    facts = await surveyed.look()
    assert (facts.lost, facts.damaged) == (None, (NOW_MS - 3000, 0, 0))

    facts = await Surveyed().look(lost_ranges=1)
    assert (facts.lost, facts.damaged) == ((NOW_MS, 1, 0), None)


async def test_the_disk_is_told_by_its_level(surveyed: Surveyed):
    assert (await surveyed.look(disk_free_bytes=5)).disk is None
    assert (await surveyed.look(disk_level=1, disk_free_bytes=5)).disk == (False, 5)
    assert (await surveyed.look(disk_level=2, disk_free_bytes=0)).disk == (True, 0)
