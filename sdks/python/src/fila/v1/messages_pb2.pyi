# Generated from proto/ by `make gen`; do not edit.
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeadLetter(_message.Message):
    __slots__ = ["at", "attempts", "last_error", "reason", "source_channel", "source_queue"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_QUEUE_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    attempts: int
    last_error: str
    reason: str
    source_channel: str
    source_queue: str
    def __init__(self, source_queue: _Optional[str] = ..., source_channel: _Optional[str] = ..., reason: _Optional[str] = ..., last_error: _Optional[str] = ..., attempts: _Optional[int] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ItemStatus(_message.Message):
    __slots__ = ["code", "message", "reason"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    reason: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ["headers", "id", "metadata", "payload", "timestamps"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMPS_FIELD_NUMBER: _ClassVar[int]
    headers: _containers.ScalarMap[str, str]
    id: str
    metadata: MessageMetadata
    payload: bytes
    timestamps: MessageTimestamps
    def __init__(self, id: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ..., metadata: _Optional[_Union[MessageMetadata, _Mapping]] = ..., timestamps: _Optional[_Union[MessageTimestamps, _Mapping]] = ...) -> None: ...

class MessageMetadata(_message.Message):
    __slots__ = ["attempt_count", "came_back", "channel", "cost", "dead_letter", "fairness_key", "lease_id", "offset", "priority", "queue_id", "redelivered", "throttle_keys", "weight"]
    ATTEMPT_COUNT_FIELD_NUMBER: _ClassVar[int]
    CAME_BACK_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ID_FIELD_NUMBER: _ClassVar[int]
    REDELIVERED_FIELD_NUMBER: _ClassVar[int]
    THROTTLE_KEYS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    attempt_count: int
    came_back: bool
    channel: str
    cost: float
    dead_letter: DeadLetter
    fairness_key: str
    lease_id: int
    offset: int
    priority: int
    queue_id: str
    redelivered: bool
    throttle_keys: _containers.RepeatedScalarFieldContainer[str]
    weight: int
    def __init__(self, fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., throttle_keys: _Optional[_Iterable[str]] = ..., attempt_count: _Optional[int] = ..., queue_id: _Optional[str] = ..., offset: _Optional[int] = ..., lease_id: _Optional[int] = ..., cost: _Optional[float] = ..., channel: _Optional[str] = ..., dead_letter: _Optional[_Union[DeadLetter, _Mapping]] = ..., redelivered: bool = ..., came_back: bool = ..., priority: _Optional[int] = ...) -> None: ...

class MessageTimestamps(_message.Message):
    __slots__ = ["appended_at", "due_at", "enqueued_at", "lease_expires_at", "leased_at"]
    APPENDED_AT_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    LEASED_AT_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    appended_at: _timestamp_pb2.Timestamp
    due_at: _timestamp_pb2.Timestamp
    enqueued_at: _timestamp_pb2.Timestamp
    lease_expires_at: _timestamp_pb2.Timestamp
    leased_at: _timestamp_pb2.Timestamp
    def __init__(self, enqueued_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., leased_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., lease_expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., appended_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., due_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
