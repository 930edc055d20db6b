# Generated from proto/ by `make gen`; do not edit.
from fila.v1 import events_pb2 as _events_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
MISSED_RULE_ALL: MissedRule
MISSED_RULE_ONE: MissedRule
MISSED_RULE_SKIP: MissedRule
MISSED_RULE_UNSPECIFIED: MissedRule

class CreateScheduleRequest(_message.Message):
    __slots__ = ["queue", "schedule", "settings"]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    schedule: str
    settings: ScheduleSettings
    def __init__(self, queue: _Optional[str] = ..., schedule: _Optional[str] = ..., settings: _Optional[_Union[ScheduleSettings, _Mapping]] = ...) -> None: ...

class CreateScheduleResponse(_message.Message):
    __slots__ = ["schedule"]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ...) -> None: ...

class DeleteScheduleRequest(_message.Message):
    __slots__ = ["queue", "schedule"]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    schedule: str
    def __init__(self, queue: _Optional[str] = ..., schedule: _Optional[str] = ...) -> None: ...

class DeleteScheduleResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GetScheduleRequest(_message.Message):
    __slots__ = ["queue", "schedule"]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    schedule: str
    def __init__(self, queue: _Optional[str] = ..., schedule: _Optional[str] = ...) -> None: ...

class GetScheduleResponse(_message.Message):
    __slots__ = ["schedule"]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ...) -> None: ...

class ListSchedulesRequest(_message.Message):
    __slots__ = ["page_size", "page_token", "queue"]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListSchedulesResponse(_message.Message):
    __slots__ = ["next_page_token", "schedules"]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    schedules: _containers.RepeatedCompositeFieldContainer[Schedule]
    def __init__(self, schedules: _Optional[_Iterable[_Union[Schedule, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PauseScheduleRequest(_message.Message):
    __slots__ = ["comment", "paused", "queue", "schedule"]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    comment: str
    paused: bool
    queue: str
    schedule: str
    def __init__(self, queue: _Optional[str] = ..., schedule: _Optional[str] = ..., paused: bool = ..., comment: _Optional[str] = ...) -> None: ...

class PauseScheduleResponse(_message.Message):
    __slots__ = ["schedule"]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ["created_at", "error", "fired", "last_at", "missed", "next_at", "pause", "queue", "schedule", "settings"]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FIRED_FIELD_NUMBER: _ClassVar[int]
    LAST_AT_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    created_at: _timestamp_pb2.Timestamp
    error: str
    fired: int
    last_at: _timestamp_pb2.Timestamp
    missed: int
    next_at: _containers.RepeatedCompositeFieldContainer[_timestamp_pb2.Timestamp]
    pause: _events_pb2.Pause
    queue: str
    schedule: str
    settings: ScheduleSettings
    def __init__(self, queue: _Optional[str] = ..., schedule: _Optional[str] = ..., settings: _Optional[_Union[ScheduleSettings, _Mapping]] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., next_at: _Optional[_Iterable[_Union[_timestamp_pb2.Timestamp, _Mapping]]] = ..., last_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., fired: _Optional[int] = ..., missed: _Optional[int] = ..., error: _Optional[str] = ..., pause: _Optional[_Union[_events_pb2.Pause, _Mapping]] = ...) -> None: ...

class ScheduleSettings(_message.Message):
    __slots__ = ["cron", "every_ms", "headers", "missed", "paused", "payload", "time_zone", "ttl_ms"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CRON_FIELD_NUMBER: _ClassVar[int]
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    cron: str
    every_ms: int
    headers: _containers.ScalarMap[str, str]
    missed: MissedRule
    paused: bool
    payload: bytes
    time_zone: str
    ttl_ms: int
    def __init__(self, cron: _Optional[str] = ..., every_ms: _Optional[int] = ..., time_zone: _Optional[str] = ..., payload: _Optional[bytes] = ..., headers: _Optional[_Mapping[str, str]] = ..., ttl_ms: _Optional[int] = ..., missed: _Optional[_Union[MissedRule, str]] = ..., paused: bool = ...) -> None: ...

class UpdateScheduleRequest(_message.Message):
    __slots__ = ["queue", "schedule", "settings"]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    schedule: str
    settings: ScheduleSettings
    def __init__(self, queue: _Optional[str] = ..., schedule: _Optional[str] = ..., settings: _Optional[_Union[ScheduleSettings, _Mapping]] = ...) -> None: ...

class UpdateScheduleResponse(_message.Message):
    __slots__ = ["schedule"]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ...) -> None: ...

class MissedRule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
