"""What admin requests must look like: one check a request, each error naming field and bound.

Queue configs have rules of their own, in rules.py.
"""

from __future__ import annotations

import re
from typing import Any

from fila.v1 import admin_pb2 as pb
from fila.v1 import operation_pb2, sink_pb2, version_pb2, watch_pb2
from fila_server.access.admission import Caller
from fila_server.config.load import settings_by_section
from fila_server.config.schema import Limits
from fila_server.config.sections import Sinks
from fila_server.errors import Invalid, LimitExceeded, PermissionDenied
from fila_server.operations import rules
from fila_server.operations.queue_numbers import QUEUES_REPORTED_MAX
from fila_server.operations.trouble_facts import ACKNOWLEDGED, acknowledged_ms

READ_LOG_BATCH_MAX = 10_000
PEEK_MESSAGES_MAX = 1_000
PAGE_MAX = 1_000
"""Of queues."""
STATS_KEYS_MAX = 10_000
REDRIVE_OFFSETS_MAX = 1_000
RUN_ID_BYTES_MAX = 128
SINKS_MAX = 1_000
SINK_KEEP_MS_MAX = 30 * 24 * 3600 * 1000
FOUND_KEYS_MAX = 256
VERSIONS_MAX = 100
DRY_RUN_MAX = 1_000
FILTER_TEXT_BYTES_MAX = 1024
DEATHS = ("max_attempts", "on_failure", "ttl", "rejected", "skipped")
"""Why a message may be a dead letter."""
COMMENT_BYTES_MAX = 1024
WATCHED_QUEUES_MAX = 20
WATCHED_KEYS_MAX = 50
"""Of a key's rate, in messages a second."""
KEY_RATE_MIN = 0.001
"""Of a redrive or an operation, in messages a second; slower than one in a quarter of an hour looks like one that
hangs."""
MASK_PATHS_MAX = 64
"""A QueueConfig has half as many fields, those of its parts included."""

_MEANT_AS_THROTTLE = re.compile(r"throttles?([.:].*)?", re.IGNORECASE | re.DOTALL)
_IS_THROTTLE = re.compile(r"throttle[.:]")
_IS_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

_OF_THE_FILE = frozenset(
    setting.name for settings in settings_by_section().values() for setting in settings.values()
)
"""What is set for the server before it starts, and not while it runs."""

_NANOS_MAX = 999_999_999
_SECONDS_MAX = 253_402_300_799
"""The last second of the year 9999, where google.protobuf.Timestamp ends."""


class AdminRules:
    """The checks, with the limits they check against."""

    def __init__(self, limits: Limits, attempts_max: int = Sinks.attempts_max) -> None:
        self._limits = limits
        self._attempts_max = attempts_max

    def nothing(self, request: Any) -> None:
        """For requests without fields."""

    def queue(self, request: Any) -> None:
        rules.check_name("queue", request.queue)

    def changed_queue(self, request: Any) -> None:
        """A queue that is about to be changed or deleted."""
        self.queue(request)
        if request.queue.startswith(rules.RESERVED_PREFIX):
            raise Invalid("queue", "is the broker's own and is not changed from outside")

    def update(self, request: pb.UpdateQueueRequest) -> None:
        """A queue that is about to be changed, and which of its settings."""
        self.changed_queue(request)
        self._bytes("comment", request.comment, COMMENT_BYTES_MAX)
        paths = len(request.update_mask.paths)
        if paths > MASK_PATHS_MAX:
            raise LimitExceeded("update_mask", f"must name at most {MASK_PATHS_MAX} fields, got {paths}")

    def view(self, request: Any) -> None:
        """A queue and, where they are given, a channel and a fairness key."""
        self.queue(request)
        if request.channel:
            rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)
        self._bytes("fairness_key", request.fairness_key, self._limits.fairness_key_bytes_max)

    def open_sink(self, request: sink_pb2.OpenSinkRequest) -> None:
        """A sink, and the run that it shall belong to."""
        rules.check_name("sink_id", request.sink_id)
        if not request.run_id:
            raise Invalid("run_id", "must be given: a name that no other run has, as a UUID")
        self._bytes("run_id", request.run_id, RUN_ID_BYTES_MAX)
        self._at_most("keep_ms", request.keep_ms, SINK_KEEP_MS_MAX)

    def sink_batch(self, request: sink_pb2.PublishRequest | sink_pb2.DropRequest) -> None:
        """A batch of a sink, and some of its attempts."""
        rules.check_name("sink_id", request.sink_id)
        if len(request.attempts) > self._attempts_max:
            raise LimitExceeded(
                "attempts", f"must be at most {self._attempts_max}, got {len(request.attempts)}"
            )

    def sinks(self, request: sink_pb2.ListSinksRequest) -> None:
        """A page of sinks."""
        for field in ("prefix", "after"):
            self._bytes(field, getattr(request, field), rules.NAME_BYTES_MAX)
        self._at_most("limit", request.limit, SINKS_MAX)

    def read_log(self, request: pb.ReadLogRequest) -> None:
        """A range of a queue's log."""
        self.queue(request)
        self._bytes("fairness_key", request.fairness_key, self._limits.fairness_key_bytes_max)
        self._at_most("max_batch", request.max_batch, READ_LOG_BATCH_MAX)

    def peek(self, request: pb.PeekMessagesRequest) -> None:
        self.view(request)
        self._at_most("max_messages", request.max_messages, PEEK_MESSAGES_MAX)

    def pending(self, request: pb.ListPendingRequest) -> None:
        self.view(request)
        self._at_most("max_messages", request.max_messages, PEEK_MESSAGES_MAX)

    def stats(self, request: pb.GetStatsRequest) -> None:
        self.queue(request)
        if request.channel:
            rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)
        self._at_most("max_keys", request.max_keys, STATS_KEYS_MAX)

    def consumers(self, request: pb.ListConsumersRequest) -> None:
        self.queue(request)
        if request.channel:
            rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)

    def redrive(self, request: pb.RedriveRequest) -> None:
        rules.check_name("dlq_queue", request.dlq_queue)
        _check_key_rate(request.rate_per_second)
        if len(request.offsets) > REDRIVE_OFFSETS_MAX:
            raise LimitExceeded(
                "offsets", f"must be at most {REDRIVE_OFFSETS_MAX}, got {len(request.offsets)}: ask in parts"
            )

    def drop_dead_letters(self, request: Any) -> None:
        rules.check_name("dlq_queue", request.dlq_queue)
        if not request.offsets or 0 in request.offsets:
            raise Invalid("offsets", "must name the dead letters to drop, by offsets from 1 on")
        if len(request.offsets) > REDRIVE_OFFSETS_MAX:
            raise LimitExceeded(
                "offsets", f"must be at most {REDRIVE_OFFSETS_MAX}, got {len(request.offsets)}: ask in parts"
            )

    def config_key(self, request: Any) -> None:
        if not request.key:
            raise Invalid("key", "must not be empty")
        self._bytes("key", request.key, self._limits.config_key_bytes_max)

    def set_config(self, request: pb.SetConfigRequest) -> None:
        self.config_key(request)
        self._bytes("value", request.value, self._limits.config_value_bytes_max)
        if request.value and request.key == ACKNOWLEDGED and not acknowledged_ms(request.value):
            raise Invalid(
                "value",
                "must be a moment up to which loss and damage are acknowledged, like 2026-03-02T14:01:24Z, got "
                f'"{request.value}"',
            )
        if request.value and request.key in _OF_THE_FILE:
            raise Invalid(
                "key",
                "must name a value for hooks, or a throttle: the server's own settings are read at its start, from "
                f'fila.toml, FILA_SECTION__KEY or a flag, and this would change nothing, got "{request.key}"',
            )
        # What starts with "throttle." or "throttle:" is the core's to judge; an empty value deletes what there is.
        if (
            request.value
            and _MEANT_AS_THROTTLE.fullmatch(request.key)
            and not _IS_THROTTLE.match(request.key)
        ):
            raise Invalid(
                "key",
                "looks like a throttle and would limit nothing: a throttle is throttle.<key>, or "
                f'throttle:<key>:rate and throttle:<key>:burst, got "{request.key}"',
            )

    def prefix(self, request: pb.ListConfigRequest) -> None:
        self._bytes("prefix", request.prefix, self._limits.config_key_bytes_max)

    def channel(self, request: Any) -> None:
        """A queue that is about to be changed, and one of its channels by name."""
        self.changed_queue(request)
        rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)

    def new_channel(self, request: pb.CreateChannelRequest) -> None:
        self.channel(request)
        if request.WhichOneof("start") == "time":
            self._moment("time", request.time)
        rules.check_idle("expires_after_idle_ms", request.expires_after_idle_ms)

    def seek(self, request: pb.SeekChannelRequest) -> None:
        self.changed_queue(request)
        if request.channel:
            rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)
        target = request.WhichOneof("target")
        if target is None:
            raise Invalid("target", "must be given: an offset or a time")
        if target == "time":
            self._moment("time", request.time)

    def key_policy(self, request: pb.SetKeyPolicyRequest) -> None:
        self.changed_queue(request)
        self._fairness_key(request.fairness_key)
        self._bytes("comment", request.comment, COMMENT_BYTES_MAX)
        self._at_most("weight", request.weight, rules.WEIGHT_MAX)
        rules.check_rate("rate_per_second", request.rate_per_second, rules.RATE_MIN)
        rules.check_rate("burst", request.burst, 1.0)
        rules.check_rate("committed_per_second", request.committed_per_second, rules.RATE_MIN)
        for field, own in (
            ("cap_by_default", ("max_in_flight",)),
            ("rate_by_default", ("rate_per_second", "burst")),
            ("committed_by_default", ("committed_per_second",)),
        ):
            if getattr(request, field) and any(request.HasField(name) for name in own):
                raise Invalid(field, f"goes without {' and '.join(own)}: the queue's default, or a number")

    def preview_key_policy(self, request: pb.PreviewKeyPolicyRequest) -> None:
        """A channel, and a change that could be made."""
        self.queue(request)
        if request.channel:
            rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)
        if request.policy.queue not in ("", request.queue):
            raise Invalid("policy.queue", "must be left out, or name the same queue")
        policy = pb.SetKeyPolicyRequest()
        policy.CopyFrom(request.policy)
        policy.queue = request.queue
        self.key_policy(policy)

    def watch_stats(self, request: watch_pb2.WatchStatsRequest) -> None:
        """Queues, and which of their keys."""
        if len(request.queues) > WATCHED_QUEUES_MAX:
            raise LimitExceeded("queues", f"must be at most {WATCHED_QUEUES_MAX}, got {len(request.queues)}")
        for i, queue in enumerate(request.queues):
            rules.check_name(f"queues[{i}]", queue)
        if request.keys and not request.queues:
            raise Invalid("keys", "go with queues: name those they are keys of")
        if request.order not in watch_pb2.WatchStatsRequest.Order.values():
            known = ", ".join(map(str, watch_pb2.WatchStatsRequest.Order.values()))
            raise Invalid("order", f"must be one of {known}, got {request.order}")
        self._at_most("top", request.top, WATCHED_KEYS_MAX if request.queues else QUEUES_REPORTED_MAX)
        self._watched_keys(request)

    def series(self, request: watch_pb2.GetSeriesRequest) -> None:
        """A queue, a channel, some of its keys."""
        self.queue(request)
        self._watched_keys(request)

    def _watched_keys(self, request: watch_pb2.WatchStatsRequest | watch_pb2.GetSeriesRequest) -> None:
        if request.channel:
            rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)
        if len(request.keys) > WATCHED_KEYS_MAX:
            raise LimitExceeded("keys", f"must be at most {WATCHED_KEYS_MAX}, got {len(request.keys)}")
        for i, key in enumerate(request.keys):
            if not key:
                raise Invalid(f"keys[{i}]", "must not be empty")
            self._bytes(f"keys[{i}]", key, self._limits.fairness_key_bytes_max)

    def dlq(self, name: str) -> None:
        rules.check_name("dlq_queue", name)

    def operation(self, request: operation_pb2.StartOperationRequest) -> None:
        """What to do with which dead letters, how fast."""
        self.dlq(request.dlq_queue)
        kinds = operation_pb2.StartOperationRequest
        if request.kind not in (kinds.KIND_REDRIVE, kinds.KIND_DELETE, kinds.KIND_PURGE):
            raise Invalid("kind", f"must be 1 (redrive), 2 (delete) or 3 (purge), got {request.kind}")
        _check_key_rate(request.rate_per_second)
        wanted = request.filter
        if request.kind == kinds.KIND_PURGE and wanted.ByteSize():
            raise Invalid("filter", "is not for a purge, which drops all: use delete (2)")
        self._bytes("filter.fairness_key", wanted.fairness_key, self._limits.fairness_key_bytes_max)
        self._bytes("filter.error", wanted.error, FILTER_TEXT_BYTES_MAX)
        if wanted.reason and wanted.reason not in DEATHS:
            raise Invalid("filter.reason", f"must be one of {', '.join(DEATHS)}, got {wanted.reason[:64]!r}")
        if wanted.source_channel:
            rules.check_name("filter.source_channel", wanted.source_channel, bytes_max=rules.NAME_BYTES_MAX)
        for field in ("died_from", "died_before"):
            if wanted.HasField(field):
                self._moment(f"filter.{field}", getattr(wanted, field))

    def edit(self, request: operation_pb2.EditDeadLetterRequest) -> None:
        """A dead letter, and what it shall be: within the limits of an enqueue."""
        self.dlq(request.dlq_queue)
        if not request.offset:
            raise Invalid("offset", "must name the dead letter, from 1 on")
        limits = self._limits
        if len(request.payload) > limits.payload_bytes_max:
            raise LimitExceeded(
                "payload", f"must be at most {limits.payload_bytes_max} bytes, got {len(request.payload)}"
            )
        if len(request.headers) > limits.headers_max:
            raise LimitExceeded(
                "headers", f"must be at most {limits.headers_max}, got {len(request.headers)}"
            )
        for name, value in sorted(request.headers.items()):
            if not name:
                raise Invalid(
                    "headers", "must have names, and one of them has none: name it, or leave it out"
                )
            self._bytes("headers key", name, limits.header_key_bytes_max)
            self._bytes(f"headers[{name[:64]!r}]", value, limits.header_value_bytes_max)
            if name.startswith("fila-"):
                raise Invalid("headers", f"that begin with fila- are the broker's own, got {name[:64]!r}")

    def dry_run(self, request: pb.DryRunPolicyRequest) -> None:
        self.queue(request)
        self._at_most("last", request.last, DRY_RUN_MAX)
        self._at_most("update_mask", len(request.update_mask.paths), MASK_PATHS_MAX)

    def versions(self, request: version_pb2.ListQueueVersionsRequest) -> None:
        self.queue(request)
        self._at_most("limit", request.limit, VERSIONS_MAX)

    def list_queues(self, request: pb.ListQueuesRequest) -> None:
        """What names begin with, or have in them, and how many of them."""
        self._bytes("prefix", request.prefix, rules.NAME_WITH_SUFFIX_BYTES_MAX)
        self._bytes("containing", request.containing, rules.NAME_WITH_SUFFIX_BYTES_MAX)
        self._bytes("page_token", request.page_token, rules.NAME_WITH_SUFFIX_BYTES_MAX)
        self._at_most("page_size", request.page_size, PAGE_MAX)

    def find_keys(self, request: watch_pb2.FindKeysRequest) -> None:
        """A queue, a channel, and how the keys begin."""
        self.queue(request)
        if request.channel:
            rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)
        self._bytes("prefix", request.prefix, self._limits.fairness_key_bytes_max)
        self._at_most("limit", request.limit, FOUND_KEYS_MAX)

    def explained_key(self, request: pb.ExplainKeyRequest | pb.SkipMessageRequest) -> None:
        self.view(request)
        self._fairness_key(request.fairness_key)

    def one_message(self, request: pb.GetMessageRequest) -> None:
        """One message of a channel, by its id or its dedup key."""
        self.queue(request)
        if request.channel:
            rules.check_name("channel", request.channel, bytes_max=rules.NAME_BYTES_MAX)
        if bool(request.message_id) == bool(request.dedup_key):
            raise Invalid("message_id", "must be given, or dedup_key, and not both")
        if request.message_id and not _IS_UUID.fullmatch(request.message_id):
            raise Invalid("message_id", f"must be a UUID of 36 characters, got {request.message_id[:64]!r}")
        self._bytes("dedup_key", request.dedup_key, self._limits.dedup_key_bytes_max)

    def _fairness_key(self, fairness_key: str) -> None:
        if not fairness_key:
            raise Invalid("fairness_key", "must not be empty")
        self._bytes("fairness_key", fairness_key, self._limits.fairness_key_bytes_max)

    def _bytes(self, field: str, text: str, bytes_max: int) -> None:
        size = len(text.encode())
        if size > bytes_max:
            raise LimitExceeded(field, f"must be at most {bytes_max} bytes, got {size}")

    def _at_most(self, field: str, value: int, most: int) -> None:
        if value > most:
            raise LimitExceeded(field, f"must be at most {most}, got {value}")

    def _moment(self, field: str, moment: Any) -> None:
        if not (0 <= moment.seconds <= _SECONDS_MAX and 0 <= moment.nanos <= _NANOS_MAX):
            raise Invalid(field, "must be a moment from 1970 to 9999")


def _check_key_rate(per_second: float) -> None:
    if per_second and not KEY_RATE_MIN <= per_second <= rules.RATE_MAX:
        raise Invalid(
            "rate_per_second",
            f"must be 0 (as fast as it goes), or from {KEY_RATE_MIN:g} to {rules.RATE_MAX:g}, got {per_second:g}",
        )


def check_own_key(caller: Caller, fairness_key: str) -> None:
    """A key that is bound to a tenant asks about that tenant only. Raises PermissionDenied."""
    if caller.tenant and fairness_key != caller.tenant:
        raise PermissionDenied(
            f'fairness_key: this key is bound to tenant "{caller.tenant}" and is told about no other'
        )
