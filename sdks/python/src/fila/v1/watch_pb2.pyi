# Generated from proto/ by `make gen`; do not edit.
from fila.v1 import limit_pb2 as _limit_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FindKeysRequest(_message.Message):
    __slots__ = ["channel", "limit", "prefix", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    limit: int
    prefix: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., prefix: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class FindKeysResponse(_message.Message):
    __slots__ = ["keys", "matched"]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[KeyState]
    matched: int
    def __init__(self, keys: _Optional[_Iterable[_Union[KeyState, _Mapping]]] = ..., matched: _Optional[int] = ...) -> None: ...

class GetSeriesRequest(_message.Message):
    __slots__ = ["channel", "keys", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...

class GetSeriesResponse(_message.Message):
    __slots__ = ["first_at", "keys", "points", "recorded_keys", "step_ms"]
    FIRST_AT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    RECORDED_KEYS_FIELD_NUMBER: _ClassVar[int]
    STEP_MS_FIELD_NUMBER: _ClassVar[int]
    first_at: _timestamp_pb2.Timestamp
    keys: _containers.RepeatedCompositeFieldContainer[KeySeries]
    points: _containers.RepeatedCompositeFieldContainer[SeriesPoint]
    recorded_keys: _containers.RepeatedScalarFieldContainer[str]
    step_ms: int
    def __init__(self, first_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., step_ms: _Optional[int] = ..., points: _Optional[_Iterable[_Union[SeriesPoint, _Mapping]]] = ..., keys: _Optional[_Iterable[_Union[KeySeries, _Mapping]]] = ..., recorded_keys: _Optional[_Iterable[str]] = ...) -> None: ...

class GoneChannel(_message.Message):
    __slots__ = ["channel", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ...) -> None: ...

class KeySeries(_message.Message):
    __slots__ = ["fairness_key", "points"]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    points: _containers.RepeatedCompositeFieldContainer[KeySeriesPoint]
    def __init__(self, fairness_key: _Optional[str] = ..., points: _Optional[_Iterable[_Union[KeySeriesPoint, _Mapping]]] = ...) -> None: ...

class KeySeriesPoint(_message.Message):
    __slots__ = ["arrived", "due", "pending", "recorded", "served"]
    ARRIVED_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    SERVED_FIELD_NUMBER: _ClassVar[int]
    arrived: float
    due: float
    pending: int
    recorded: bool
    served: float
    def __init__(self, recorded: bool = ..., arrived: _Optional[float] = ..., served: _Optional[float] = ..., due: _Optional[float] = ..., pending: _Optional[int] = ...) -> None: ...

class KeyState(_message.Message):
    __slots__ = ["arrived_total", "arriving_per_second", "blocking_bucket", "blocking_part", "blocking_rate", "burst", "cap_by_default", "committed_by_default", "committed_per_second", "delayed", "delivered_per_second", "delivered_total", "due_per_second", "due_total", "fairness_key", "in_flight", "max_in_flight", "nobody_consumes", "paused", "rate_by_default", "rate_per_second", "ready", "served_per_second", "served_total", "state", "until", "waiting_ms", "waits", "weight"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ARRIVED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ARRIVING_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_BUCKET_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_PART_FIELD_NUMBER: _ClassVar[int]
    BLOCKING_RATE_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    CAP_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DUE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    DUE_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    NOBODY_CONSUMES_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    RATE_BY_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    SERVED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    SERVED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STATE_BEYOND_COMMITTED: KeyState.State
    STATE_CAPPED: KeyState.State
    STATE_DELAYED: KeyState.State
    STATE_EMPTY: KeyState.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_IN_ORDER: KeyState.State
    STATE_LEASED: KeyState.State
    STATE_NOT_ITS_TURN: KeyState.State
    STATE_NO_CONSUMER: KeyState.State
    STATE_PAUSED: KeyState.State
    STATE_RATE_LIMITED: KeyState.State
    STATE_THROTTLED: KeyState.State
    STATE_UNSPECIFIED: KeyState.State
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    WAITING_MS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    arrived_total: int
    arriving_per_second: float
    blocking_bucket: str
    blocking_part: _limit_pb2.LimitPart
    blocking_rate: int
    burst: float
    cap_by_default: bool
    committed_by_default: bool
    committed_per_second: float
    delayed: int
    delivered_per_second: float
    delivered_total: int
    due_per_second: float
    due_total: float
    fairness_key: str
    in_flight: int
    max_in_flight: int
    nobody_consumes: bool
    paused: bool
    rate_by_default: bool
    rate_per_second: float
    ready: int
    served_per_second: float
    served_total: float
    state: KeyState.State
    until: _timestamp_pb2.Timestamp
    waiting_ms: int
    waits: WaitCauses
    weight: int
    def __init__(self, fairness_key: _Optional[str] = ..., state: _Optional[_Union[KeyState.State, str]] = ..., blocking_bucket: _Optional[str] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., ready: _Optional[int] = ..., delayed: _Optional[int] = ..., in_flight: _Optional[int] = ..., waiting_ms: _Optional[int] = ..., weight: _Optional[int] = ..., paused: bool = ..., max_in_flight: _Optional[int] = ..., rate_per_second: _Optional[float] = ..., burst: _Optional[float] = ..., arrived_total: _Optional[int] = ..., delivered_total: _Optional[int] = ..., arriving_per_second: _Optional[float] = ..., delivered_per_second: _Optional[float] = ..., served_per_second: _Optional[float] = ..., due_per_second: _Optional[float] = ..., served_total: _Optional[float] = ..., due_total: _Optional[float] = ..., waits: _Optional[_Union[WaitCauses, _Mapping]] = ..., cap_by_default: bool = ..., rate_by_default: bool = ..., committed_per_second: _Optional[float] = ..., committed_by_default: bool = ..., blocking_part: _Optional[_Union[_limit_pb2.LimitPart, str]] = ..., blocking_rate: _Optional[int] = ..., nobody_consumes: bool = ...) -> None: ...

class QueueState(_message.Message):
    __slots__ = ["acked_per_second", "acked_total", "active_keys", "arriving_per_second", "channel", "consumers", "dead_lettered_total", "delayed", "delivered_per_second", "delivered_total", "enqueued_total", "failed_per_second", "failed_total", "in_flight", "leased_total", "oldest_age_ms", "oldest_lease_age_ms", "paused", "queue", "ready", "returned_per_second", "returned_total", "served_total", "stored_bytes", "waits"]
    ACKED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    ACKED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_KEYS_FIELD_NUMBER: _ClassVar[int]
    ARRIVING_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CONSUMERS_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DELAYED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FAILED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    FAILED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    LEASED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_LEASE_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    RETURNED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    RETURNED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SERVED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    acked_per_second: float
    acked_total: int
    active_keys: int
    arriving_per_second: float
    channel: str
    consumers: int
    dead_lettered_total: int
    delayed: int
    delivered_per_second: float
    delivered_total: int
    enqueued_total: int
    failed_per_second: float
    failed_total: int
    in_flight: int
    leased_total: int
    oldest_age_ms: int
    oldest_lease_age_ms: int
    paused: bool
    queue: str
    ready: int
    returned_per_second: float
    returned_total: int
    served_total: float
    stored_bytes: int
    waits: WaitCauses
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., ready: _Optional[int] = ..., delayed: _Optional[int] = ..., in_flight: _Optional[int] = ..., consumers: _Optional[int] = ..., active_keys: _Optional[int] = ..., oldest_age_ms: _Optional[int] = ..., enqueued_total: _Optional[int] = ..., delivered_total: _Optional[int] = ..., acked_total: _Optional[int] = ..., dead_lettered_total: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., arriving_per_second: _Optional[float] = ..., delivered_per_second: _Optional[float] = ..., served_total: _Optional[float] = ..., waits: _Optional[_Union[WaitCauses, _Mapping]] = ..., leased_total: _Optional[int] = ..., oldest_lease_age_ms: _Optional[int] = ..., failed_total: _Optional[int] = ..., returned_total: _Optional[int] = ..., acked_per_second: _Optional[float] = ..., failed_per_second: _Optional[float] = ..., returned_per_second: _Optional[float] = ..., paused: bool = ...) -> None: ...

class QueueSums(_message.Message):
    __slots__ = ["acked_per_second", "arriving_per_second", "dead_letters", "failed_per_second", "in_flight", "oldest_age_ms", "partial", "queues", "returned_per_second", "waiting"]
    ACKED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    ARRIVING_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTERS_FIELD_NUMBER: _ClassVar[int]
    FAILED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    RETURNED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    acked_per_second: float
    arriving_per_second: float
    dead_letters: int
    failed_per_second: float
    in_flight: int
    oldest_age_ms: int
    partial: bool
    queues: int
    returned_per_second: float
    waiting: int
    def __init__(self, queues: _Optional[int] = ..., waiting: _Optional[int] = ..., in_flight: _Optional[int] = ..., oldest_age_ms: _Optional[int] = ..., arriving_per_second: _Optional[float] = ..., acked_per_second: _Optional[float] = ..., failed_per_second: _Optional[float] = ..., returned_per_second: _Optional[float] = ..., dead_letters: _Optional[int] = ..., partial: bool = ...) -> None: ...

class SeriesPoint(_message.Message):
    __slots__ = ["acked", "arrived", "delivered", "depth", "in_flight", "leased", "oldest_age_ms", "recorded", "waits"]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    ARRIVED_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    OLDEST_AGE_MS_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    acked: int
    arrived: int
    delivered: int
    depth: int
    in_flight: int
    leased: int
    oldest_age_ms: int
    recorded: bool
    waits: WaitCauses
    def __init__(self, recorded: bool = ..., arrived: _Optional[int] = ..., delivered: _Optional[int] = ..., acked: _Optional[int] = ..., depth: _Optional[int] = ..., in_flight: _Optional[int] = ..., oldest_age_ms: _Optional[int] = ..., waits: _Optional[_Union[WaitCauses, _Mapping]] = ..., leased: _Optional[int] = ...) -> None: ...

class WaitCauses(_message.Message):
    __slots__ = ["delay_ms", "held_ms", "no_consumer_ms", "share_ms", "throttle_ms"]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    HELD_MS_FIELD_NUMBER: _ClassVar[int]
    NO_CONSUMER_MS_FIELD_NUMBER: _ClassVar[int]
    SHARE_MS_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_MS_FIELD_NUMBER: _ClassVar[int]
    delay_ms: int
    held_ms: int
    no_consumer_ms: int
    share_ms: int
    throttle_ms: int
    def __init__(self, no_consumer_ms: _Optional[int] = ..., share_ms: _Optional[int] = ..., throttle_ms: _Optional[int] = ..., delay_ms: _Optional[int] = ..., held_ms: _Optional[int] = ...) -> None: ...

class WatchStatsRequest(_message.Message):
    __slots__ = ["channel", "keys", "order", "queues", "top"]
    class Order(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    ORDER_ARRIVING: WatchStatsRequest.Order
    ORDER_BACKLOG: WatchStatsRequest.Order
    ORDER_FIELD_NUMBER: _ClassVar[int]
    ORDER_LATE: WatchStatsRequest.Order
    ORDER_OFF_SHARE: WatchStatsRequest.Order
    ORDER_SERVED: WatchStatsRequest.Order
    ORDER_UNSPECIFIED: WatchStatsRequest.Order
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    channel: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    order: WatchStatsRequest.Order
    queues: _containers.RepeatedScalarFieldContainer[str]
    top: int
    def __init__(self, queues: _Optional[_Iterable[str]] = ..., channel: _Optional[str] = ..., order: _Optional[_Union[WatchStatsRequest.Order, str]] = ..., top: _Optional[int] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchStatsResponse(_message.Message):
    __slots__ = ["at", "channels", "full", "gone", "sequence", "sums"]
    AT_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    channels: _containers.RepeatedCompositeFieldContainer[WatchedChannel]
    full: bool
    gone: _containers.RepeatedCompositeFieldContainer[GoneChannel]
    sequence: int
    sums: QueueSums
    def __init__(self, sequence: _Optional[int] = ..., full: bool = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., channels: _Optional[_Iterable[_Union[WatchedChannel, _Mapping]]] = ..., gone: _Optional[_Iterable[_Union[GoneChannel, _Mapping]]] = ..., sums: _Optional[_Union[QueueSums, _Mapping]] = ...) -> None: ...

class WatchedChannel(_message.Message):
    __slots__ = ["keys", "leading", "state"]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    LEADING_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[KeyState]
    leading: _containers.RepeatedScalarFieldContainer[str]
    state: QueueState
    def __init__(self, state: _Optional[_Union[QueueState, _Mapping]] = ..., keys: _Optional[_Iterable[_Union[KeyState, _Mapping]]] = ..., leading: _Optional[_Iterable[str]] = ...) -> None: ...
