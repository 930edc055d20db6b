# Generated from proto/ by `make gen`; do not edit.
from fila.v1 import messages_pb2 as _messages_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AckBatchRequest(_message.Message):
    __slots__ = ["channel", "items", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    items: _containers.RepeatedCompositeFieldContainer[SettleItem]
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., items: _Optional[_Iterable[_Union[SettleItem, _Mapping]]] = ...) -> None: ...

class AckRequest(_message.Message):
    __slots__ = ["channel", "feedback", "lease_id", "message_id", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    feedback: _containers.RepeatedCompositeFieldContainer[LimitFeedback]
    lease_id: int
    message_id: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., channel: _Optional[str] = ..., lease_id: _Optional[int] = ..., feedback: _Optional[_Iterable[_Union[LimitFeedback, _Mapping]]] = ...) -> None: ...

class AckResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class CancelMessagesRequest(_message.Message):
    __slots__ = ["channel", "dedup_keys", "message_ids", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DEDUP_KEYS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_IDS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    dedup_keys: _containers.RepeatedScalarFieldContainer[str]
    message_ids: _containers.RepeatedScalarFieldContainer[str]
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., message_ids: _Optional[_Iterable[str]] = ..., dedup_keys: _Optional[_Iterable[str]] = ...) -> None: ...

class CancelMessagesResponse(_message.Message):
    __slots__ = ["outcomes"]
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_CANCELLED: CancelMessagesResponse.Outcome
    OUTCOME_NOT_FOUND: CancelMessagesResponse.Outcome
    OUTCOME_REVOKED: CancelMessagesResponse.Outcome
    OUTCOME_UNSPECIFIED: CancelMessagesResponse.Outcome
    outcomes: _containers.RepeatedScalarFieldContainer[CancelMessagesResponse.Outcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[CancelMessagesResponse.Outcome, str]]] = ...) -> None: ...

class ConsumeRequest(_message.Message):
    __slots__ = ["channel", "max_batch", "max_in_flight", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    max_batch: int
    max_in_flight: int
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., max_in_flight: _Optional[int] = ..., max_batch: _Optional[int] = ...) -> None: ...

class ConsumeResponse(_message.Message):
    __slots__ = ["message", "messages"]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: _messages_pb2.Message
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    def __init__(self, message: _Optional[_Union[_messages_pb2.Message, _Mapping]] = ..., messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ...) -> None: ...

class ConsumeSessionRequest(_message.Message):
    __slots__ = ["ack", "alive", "begun", "close", "credit", "extend", "nack", "open", "window"]
    class Alive(_message.Message):
        __slots__ = ["handling_time_us", "sequence"]
        HANDLING_TIME_US_FIELD_NUMBER: _ClassVar[int]
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        handling_time_us: int
        sequence: int
        def __init__(self, sequence: _Optional[int] = ..., handling_time_us: _Optional[int] = ...) -> None: ...
    class Begun(_message.Message):
        __slots__ = ["lease_ids"]
        LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
        lease_ids: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, lease_ids: _Optional[_Iterable[int]] = ...) -> None: ...
    class Close(_message.Message):
        __slots__ = ["release"]
        RELEASE_FIELD_NUMBER: _ClassVar[int]
        release: bool
        def __init__(self, release: bool = ...) -> None: ...
    class Extend(_message.Message):
        __slots__ = ["extend_ms", "lease_ids"]
        EXTEND_MS_FIELD_NUMBER: _ClassVar[int]
        LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
        extend_ms: int
        lease_ids: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, lease_ids: _Optional[_Iterable[int]] = ..., extend_ms: _Optional[int] = ...) -> None: ...
    class Open(_message.Message):
        __slots__ = ["channel", "initial_credit", "max_in_flight", "max_lease_renewal_ms", "name", "queue", "resume", "tracks_begun"]
        CHANNEL_FIELD_NUMBER: _ClassVar[int]
        INITIAL_CREDIT_FIELD_NUMBER: _ClassVar[int]
        MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
        MAX_LEASE_RENEWAL_MS_FIELD_NUMBER: _ClassVar[int]
        NAME_FIELD_NUMBER: _ClassVar[int]
        QUEUE_FIELD_NUMBER: _ClassVar[int]
        RESUME_FIELD_NUMBER: _ClassVar[int]
        TRACKS_BEGUN_FIELD_NUMBER: _ClassVar[int]
        channel: str
        initial_credit: int
        max_in_flight: int
        max_lease_renewal_ms: int
        name: str
        queue: str
        resume: ConsumeSessionRequest.Resume
        tracks_begun: bool
        def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., max_in_flight: _Optional[int] = ..., initial_credit: _Optional[int] = ..., tracks_begun: bool = ..., name: _Optional[str] = ..., max_lease_renewal_ms: _Optional[int] = ..., resume: _Optional[_Union[ConsumeSessionRequest.Resume, _Mapping]] = ...) -> None: ...
    class Resume(_message.Message):
        __slots__ = ["consumer_id", "lease_ids"]
        CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
        LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
        consumer_id: int
        lease_ids: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, consumer_id: _Optional[int] = ..., lease_ids: _Optional[_Iterable[int]] = ...) -> None: ...
    class Window(_message.Message):
        __slots__ = ["give_back", "size"]
        GIVE_BACK_FIELD_NUMBER: _ClassVar[int]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        give_back: _containers.RepeatedScalarFieldContainer[int]
        size: int
        def __init__(self, size: _Optional[int] = ..., give_back: _Optional[_Iterable[int]] = ...) -> None: ...
    ACK_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    NACK_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    ack: Settle
    alive: ConsumeSessionRequest.Alive
    begun: ConsumeSessionRequest.Begun
    close: ConsumeSessionRequest.Close
    credit: int
    extend: ConsumeSessionRequest.Extend
    nack: Settle
    open: ConsumeSessionRequest.Open
    window: ConsumeSessionRequest.Window
    def __init__(self, open: _Optional[_Union[ConsumeSessionRequest.Open, _Mapping]] = ..., credit: _Optional[int] = ..., ack: _Optional[_Union[Settle, _Mapping]] = ..., nack: _Optional[_Union[Settle, _Mapping]] = ..., extend: _Optional[_Union[ConsumeSessionRequest.Extend, _Mapping]] = ..., close: _Optional[_Union[ConsumeSessionRequest.Close, _Mapping]] = ..., begun: _Optional[_Union[ConsumeSessionRequest.Begun, _Mapping]] = ..., window: _Optional[_Union[ConsumeSessionRequest.Window, _Mapping]] = ..., alive: _Optional[_Union[ConsumeSessionRequest.Alive, _Mapping]] = ...) -> None: ...

class ConsumeSessionResponse(_message.Message):
    __slots__ = ["alive", "delivery", "extended", "opened", "revoked", "settled"]
    class Alive(_message.Message):
        __slots__ = ["sequence"]
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        sequence: int
        def __init__(self, sequence: _Optional[int] = ...) -> None: ...
    class Delivery(_message.Message):
        __slots__ = ["messages"]
        MESSAGES_FIELD_NUMBER: _ClassVar[int]
        messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
        def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ...) -> None: ...
    class Extended(_message.Message):
        __slots__ = ["failures", "lease_expires_at", "lease_ids"]
        FAILURES_FIELD_NUMBER: _ClassVar[int]
        LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
        LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
        failures: _containers.RepeatedCompositeFieldContainer[ConsumeSessionResponse.Failure]
        lease_expires_at: _timestamp_pb2.Timestamp
        lease_ids: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, lease_ids: _Optional[_Iterable[int]] = ..., lease_expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., failures: _Optional[_Iterable[_Union[ConsumeSessionResponse.Failure, _Mapping]]] = ...) -> None: ...
    class Failure(_message.Message):
        __slots__ = ["lease_id", "status"]
        LEASE_ID_FIELD_NUMBER: _ClassVar[int]
        STATUS_FIELD_NUMBER: _ClassVar[int]
        lease_id: int
        status: _messages_pb2.ItemStatus
        def __init__(self, lease_id: _Optional[int] = ..., status: _Optional[_Union[_messages_pb2.ItemStatus, _Mapping]] = ...) -> None: ...
    class Opened(_message.Message):
        __slots__ = ["consumer_id", "disconnect_grace_ms", "lost_lease_ids", "max_lease_renewal_ms", "visibility_timeout_ms"]
        CONSUMER_ID_FIELD_NUMBER: _ClassVar[int]
        DISCONNECT_GRACE_MS_FIELD_NUMBER: _ClassVar[int]
        LOST_LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
        MAX_LEASE_RENEWAL_MS_FIELD_NUMBER: _ClassVar[int]
        VISIBILITY_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
        consumer_id: int
        disconnect_grace_ms: int
        lost_lease_ids: _containers.RepeatedScalarFieldContainer[int]
        max_lease_renewal_ms: int
        visibility_timeout_ms: int
        def __init__(self, consumer_id: _Optional[int] = ..., visibility_timeout_ms: _Optional[int] = ..., disconnect_grace_ms: _Optional[int] = ..., max_lease_renewal_ms: _Optional[int] = ..., lost_lease_ids: _Optional[_Iterable[int]] = ...) -> None: ...
    class Revoked(_message.Message):
        __slots__ = ["lease_ids", "reason"]
        LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        lease_ids: _containers.RepeatedScalarFieldContainer[int]
        reason: str
        def __init__(self, lease_ids: _Optional[_Iterable[int]] = ..., reason: _Optional[str] = ...) -> None: ...
    class Settled(_message.Message):
        __slots__ = ["failures", "sequence"]
        FAILURES_FIELD_NUMBER: _ClassVar[int]
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        failures: _containers.RepeatedCompositeFieldContainer[ConsumeSessionResponse.Failure]
        sequence: int
        def __init__(self, sequence: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[ConsumeSessionResponse.Failure, _Mapping]]] = ...) -> None: ...
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    EXTENDED_FIELD_NUMBER: _ClassVar[int]
    OPENED_FIELD_NUMBER: _ClassVar[int]
    REVOKED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    alive: ConsumeSessionResponse.Alive
    delivery: ConsumeSessionResponse.Delivery
    extended: ConsumeSessionResponse.Extended
    opened: ConsumeSessionResponse.Opened
    revoked: ConsumeSessionResponse.Revoked
    settled: ConsumeSessionResponse.Settled
    def __init__(self, opened: _Optional[_Union[ConsumeSessionResponse.Opened, _Mapping]] = ..., delivery: _Optional[_Union[ConsumeSessionResponse.Delivery, _Mapping]] = ..., settled: _Optional[_Union[ConsumeSessionResponse.Settled, _Mapping]] = ..., extended: _Optional[_Union[ConsumeSessionResponse.Extended, _Mapping]] = ..., revoked: _Optional[_Union[ConsumeSessionResponse.Revoked, _Mapping]] = ..., alive: _Optional[_Union[ConsumeSessionResponse.Alive, _Mapping]] = ...) -> None: ...

class EnqueueBatchRequest(_message.Message):
    __slots__ = ["messages", "queue"]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[EnqueueMessage]
    queue: str
    def __init__(self, queue: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[EnqueueMessage, _Mapping]]] = ...) -> None: ...

class EnqueueBatchResponse(_message.Message):
    __slots__ = ["results"]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[EnqueueResult]
    def __init__(self, results: _Optional[_Iterable[_Union[EnqueueResult, _Mapping]]] = ...) -> None: ...

class EnqueueMessage(_message.Message):
    __slots__ = ["headers", "options", "payload", "queue"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    headers: _containers.ScalarMap[str, str]
    options: EnqueueOptions
    payload: bytes
    queue: str
    def __init__(self, queue: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ..., options: _Optional[_Union[EnqueueOptions, _Mapping]] = ...) -> None: ...

class EnqueueOptions(_message.Message):
    __slots__ = ["cost", "dedup_key", "delay_ms", "deliver_at", "fairness_key", "max_wait_ms", "on_duplicate", "priority", "ttl_ms", "weight"]
    class OnDuplicate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    COST_FIELD_NUMBER: _ClassVar[int]
    DEDUP_KEY_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    ON_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    ON_DUPLICATE_FIRST: EnqueueOptions.OnDuplicate
    ON_DUPLICATE_REPLACE: EnqueueOptions.OnDuplicate
    ON_DUPLICATE_UNSPECIFIED: EnqueueOptions.OnDuplicate
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    cost: float
    dedup_key: str
    delay_ms: int
    deliver_at: _timestamp_pb2.Timestamp
    fairness_key: str
    max_wait_ms: int
    on_duplicate: EnqueueOptions.OnDuplicate
    priority: int
    ttl_ms: int
    weight: int
    def __init__(self, delay_ms: _Optional[int] = ..., deliver_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., ttl_ms: _Optional[int] = ..., dedup_key: _Optional[str] = ..., on_duplicate: _Optional[_Union[EnqueueOptions.OnDuplicate, str]] = ..., max_wait_ms: _Optional[int] = ..., priority: _Optional[int] = ..., fairness_key: _Optional[str] = ..., weight: _Optional[int] = ..., cost: _Optional[float] = ...) -> None: ...

class EnqueueRequest(_message.Message):
    __slots__ = ["headers", "options", "payload", "queue"]
    class HeadersEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    headers: _containers.ScalarMap[str, str]
    options: EnqueueOptions
    payload: bytes
    queue: str
    def __init__(self, queue: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., payload: _Optional[bytes] = ..., options: _Optional[_Union[EnqueueOptions, _Mapping]] = ...) -> None: ...

class EnqueueResponse(_message.Message):
    __slots__ = ["message_id", "offset"]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    offset: int
    def __init__(self, message_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class EnqueueResult(_message.Message):
    __slots__ = ["error", "message_id", "offset"]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    error: _messages_pb2.ItemStatus
    message_id: str
    offset: int
    def __init__(self, message_id: _Optional[str] = ..., offset: _Optional[int] = ..., error: _Optional[_Union[_messages_pb2.ItemStatus, _Mapping]] = ...) -> None: ...

class EnqueueStreamRequest(_message.Message):
    __slots__ = ["batch", "sequence"]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    batch: EnqueueBatchRequest
    sequence: int
    def __init__(self, sequence: _Optional[int] = ..., batch: _Optional[_Union[EnqueueBatchRequest, _Mapping]] = ...) -> None: ...

class EnqueueStreamResponse(_message.Message):
    __slots__ = ["results", "sequence"]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[EnqueueResult]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ..., results: _Optional[_Iterable[_Union[EnqueueResult, _Mapping]]] = ...) -> None: ...

class ExtendLeaseRequest(_message.Message):
    __slots__ = ["channel", "extend_ms", "lease_id", "message_id", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    EXTEND_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    extend_ms: int
    lease_id: int
    message_id: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., message_id: _Optional[str] = ..., lease_id: _Optional[int] = ..., extend_ms: _Optional[int] = ...) -> None: ...

class ExtendLeaseResponse(_message.Message):
    __slots__ = ["lease_expires_at"]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    lease_expires_at: _timestamp_pb2.Timestamp
    def __init__(self, lease_expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class LeaseRequest(_message.Message):
    __slots__ = ["channel", "max_messages", "queue", "wait_ms"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    channel: str
    max_messages: int
    queue: str
    wait_ms: int
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., max_messages: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class LeaseResponse(_message.Message):
    __slots__ = ["messages"]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[_messages_pb2.Message]
    def __init__(self, messages: _Optional[_Iterable[_Union[_messages_pb2.Message, _Mapping]]] = ...) -> None: ...

class LimitFeedback(_message.Message):
    __slots__ = ["kind", "limit", "remaining", "reset_ms", "retry_after_ms"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    KIND_FIELD_NUMBER: _ClassVar[int]
    KIND_LIMITED: LimitFeedback.Kind
    KIND_REMAINING: LimitFeedback.Kind
    KIND_UNSPECIFIED: LimitFeedback.Kind
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    RESET_MS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    kind: LimitFeedback.Kind
    limit: str
    remaining: int
    reset_ms: int
    retry_after_ms: int
    def __init__(self, limit: _Optional[str] = ..., kind: _Optional[_Union[LimitFeedback.Kind, str]] = ..., retry_after_ms: _Optional[int] = ..., remaining: _Optional[int] = ..., reset_ms: _Optional[int] = ...) -> None: ...

class NackBatchRequest(_message.Message):
    __slots__ = ["channel", "items", "queue"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    items: _containers.RepeatedCompositeFieldContainer[SettleItem]
    queue: str
    def __init__(self, queue: _Optional[str] = ..., channel: _Optional[str] = ..., items: _Optional[_Iterable[_Union[SettleItem, _Mapping]]] = ...) -> None: ...

class NackRequest(_message.Message):
    __slots__ = ["channel", "dead_letter", "delay_ms", "error", "feedback", "lease_id", "message_id", "queue", "release"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    channel: str
    dead_letter: bool
    delay_ms: int
    error: str
    feedback: _containers.RepeatedCompositeFieldContainer[LimitFeedback]
    lease_id: int
    message_id: str
    queue: str
    release: bool
    def __init__(self, queue: _Optional[str] = ..., message_id: _Optional[str] = ..., error: _Optional[str] = ..., channel: _Optional[str] = ..., lease_id: _Optional[int] = ..., delay_ms: _Optional[int] = ..., dead_letter: bool = ..., release: bool = ..., feedback: _Optional[_Iterable[_Union[LimitFeedback, _Mapping]]] = ...) -> None: ...

class NackResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Settle(_message.Message):
    __slots__ = ["dead_letter", "delay_ms", "error", "feedback", "lease_ids", "release", "sequence"]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    LEASE_IDS_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    dead_letter: bool
    delay_ms: int
    error: str
    feedback: _containers.RepeatedCompositeFieldContainer[LimitFeedback]
    lease_ids: _containers.RepeatedScalarFieldContainer[int]
    release: bool
    sequence: int
    def __init__(self, sequence: _Optional[int] = ..., lease_ids: _Optional[_Iterable[int]] = ..., error: _Optional[str] = ..., delay_ms: _Optional[int] = ..., dead_letter: bool = ..., release: bool = ..., feedback: _Optional[_Iterable[_Union[LimitFeedback, _Mapping]]] = ...) -> None: ...

class SettleBatchResponse(_message.Message):
    __slots__ = ["results"]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_messages_pb2.ItemStatus]
    def __init__(self, results: _Optional[_Iterable[_Union[_messages_pb2.ItemStatus, _Mapping]]] = ...) -> None: ...

class SettleItem(_message.Message):
    __slots__ = ["dead_letter", "delay_ms", "error", "feedback", "lease_id", "message_id", "release"]
    DEAD_LETTER_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FEEDBACK_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    dead_letter: bool
    delay_ms: int
    error: str
    feedback: _containers.RepeatedCompositeFieldContainer[LimitFeedback]
    lease_id: int
    message_id: str
    release: bool
    def __init__(self, message_id: _Optional[str] = ..., lease_id: _Optional[int] = ..., error: _Optional[str] = ..., delay_ms: _Optional[int] = ..., dead_letter: bool = ..., release: bool = ..., feedback: _Optional[_Iterable[_Union[LimitFeedback, _Mapping]]] = ...) -> None: ...
