# Generated from proto/ by `make gen`; do not edit.
from fila.v1 import limit_pb2 as _limit_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
DISK_LEVEL_FLOOR: DiskLevel
DISK_LEVEL_FULL: DiskLevel
DISK_LEVEL_OK: DiskLevel
DISK_LEVEL_UNSPECIFIED: DiskLevel

class ChannelConsumers(_message.Message):
    __slots__ = ["at_quota", "begun", "count", "held", "waiting_pulls", "window", "with_room"]
    AT_QUOTA_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    WAITING_PULLS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    WITH_ROOM_FIELD_NUMBER: _ClassVar[int]
    at_quota: int
    begun: int
    count: int
    held: int
    waiting_pulls: int
    window: int
    with_room: int
    def __init__(self, count: _Optional[int] = ..., with_room: _Optional[int] = ..., waiting_pulls: _Optional[int] = ..., window: _Optional[int] = ..., held: _Optional[int] = ..., begun: _Optional[int] = ..., at_quota: _Optional[int] = ...) -> None: ...

class DropDeadLettersRequest(_message.Message):
    __slots__ = ["dlq_queue", "offsets"]
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    offsets: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, dlq_queue: _Optional[str] = ..., offsets: _Optional[_Iterable[int]] = ...) -> None: ...

class DropDeadLettersResponse(_message.Message):
    __slots__ = ["dropped"]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    dropped: int
    def __init__(self, dropped: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ["at", "channel", "count", "details", "fairness_key", "kind", "peer", "position", "principal", "queue"]
    class DetailsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AT_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    channel: str
    count: int
    details: _containers.ScalarMap[str, str]
    fairness_key: str
    kind: str
    peer: str
    position: int
    principal: str
    queue: str
    def __init__(self, position: _Optional[int] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[str] = ..., queue: _Optional[str] = ..., channel: _Optional[str] = ..., fairness_key: _Optional[str] = ..., principal: _Optional[str] = ..., peer: _Optional[str] = ..., count: _Optional[int] = ..., details: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Forecast(_message.Message):
    __slots__ = ["earliest_ms", "latest_ms", "likely_ms", "unknown"]
    class Unknown(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    EARLIEST_MS_FIELD_NUMBER: _ClassVar[int]
    LATEST_MS_FIELD_NUMBER: _ClassVar[int]
    LIKELY_MS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_DELAYED: Forecast.Unknown
    UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_NOTHING_PENDING: Forecast.Unknown
    UNKNOWN_NOT_WATCHED: Forecast.Unknown
    UNKNOWN_NO_CONSUMER: Forecast.Unknown
    UNKNOWN_NO_TOKENS: Forecast.Unknown
    UNKNOWN_PAUSED: Forecast.Unknown
    UNKNOWN_UNSPECIFIED: Forecast.Unknown
    earliest_ms: int
    latest_ms: int
    likely_ms: int
    unknown: Forecast.Unknown
    def __init__(self, earliest_ms: _Optional[int] = ..., likely_ms: _Optional[int] = ..., latest_ms: _Optional[int] = ..., unknown: _Optional[_Union[Forecast.Unknown, str]] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ["fairness_key", "max_troubles", "queue"]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_TROUBLES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    max_troubles: int
    queue: str
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., max_troubles: _Optional[int] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ["commit", "consumers", "cpu_ms", "cpus", "data_dir", "disk_free_bytes", "disk_level", "draining", "epochs", "leases", "lost_messages", "lost_ranges", "memory_bytes", "memory_bytes_max", "more_troubles", "outstanding_calls", "queues", "started_at", "syncs", "troubles", "version", "well"]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_FIELD_NUMBER: _ClassVar[int]
    DATA_DIR_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_LEVEL_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    LOST_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    LOST_RANGES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    MORE_TROUBLES_FIELD_NUMBER: _ClassVar[int]
    OUTSTANDING_CALLS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    SYNCS_FIELD_NUMBER: _ClassVar[int]
    TROUBLES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WELL_FIELD_NUMBER: _ClassVar[int]
    commit: str
    consumers: int
    cpu_ms: int
    cpus: int
    data_dir: str
    disk_free_bytes: int
    disk_level: DiskLevel
    draining: bool
    epochs: int
    leases: int
    lost_messages: int
    lost_ranges: int
    memory_bytes: int
    memory_bytes_max: int
    more_troubles: int
    outstanding_calls: int
    queues: int
    started_at: _timestamp_pb2.Timestamp
    syncs: int
    troubles: _containers.RepeatedCompositeFieldContainer[Trouble]
    version: str
    well: str
    def __init__(self, version: _Optional[str] = ..., commit: _Optional[str] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., data_dir: _Optional[str] = ..., disk_level: _Optional[_Union[DiskLevel, str]] = ..., disk_free_bytes: _Optional[int] = ..., epochs: _Optional[int] = ..., syncs: _Optional[int] = ..., consumers: _Optional[int] = ..., queues: _Optional[int] = ..., leases: _Optional[int] = ..., outstanding_calls: _Optional[int] = ..., lost_ranges: _Optional[int] = ..., lost_messages: _Optional[int] = ..., draining: bool = ..., cpu_ms: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., cpus: _Optional[int] = ..., memory_bytes_max: _Optional[int] = ..., troubles: _Optional[_Iterable[_Union[Trouble, _Mapping]]] = ..., more_troubles: _Optional[int] = ..., well: _Optional[str] = ...) -> None: ...

class KeyPolicy(_message.Message):
    __slots__ = ["burst", "cap_by_default", "committed_by_default", "committed_per_second", "effective_weight", "fairness_key", "in_flight", "max_in_flight", "pause", "paused", "pending", "rate_by_default", "rate_per_second", "weight"]
    BURST_FIELD_NUMBER: _ClassVar[int]
    CAP_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RATE_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    burst: float
    cap_by_default: bool
    committed_by_default: bool
    committed_per_second: float
    effective_weight: int
    fairness_key: str
    in_flight: int
    max_in_flight: int
    pause: Pause
    paused: bool
    pending: int
    rate_by_default: bool
    rate_per_second: float
    weight: int
    def __init__(self, fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., paused: bool = ..., max_in_flight: _Optional[int] = ..., effective_weight: _Optional[int] = ..., pending: _Optional[int] = ..., in_flight: _Optional[int] = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ..., cap_by_default: bool = ..., rate_by_default: bool = ..., pause: _Optional[_Union[Pause, _Mapping]] = ..., committed_per_second: _Optional[float] = ..., committed_by_default: bool = ...) -> None: ...

class LateKey(_message.Message):
    __slots__ = ["blocking_bucket", "blocking_part", "blocking_rate", "by_default", "cause", "channel", "fairness_key", "in_flight", "nobody_consumes", "pending", "queue", "since", "until", "waiting_ms", "weight"]
    class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BLOCKING_BUCKET_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_PART_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_RATE_FIELD_NUMBER: _ClassVar[int]
    BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    CAUSE_BEYOND_COMMITTED: LateKey.Cause
    CAUSE_CAPPED: LateKey.Cause
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_IN_ORDER: LateKey.Cause
    CAUSE_NOT_ITS_TURN: LateKey.Cause
    CAUSE_NO_CONSUMER: LateKey.Cause
    CAUSE_PAUSED: LateKey.Cause
    CAUSE_RATE_LIMITED: LateKey.Cause
    CAUSE_THROTTLED: LateKey.Cause
    CAUSE_UNSPECIFIED: LateKey.Cause
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    NOBODY_CONSUMES_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WAITING_MS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    blocking_bucket: str
    blocking_part: _limit_pb2.LimitPart
    blocking_rate: int
    by_default: bool
    cause: LateKey.Cause
    channel: str
    fairness_key: str
    in_flight: int
    nobody_consumes: bool
    pending: int
    queue: str
    since: _timestamp_pb2.Timestamp
    until: _timestamp_pb2.Timestamp
    waiting_ms: int
    weight: int
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., fairness_key: _Optional[str] = ..., cause: _Optional[_Union[LateKey.Cause, str]] = ..., blocking_bucket: _Optional[str] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., waiting_ms: _Optional[int] = ..., since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., pending: _Optional[int] = ..., in_flight: _Optional[int] = ..., weight: _Optional[int] = ..., by_default: bool = ..., blocking_part: _Optional[_Union[_limit_pb2.LimitPart, str]] = ..., blocking_rate: _Optional[int] = ..., nobody_consumes: bool = ...) -> None: ...

class ListKeyPoliciesRequest(_message.Message):
    __slots__ = ["after", "fairness_key", "queue"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    after: str
    fairness_key: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class ListKeyPoliciesResponse(_message.Message):
    __slots__ = ["policies"]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[KeyPolicy]
    def __init__(self, policies: _Optional[_Iterable[_Union[KeyPolicy, _Mapping]]] = ...) -> None: ...

class ListLateRequest(_message.Message):
    __slots__ = ["max_keys", "queue"]
    MAX_KEYS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    max_keys: int
    queue: str
    def __init__(self, queue: _Optional[str] = ..., max_keys: _Optional[int] = ...) -> None: ...

class ListLateResponse(_message.Message):
    __slots__ = ["keys", "waiting_keys"]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    WAITING_KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[LateKey]
    waiting_keys: int
    def __init__(self, keys: _Optional[_Iterable[_Union[LateKey, _Mapping]]] = ..., waiting_keys: _Optional[int] = ...) -> None: ...

class Pause(_message.Message):
    __slots__ = ["by", "comment", "since"]
    BY_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    by: str
    comment: str
    since: _timestamp_pb2.Timestamp
    def __init__(self, since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., by: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class ServedKey(_message.Message):
    __slots__ = ["cost", "fairness_key", "share"]
    COST_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    cost: float
    fairness_key: str
    share: float
    def __init__(self, fairness_key: _Optional[str] = ..., share: _Optional[float] = ..., cost: _Optional[float] = ...) -> None: ...

class ServedMeanwhile(_message.Message):
    __slots__ = ["keys", "others_share", "since"]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    OTHERS_SHARE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[ServedKey]
    others_share: float
    since: _timestamp_pb2.Timestamp
    def __init__(self, since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., keys: _Optional[_Iterable[_Union[ServedKey, _Mapping]]] = ..., others_share: _Optional[float] = ...) -> None: ...

class Trouble(_message.Message):
    __slots__ = ["channel", "command", "fairness_key", "kind", "lever", "queue", "since", "text", "throttle_key", "waiting"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_BUDGET_SPENT: Trouble.Kind
    KIND_CIRCUIT_OPEN: Trouble.Kind
    KIND_DAMAGED: Trouble.Kind
    KIND_DISK: Trouble.Kind
    KIND_FAILING: Trouble.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    KIND_FLOOD: Trouble.Kind
    KIND_LIMIT_BEHIND: Trouble.Kind
    KIND_LOST: Trouble.Kind
    KIND_NOBODY_CONSUMES: Trouble.Kind
    KIND_PAUSED: Trouble.Kind
    KIND_UNSPECIFIED: Trouble.Kind
    LEVER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEY_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    channel: str
    command: str
    fairness_key: str
    kind: Trouble.Kind
    lever: str
    queue: str
    since: _timestamp_pb2.Timestamp
    text: str
    throttle_key: str
    waiting: int
    def __init__(self, kind: _Optional[_Union[Trouble.Kind, str]] = ..., text: _Optional[str] = ..., since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., queue: _Optional[str] = ..., channel: _Optional[str] = ..., fairness_key: _Optional[str] = ..., throttle_key: _Optional[str] = ..., waiting: _Optional[int] = ..., lever: _Optional[str] = ..., command: _Optional[str] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ["after_position", "fairness_key", "follow", "kinds", "queue"]
    AFTER_POSITION_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    after_position: int
    fairness_key: str
    follow: bool
    kinds: _containers.RepeatedScalarFieldContainer[str]
    queue: str
    def __init__(self, queue: _Optional[str] = ..., kinds: _Optional[_Iterable[str]] = ..., fairness_key: _Optional[str] = ..., after_position: _Optional[int] = ..., follow: bool = ...) -> None: ...

class WatchEventsResponse(_message.Message):
    __slots__ = ["events", "next_position"]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_POSITION_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    next_position: int
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next_position: _Optional[int] = ...) -> None: ...

class DiskLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
