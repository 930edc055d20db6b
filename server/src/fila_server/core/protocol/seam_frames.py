"""Frames that the edge and the core exchange and no client ever sees: failures, decisions, redrive pages, notices.

They are protobuf like everything that crosses the seam, so the core reads and writes them with
what it has, but they are no part of the wire contract: their fields may change with any
version. So they are declared here and not in `proto/`; `make gen` writes their numbers for the core
(core/protocol/seam.pxd).
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_BYTES, _UINT32, _UINT64, _DOUBLE, _BOOL = (
    _Field.TYPE_BYTES,
    _Field.TYPE_UINT32,
    _Field.TYPE_UINT64,
    _Field.TYPE_DOUBLE,
    _Field.TYPE_BOOL,
)
_PACKAGE = "fila.seam"
_REPEATED = "*"

# Texts are bytes: they were checked on their way in, and hooks want bytes.
_MESSAGES: dict[str, tuple[tuple[int, str, Any], ...]] = {
    "Header": ((1, "name", _BYTES), (2, "value", _BYTES)),
    "FailureEvent": (
        (1, "queue", _BYTES),
        (2, "channel", _BYTES),
        (3, "message_id", _BYTES),
        (4, "attempts", _UINT32),
        (5, "error", _BYTES),
        (6, "fairness_key", _BYTES),
        (7, "headers" + _REPEATED, "Header"),
    ),
    "Decision": ((1, "action", _UINT32), (2, "delay_ms", _UINT64)),
    "Routing": (
        (1, "offset", _UINT64),
        (2, "fairness_key", _BYTES),
        (3, "weight", _UINT32),
        (4, "cost", _DOUBLE),
        (5, "throttle_keys" + _REPEATED, _BYTES),
        (6, "has_throttle_keys", _BOOL),
        (7, "body", _BYTES),
    ),
    "RedrivePage": (
        (1, "dlq_queue", _BYTES),
        (2, "count", _UINT32),
        (4, "up_to_offset", _UINT64),
        (5, "after_offset", _UINT64),
        (7, "only_routed", _BOOL),
        (8, "drop", _BOOL),
        (15, "routings" + _REPEATED, "Routing"),
    ),
    "WaitingLongestPage": (
        (1, "queue", _BYTES),
        (2, "cursor", _UINT32),
        (3, "most", _UINT32),
        (4, "capacity", _UINT64),
        # Given: only keys that wait longer.
        (5, "above_ms", _UINT64),
        # Given: only this channel's.
        (6, "channel", _BYTES),
    ),
    # GetStatsRequest's fields, and whether the walks over all keys are left out, with all that they find.
    "StatsAsked": (
        (1, "queue", _BYTES),
        (2, "channel", _BYTES),
        (3, "most", _UINT32),
        (4, "without_keys", _BOOL),
    ),
    # Some queues by their names; without any, all.
    "QueuesAsked": ((1, "names" + _REPEATED, _BYTES),),
    "PolicyPage": (
        (1, "queue", _BYTES),
        (2, "fairness_key", _BYTES),
        (3, "cursor", _UINT32),
        (4, "capacity", _UINT64),
    ),
    "PolicyPart": ((1, "policies" + _REPEATED, _BYTES), (2, "cursor", _UINT32), (4, "capacity", _UINT64)),
    # What GET_STATS adds to a GetStatsResponse: its keys are to be walked over, STATS_PAGE by STATS_PAGE.
    "StatsLeft": ((100, "keys_left", _BOOL),),
    "StatsPage": (
        (1, "queue", _BYTES),
        (2, "channel", _BYTES),
        (3, "most", _UINT32),
        (4, "cursor", _UINT32),
        (5, "capacity", _UINT64),
        (6, "least", _UINT64),
    ),
    "StatsPart": (
        (1, "active", _UINT64),
        (4, "cursor", _UINT32),
        (5, "capacity", _UINT64),
        (6, "keys" + _REPEATED, _BYTES),
        (7, "buckets" + _REPEATED, _BYTES),
    ),
    "WaitingLongestKeys": (
        (1, "keys" + _REPEATED, _BYTES),
        (2, "cursor", _UINT32),
        (3, "waiting" + _REPEATED, "WaitingLongestChannel"),
        (4, "capacity", _UINT64),
    ),
    "FindPage": (
        (1, "queue", _BYTES),
        (2, "channel", _BYTES),
        (3, "cursor", _UINT32),
        (4, "capacity", _UINT64),
        (5, "prefix", _BYTES),
        (6, "most", _UINT32),
        # Given: not those with most pending, but those from whose turns a rival takes most.
        (7, "rival_work", _DOUBLE),
        (8, "rival_grant_before", _DOUBLE),
        (9, "rival_grant_after", _DOUBLE),
    ),
    "WatchPage": (
        (1, "queue", _BYTES),
        (2, "channel", _BYTES),
        (3, "cursor", _UINT32),
        (4, "capacity", _UINT64),
        (5, "cells", _UINT32),
        (6, "most", _UINT32),
        (7, "orders", _UINT32),
        (8, "keys" + _REPEATED, _BYTES),
        (9, "slice_only", _BOOL),
    ),
    "KeyRows": (
        (1, "keys" + _REPEATED, _BYTES),
        (2, "cursor", _UINT32),
        (3, "matched", _UINT64),
        (4, "capacity", _UINT64),
        (5, "ranks" + _REPEATED, _UINT64),
    ),
    "WatchedRows": (
        (1, "keys" + _REPEATED, _BYTES),
        (2, "cursor", _UINT32),
        (3, "channel", _BYTES),
        (4, "capacity", _UINT64),
    ),
    # What may trouble somebody (core/admin/troubles.pyx). `part`: 0 of the queues, 1 of the buckets.
    "TroublesPage": ((1, "part", _UINT32), (2, "cursor", _UINT32), (3, "capacity", _UINT64)),
    "UnservedRow": (
        (1, "queue", _BYTES),
        (2, "channel", _BYTES),
        (3, "ready", _UINT64),
        (4, "delivered", _UINT64),
    ),
    "PausedRow": (
        (1, "queue", _BYTES),
        (2, "fairness_key", _BYTES),
        (3, "ready", _UINT64),
        # Not one of its keys or channels, but the queue.
        (4, "is_queue", _BOOL),
        (5, "channel", _BYTES),
    ),
    # Counts, and what they were when the failures of late began, so many milliseconds ago.
    "FailingRow": (
        (1, "queue", _BYTES),
        (2, "acked", _UINT64),
        (3, "failed", _UINT64),
        (4, "dead", _UINT64),
        (5, "acked_before", _UINT64),
        (6, "failed_before", _UINT64),
        (7, "dead_before", _UINT64),
        (8, "began_ago_ms", _UINT64),
        (9, "ready", _UINT64),
    ),
    "LimitPlace": ((1, "queue", _BYTES), (2, "channel", _BYTES), (3, "messages", _UINT64)),
    "LimitRow": (
        (1, "throttle_key", _BYTES),
        (2, "rate", _DOUBLE),
        (3, "burst", _DOUBLE),
        (4, "passed", _UINT64),
        (5, "messages", _UINT64),
        (6, "places" + _REPEATED, "LimitPlace"),
        # It is more than one rate in messages; then what holds its first message, a fila.v1.LimitPart.
        (7, "is_compound", _BOOL),
        (8, "part", _UINT32),
        (9, "slots", _UINT32),
        # Its budget, and when the period ends.
        (10, "amount", _DOUBLE),
        (11, "in_cost", _BOOL),
        (12, "period_ms", _UINT64),
        (13, "ends_ms", _UINT64),
    ),
    "TroublesFound": (
        (1, "unserved" + _REPEATED, "UnservedRow"),
        (2, "paused" + _REPEATED, "PausedRow"),
        (3, "failing" + _REPEATED, "FailingRow"),
        (4, "limits" + _REPEATED, "LimitRow"),
        (5, "cursor", _UINT32),
        (6, "capacity", _UINT64),
    ),
    "StoredPage": ((1, "keys" + _REPEATED, _BYTES), (2, "cursor", _UINT32)),
    "StoredBytes": ((1, "stored" + _REPEATED, _UINT64), (2, "cursor", _UINT32), (3, "capacity", _UINT64)),
    "Holder": ((1, "principal", _UINT64), (2, "most", _UINT32)),
    "Holders": ((1, "holders" + _REPEATED, "Holder"),),
    "HeldRow": ((1, "in_flight", _UINT64), (2, "refused", _UINT64)),
    "Held": ((1, "rows" + _REPEATED, "HeldRow"),),
    "MetricsAsked": ((1, "without_keys", _BOOL), (2, "without_queues", _BOOL)),
    "SeekPart": (
        (1, "queue", _BYTES),
        (2, "channel", _BYTES),
        (3, "offset", _UINT64),
        (4, "time", _BYTES),
        (5, "from_offset", _UINT64),
    ),
    "SeekCount": (
        (1, "offset", _UINT64),
        (2, "replayed", _UINT64),
        (3, "skipped", _UINT64),
        (4, "leases", _UINT64),
        (5, "from_offset", _UINT64),
    ),
    "OperationRecordsChange": (
        (12, "prefixes" + _REPEATED, _BYTES),
        (13, "records" + _REPEATED, "AccessRecord"),
    ),
    # One message of a schedule, and what becomes of the schedule with it. `due_ms` is the moment that it stands for.
    "Firing": (
        (1, "schedule", _BYTES),
        # An EnqueueBatchRequest of one message.
        (2, "batch", _BYTES),
        (3, "due_ms", _UINT64),
        (4, "next_ms", _UINT64),
        # The record that follows, which says `next_ms`, too.
        (5, "record", _BYTES),
    ),
    # A schedule is made, changed, or gone. The fields of an OperationRecordsChange follow.
    "ScheduleChange": (
        (1, "queue", _BYTES),
        (2, "schedule", _BYTES),
        (3, "due_ms", _UINT64),
        (4, "gone", _BOOL),
    ),
    # The record of a schedule's next moment; the core reads the first field. 0 = none.
    "ScheduleDue": (
        (1, "due_ms", _UINT64),
        (2, "last_ms", _UINT64),
        (3, "fired", _UINT64),
        (4, "missed", _UINT64),
    ),
    "OperationRecordsPage": ((1, "prefix", _BYTES), (2, "below", _BYTES), (3, "most", _UINT32)),
    "OperationRecords": ((1, "records" + _REPEATED, "AccessRecord"),),
    "WaitingLongestChannel": ((1, "channel", _BYTES), (2, "count", _UINT64)),
    # What EXPLAIN_KEY adds when it is asked for (core/admin/forecast.pyx). Costs are in thousandths.
    "Rivals": ((1, "weight", _DOUBLE), (2, "work", _DOUBLE)),
    "Consumers": (
        (1, "count", _UINT64),
        (2, "with_room", _UINT64),
        (3, "waiting_pulls", _UINT64),
        (4, "window", _UINT64),
        (5, "held", _UINT64),
        (6, "begun", _UINT64),
        (7, "at_quota", _UINT64),
    ),
    "Waiters": (
        (1, "rate", _DOUBLE),
        (2, "level", _DOUBLE),
        (3, "channels", _UINT64),
        (4, "weight", _DOUBLE),
        (5, "before_its_turn", _DOUBLE),
        (6, "rounds_to_save", _UINT64),
        (7, "own", _UINT64),
        (8, "rivals" + _REPEATED, "Rivals"),
        (9, "apart", "Rivals"),
        (10, "apart_before", _DOUBLE),
    ),
    "Forecast": (
        (1, "backlog", _UINT64),
        (2, "weight", _UINT32),
        (3, "cap", _UINT32),
        (4, "head_cost", _UINT64),
        (5, "mean_cost", _DOUBLE),
        (6, "before_its_turn", _DOUBLE),
        (7, "rounds_to_save", _UINT64),
        (8, "rivals" + _REPEATED, "Rivals"),
        (9, "consumers", "Consumers"),
        (10, "waiters", "Waiters"),
        (11, "quantum", _UINT64),
        (12, "served", _UINT64),
        (13, "usual_cost", _DOUBLE),
        (14, "ready", _UINT64),
        (15, "key_rate", _DOUBLE),
        (16, "key_level", _DOUBLE),
        (17, "weight_by_policy", _UINT32),
        (18, "key_burst", _DOUBLE),
        (19, "apart", "Rivals"),
        (20, "apart_before", _DOUBLE),
        (21, "committed_rate", _DOUBLE),
        (22, "committed_level", _DOUBLE),
        (23, "others_committed", _DOUBLE),
    ),
    "ExplainKey": (
        (1, "queue", _BYTES),
        (2, "channel", _BYTES),
        (3, "fairness_key", _BYTES),
        (4, "apart", _BYTES),
        (15, "with_forecast", _BOOL),
    ),
    "Explained": ((100, "forecast", "Forecast"),),
    "Notice": (
        (1, "what", _UINT32),
        (2, "queue", _BYTES),
        (3, "channel", _BYTES),
        (4, "number", _UINT64),
        (5, "unreported", _UINT64),
    ),
    # What Python adds behind an operator's request: it is written with the change, to the log of what operators did.
    "Audited": ((14, "audit", _BYTES),),
    # What the edge adds behind a request that opens a consumer: its principal, how many messages may be in flight
    # with all of that principal's, and its address.
    "Opener": ((13, "most", _UINT32), (14, "principal", _UINT64), (15, "peer", _BYTES)),
    # What is added behind a CancelMessagesRequest or a GetMessageRequest: the tenant that its caller's key is bound to;
    # empty: to none.
    "Canceller": ((15, "tenant", _BYTES),),
    "AccessRecord": ((1, "key", _BYTES), (2, "value", _BYTES)),
    "AccessChange": (
        (1, "records" + _REPEATED, "AccessRecord"),
        (2, "marker", _BYTES),
        (3, "anew", _BOOL),
        (14, "audit", _BYTES),
    ),
    "AuditPage": ((1, "below", _UINT64), (2, "most", _UINT64)),
    "AuditRecord": ((1, "number", _UINT64), (2, "at_ms", _UINT64), (3, "what", _BYTES)),
    "AuditRecords": ((1, "records" + _REPEATED, "AuditRecord"),),
    "RedrivenPage": (
        (1, "moved", _UINT64),
        (2, "stuck", _UINT64),
        (3, "last_offset", _UINT64),
        (4, "message_id", _BYTES),
    ),
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    # proto2, because whether a delay or a weight was given matters as much as its value.
    file = descriptor_pb2.FileDescriptorProto(
        name="fila/seam_frames.proto", package=_PACKAGE, syntax="proto2"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for number, name, kind in fields:
            repeated = name.endswith(_REPEATED)
            field = message.field.add(
                number=number,
                name=name.removesuffix(_REPEATED),
                label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL,
            )
            if isinstance(kind, str):
                field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                field.type = kind
    return file


FILE: Final = _file()


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(FILE)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_classes_by_name = _classes()
FailureEvent: Final[Any] = _classes_by_name["FailureEvent"]
Decision: Final[Any] = _classes_by_name["Decision"]
Notice: Final[Any] = _classes_by_name["Notice"]
RedrivePage: Final[Any] = _classes_by_name["RedrivePage"]
ExplainKey: Final[Any] = _classes_by_name["ExplainKey"]
Explained: Final[Any] = _classes_by_name["Explained"]
WaitingLongestPage: Final[Any] = _classes_by_name["WaitingLongestPage"]
WaitingLongestKeys: Final[Any] = _classes_by_name["WaitingLongestKeys"]
StatsAsked: Final[Any] = _classes_by_name["StatsAsked"]
QueuesAsked: Final[Any] = _classes_by_name["QueuesAsked"]
PolicyPage: Final[Any] = _classes_by_name["PolicyPage"]
PolicyPart: Final[Any] = _classes_by_name["PolicyPart"]
StatsLeft: Final[Any] = _classes_by_name["StatsLeft"]
StatsPage: Final[Any] = _classes_by_name["StatsPage"]
StatsPart: Final[Any] = _classes_by_name["StatsPart"]
Audited: Final[Any] = _classes_by_name["Audited"]
Canceller: Final[Any] = _classes_by_name["Canceller"]
AccessChange: Final[Any] = _classes_by_name["AccessChange"]
FindPage: Final[Any] = _classes_by_name["FindPage"]
KeyRows: Final[Any] = _classes_by_name["KeyRows"]
WatchPage: Final[Any] = _classes_by_name["WatchPage"]
WatchedRows: Final[Any] = _classes_by_name["WatchedRows"]
TroublesPage: Final[Any] = _classes_by_name["TroublesPage"]
TroublesFound: Final[Any] = _classes_by_name["TroublesFound"]
StoredPage: Final[Any] = _classes_by_name["StoredPage"]
StoredBytes: Final[Any] = _classes_by_name["StoredBytes"]
Holders: Final[Any] = _classes_by_name["Holders"]
Held: Final[Any] = _classes_by_name["Held"]
MetricsAsked: Final[Any] = _classes_by_name["MetricsAsked"]
SeekPart: Final[Any] = _classes_by_name["SeekPart"]
SeekCount: Final[Any] = _classes_by_name["SeekCount"]
Firing: Final[Any] = _classes_by_name["Firing"]
ScheduleChange: Final[Any] = _classes_by_name["ScheduleChange"]
ScheduleDue: Final[Any] = _classes_by_name["ScheduleDue"]
OperationRecordsChange: Final[Any] = _classes_by_name["OperationRecordsChange"]
OperationRecordsPage: Final[Any] = _classes_by_name["OperationRecordsPage"]
OperationRecords: Final[Any] = _classes_by_name["OperationRecords"]
AuditPage: Final[Any] = _classes_by_name["AuditPage"]
AuditRecords: Final[Any] = _classes_by_name["AuditRecords"]
RedrivenPage: Final[Any] = _classes_by_name["RedrivenPage"]

BY_POLICY: Final = 0
RETRY: Final = 1
DEAD_LETTER: Final = 2
