# Generated from proto/ by `make gen`; do not edit.
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetQueueVersionRequest(_message.Message):
    __slots__ = ["number", "queue"]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    number: int
    queue: str
    def __init__(self, queue: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class ListQueueVersionsRequest(_message.Message):
    __slots__ = ["before", "limit", "queue"]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    before: int
    limit: int
    queue: str
    def __init__(self, queue: _Optional[str] = ..., before: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ListQueueVersionsResponse(_message.Message):
    __slots__ = ["versions"]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    versions: _containers.RepeatedCompositeFieldContainer[QueueVersion]
    def __init__(self, versions: _Optional[_Iterable[_Union[QueueVersion, _Mapping]]] = ...) -> None: ...

class QueueVersion(_message.Message):
    __slots__ = ["at", "changed", "comment", "number", "peer", "principal"]
    AT_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    changed: _containers.RepeatedScalarFieldContainer[str]
    comment: str
    number: int
    peer: str
    principal: str
    def __init__(self, number: _Optional[int] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., principal: _Optional[str] = ..., peer: _Optional[str] = ..., comment: _Optional[str] = ..., changed: _Optional[_Iterable[str]] = ...) -> None: ...
