# Generated from proto/ by `make gen`; do not edit.
from fila.v1 import service_pb2 as _service_pb2
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
