# Generated from proto/ by `make gen`; do not edit.
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CancelOperationRequest(_message.Message):
    __slots__ = ["dlq_queue", "id"]
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    id: str
    def __init__(self, dlq_queue: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class CancelOperationResponse(_message.Message):
    __slots__ = ["operation"]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: Operation
    def __init__(self, operation: _Optional[_Union[Operation, _Mapping]] = ...) -> None: ...

class DeadLetterFilter(_message.Message):
    __slots__ = ["died_before", "died_from", "error", "fairness_key", "reason", "source_channel"]
    DIED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    DIED_FROM_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    died_before: _timestamp_pb2.Timestamp
    died_from: _timestamp_pb2.Timestamp
    error: str
    fairness_key: str
    reason: str
    source_channel: str
    def __init__(self, fairness_key: _Optional[str] = ..., reason: _Optional[str] = ..., error: _Optional[str] = ..., died_from: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., died_before: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., source_channel: _Optional[str] = ...) -> None: ...

class EditDeadLetterRequest(_message.Message):
    __slots__ = ["dlq_queue", "headers", "offset", "payload"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    headers: _containers.ScalarMap[str, str]
    offset: int
    payload: bytes
    def __init__(self, dlq_queue: _Optional[str] = ..., offset: _Optional[int] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ...) -> None: ...

class EditDeadLetterResponse(_message.Message):
    __slots__ = ["message_id"]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    def __init__(self, message_id: _Optional[str] = ...) -> None: ...

class ListOperationsRequest(_message.Message):
    __slots__ = ["dlq_queue"]
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    def __init__(self, dlq_queue: _Optional[str] = ...) -> None: ...

class ListOperationsResponse(_message.Message):
    __slots__ = ["operations"]
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedCompositeFieldContainer[Operation]
    def __init__(self, operations: _Optional[_Iterable[_Union[Operation, _Mapping]]] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ["done", "ended_at", "error", "id", "last_offset", "looked_at", "peer", "principal", "request", "started_at", "state", "stuck", "total"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    DONE_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LAST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LOOKED_AT_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    STATE_CANCELLED: Operation.State
    STATE_DONE: Operation.State
    STATE_FAILED: Operation.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_RUNNING: Operation.State
    STATE_STOPPED: Operation.State
    STATE_UNSPECIFIED: Operation.State
    STUCK_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    done: int
    ended_at: _timestamp_pb2.Timestamp
    error: str
    id: str
    last_offset: int
    looked_at: int
    peer: str
    principal: str
    request: StartOperationRequest
    started_at: _timestamp_pb2.Timestamp
    state: Operation.State
    stuck: int
    total: int
    def __init__(self, id: _Optional[str] = ..., request: _Optional[_Union[StartOperationRequest, _Mapping]] = ..., state: _Optional[_Union[Operation.State, str]] = ..., looked_at: _Optional[int] = ..., done: _Optional[int] = ..., stuck: _Optional[int] = ..., total: _Optional[int] = ..., last_offset: _Optional[int] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[str] = ..., principal: _Optional[str] = ..., peer: _Optional[str] = ...) -> None: ...

class StartOperationRequest(_message.Message):
    __slots__ = ["dlq_queue", "filter", "kind", "rate_per_second"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    KIND_DELETE: StartOperationRequest.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    KIND_PURGE: StartOperationRequest.Kind
    KIND_REDRIVE: StartOperationRequest.Kind
    KIND_UNSPECIFIED: StartOperationRequest.Kind
    RATE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    filter: DeadLetterFilter
    kind: StartOperationRequest.Kind
    rate_per_second: float
    def __init__(self, dlq_queue: _Optional[str] = ..., kind: _Optional[_Union[StartOperationRequest.Kind, str]] = ..., filter: _Optional[_Union[DeadLetterFilter, _Mapping]] = ..., rate_per_second: _Optional[float] = ...) -> None: ...

class StartOperationResponse(_message.Message):
    __slots__ = ["operation"]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: Operation
    def __init__(self, operation: _Optional[_Union[Operation, _Mapping]] = ...) -> None: ...

class WatchOperationRequest(_message.Message):
    __slots__ = ["dlq_queue", "id"]
    DLQ_QUEUE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    dlq_queue: str
    id: str
    def __init__(self, dlq_queue: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class WatchOperationResponse(_message.Message):
    __slots__ = ["operation"]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: Operation
    def __init__(self, operation: _Optional[_Union[Operation, _Mapping]] = ...) -> None: ...
