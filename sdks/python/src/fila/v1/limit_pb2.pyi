# Generated from proto/ by `make gen`; do not edit.
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
LIMIT_PART_BUDGET: LimitPart
LIMIT_PART_RATE: LimitPart
LIMIT_PART_SLOTS: LimitPart
LIMIT_PART_UNSPECIFIED: LimitPart

class Budget(_message.Message):
    __slots__ = ["amount", "anchor_ms", "period_ms", "unit"]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    ANCHOR_MS_FIELD_NUMBER: _ClassVar[int]
    PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    amount: float
    anchor_ms: int
    period_ms: int
    unit: Limit.Unit
    def __init__(self, amount: _Optional[float] = ..., period_ms: _Optional[int] = ..., anchor_ms: _Optional[int] = ..., unit: _Optional[_Union[Limit.Unit, str]] = ...) -> None: ...

class DeleteLimitRequest(_message.Message):
    __slots__ = ["limit_name"]
    LIMIT_NAME_FIELD_NUMBER: _ClassVar[int]
    limit_name: str
    def __init__(self, limit_name: _Optional[str] = ...) -> None: ...

class DeleteLimitResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Learn(_message.Message):
    __slots__ = ["max", "min"]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    max: float
    min: float
    def __init__(self, min: _Optional[float] = ..., max: _Optional[float] = ...) -> None: ...

class Limit(_message.Message):
    __slots__ = ["budget", "learn", "max_in_flight", "name", "rates", "shadow"]
    class Unit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    LEARN_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RATES_FIELD_NUMBER: _ClassVar[int]
    SHADOW_FIELD_NUMBER: _ClassVar[int]
    UNIT_COST: Limit.Unit
    UNIT_MESSAGES: Limit.Unit
    UNIT_UNSPECIFIED: Limit.Unit
    budget: Budget
    learn: Learn
    max_in_flight: int
    name: str
    rates: _containers.RepeatedCompositeFieldContainer[Rate]
    shadow: bool
    def __init__(self, name: _Optional[str] = ..., rates: _Optional[_Iterable[_Union[Rate, _Mapping]]] = ..., max_in_flight: _Optional[int] = ..., budget: _Optional[_Union[Budget, _Mapping]] = ..., learn: _Optional[_Union[Learn, _Mapping]] = ..., shadow: bool = ...) -> None: ...

class LimitState(_message.Message):
    __slots__ = ["closed_until", "held_total", "in_flight", "learned_per_second", "limit", "of_tenant", "passed_total", "period_ends_at", "refused_at", "spent", "throttle_key", "throttle_keys", "tokens", "waiting", "would_hold_total"]
    CLOSED_UNTIL_FIELD_NUMBER: _ClassVar[int]
    HELD_TOTAL_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    LEARNED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    OF_TENANT_FIELD_NUMBER: _ClassVar[int]
    PASSED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    PERIOD_ENDS_AT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_AT_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEYS_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    WOULD_HOLD_TOTAL_FIELD_NUMBER: _ClassVar[int]
    closed_until: _timestamp_pb2.Timestamp
    held_total: int
    in_flight: int
    learned_per_second: float
    limit: Limit
    of_tenant: bool
    passed_total: int
    period_ends_at: _timestamp_pb2.Timestamp
    refused_at: _timestamp_pb2.Timestamp
    spent: float
    throttle_key: str
    throttle_keys: int
    tokens: _containers.RepeatedScalarFieldContainer[float]
    waiting: int
    would_hold_total: int
    def __init__(self, limit: _Optional[_Union[Limit, _Mapping]] = ..., throttle_key: _Optional[str] = ..., tokens: _Optional[_Iterable[float]] = ..., in_flight: _Optional[int] = ..., spent: _Optional[float] = ..., period_ends_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., waiting: _Optional[int] = ..., passed_total: _Optional[int] = ..., held_total: _Optional[int] = ..., would_hold_total: _Optional[int] = ..., throttle_keys: _Optional[int] = ..., learned_per_second: _Optional[float] = ..., closed_until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., refused_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., of_tenant: bool = ...) -> None: ...

class ListLimitsRequest(_message.Message):
    __slots__ = ["after", "max_limits", "prefix", "throttle_key"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    MAX_LIMITS_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEY_FIELD_NUMBER: _ClassVar[int]
    after: str
    max_limits: int
    prefix: str
    throttle_key: str
    def __init__(self, prefix: _Optional[str] = ..., after: _Optional[str] = ..., max_limits: _Optional[int] = ..., throttle_key: _Optional[str] = ...) -> None: ...

class ListLimitsResponse(_message.Message):
    __slots__ = ["limits", "more"]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.RepeatedCompositeFieldContainer[LimitState]
    more: bool
    def __init__(self, limits: _Optional[_Iterable[_Union[LimitState, _Mapping]]] = ..., more: bool = ...) -> None: ...

class Rate(_message.Message):
    __slots__ = ["burst", "per_second", "unit"]
    BURST_FIELD_NUMBER: _ClassVar[int]
    PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    burst: float
    per_second: float
    unit: Limit.Unit
    def __init__(self, per_second: _Optional[float] = ..., burst: _Optional[float] = ..., unit: _Optional[_Union[Limit.Unit, str]] = ...) -> None: ...

class ResetLimitRequest(_message.Message):
    __slots__ = ["spent", "throttle_key"]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEY_FIELD_NUMBER: _ClassVar[int]
    spent: float
    throttle_key: str
    def __init__(self, throttle_key: _Optional[str] = ..., spent: _Optional[float] = ...) -> None: ...

class ResetLimitResponse(_message.Message):
    __slots__ = ["limit"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: LimitState
    def __init__(self, limit: _Optional[_Union[LimitState, _Mapping]] = ...) -> None: ...

class SetLimitRequest(_message.Message):
    __slots__ = ["limit"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: Limit
    def __init__(self, limit: _Optional[_Union[Limit, _Mapping]] = ...) -> None: ...

class SetLimitResponse(_message.Message):
    __slots__ = ["limit"]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: Limit
    def __init__(self, limit: _Optional[_Union[Limit, _Mapping]] = ...) -> None: ...

class LimitPart(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
