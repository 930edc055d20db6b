# Generated from proto/ by `make gen`; do not edit.
from fila.v1 import cluster_pb2 as _cluster_pb2
from fila.v1 import events_pb2 as _events_pb2
from fila.v1 import limit_pb2 as _limit_pb2
from fila.v1 import messages_pb2 as _messages_pb2
from fila.v1 import operation_pb2 as _operation_pb2
from fila.v1 import schedule_pb2 as _schedule_pb2
from fila.v1 import version_pb2 as _version_pb2
from fila.v1 import watch_pb2 as _watch_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

BREAKER_STATE_CLOSED: BreakerState
BREAKER_STATE_HALF_OPEN: BreakerState
BREAKER_STATE_OPEN: BreakerState
BREAKER_STATE_UNSPECIFIED: BreakerState
DESCRIPTOR: _descriptor.FileDescriptor
DURABILITY_FSYNC: Durability
DURABILITY_OS: Durability
DURABILITY_UNSPECIFIED: Durability
HOOK_FALLBACK_HOLD: HookFallback
HOOK_FALLBACK_POLICY: HookFallback
HOOK_FALLBACK_UNSPECIFIED: HookFallback
KEY_ORDER_RELAXED: KeyOrder
KEY_ORDER_STRICT: KeyOrder
KEY_ORDER_UNSPECIFIED: KeyOrder

class ChannelInfo(_message.Message):
    __slots__ = ["consumers", "created_at", "depth", "head_offset", "in_flight", "name", "pause", "paused", "replay_offset", "tail_offset"]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    HEAD_OFFSET_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    REPLAY_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TAIL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    consumers: int
    created_at: _timestamp_pb2.Timestamp
    depth: int
    head_offset: int
    in_flight: int
    name: str
    pause: _events_pb2.Pause
    paused: bool
    replay_offset: int
    tail_offset: int
    def __init__(self, name: _Optional[str] = ..., depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., tail_offset: _Optional[int] = ..., head_offset: _Optional[int] = ..., consumers: _Optional[int] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., replay_offset: _Optional[int] = ..., paused: bool = ..., pause: _Optional[_Union[_events_pb2.Pause, _Mapping]] = ...) -> None: ...

class ConfigEntry(_message.Message):
    __slots__ = ["key", "value"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class ConsumerInfo(_message.Message):
    __slots__ = ["at_quota", "away", "begun", "channel", "connected_at", "consumer_id", "handling_time_us", "held", "name", "peer", "returned_total", "tracks_begun", "window"]
    AT_QUOTA_FIELD_NUMBER: _ClassVar[int]
    AWAY_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_AT_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
    HANDLING_TIME_US_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    RETURNED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TRACKS_BEGUN_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    at_quota: bool
    away: bool
    begun: int
    channel: str
    connected_at: _timestamp_pb2.Timestamp
    consumer_id: int
    handling_time_us: int
    held: int
    name: str
    peer: str
    returned_total: int
    tracks_begun: bool
    window: int
    def __init__(self, consumer_id: _Optional[int] = ..., name: _Optional[str] = ..., peer: _Optional[str] = ..., channel: _Optional[str] = ..., held: _Optional[int] = ..., begun: _Optional[int] = ..., returned_total: _Optional[int] = ..., handling_time_us: _Optional[int] = ..., window: _Optional[int] = ..., tracks_begun: bool = ..., connected_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., away: bool = ..., at_quota: bool = ...) -> None: ...

class CreateChannelRequest(_message.Message):
    __slots__ = ["channel", "expires_after_idle_ms", "head", "offset", "oldest", "queue", "time"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AFTER_IDLE_MS_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    channel: str
    expires_after_idle_ms: int
    head: bool
    offset: int
    oldest: bool
    queue: str
    time: _timestamp_pb2.Timestamp
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., head: bool = ..., oldest: bool = ..., offset: _Optional[int] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expires_after_idle_ms: _Optional[int] = ...) -> None: ...

class CreateChannelResponse(_message.Message):
    __slots__ = ["start_offset"]
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    start_offset: int
    def __init__(self, start_offset: _Optional[int] = ...) -> None: ...

class CreateQueueRequest(_message.Message):
    __slots__ = ["config", "name"]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    config: QueueConfig
    name: str
    def __init__(self, name: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class CreateQueueResponse(_message.Message):
    __slots__ = ["adopted_dlq", "queue_id"]
    ADOPTED_DLQ_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    adopted_dlq: bool
    queue_id: str
    def __init__(self, queue_id: _Optional[str] = ..., adopted_dlq: bool = ...) -> None: ...

class DeleteChannelRequest(_message.Message):
    __slots__ = ["channel", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ...) -> None: ...

class DeleteChannelResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DeleteQueueRequest(_message.Message):
    __slots__ = ["force", "queue"]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    force: bool
    queue: str
    def __init__(self, queue: _Optional[str] = ..., force: bool = ...) -> None: ...

class DeleteQueueResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DryRunDeadLetter(_message.Message):
    __slots__ = ["action", "delay_ms", "error", "offset"]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    action: str
    delay_ms: int
    error: str
    offset: int
    def __init__(self, offset: _Optional[int] = ..., action: _Optional[str] = ..., delay_ms: _Optional[int] = ..., error: _Optional[str] = ...) -> None: ...

class DryRunMessage(_message.Message):
    __slots__ = ["after", "before", "error", "offset"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    after: DryRunRouting
    before: DryRunRouting
    error: str
    offset: int
    def __init__(self, offset: _Optional[int] = ..., before: _Optional[_Union[DryRunRouting, _Mapping]] = ..., after: _Optional[_Union[DryRunRouting, _Mapping]] = ..., error: _Optional[str] = ...) -> None: ...

class DryRunPolicyRequest(_message.Message):
    __slots__ = ["config", "last", "queue", "update_mask"]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    config: QueueConfig
    last: int
    queue: str
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, queue: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., last: _Optional[int] = ...) -> None: ...

class DryRunPolicyResponse(_message.Message):
    __slots__ = ["cut", "dead_letters", "messages", "retained"]
    CUT_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    RETAINED_FIELD_NUMBER: _ClassVar[int]
    cut: bool
    dead_letters: _containers.RepeatedCompositeFieldContainer[DryRunDeadLetter]
    messages: _containers.RepeatedCompositeFieldContainer[DryRunMessage]
    retained: int
    def __init__(self, messages: _Optional[_Iterable[_Union[DryRunMessage, _Mapping]]] = ..., dead_letters: _Optional[_Iterable[_Union[DryRunDeadLetter, _Mapping]]] = ..., retained: _Optional[int] = ..., cut: bool = ...) -> None: ...

class DryRunRouting(_message.Message):
    __slots__ = ["cost", "fairness_key", "priority", "throttle_keys", "weight"]
    COST_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEYS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    cost: float
    fairness_key: str
    priority: int
    throttle_keys: _containers.RepeatedScalarFieldContainer[str]
    weight: int
    def __init__(self, fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., cost: _Optional[float] = ..., throttle_keys: _Optional[_Iterable[str]] = ..., priority: _Optional[int] = ...) -> None: ...

class ExplainKeyRequest(_message.Message):
    __slots__ = ["channel", "fairness_key", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    fairness_key: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., fairness_key: _Optional[str] = ...) -> None: ...

class ExplainKeyResponse(_message.Message):
    __slots__ = ["behind_higher", "blocking_bucket", "blocking_part", "blocking_rate", "by_default", "consumers", "due_share", "head_forecast", "in_flight", "learned_per_second", "nobody_consumes", "oldest_age_ms", "pause", "pending", "refused_at", "returning_count", "returning_offset", "served_meanwhile", "share", "state", "tail_forecast", "until", "waits", "waits_for", "weight"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BEHIND_HIGHER_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_BUCKET_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_PART_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_RATE_FIELD_NUMBER: _ClassVar[int]
    BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    DUE_SHARE_FIELD_NUMBER: _ClassVar[int]
    HEAD_FORECAST_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    LEARNED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    NOBODY_CONSUMES_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    REFUSED_AT_FIELD_NUMBER: _ClassVar[int]
    RETURNING_COUNT_FIELD_NUMBER: _ClassVar[int]
    RETURNING_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SERVED_MEANWHILE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    STATE_BEYOND_COMMITTED: ExplainKeyResponse.State
    STATE_CAPPED: ExplainKeyResponse.State
    STATE_DELAYED: ExplainKeyResponse.State
    STATE_EMPTY: ExplainKeyResponse.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_HIGHER_FIRST: ExplainKeyResponse.State
    STATE_IN_ORDER: ExplainKeyResponse.State
    STATE_LEASED: ExplainKeyResponse.State
    STATE_NOT_ITS_TURN: ExplainKeyResponse.State
    STATE_NO_CONSUMER: ExplainKeyResponse.State
    STATE_PAUSED: ExplainKeyResponse.State
    STATE_RATE_LIMITED: ExplainKeyResponse.State
    STATE_SUCCEEDS: ExplainKeyResponse.State
    STATE_THROTTLED: ExplainKeyResponse.State
    STATE_UNSPECIFIED: ExplainKeyResponse.State
    TAIL_FORECAST_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    behind_higher: int
    blocking_bucket: str
    blocking_part: _limit_pb2.LimitPart
    blocking_rate: int
    by_default: bool
    consumers: _events_pb2.ChannelConsumers
    due_share: float
    head_forecast: _events_pb2.Forecast
    in_flight: int
    learned_per_second: float
    nobody_consumes: bool
    oldest_age_ms: int
    pause: _events_pb2.Pause
    pending: int
    refused_at: _timestamp_pb2.Timestamp
    returning_count: int
    returning_offset: int
    served_meanwhile: _events_pb2.ServedMeanwhile
    share: float
    state: ExplainKeyResponse.State
    tail_forecast: _events_pb2.Forecast
    until: _timestamp_pb2.Timestamp
    waits: _watch_pb2.WaitCauses
    waits_for: KeyHead
    weight: int
    def __init__(self, state: _Optional[_Union[ExplainKeyResponse.State, str]] = ..., blocking_bucket: _Optional[str] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., share: _Optional[float] = ..., due_share: _Optional[float] = ..., waits: _Optional[_Union[_watch_pb2.WaitCauses, _Mapping]] = ..., pending: _Optional[int] = ..., in_flight: _Optional[int] = ..., oldest_age_ms: _Optional[int] = ..., weight: _Optional[int] = ..., returning_offset: _Optional[int] = ..., returning_count: _Optional[int] = ..., served_meanwhile: _Optional[_Union[_events_pb2.ServedMeanwhile, _Mapping]] = ..., consumers: _Optional[_Union[_events_pb2.ChannelConsumers, _Mapping]] = ..., head_forecast: _Optional[_Union[_events_pb2.Forecast, _Mapping]] = ..., tail_forecast: _Optional[_Union[_events_pb2.Forecast, _Mapping]] = ..., by_default: bool = ..., waits_for: _Optional[_Union[KeyHead, _Mapping]] = ..., blocking_part: _Optional[_Union[_limit_pb2.LimitPart, str]] = ..., learned_per_second: _Optional[float] = ..., refused_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., pause: _Optional[_Union[_events_pb2.Pause, _Mapping]] = ..., blocking_rate: _Optional[int] = ..., behind_higher: _Optional[int] = ..., nobody_consumes: bool = ...) -> None: ...

class ForecastChange(_message.Message):
    __slots__ = ["after", "before"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    after: _events_pb2.Forecast
    before: _events_pb2.Forecast
    def __init__(self, before: _Optional[_Union[_events_pb2.Forecast, _Mapping]] = ..., after: _Optional[_Union[_events_pb2.Forecast, _Mapping]] = ...) -> None: ...

class GetConfigRequest(_message.Message):
    __slots__ = ["key"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class GetConfigResponse(_message.Message):
    __slots__ = ["value"]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: str
    def __init__(self, value: _Optional[str] = ...) -> None: ...

class GetMessageRequest(_message.Message):
    __slots__ = ["channel", "dedup_key", "message_id", "offset", "queue", "with_past"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DEDUP_KEY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WITH_PAST_FIELD_NUMBER: _ClassVar[int]
    channel: str
    dedup_key: str
    message_id: str
    offset: int
    queue: str
    with_past: bool
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., message_id: _Optional[str] = ..., dedup_key: _Optional[str] = ..., with_past: bool = ..., offset: _Optional[int] = ...) -> None: ...

class GetMessageResponse(_message.Message):
    __slots__ = ["attempts", "begun", "blocking_bucket", "blocking_part", "blocking_rate", "cause", "consumer_id", "consumer_name", "dead_letter", "enqueued_at", "fairness_key", "forecast", "last_error", "lease_expires_at", "leased_at", "message_id", "nobody_consumes", "offset", "past", "place", "place_is_estimated", "priority", "state", "until", "waits_for"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_BUCKET_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_PART_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_RATE_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_NAME_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    FORECAST_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LEASED_AT_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    NOBODY_CONSUMES_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PAST_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    PLACE_IS_ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    STATE_DEAD: GetMessageResponse.State
    STATE_DECIDING: GetMessageResponse.State
    STATE_DELAYED: GetMessageResponse.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_LEASED: GetMessageResponse.State
    STATE_NOT_KNOWN: GetMessageResponse.State
    STATE_UNSPECIFIED: GetMessageResponse.State
    STATE_WAITING: GetMessageResponse.State
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    begun: bool
    blocking_bucket: str
    blocking_part: _limit_pb2.LimitPart
    blocking_rate: int
    cause: ExplainKeyResponse.State
    consumer_id: int
    consumer_name: str
    dead_letter: _messages_pb2.DeadLetter
    enqueued_at: _timestamp_pb2.Timestamp
    fairness_key: str
    forecast: _events_pb2.Forecast
    last_error: str
    lease_expires_at: _timestamp_pb2.Timestamp
    leased_at: _timestamp_pb2.Timestamp
    message_id: str
    nobody_consumes: bool
    offset: int
    past: MessagePast
    place: int
    place_is_estimated: bool
    priority: int
    state: GetMessageResponse.State
    until: _timestamp_pb2.Timestamp
    waits_for: str
    def __init__(self, state: _Optional[_Union[GetMessageResponse.State, str]] = ..., message_id: _Optional[str] = ..., offset: _Optional[int] = ..., fairness_key: _Optional[str] = ..., enqueued_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[int] = ..., last_error: _Optional[str] = ..., place: _Optional[int] = ..., place_is_estimated: bool = ..., cause: _Optional[_Union[ExplainKeyResponse.State, str]] = ..., blocking_bucket: _Optional[str] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., forecast: _Optional[_Union[_events_pb2.Forecast, _Mapping]] = ..., consumer_id: _Optional[int] = ..., consumer_name: _Optional[str] = ..., leased_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., lease_expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., begun: bool = ..., dead_letter: _Optional[_Union[_messages_pb2.DeadLetter, _Mapping]] = ..., past: _Optional[_Union[MessagePast, _Mapping]] = ..., blocking_part: _Optional[_Union[_limit_pb2.LimitPart, str]] = ..., blocking_rate: _Optional[int] = ..., waits_for: _Optional[str] = ..., priority: _Optional[int] = ..., nobody_consumes: bool = ...) -> None: ...

class GetQueueRequest(_message.Message):
    __slots__ = ["queue"]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class GetQueueResponse(_message.Message):
    __slots__ = ["config", "created_at", "pause", "queue", "version"]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    config: QueueConfig
    created_at: _timestamp_pb2.Timestamp
    pause: _events_pb2.Pause
    queue: str
    version: int
    def __init__(self, queue: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[int] = ..., pause: _Optional[_Union[_events_pb2.Pause, _Mapping]] = ...) -> None: ...

class GetQueueVersionResponse(_message.Message):
    __slots__ = ["config", "version"]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    config: QueueConfig
    version: _version_pb2.QueueVersion
    def __init__(self, version: _Optional[_Union[_version_pb2.QueueVersion, _Mapping]] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ["channel", "max_keys", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    MAX_KEYS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    max_keys: int
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., max_keys: _Optional[int] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ["acked_total", "active_consumers", "active_fairness_keys", "breaker_state", "channels", "creation_id", "dead_lettered_total", "dead_letters_dropped_total", "delivered_total", "depth", "enqueued_total", "expired_total", "hard_dropped", "head_offset", "hook_errors", "hook_fallbacks", "hooks", "in_flight", "leader_node_id", "leased_total", "nacked_total", "oldest_age_ms", "oldest_lease_age_ms", "per_key_stats", "per_throttle_stats", "quantum", "replication_count", "retention", "returned_total", "stale_acks_total", "stored_bytes", "tail_offset", "totals_since", "ttl_dropped_total", "unbegun", "weights_clamped_total"]
    ACKED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FAIRNESS_KEYS_FIELD_NUMBER: _ClassVar[int]
    BREAKER_STATE_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    CREATION_ID_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_DROPPED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    HARD_DROPPED_FIELD_NUMBER: _ClassVar[int]
    HEAD_OFFSET_FIELD_NUMBER: _ClassVar[int]
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    HOOK_ERRORS_FIELD_NUMBER: _ClassVar[int]
    HOOK_FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    LEADER_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    LEASED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    NACKED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_LEASE_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PER_KEY_STATS_FIELD_NUMBER: _ClassVar[int]
    PER_THROTTLE_STATS_FIELD_NUMBER: _ClassVar[int]
    QUANTUM_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    RETURNED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STALE_ACKS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    TAIL_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TOTALS_SINCE_FIELD_NUMBER: _ClassVar[int]
    TTL_DROPPED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNBEGUN_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_CLAMPED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    acked_total: int
    active_consumers: int
    active_fairness_keys: int
    breaker_state: BreakerState
    channels: _containers.RepeatedCompositeFieldContainer[ChannelInfo]
    creation_id: str
    dead_lettered_total: int
    dead_letters_dropped_total: int
    delivered_total: int
    depth: int
    enqueued_total: int
    expired_total: int
    hard_dropped: int
    head_offset: int
    hook_errors: int
    hook_fallbacks: int
    hooks: _containers.RepeatedCompositeFieldContainer[HookStats]
    in_flight: int
    leader_node_id: int
    leased_total: int
    nacked_total: int
    oldest_age_ms: int
    oldest_lease_age_ms: int
    per_key_stats: _containers.RepeatedCompositeFieldContainer[PerFairnessKeyStats]
    per_throttle_stats: _containers.RepeatedCompositeFieldContainer[PerThrottleKeyStats]
    quantum: int
    replication_count: int
    retention: Retention
    returned_total: int
    stale_acks_total: int
    stored_bytes: int
    tail_offset: int
    totals_since: _timestamp_pb2.Timestamp
    ttl_dropped_total: int
    unbegun: int
    weights_clamped_total: int
    def __init__(self, depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., active_fairness_keys: _Optional[int] = ..., active_consumers: _Optional[int] = ..., quantum: _Optional[int] = ..., per_key_stats: _Optional[_Iterable[_Union[PerFairnessKeyStats, _Mapping]]] = ..., per_throttle_stats: _Optional[_Iterable[_Union[PerThrottleKeyStats, _Mapping]]] = ..., leader_node_id: _Optional[int] = ..., replication_count: _Optional[int] = ..., oldest_age_ms: _Optional[int] = ..., hook_fallbacks: _Optional[int] = ..., hard_dropped: _Optional[int] = ..., dead_lettered_total: _Optional[int] = ..., enqueued_total: _Optional[int] = ..., delivered_total: _Optional[int] = ..., acked_total: _Optional[int] = ..., nacked_total: _Optional[int] = ..., expired_total: _Optional[int] = ..., ttl_dropped_total: _Optional[int] = ..., head_offset: _Optional[int] = ..., tail_offset: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., stale_acks_total: _Optional[int] = ..., channels: _Optional[_Iterable[_Union[ChannelInfo, _Mapping]]] = ..., hook_errors: _Optional[int] = ..., breaker_state: _Optional[_Union[BreakerState, str]] = ..., weights_clamped_total: _Optional[int] = ..., unbegun: _Optional[int] = ..., returned_total: _Optional[int] = ..., dead_letters_dropped_total: _Optional[int] = ..., hooks: _Optional[_Iterable[_Union[HookStats, _Mapping]]] = ..., creation_id: _Optional[str] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., leased_total: _Optional[int] = ..., oldest_lease_age_ms: _Optional[int] = ..., totals_since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class HookStats(_message.Message):
    __slots__ = ["breaker_state", "errors", "fallbacks", "held", "hook", "ignored_fields", "last_error", "last_error_at", "last_error_headers", "log_lines", "log_lines_dropped", "runs"]
    class IgnoredFieldsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class LastErrorHeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    BREAKER_STATE_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    FALLBACKS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    HOOK_FIELD_NUMBER: _ClassVar[int]
    IGNORED_FIELDS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_HEADERS_FIELD_NUMBER: _ClassVar[int]
    LOG_LINES_DROPPED_FIELD_NUMBER: _ClassVar[int]
    LOG_LINES_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    breaker_state: BreakerState
    errors: int
    fallbacks: int
    held: int
    hook: str
    ignored_fields: _containers.ScalarMap[str, int]
    last_error: str
    last_error_at: _timestamp_pb2.Timestamp
    last_error_headers: _containers.ScalarMap[str, str]
    log_lines: int
    log_lines_dropped: int
    runs: int
    def __init__(self, hook: _Optional[str] = ..., runs: _Optional[int] = ..., errors: _Optional[int] = ..., fallbacks: _Optional[int] = ..., held: _Optional[int] = ..., breaker_state: _Optional[_Union[BreakerState, str]] = ..., last_error: _Optional[str] = ..., last_error_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., last_error_headers: _Optional[_Mapping[str, str]] = ..., ignored_fields: _Optional[_Mapping[str, int]] = ..., log_lines: _Optional[int] = ..., log_lines_dropped: _Optional[int] = ...) -> None: ...

class Intake(_message.Message):
    __slots__ = ["dedup_headers", "headers"]
    DEDUP_HEADERS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    dedup_headers: _containers.RepeatedScalarFieldContainer[str]
    headers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, headers: _Optional[_Iterable[str]] = ..., dedup_headers: _Optional[_Iterable[str]] = ...) -> None: ...

class KeyDefaults(_message.Message):
    __slots__ = ["burst", "committed_per_second", "max_in_flight", "rate_per_second"]
    BURST_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    burst: float
    committed_per_second: float
    max_in_flight: int
    rate_per_second: float
    def __init__(self, rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ..., max_in_flight: _Optional[int] = ..., committed_per_second: _Optional[float] = ...) -> None: ...

class KeyHead(_message.Message):
    __slots__ = ["attempts", "consumer_id", "consumer_name", "leased_at", "message_id", "offset", "retry_at"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_NAME_FIELD_NUMBER: _ClassVar[int]
    LEASED_AT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    consumer_id: int
    consumer_name: str
    leased_at: _timestamp_pb2.Timestamp
    message_id: str
    offset: int
    retry_at: _timestamp_pb2.Timestamp
    def __init__(self, message_id: _Optional[str] = ..., offset: _Optional[int] = ..., attempts: _Optional[int] = ..., leased_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., consumer_id: _Optional[int] = ..., consumer_name: _Optional[str] = ..., retry_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class KeyLoss(_message.Message):
    __slots__ = ["fairness_key", "pending", "tail"]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    pending: int
    tail: ForecastChange
    def __init__(self, fairness_key: _Optional[str] = ..., pending: _Optional[int] = ..., tail: _Optional[_Union[ForecastChange, _Mapping]] = ...) -> None: ...

class ListChannelsRequest(_message.Message):
    __slots__ = ["queue"]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ListChannelsResponse(_message.Message):
    __slots__ = ["channels"]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedCompositeFieldContainer[ChannelInfo]
    def __init__(self, channels: _Optional[_Iterable[_Union[ChannelInfo, _Mapping]]] = ...) -> None: ...

class ListConfigRequest(_message.Message):
    __slots__ = ["prefix"]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: _Optional[str] = ...) -> None: ...

class ListConfigResponse(_message.Message):
    __slots__ = ["entries", "total_count"]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ConfigEntry]
    total_count: int
    def __init__(self, entries: _Optional[_Iterable[_Union[ConfigEntry, _Mapping]]] = ..., total_count: _Optional[int] = ...) -> None: ...

class ListConsumersRequest(_message.Message):
    __slots__ = ["channel", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ...) -> None: ...

class ListConsumersResponse(_message.Message):
    __slots__ = ["consumers"]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    consumers: _containers.RepeatedCompositeFieldContainer[ConsumerInfo]
    def __init__(self, consumers: _Optional[_Iterable[_Union[ConsumerInfo, _Mapping]]] = ...) -> None: ...

class ListPendingRequest(_message.Message):
    __slots__ = ["after_offset", "before_offset", "channel", "fairness_key", "max_messages", "queue"]
    AFTER_OFFSET_FIELD_NUMBER: _ClassVar[int]
    BEFORE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    after_offset: int
    before_offset: int
    channel: str
    fairness_key: str
    max_messages: int
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., max_messages: _Optional[int] = ..., after_offset: _Optional[int] = ..., fairness_key: _Optional[str] = ..., before_offset: _Optional[int] = ...) -> None: ...

class ListPendingResponse(_message.Message):
    __slots__ = ["messages"]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[PendingMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[PendingMessage, _Mapping]]] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ["containing", "page_size", "page_token", "prefix"]
    CONTAINING_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    containing: str
    page_size: int
    page_token: str
    prefix: str
    def __init__(self, prefix: _Optional[str] = ..., containing: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ["cluster_node_count", "matched", "next_page_token", "queues", "tenant"]
    CLUSTER_NODE_COUNT_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    cluster_node_count: int
    matched: int
    next_page_token: str
    queues: _containers.RepeatedCompositeFieldContainer[QueueInfo]
    tenant: str
    def __init__(self, queues: _Optional[_Iterable[_Union[QueueInfo, _Mapping]]] = ..., cluster_node_count: _Optional[int] = ..., tenant: _Optional[str] = ..., next_page_token: _Optional[str] = ..., matched: _Optional[int] = ...) -> None: ...

class MessagePast(_message.Message):
    __slots__ = ["events", "missing", "more", "offset", "until"]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[PastEvent]
    missing: str
    more: bool
    offset: int
    until: _timestamp_pb2.Timestamp
    def __init__(self, missing: _Optional[str] = ..., events: _Optional[_Iterable[_Union[PastEvent, _Mapping]]] = ..., offset: _Optional[int] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., more: bool = ...) -> None: ...

class PastEvent(_message.Message):
    __slots__ = ["at", "attempts", "bucket", "consumer_id", "fairness_key", "held_ms", "kind", "reason", "waited_ms"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    HELD_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WAITED_MS_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    attempts: int
    bucket: str
    consumer_id: int
    fairness_key: str
    held_ms: int
    kind: str
    reason: str
    waited_ms: int
    def __init__(self, at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., kind: _Optional[str] = ..., fairness_key: _Optional[str] = ..., consumer_id: _Optional[int] = ..., bucket: _Optional[str] = ..., reason: _Optional[str] = ..., attempts: _Optional[int] = ..., held_ms: _Optional[int] = ..., waited_ms: _Optional[int] = ...) -> None: ...

class PeekMessagesRequest(_message.Message):
    __slots__ = ["after_offset", "channel", "fairness_key", "max_messages", "queue"]
    AFTER_OFFSET_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    after_offset: int
    channel: str
    fairness_key: str
    max_messages: int
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., max_messages: _Optional[int] = ..., after_offset: _Optional[int] = ..., fairness_key: _Optional[str] = ...) -> None: ...

class PeekMessagesResponse(_message.Message):
    __slots__ = ["messages"]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ...) -> None: ...

class PendingMessage(_message.Message):
    __slots__ = ["age_ms", "attempts", "cost", "due_at", "enqueued_at", "fairness_key", "message_id", "offset", "priority", "state"]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    age_ms: int
    attempts: int
    cost: float
    due_at: _timestamp_pb2.Timestamp
    enqueued_at: _timestamp_pb2.Timestamp
    fairness_key: str
    message_id: str
    offset: int
    priority: int
    state: GetMessageResponse.State
    def __init__(self, message_id: _Optional[str] = ..., offset: _Optional[int] = ..., fairness_key: _Optional[str] = ..., state: _Optional[_Union[GetMessageResponse.State, str]] = ..., enqueued_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., due_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[int] = ..., age_ms: _Optional[int] = ..., cost: _Optional[float] = ..., priority: _Optional[int] = ...) -> None: ...

class PerFairnessKeyStats(_message.Message):
    __slots__ = ["burst", "current_deficit", "delivered_total", "in_flight", "key", "max_in_flight", "oldest_age_ms", "paused", "pending_count", "rate_per_second", "served_cost_total", "throttled", "weight"]
    BURST_FIELD_NUMBER: _ClassVar[int]
    CURRENT_DEFICIT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    SERVED_COST_TOTAL_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    burst: float
    current_deficit: int
    delivered_total: int
    in_flight: int
    key: str
    max_in_flight: int
    oldest_age_ms: int
    paused: bool
    pending_count: int
    rate_per_second: float
    served_cost_total: float
    throttled: bool
    weight: int
    def __init__(self, key: _Optional[str] = ..., pending_count: _Optional[int] = ..., current_deficit: _Optional[int] = ..., weight: _Optional[int] = ..., in_flight: _Optional[int] = ..., oldest_age_ms: _Optional[int] = ..., delivered_total: _Optional[int] = ..., served_cost_total: _Optional[float] = ..., paused: bool = ..., max_in_flight: _Optional[int] = ..., throttled: bool = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ...) -> None: ...

class PerThrottleKeyStats(_message.Message):
    __slots__ = ["burst", "key", "rate_per_second", "tokens", "waiting"]
    BURST_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    burst: float
    key: str
    rate_per_second: float
    tokens: float
    waiting: int
    def __init__(self, key: _Optional[str] = ..., tokens: _Optional[float] = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ..., waiting: _Optional[int] = ...) -> None: ...

class PreviewKeyPolicyRequest(_message.Message):
    __slots__ = ["channel", "policy", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    policy: SetKeyPolicyRequest
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., policy: _Optional[_Union[SetKeyPolicyRequest, _Mapping]] = ...) -> None: ...

class PreviewKeyPolicyResponse(_message.Message):
    __slots__ = ["head", "losing", "pending", "tail", "weight_after", "weight_before"]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    LOSING_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_AFTER_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    head: ForecastChange
    losing: _containers.RepeatedCompositeFieldContainer[KeyLoss]
    pending: int
    tail: ForecastChange
    weight_after: int
    weight_before: int
    def __init__(self, head: _Optional[_Union[ForecastChange, _Mapping]] = ..., tail: _Optional[_Union[ForecastChange, _Mapping]] = ..., losing: _Optional[_Iterable[_Union[KeyLoss, _Mapping]]] = ..., pending: _Optional[int] = ..., weight_before: _Optional[int] = ..., weight_after: _Optional[int] = ...) -> None: ...

class PurgeChannelRequest(_message.Message):
    __slots__ = ["channel", "fairness_key", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    fairness_key: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., fairness_key: _Optional[str] = ...) -> None: ...

class PurgeChannelResponse(_message.Message):
    __slots__ = ["purged"]
    PURGED_FIELD_NUMBER: _ClassVar[int]
    purged: int
    def __init__(self, purged: _Optional[int] = ...) -> None: ...

class PurgeQueueRequest(_message.Message):
    __slots__ = ["channel", "fairness_key", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    fairness_key: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., channel: _Optional[str] = ...) -> None: ...

class PurgeQueueResponse(_message.Message):
    __slots__ = ["purged"]
    PURGED_FIELD_NUMBER: _ClassVar[int]
    purged: int
    def __init__(self, purged: _Optional[int] = ...) -> None: ...

class QueueConfig(_message.Message):
    __slots__ = ["allow_producer_routing", "channels", "cost_header", "dedup_window_ms", "disconnect_grace_ms", "durability", "expires_after_idle_ms", "fairness_key_header", "hook_fallback", "intake", "key_defaults", "key_limit", "key_order", "max_attempts", "max_bytes", "max_depth", "on_enqueue_script", "on_failure_script", "paused", "paused_channels", "priority_header", "retention", "retry", "throttle_key_headers", "ttl_to_dlq", "visibility_timeout_ms", "weight_header", "weights"]
    class WeightsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ALLOW_PRODUCER_ROUTING_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    COST_HEADER_FIELD_NUMBER: _ClassVar[int]
    DEDUP_WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    DISCONNECT_GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AFTER_IDLE_MS_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_HEADER_FIELD_NUMBER: _ClassVar[int]
    HOOK_FALLBACK_FIELD_NUMBER: _ClassVar[int]
    INTAKE_FIELD_NUMBER: _ClassVar[int]
    KEY_DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    KEY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    KEY_ORDER_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    ON_ENQUEUE_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    PAUSED_CHANNELS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_HEADER_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEY_HEADERS_FIELD_NUMBER: _ClassVar[int]
    TTL_TO_DLQ_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_HEADER_FIELD_NUMBER: _ClassVar[int]
    allow_producer_routing: bool
    channels: _containers.RepeatedScalarFieldContainer[str]
    cost_header: str
    dedup_window_ms: int
    disconnect_grace_ms: int
    durability: Durability
    expires_after_idle_ms: int
    fairness_key_header: str
    hook_fallback: HookFallback
    intake: Intake
    key_defaults: KeyDefaults
    key_limit: str
    key_order: KeyOrder
    max_attempts: int
    max_bytes: int
    max_depth: int
    on_enqueue_script: str
    on_failure_script: str
    paused: bool
    paused_channels: _containers.RepeatedScalarFieldContainer[str]
    priority_header: str
    retention: Retention
    retry: RetryPolicy
    throttle_key_headers: _containers.RepeatedScalarFieldContainer[str]
    ttl_to_dlq: bool
    visibility_timeout_ms: int
    weight_header: str
    weights: _containers.ScalarMap[str, int]
    def __init__(self, on_enqueue_script: _Optional[str] = ..., on_failure_script: _Optional[str] = ..., visibility_timeout_ms: _Optional[int] = ..., max_attempts: _Optional[int] = ..., durability: _Optional[_Union[Durability, str]] = ..., max_depth: _Optional[int] = ..., max_bytes: _Optional[int] = ..., fairness_key_header: _Optional[str] = ..., weight_header: _Optional[str] = ..., weights: _Optional[_Mapping[str, int]] = ..., cost_header: _Optional[str] = ..., throttle_key_headers: _Optional[_Iterable[str]] = ..., retry: _Optional[_Union[RetryPolicy, _Mapping]] = ..., hook_fallback: _Optional[_Union[HookFallback, str]] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., channels: _Optional[_Iterable[str]] = ..., dedup_window_ms: _Optional[int] = ..., ttl_to_dlq: bool = ..., disconnect_grace_ms: _Optional[int] = ..., expires_after_idle_ms: _Optional[int] = ..., paused: bool = ..., intake: _Optional[_Union[Intake, _Mapping]] = ..., key_order: _Optional[_Union[KeyOrder, str]] = ..., allow_producer_routing: bool = ..., key_limit: _Optional[str] = ..., key_defaults: _Optional[_Union[KeyDefaults, _Mapping]] = ..., paused_channels: _Optional[_Iterable[str]] = ..., priority_header: _Optional[str] = ...) -> None: ...

class QueueInfo(_message.Message):
    __slots__ = ["acked_total", "active_consumers", "active_fairness_keys", "breaker_state", "dead_lettered_total", "delivered_total", "depth", "enqueued_total", "in_flight", "leader_node_id", "name", "oldest_age_ms", "oldest_lease_age_ms", "paused", "totals_since"]
    ACKED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FAIRNESS_KEYS_FIELD_NUMBER: _ClassVar[int]
    BREAKER_STATE_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    LEADER_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_LEASE_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    TOTALS_SINCE_FIELD_NUMBER: _ClassVar[int]
    acked_total: int
    active_consumers: int
    active_fairness_keys: int
    breaker_state: BreakerState
    dead_lettered_total: int
    delivered_total: int
    depth: int
    enqueued_total: int
    in_flight: int
    leader_node_id: int
    name: str
    oldest_age_ms: int
    oldest_lease_age_ms: int
    paused: bool
    totals_since: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., active_consumers: _Optional[int] = ..., leader_node_id: _Optional[int] = ..., enqueued_total: _Optional[int] = ..., delivered_total: _Optional[int] = ..., acked_total: _Optional[int] = ..., dead_lettered_total: _Optional[int] = ..., oldest_age_ms: _Optional[int] = ..., active_fairness_keys: _Optional[int] = ..., paused: bool = ..., breaker_state: _Optional[_Union[BreakerState, str]] = ..., oldest_lease_age_ms: _Optional[int] = ..., totals_since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReadLogRequest(_message.Message):
    __slots__ = ["fairness_key", "from_offset", "from_time", "max_batch", "queue", "to_offset", "to_time"]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    FROM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FROM_TIME_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TO_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TO_TIME_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    from_offset: int
    from_time: _timestamp_pb2.Timestamp
    max_batch: int
    queue: str
    to_offset: int
    to_time: _timestamp_pb2.Timestamp
    def __init__(self, queue: _Optional[str] = ..., from_offset: _Optional[int] = ..., to_offset: _Optional[int] = ..., from_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., to_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., fairness_key: _Optional[str] = ..., max_batch: _Optional[int] = ...) -> None: ...

class ReadLogResponse(_message.Message):
    __slots__ = ["messages", "next_offset"]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    next_offset: int
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ..., next_offset: _Optional[int] = ...) -> None: ...

class RedriveRequest(_message.Message):
    __slots__ = ["after_offset", "count", "dlq_queue", "offsets", "rate_per_second", "up_to_offset"]
    AFTER_OFFSET_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    UP_TO_OFFSET_FIELD_NUMBER: _ClassVar[int]
    after_offset: int
    count: int
    dlq_queue: str
    offsets: _containers.RepeatedScalarFieldContainer[int]
    rate_per_second: float
    up_to_offset: int
    def __init__(self, dlq_queue: _Optional[str] = ..., count: _Optional[int] = ..., rate_per_second: _Optional[float] = ..., after_offset: _Optional[int] = ..., up_to_offset: _Optional[int] = ..., offsets: _Optional[_Iterable[int]] = ...) -> None: ...

class RedriveResponse(_message.Message):
    __slots__ = ["last_offset", "redriven", "stuck"]
    LAST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    REDRIVEN_FIELD_NUMBER: _ClassVar[int]
    STUCK_FIELD_NUMBER: _ClassVar[int]
    last_offset: int
    redriven: int
    stuck: int
    def __init__(self, redriven: _Optional[int] = ..., last_offset: _Optional[int] = ..., stuck: _Optional[int] = ...) -> None: ...

class Retention(_message.Message):
    __slots__ = ["hard_bytes", "hard_period_ms", "soft_bytes", "soft_period_ms"]
    HARD_BYTES_FIELD_NUMBER: _ClassVar[int]
    HARD_PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
    SOFT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SOFT_PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
    hard_bytes: int
    hard_period_ms: int
    soft_bytes: int
    soft_period_ms: int
    def __init__(self, soft_period_ms: _Optional[int] = ..., soft_bytes: _Optional[int] = ..., hard_period_ms: _Optional[int] = ..., hard_bytes: _Optional[int] = ...) -> None: ...

class RetryPolicy(_message.Message):
    __slots__ = ["base_ms", "cap_ms", "jitter", "kind"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BASE_MS_FIELD_NUMBER: _ClassVar[int]
    CAP_MS_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    KIND_EXPONENTIAL: RetryPolicy.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    KIND_FIXED: RetryPolicy.Kind
    KIND_UNSPECIFIED: RetryPolicy.Kind
    base_ms: int
    cap_ms: int
    jitter: float
    kind: RetryPolicy.Kind
    def __init__(self, kind: _Optional[_Union[RetryPolicy.Kind, str]] = ..., base_ms: _Optional[int] = ..., cap_ms: _Optional[int] = ..., jitter: _Optional[float] = ...) -> None: ...

class SeekChannelRequest(_message.Message):
    __slots__ = ["channel", "offset", "queue", "time", "validate_only"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    channel: str
    offset: int
    queue: str
    time: _timestamp_pb2.Timestamp
    validate_only: bool
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., offset: _Optional[int] = ..., time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., validate_only: bool = ...) -> None: ...

class SeekChannelResponse(_message.Message):
    __slots__ = ["leases_revoked", "offset", "replayed", "skipped"]
    LEASES_REVOKED_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    leases_revoked: int
    offset: int
    replayed: int
    skipped: int
    def __init__(self, offset: _Optional[int] = ..., replayed: _Optional[int] = ..., skipped: _Optional[int] = ..., leases_revoked: _Optional[int] = ...) -> None: ...

class SetConfigRequest(_message.Message):
    __slots__ = ["key", "value"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class SetConfigResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class SetKeyPolicyRequest(_message.Message):
    __slots__ = ["burst", "cap_by_default", "comment", "committed_by_default", "committed_per_second", "fairness_key", "max_in_flight", "paused", "queue", "rate_by_default", "rate_per_second", "weight"]
    BURST_FIELD_NUMBER: _ClassVar[int]
    CAP_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RATE_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    burst: float
    cap_by_default: bool
    comment: str
    committed_by_default: bool
    committed_per_second: float
    fairness_key: str
    max_in_flight: int
    paused: bool
    queue: str
    rate_by_default: bool
    rate_per_second: float
    weight: int
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., paused: bool = ..., max_in_flight: _Optional[int] = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ..., cap_by_default: bool = ..., rate_by_default: bool = ..., comment: _Optional[str] = ..., committed_per_second: _Optional[float] = ..., committed_by_default: bool = ...) -> None: ...

class SetKeyPolicyResponse(_message.Message):
    __slots__ = ["burst", "cap_by_default", "committed_by_default", "committed_per_second", "max_in_flight", "paused", "pending", "rate_by_default", "rate_per_second", "weight"]
    BURST_FIELD_NUMBER: _ClassVar[int]
    CAP_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RATE_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    burst: float
    cap_by_default: bool
    committed_by_default: bool
    committed_per_second: float
    max_in_flight: int
    paused: bool
    pending: int
    rate_by_default: bool
    rate_per_second: float
    weight: int
    def __init__(self, weight: _Optional[int] = ..., paused: bool = ..., max_in_flight: _Optional[int] = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ..., pending: _Optional[int] = ..., cap_by_default: bool = ..., rate_by_default: bool = ..., committed_per_second: _Optional[float] = ..., committed_by_default: bool = ...) -> None: ...

class SkipMessageRequest(_message.Message):
    __slots__ = ["channel", "fairness_key", "message_id", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    fairness_key: str
    message_id: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., fairness_key: _Optional[str] = ..., message_id: _Optional[str] = ...) -> None: ...

class SkipMessageResponse(_message.Message):
    __slots__ = ["message_id", "offset"]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    offset: int
    def __init__(self, message_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class UpdateQueueRequest(_message.Message):
    __slots__ = ["comment", "config", "expected_version", "queue", "update_mask"]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    comment: str
    config: QueueConfig
    expected_version: int
    queue: str
    update_mask: _field_mask_pb2.FieldMask
    def __init__(self, queue: _Optional[str] = ..., config: _Optional[_Union[QueueConfig, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class UpdateQueueResponse(_message.Message):
    __slots__ = ["config", "version"]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    config: QueueConfig
    version: int
    def __init__(self, config: _Optional[_Union[QueueConfig, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class HookFallback(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class KeyOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class BreakerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
