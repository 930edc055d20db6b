# Generated from proto/ by `make gen`; do not edit.
from fila.v1 import service_pb2 as _service_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DropRequest(_message.Message):
    __slots__ = ["attempts", "batch", "epoch", "sink_id"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SINK_ID_FIELD_NUMBER: _ClassVar[int]
    attempts: _containers.RepeatedCompositeFieldContainer[StagedAttempt]
    batch: int
    epoch: int
    sink_id: str
    def __init__(self, sink_id: _Optional[str] = ..., epoch: _Optional[int] = ..., batch: _Optional[int] = ..., attempts: _Optional[_Iterable[_Union[StagedAttempt, _Mapping]]] = ...) -> None: ...

class DropResponse(_message.Message):
    __slots__ = ["attempts"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    def __init__(self, attempts: _Optional[int] = ...) -> None: ...

class ListSinksRequest(_message.Message):
    __slots__ = ["after", "limit", "prefix"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    after: str
    limit: int
    prefix: str
    def __init__(self, prefix: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListSinksResponse(_message.Message):
    __slots__ = ["next_after", "sinks", "staged_bytes", "staged_bytes_max"]
    NEXT_AFTER_FIELD_NUMBER: _ClassVar[int]
    SINKS_FIELD_NUMBER: _ClassVar[int]
    STAGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    STAGED_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    next_after: str
    sinks: _containers.RepeatedCompositeFieldContainer[SinkInfo]
    staged_bytes: int
    staged_bytes_max: int
    def __init__(self, sinks: _Optional[_Iterable[_Union[SinkInfo, _Mapping]]] = ..., next_after: _Optional[str] = ..., staged_bytes: _Optional[int] = ..., staged_bytes_max: _Optional[int] = ...) -> None: ...

class OpenSinkRequest(_message.Message):
    __slots__ = ["keep_ms", "run_id", "sink_id"]
    KEEP_MS_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SINK_ID_FIELD_NUMBER: _ClassVar[int]
    keep_ms: int
    run_id: str
    sink_id: str
    def __init__(self, sink_id: _Optional[str] = ..., run_id: _Optional[str] = ..., keep_ms: _Optional[int] = ...) -> None: ...

class OpenSinkResponse(_message.Message):
    __slots__ = ["epoch", "next_batch"]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NEXT_BATCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    next_batch: int
    def __init__(self, epoch: _Optional[int] = ..., next_batch: _Optional[int] = ...) -> None: ...

class PublishRequest(_message.Message):
    __slots__ = ["attempts", "batch", "epoch", "reset", "sink_id"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    SINK_ID_FIELD_NUMBER: _ClassVar[int]
    attempts: _containers.RepeatedCompositeFieldContainer[StagedAttempt]
    batch: int
    epoch: int
    reset: bool
    sink_id: str
    def __init__(self, sink_id: _Optional[str] = ..., epoch: _Optional[int] = ..., batch: _Optional[int] = ..., attempts: _Optional[_Iterable[_Union[StagedAttempt, _Mapping]]] = ..., reset: bool = ...) -> None: ...

class PublishResponse(_message.Message):
    __slots__ = ["already_published", "duplicates", "lost", "messages"]
    ALREADY_PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    already_published: bool
    duplicates: int
    lost: int
    messages: int
    def __init__(self, already_published: bool = ..., messages: _Optional[int] = ..., duplicates: _Optional[int] = ..., lost: _Optional[int] = ...) -> None: ...

class PublishingBatch(_message.Message):
    __slots__ = ["batch", "messages", "moved"]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    batch: int
    messages: int
    moved: int
    def __init__(self, batch: _Optional[int] = ..., messages: _Optional[int] = ..., moved: _Optional[int] = ...) -> None: ...

class SinkInfo(_message.Message):
    __slots__ = ["attempts", "epoch", "keep_ms", "next_batch", "publishing", "run_id", "sink_id", "staged_bytes", "staged_messages", "used_at"]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    KEEP_MS_FIELD_NUMBER: _ClassVar[int]
    NEXT_BATCH_FIELD_NUMBER: _ClassVar[int]
    PUBLISHING_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SINK_ID_FIELD_NUMBER: _ClassVar[int]
    STAGED_BYTES_FIELD_NUMBER: _ClassVar[int]
    STAGED_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    USED_AT_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    epoch: int
    keep_ms: int
    next_batch: int
    publishing: PublishingBatch
    run_id: str
    sink_id: str
    staged_bytes: int
    staged_messages: int
    used_at: _timestamp_pb2.Timestamp
    def __init__(self, sink_id: _Optional[str] = ..., epoch: _Optional[int] = ..., run_id: _Optional[str] = ..., next_batch: _Optional[int] = ..., attempts: _Optional[int] = ..., staged_messages: _Optional[int] = ..., staged_bytes: _Optional[int] = ..., publishing: _Optional[_Union[PublishingBatch, _Mapping]] = ..., used_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., keep_ms: _Optional[int] = ...) -> None: ...

class StageRequest(_message.Message):
    __slots__ = ["attempt", "batch", "epoch", "frame", "messages", "partition", "queue", "sink_id"]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FRAME_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SINK_ID_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    batch: int
    epoch: int
    frame: int
    messages: _containers.RepeatedCompositeFieldContainer[_service_pb2.EnqueueMessage]
    partition: int
    queue: str
    sink_id: str
    def __init__(self, queue: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[_service_pb2.EnqueueMessage, _Mapping]]] = ..., sink_id: _Optional[str] = ..., epoch: _Optional[int] = ..., batch: _Optional[int] = ..., partition: _Optional[int] = ..., attempt: _Optional[int] = ..., frame: _Optional[int] = ...) -> None: ...

class StageResponse(_message.Message):
    __slots__ = ["already_published", "checksum", "messages"]
    ALREADY_PUBLISHED_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    already_published: bool
    checksum: int
    messages: int
    def __init__(self, messages: _Optional[int] = ..., checksum: _Optional[int] = ..., already_published: bool = ...) -> None: ...

class StagedAttempt(_message.Message):
    __slots__ = ["attempt", "checksum", "messages", "partition"]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    checksum: int
    messages: int
    partition: int
    def __init__(self, partition: _Optional[int] = ..., attempt: _Optional[int] = ..., messages: _Optional[int] = ..., checksum: _Optional[int] = ...) -> None: ...
