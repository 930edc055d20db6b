"""The table of rights: what each RPC and each Redis command needs. docs/security.md shows it; a test holds all three
together: this, the protos and the commands, and the page.

The hot calls are judged by the compiled table, on the thread that takes their frame in; `on` says the same for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from fila_server.access.rights import ADMIN, CANCEL, CONSUME, MANAGE, PRODUCE, VIEW

NOTHING = 0
"""Anybody, without a key."""
ANY = PRODUCE | CONSUME | MANAGE | VIEW | CANCEL
"""Some right on the queue."""
LOOK = CONSUME | MANAGE | VIEW
"""One that shows everybody's numbers."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one call needs."""

    right: int
    """Bits of which one is enough; NOTHING, or ADMIN."""

    queue: str = ""
    """The field that names the queue; empty: none does."""

    channel: str = ""
    """The field that names the channel, for consume that was given by channel."""

    by_core: bool = False
    """Judged with the frame, message by message where there are several."""

    creates: bool = False
    """What it names need not exist: without the right it is PERMISSION_DENIED, never NOT_FOUND."""

    for_tenant: bool = False
    """A key bound to a tenant may call it, and is told about its own fairness key only: with LOOK or ADMIN, by any
    right."""

    any_key: bool = False
    """Every valid key may call it; the answer holds what the caller may see."""

    filtered: bool = False
    """Without a queue every key but a tenant's may call it, and the answer holds only queues it has this right on."""

    @property
    def words(self) -> str:
        """The right as the page and the refusal name it."""
        if self.right == NOTHING:
            return "any key" if self.any_key else "nothing"
        if self.right == ANY:
            return "any right"
        return " or ".join(name for bit, name in _NAMES if self.right & bit)


_NAMES = (
    (PRODUCE, "produce"),
    (CONSUME, "consume"),
    (MANAGE, "manage"),
    (VIEW, "view"),
    (CANCEL, "cancel"),
    (ADMIN, "admin"),
)
_PRODUCE = Need(PRODUCE, "queue", by_core=True, for_tenant=True)
_CONSUME = Need(CONSUME, "queue", "channel", by_core=True)
_MANAGE = Need(MANAGE, "queue")
_ADMIN = Need(ADMIN)
KEYS = Need(LOOK, "queue", for_tenant=True)
"""What names fairness keys."""
# A sink's name is judged as a queue's.
_SINK = Need(PRODUCE, "sink_id", creates=True)

RPCS: dict[str, Need] = {
    "FilaService/Enqueue": _PRODUCE,
    "FilaService/EnqueueBatch": _PRODUCE,
    "FilaService/EnqueueStream": _PRODUCE,
    "FilaService/Consume": _CONSUME,
    "FilaService/ConsumeSession": _CONSUME,
    "FilaService/Lease": _CONSUME,
    "FilaService/Ack": _CONSUME,
    "FilaService/Nack": _CONSUME,
    "FilaService/AckBatch": _CONSUME,
    "FilaService/NackBatch": _CONSUME,
    "FilaService/ExtendLease": _CONSUME,
    "FilaService/CancelMessages": Need(CANCEL, "queue", by_core=True, for_tenant=True),
    "FilaAdmin/CreateQueue": Need(MANAGE, "name", creates=True),
    "FilaAdmin/GetQueue": _MANAGE,
    "FilaAdmin/UpdateQueue": _MANAGE,
    "FilaAdmin/DeleteQueue": _MANAGE,
    "FilaAdmin/ListQueues": Need(NOTHING, any_key=True, for_tenant=True),
    "FilaAdmin/PurgeQueue": _MANAGE,
    "FilaAdmin/PeekMessages": Need(CONSUME, "queue", "channel"),
    "FilaAdmin/GetStats": Need(ANY, "queue", for_tenant=True),
    "FilaAdmin/SetConfig": _ADMIN,
    "FilaAdmin/GetConfig": _ADMIN,
    "FilaAdmin/ListConfig": _ADMIN,
    "FilaAdmin/Redrive": Need(MANAGE, "dlq_queue"),
    "FilaAdmin/CreateChannel": _MANAGE,
    "FilaAdmin/DeleteChannel": _MANAGE,
    "FilaAdmin/ListChannels": Need(LOOK, "queue"),
    "FilaAdmin/SeekChannel": _MANAGE,
    "FilaAdmin/PurgeChannel": _MANAGE,
    "FilaAdmin/ReadLog": Need(CONSUME, "queue"),
    "FilaAdmin/SetKeyPolicy": _MANAGE,
    "FilaAdmin/PreviewKeyPolicy": _MANAGE,
    "FilaAdmin/SkipMessage": _MANAGE,
    "FilaAdmin/ExplainKey": KEYS,
    "FilaAdmin/GetMessage": KEYS,
    "FilaAdmin/ListPending": Need(LOOK, "queue"),
    "FilaAdmin/ListConsumers": Need(LOOK, "queue"),
    "FilaAdmin/GetStatus": Need(NOTHING, any_key=True, for_tenant=True),
    "FilaAdmin/WatchEvents": Need(LOOK, "queue", filtered=True),
    "FilaAdmin/ListLate": Need(LOOK, "queue", filtered=True),
    "FilaAdmin/ListKeyPolicies": KEYS,
    "FilaAdmin/DropDeadLetters": Need(MANAGE, "dlq_queue"),
    "FilaAdmin/FindKeys": Need(LOOK, "queue"),
    "FilaAdmin/StartOperation": Need(MANAGE, "dlq_queue"),
    "FilaAdmin/WatchOperation": Need(MANAGE, "dlq_queue"),
    "FilaAdmin/ListOperations": Need(MANAGE, "dlq_queue", filtered=True),
    "FilaAdmin/CancelOperation": Need(MANAGE, "dlq_queue"),
    "FilaAdmin/EditDeadLetter": Need(MANAGE, "dlq_queue"),
    "FilaAdmin/DryRunPolicy": _MANAGE,
    "FilaAdmin/SetLimit": _ADMIN,
    "FilaAdmin/DeleteLimit": _ADMIN,
    "FilaAdmin/ListLimits": Need(ADMIN, for_tenant=True),
    "FilaAdmin/ResetLimit": _ADMIN,
    "FilaAdmin/CreateSchedule": _MANAGE,
    "FilaAdmin/UpdateSchedule": _MANAGE,
    "FilaAdmin/DeleteSchedule": _MANAGE,
    "FilaAdmin/PauseSchedule": _MANAGE,
    "FilaAdmin/GetSchedule": _MANAGE,
    "FilaAdmin/ListSchedules": Need(MANAGE, "queue", filtered=True),
    "FilaAdmin/ListQueueVersions": _MANAGE,
    "FilaAdmin/GetQueueVersion": _MANAGE,
    "FilaAdmin/WatchStats": Need(ANY, "queues", for_tenant=True, filtered=True),
    "FilaAdmin/GetSeries": Need(ANY, "queue", for_tenant=True),
    "FilaAdmin/GetClusterStatus": _ADMIN,
    "FilaAdmin/MoveOwner": _ADMIN,
    "FilaAdmin/RemoveNode": _ADMIN,
    "FilaAdmin/UpgradeGroup": _ADMIN,
    "FilaSink/OpenSink": _SINK,
    "FilaSink/Stage": Need(PRODUCE, "queue"),
    "FilaSink/Publish": _SINK,
    "FilaSink/Drop": _SINK,
    "FilaSink/ListSinks": _ADMIN,
    "FilaAuth/CreateKey": _ADMIN,
    "FilaAuth/ListPrincipals": _ADMIN,
    "FilaAuth/GetPrincipal": Need(NOTHING, any_key=True, for_tenant=True),
    "FilaAuth/RotateKey": _ADMIN,
    "FilaAuth/RevokeKey": _ADMIN,
    "FilaAuth/Grant": _ADMIN,
    "FilaAuth/RevokeGrant": _ADMIN,
    "FilaAuth/SetQuotas": _ADMIN,
    "FilaAuth/ForgetPrincipal": _ADMIN,
    "FilaAuth/CreateTenantLink": _MANAGE,
    "FilaAuth/ListTenantLinks": Need(MANAGE, "queue", filtered=True),
    "FilaAuth/RevokeTenantLink": _MANAGE,
    "FilaAuth/ListAudit": _ADMIN,
    "FilaAuth/WhoAmI": Need(NOTHING, any_key=True, for_tenant=True),
}

REDIS: dict[str, Need] = {
    "RPUSH": Need(PRODUCE, "1", by_core=True, for_tenant=True),
    "HMGET": Need(CONSUME, "1", "2", by_core=True),
    "HDEL": Need(CONSUME, "1", "2", by_core=True),
    "HMSET": Need(MANAGE, "1"),
    "SET": Need(MANAGE, "1", creates=True),
    "SETNX": Need(MANAGE, "1", creates=True),
    "DEL": Need(MANAGE, "1"),
    "SREM": Need(MANAGE, "1"),
    "INFO": Need(NOTHING, any_key=True, for_tenant=True),
    "ROLE": Need(NOTHING, any_key=True, for_tenant=True),
    "SENTINEL": Need(NOTHING, any_key=True, for_tenant=True),
    "SUBSCRIBE": Need(NOTHING, any_key=True, for_tenant=True),
    "UNSUBSCRIBE": Need(NOTHING, any_key=True, for_tenant=True),
    "CONFIG": _ADMIN,
    "COMMAND": Need(NOTHING, any_key=True, for_tenant=True),
    "HELLO": Need(NOTHING),
    "AUTH": Need(NOTHING),
    "SELECT": Need(NOTHING, any_key=True, for_tenant=True),
    "CLIENT": Need(NOTHING, any_key=True, for_tenant=True),
    "PING": Need(NOTHING, any_key=True, for_tenant=True),
    "ECHO": Need(NOTHING, any_key=True, for_tenant=True),
    "RESET": Need(NOTHING, any_key=True, for_tenant=True),
    "QUIT": Need(NOTHING),
}


def page_rows() -> list[str]:
    """The rows of the table in docs/security.md."""
    rows = ["| Call | Needs | On | A tenant's key |", "|---|---|---|---|"]
    for name, need in [*RPCS.items(), *((f"Redis {name}", need) for name, need in REDIS.items())]:
        place = "its argument" if need.queue == "1" else f"`{need.queue}`" if need.queue else ""
        if need.filtered:
            place = f"{place}; without one, each the answer speaks of"
        rows.append(f"| `{name}` | {need.words} | {place} | {'yes' if need.for_tenant else 'no'} |")
    return rows
