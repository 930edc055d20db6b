"""The compiled table of rights against a slow twin, and what it does to a tenant's messages."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.v1 import admin_pb2, messages_pb2, service_pb2
from fila_server import errors
from fila_server.access.rights import ADMIN, CANCEL, CONSUME, MANAGE, PRODUCE, VIEW
from fila_server.core.protocol import commands, seam_frames
from fila_server.core.requests.rights_table import Rights
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.test_holders import held, of

NAMES = st.text("ab.*", min_size=1, max_size=5)
QUEUES = st.builds(
    lambda stem, ending, start: f"{start}{stem}{ending}",
    st.text("ab.", min_size=1, max_size=4),
    st.sampled_from(["", ".dlq"]),
    st.sampled_from(["", "_fila."]),
)
PATTERNS = st.builds(
    lambda stem, ending, start: f"{start}{stem}{ending}",
    NAMES,
    st.sampled_from(["", ".dlq"]),
    st.sampled_from(["", "_fila."]),
)
GRANTS = st.tuples(
    st.sampled_from([PRODUCE, CONSUME, MANAGE, PRODUCE | MANAGE, VIEW, CANCEL, ADMIN]),
    PATTERNS,
    st.sampled_from(["", "", "c*"]),
)


def reaches(pattern: str, queue: str) -> bool:
    if queue.endswith(".dlq") and not pattern.endswith(".dlq"):
        return False
    if queue.startswith("_fila") and not pattern.startswith("_fila"):
        return False
    return re.fullmatch(fnmatch.translate(pattern), queue) is not None


def slow_rights(grants: list[tuple[int, str, str]], queue: str, channel: str) -> tuple[int, int]:
    if any(rights & ADMIN for rights, _, _ in grants):
        return 63, 63
    everywhere = somewhere = 0
    for rights, pattern, channels in grants:
        if reaches(pattern, queue):
            somewhere |= rights
            if not channels or (channel and fnmatch.fnmatchcase(channel, channels)):
                everywhere |= rights
    return everywhere, somewhere


@settings(max_examples=300, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("grants"), st.lists(GRANTS, max_size=4)),
            st.tuples(st.just("ask"), st.tuples(QUEUES, st.sampled_from(["", "c1", "d1"]))),
            st.tuples(st.just("revoke"), st.none()),
            st.tuples(st.just("key"), st.none()),
        ),
        max_size=30,
    )
)
def test_no_sequence_of_grants_and_revokes_leaves_an_old_decision(steps: list[tuple[str, Any]]):
    table = Rights()
    table.switch_on()
    grants: list[tuple[int, str, str]] = []
    held = False
    for what, value in steps:
        if what == "grants":
            grants = value
            table.put_principal(
                1,
                [(rights, queue.encode(), channel.encode()) for rights, queue, channel in grants],
                b"",
                0,
                0,
                0,
            )
        elif what == "revoke":
            table.drop_key(7)
            held = False
        elif what == "key":
            table.put_key(7, 1, b"id", bytes(32), 0)
            held = True
        else:
            queue, channel = value
            expected = slow_rights(grants, queue, channel) if held else (0, 0)
            for _ in range(2):  # the second is a decision that was kept
                assert table.on(7, queue.encode(), channel.encode()) == expected


def test_a_key_is_found_by_id_and_secret_together_and_until_it_ends():
    table = Rights()
    table.put_key(3, 1, b"id", b"d" * 32, 1000)
    assert table.find(b"id", b"d" * 32, 999) == 3
    assert table.find(b"id", b"e" * 32, 999) == 0
    assert table.find(b"other", b"d" * 32, 999) == 0
    assert table.find(b"id", b"d" * 32, 1000) == -1


def test_every_change_moves_the_generation():
    table = Rights()
    seen = [table.generation]
    for change in (
        lambda: table.put_principal(1, [], b"", 0, 0, 0),
        lambda: table.put_key(2, 1, b"id", bytes(32), 0),
        lambda: table.drop_key(2),
        lambda: table.drop_principal(1),
    ):
        change()
        seen.append(table.generation)
    assert seen == sorted(set(seen))


# --- messages of a tenant ---------------------------------------------------------------------

PINNED = 11
FREE = 12


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    table = engine.core.rights
    table.switch_on()
    table.put_principal(1, [(PRODUCE, b"*", b"")], b"acme", 0, 0, 0)
    table.put_key(PINNED, 1, b"pinned", bytes(32), 0)
    table.put_principal(2, [(PRODUCE, b"*", b"")], b"", 0, 0, 0)
    table.put_key(FREE, 2, b"free", bytes(32), 0)
    engine.create_queue(
        "orders",
        fairness_key_header="tenant",
        weight_header="weight",
        cost_header="cost",
        throttle_key_headers=["throttle"],
    )
    yield engine
    engine.remove()


LIES = {"tenant": "globex", "weight": "1000", "cost": "0.001", "throttle": "theirs", "fila-tenant": "globex"}
LIES_OF_A_FREE_ONE = {name: value for name, value in LIES.items() if name != "fila-tenant"}


def submit(engine: DrivenEngine, kind: int, token: int, frame: bytes, caller: int | None) -> None:
    """A caller's frame, judged by its rights."""
    engine.core.submit_parsed(token, engine.core.parse(kind, frame, caller, engine.mono_ns))


def enqueue(engine: DrivenEngine, caller: int | None, **options: Any) -> service_pb2.EnqueueResponse:
    request = service_pb2.EnqueueRequest(
        queue="orders",
        headers=LIES if caller == PINNED else LIES_OF_A_FREE_ONE,
        payload=b"x",
        options=service_pb2.EnqueueOptions(**options),
    )
    token = engine.tokens = engine.tokens + 1
    submit(engine, commands.ENQUEUE, token, request.SerializeToString(), caller)
    engine.others += engine.settle_down()
    status, payload = engine.answer_of(token)
    assert status == errors.OK, messages_pb2.ItemStatus.FromString(payload)
    return service_pb2.EnqueueResponse.FromString(payload)


def routing_of(message: messages_pb2.Message) -> tuple[str, int, float, list[str]]:
    metadata = message.metadata
    return metadata.fairness_key, metadata.weight, metadata.cost, list(metadata.throttle_keys)


def test_a_tenants_message_is_its_tenants_whatever_its_headers_say(engine: DrivenEngine):
    enqueue(engine, FREE)
    enqueue(engine, PINNED)
    free, pinned = sorted(engine.lease("orders"), key=lambda message: message.metadata.offset)
    assert routing_of(pinned) == ("acme", 1, 1.0, [])
    assert pinned.headers["fila-tenant"] == "acme"
    assert pinned.headers["weight"] == "1000", "what it said is kept, and means nothing"
    assert pinned.payload == b"x"
    assert free.metadata.throttle_keys == ["theirs"]


@pytest.mark.parametrize(
    "name",
    [
        "fila-tenant",
        "Fila-Tenant",
        "FILA-TENANT",
        "fila_tenant",
        "fila-tenant ",
        " fila-tenant",
        "\tFila.Tenant\u00a0",
        "filatenant",
    ],
)
def test_nothing_that_passes_for_the_tenants_header_is_stored_beside_it(engine: DrivenEngine, name: str):
    others = {
        "kept": "yes",
        "Fila-Tenant2": "kept",
        "fila-tenan": "kept",
        "a-fila-tenant": "kept",
        "-": "kept",
        # Letters beyond ASCII are letters of another name: docs/security.md says so.
        "\ufb01la-tenant": "kept",
        "\uff46\uff49\uff4c\uff41-tenant": "kept",
        "F\u0130LA-tenant": "kept",
    }
    headers = {name: "globex", **others}
    request = service_pb2.EnqueueRequest(queue="orders", headers=headers, payload=b"x")
    token = engine.tokens = engine.tokens + 1
    submit(engine, commands.ENQUEUE, token, request.SerializeToString(), PINNED)
    engine.others += engine.settle_down()
    [stored] = engine.lease("orders")
    assert dict(stored.headers) == {"fila-tenant": "acme", **others}
    assert stored.payload == b"x"


def test_a_redrive_routes_a_tenants_message_as_the_enqueue_did(engine: DrivenEngine):
    enqueue(engine, PINNED)
    [leased] = engine.lease("orders")
    items = [
        service_pb2.SettleItem(lease_id=leased.metadata.lease_id, message_id=leased.id, dead_letter=True)
    ]
    request = service_pb2.NackBatchRequest(queue="orders", items=items)
    engine.call(commands.NACK_BATCH, request, service_pb2.SettleBatchResponse)
    page = seam_frames.RedrivePage(dlq_queue=b"orders.dlq", count=10, up_to_offset=100)
    assert engine.call(commands.REDRIVE_MOVE, page, seam_frames.RedrivenPage).moved == 1
    [again] = engine.lease("orders")
    assert routing_of(again) == ("acme", 1, 1.0, [])


def test_a_tenants_dedup_keys_meet_nobody_elses(engine: DrivenEngine):
    first = enqueue(engine, FREE, dedup_key="order-1")
    own = enqueue(engine, PINNED, dedup_key="order-1")
    assert own.message_id != first.message_id
    assert enqueue(engine, PINNED, dedup_key="order-1").message_id == own.message_id
    assert enqueue(engine, FREE, dedup_key="order-1").message_id == first.message_id
    assert len(engine.lease("orders")) == 2


def test_a_script_reads_the_tenant_where_it_looks_for_the_fairness_key(engine: DrivenEngine):
    request = service_pb2.EnqueueRequest(queue="orders", headers=LIES, payload=b"x")
    parsed = engine.core.parse(commands.ENQUEUE, request.SerializeToString(), PINNED, engine.mono_ns)
    _, packed = parsed.pack(parsed.unrefused(), 0, 1, 1 << 20, b"tenant")
    assert b"globex" not in packed.replace(b"fila-tenant\0\0\0\x06globex", b"")
    assert packed.count(b"\0\0\0\x04acme") == 3, "twice the queue's header, once the broker's"


def test_a_frame_beyond_the_quota_is_refused_before_it_is_parsed(engine: DrivenEngine):
    table = engine.core.rights
    table.put_principal(2, [(PRODUCE, b"*", b"")], b"", 1.0, 0, engine.mono_ns)
    enqueue(engine, FREE)
    with pytest.raises(errors.QuotaExceeded) as refused:
        submit(engine, commands.ENQUEUE, 99, b"no message at all", FREE)
    assert 0 < refused.value.retry_after_ms <= 1001
    assert table.refused(2) == 1
    engine.advance(1001)
    enqueue(engine, FREE)


def test_a_tenant_stores_up_to_its_bound_and_what_is_let_in_counts_at_once(engine: DrivenEngine):
    table = engine.core.rights
    table.put_principal(1, [(PRODUCE, b"*", b"")], b"acme", 0, 0, engine.mono_ns, stored_max=1000)
    table.put_stored(1, 990, table.let_in(1))
    enqueue(engine, PINNED)
    for _ in range(2):
        with pytest.raises(errors.QuotaExceeded, match="at most 1000 bytes stored for tenant") as refused:
            enqueue(engine, PINNED)
        assert refused.value.retry_after_ms == 1000
    assert (table.refused(1), table.stored(1)) == (2, 990 + table.let_in(1))
    assert len(engine.lease("orders")) == 1, "what was refused is not stored"
    enqueue(engine, FREE)


def test_what_is_let_in_while_the_core_counts_is_added_to_its_number(engine: DrivenEngine):
    table = engine.core.rights
    table.put_principal(1, [(PRODUCE, b"*", b"")], b"acme", 0, 0, engine.mono_ns, stored_max=10_000)
    began = table.let_in(1)
    enqueue(engine, PINNED)
    sent = table.let_in(1) - began
    table.put_stored(1, 500, began)
    assert table.stored(1) == 500 + sent > 500

    table.put_principal(1, [(PRODUCE, b"*", b"")], b"acme", 5, 0, engine.mono_ns, stored_max=400)
    with pytest.raises(errors.QuotaExceeded, match="at most 400 bytes"):
        enqueue(engine, PINNED)
    table.put_stored(1, 0, table.let_in(1))
    enqueue(engine, PINNED)


@pytest.mark.parametrize("rate", [1.0, 2.0, 1000.0])
def test_a_change_of_quotas_is_no_new_allowance(engine: DrivenEngine, rate: float):
    table = engine.core.rights

    def bound(messages_per_s: float) -> None:
        table.put_principal(2, [(PRODUCE, b"*", b"")], b"", messages_per_s, 0, engine.mono_ns)

    bound(2.0)
    for _ in range(2):
        enqueue(engine, FREE)
    bound(rate)
    with pytest.raises(errors.QuotaExceeded):
        enqueue(engine, FREE)
    engine.advance(1001)
    enqueue(engine, FREE)


def test_a_rate_that_is_made_smaller_leaves_nothing_of_what_the_larger_one_had_saved(engine: DrivenEngine):
    table = engine.core.rights
    for rate in (1000.0, 1.0):
        table.put_principal(2, [(PRODUCE, b"*", b"")], b"", rate, 0, engine.mono_ns)
    enqueue(engine, FREE)
    with pytest.raises(errors.QuotaExceeded):
        enqueue(engine, FREE)


def test_a_bound_of_streams_or_connections_that_is_made_smaller_counts_those_there_are(engine: DrivenEngine):
    table = engine.core.rights

    def bound(most: int) -> None:
        grants = [(PRODUCE, b"*", b"")]
        table.put_principal(2, grants, b"", 0, 0, engine.mono_ns, connections_max=most, streams_max=most)

    bound(3)
    for take, give in (
        (table.take_stream, table.give_stream),
        (table.take_connection, table.give_connection),
    ):
        for _ in range(3):
            take(FREE)
        bound(2)
        for _ in range(2):
            with pytest.raises(errors.QuotaExceeded, match="at most 2"):
                take(FREE)
            give(2)
        take(FREE)
        bound(3)
    assert table.in_use(2)[:2] == (2, 2)


def test_what_is_let_in_counts_for_no_less_than_is_stored_of_it(engine: DrivenEngine):
    """Small messages are mostly the tenant's header, which the broker puts behind their own."""
    table = engine.core.rights
    before = table.let_in(1)
    request = service_pb2.EnqueueBatchRequest(queue="orders")
    for _ in range(10):
        request.messages.add(payload=b"x")
    submit(engine, commands.ENQUEUE_BATCH, 99, request.SerializeToString(), PINNED)
    engine.settle_down()
    page = seam_frames.StoredPage(keys=[b"acme"])
    stored = engine.call(commands.STORED_BYTES, page, seam_frames.StoredBytes).stored[0]
    assert 200 <= stored <= table.let_in(1) - before <= 2 * stored


def test_what_a_client_says_of_whose_it_is_does_not_count(engine: DrivenEngine):
    table = engine.core.rights
    table.put_principal(2, [(PRODUCE | CONSUME, b"*", b"")], b"", 0, 0, engine.mono_ns, in_flight_max=3)
    for _ in range(5):
        enqueue(engine, FREE)
    request = service_pb2.LeaseRequest(queue="orders", max_messages=9).SerializeToString()
    token = engine.tokens = engine.tokens + 1
    submit(engine, commands.LEASE, token, request + of(9, 100), FREE)
    engine.others += engine.settle_down()
    _, payload = engine.answer_of(token)
    assert len(service_pb2.LeaseResponse.FromString(payload).messages) == 3
    assert held(engine, (2, 3), (9, 100)) == [(3, 0), (0, 0)]
    table.put_held(2, 3, 4)
    assert (table.in_use(2), table.refused(2)) == ((0, 0, 3), 4)


def test_a_key_that_is_gone_sends_nothing(engine: DrivenEngine):
    engine.core.rights.drop_key(FREE)
    with pytest.raises(errors.Unauthenticated):
        submit(engine, commands.ENQUEUE, 99, b"\x0a\x06orders", FREE)


def test_what_admins_did_is_there_after_a_power_cut_with_the_change_and_not_without(engine: DrivenEngine):
    def records() -> list[bytes]:
        answer = engine.call(commands.AUDIT_READ, b"", seam_frames.AuditRecords)
        return [record.what for record in answer.records]

    change = admin_pb2.SetConfigRequest(key="a", value="b").SerializeToString() + b"\x72\x03did"
    refused = admin_pb2.CreateQueueRequest(name="orders").SerializeToString() + b"\x72\x03not"
    engine.call(commands.SET_CONFIG, change, admin_pb2.SetConfigResponse)
    with pytest.raises(Refused):
        engine.call(commands.CREATE_QUEUE, refused, admin_pb2.CreateQueueResponse)
    assert records() == [b"did"]
    engine.submit(commands.SET_CONFIG, change.replace(b"did", b"cut"))
    engine.run_pass()
    engine.cut_power()
    engine.reopen()
    assert records() == [b"did"]
    engine.call(commands.SET_CONFIG, change.replace(b"did", b"two"), admin_pb2.SetConfigResponse)
    assert records() == [b"two", b"did"]
