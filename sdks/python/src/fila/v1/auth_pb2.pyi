# Generated from proto/ by `make gen`; do not edit.
from fila.v1 import admin_pb2 as _admin_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
RIGHT_ADMIN: Right
RIGHT_CANCEL: Right
RIGHT_CONSUME: Right
RIGHT_MANAGE: Right
RIGHT_PRODUCE: Right
RIGHT_UNSPECIFIED: Right
RIGHT_VIEW: Right

class AuditRecord(_message.Message):
    __slots__ = ["act", "at", "claimed_address", "details", "key_id", "number", "peer", "principal", "queue"]
    class DetailsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ACT_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    act: str
    at: _timestamp_pb2.Timestamp
    claimed_address: str
    details: _containers.ScalarMap[str, str]
    key_id: str
    number: int
    peer: str
    principal: str
    queue: str
    def __init__(self, number: _Optional[int] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., act: _Optional[str] = ..., principal: _Optional[str] = ..., key_id: _Optional[str] = ..., peer: _Optional[str] = ..., queue: _Optional[str] = ..., details: _Optional[_Mapping[str, str]] = ..., claimed_address: _Optional[str] = ...) -> None: ...

class CreateKeyRequest(_message.Message):
    __slots__ = ["as_tenant", "expires_after_ms", "name"]
    AS_TENANT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    as_tenant: str
    expires_after_ms: int
    name: str
    def __init__(self, name: _Optional[str] = ..., expires_after_ms: _Optional[int] = ..., as_tenant: _Optional[str] = ...) -> None: ...

class CreateKeyResponse(_message.Message):
    __slots__ = ["key", "key_id"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    key: str
    key_id: str
    def __init__(self, key: _Optional[str] = ..., key_id: _Optional[str] = ...) -> None: ...

class CreateTenantLinkRequest(_message.Message):
    __slots__ = ["fairness_key", "queue", "right", "ttl_ms"]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    fairness_key: str
    queue: str
    right: Right
    ttl_ms: int
    def __init__(self, queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., ttl_ms: _Optional[int] = ..., right: _Optional[_Union[Right, str]] = ...) -> None: ...

class CreateTenantLinkResponse(_message.Message):
    __slots__ = ["key", "link"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    key: str
    link: TenantLink
    def __init__(self, key: _Optional[str] = ..., link: _Optional[_Union[TenantLink, _Mapping]] = ...) -> None: ...

class ForgetPrincipalRequest(_message.Message):
    __slots__ = ["force", "name", "validate_only"]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    force: bool
    name: str
    validate_only: bool
    def __init__(self, name: _Optional[str] = ..., validate_only: bool = ..., force: bool = ...) -> None: ...

class ForgetPrincipalResponse(_message.Message):
    __slots__ = ["principal"]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal: Principal
    def __init__(self, principal: _Optional[_Union[Principal, _Mapping]] = ...) -> None: ...

class GetPrincipalRequest(_message.Message):
    __slots__ = ["name"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetPrincipalResponse(_message.Message):
    __slots__ = ["principal"]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal: Principal
    def __init__(self, principal: _Optional[_Union[Principal, _Mapping]] = ...) -> None: ...

class GrantRequest(_message.Message):
    __slots__ = ["name", "permissions"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    permissions: _containers.RepeatedCompositeFieldContainer[Permission]
    def __init__(self, name: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ...) -> None: ...

class GrantResponse(_message.Message):
    __slots__ = ["principal"]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal: Principal
    def __init__(self, principal: _Optional[_Union[Principal, _Mapping]] = ...) -> None: ...

class KeyInfo(_message.Message):
    __slots__ = ["bootstrap", "created_at", "expires_at", "key_id"]
    BOOTSTRAP_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    bootstrap: bool
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    key_id: str
    def __init__(self, key_id: _Optional[str] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., bootstrap: bool = ...) -> None: ...

class ListAuditRequest(_message.Message):
    __slots__ = ["before", "limit"]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    before: int
    limit: int
    def __init__(self, before: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ListAuditResponse(_message.Message):
    __slots__ = ["records"]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[AuditRecord]
    def __init__(self, records: _Optional[_Iterable[_Union[AuditRecord, _Mapping]]] = ...) -> None: ...

class ListPrincipalsRequest(_message.Message):
    __slots__ = ["prefix"]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    def __init__(self, prefix: _Optional[str] = ...) -> None: ...

class ListPrincipalsResponse(_message.Message):
    __slots__ = ["principals"]
    PRINCIPALS_FIELD_NUMBER: _ClassVar[int]
    principals: _containers.RepeatedCompositeFieldContainer[Principal]
    def __init__(self, principals: _Optional[_Iterable[_Union[Principal, _Mapping]]] = ...) -> None: ...

class ListTenantLinksRequest(_message.Message):
    __slots__ = ["queue"]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class ListTenantLinksResponse(_message.Message):
    __slots__ = ["links"]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedCompositeFieldContainer[TenantLink]
    def __init__(self, links: _Optional[_Iterable[_Union[TenantLink, _Mapping]]] = ...) -> None: ...

class Permission(_message.Message):
    __slots__ = ["channel", "queue", "right"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    channel: str
    queue: str
    right: Right
    def __init__(self, right: _Optional[_Union[Right, str]] = ..., queue: _Optional[str] = ..., channel: _Optional[str] = ...) -> None: ...

class Principal(_message.Message):
    __slots__ = ["connections", "in_flight", "keys", "name", "permissions", "quota_refusals", "quotas", "stored_bytes", "streams", "tenant"]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    QUOTA_REFUSALS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    connections: int
    in_flight: int
    keys: _containers.RepeatedCompositeFieldContainer[KeyInfo]
    name: str
    permissions: _containers.RepeatedCompositeFieldContainer[Permission]
    quota_refusals: int
    quotas: Quotas
    stored_bytes: int
    streams: int
    tenant: str
    def __init__(self, name: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ..., tenant: _Optional[str] = ..., keys: _Optional[_Iterable[_Union[KeyInfo, _Mapping]]] = ..., quotas: _Optional[_Union[Quotas, _Mapping]] = ..., connections: _Optional[int] = ..., streams: _Optional[int] = ..., quota_refusals: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., in_flight: _Optional[int] = ...) -> None: ...

class Quotas(_message.Message):
    __slots__ = ["bytes_per_second", "connections", "in_flight", "messages_per_second", "stored_bytes", "streams"]
    BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    bytes_per_second: float
    connections: int
    in_flight: int
    messages_per_second: float
    stored_bytes: int
    streams: int
    def __init__(self, messages_per_second: _Optional[float] = ..., bytes_per_second: _Optional[float] = ..., connections: _Optional[int] = ..., streams: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., in_flight: _Optional[int] = ...) -> None: ...

class RevokeGrantRequest(_message.Message):
    __slots__ = ["force", "name", "permissions"]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    force: bool
    name: str
    permissions: _containers.RepeatedCompositeFieldContainer[Permission]
    def __init__(self, name: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ..., force: bool = ...) -> None: ...

class RevokeGrantResponse(_message.Message):
    __slots__ = ["principal"]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal: Principal
    def __init__(self, principal: _Optional[_Union[Principal, _Mapping]] = ...) -> None: ...

class RevokeKeyRequest(_message.Message):
    __slots__ = ["force", "key_id"]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    force: bool
    key_id: str
    def __init__(self, key_id: _Optional[str] = ..., force: bool = ...) -> None: ...

class RevokeKeyResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class RevokeTenantLinkRequest(_message.Message):
    __slots__ = ["link_id", "queue"]
    LINK_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    link_id: str
    queue: str
    def __init__(self, queue: _Optional[str] = ..., link_id: _Optional[str] = ...) -> None: ...

class RevokeTenantLinkResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class RotateKeyRequest(_message.Message):
    __slots__ = ["expires_after_ms", "key_id", "overlap_ms"]
    EXPIRES_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_MS_FIELD_NUMBER: _ClassVar[int]
    expires_after_ms: int
    key_id: str
    overlap_ms: int
    def __init__(self, key_id: _Optional[str] = ..., overlap_ms: _Optional[int] = ..., expires_after_ms: _Optional[int] = ...) -> None: ...

class RotateKeyResponse(_message.Message):
    __slots__ = ["key", "key_id"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    key: str
    key_id: str
    def __init__(self, key: _Optional[str] = ..., key_id: _Optional[str] = ...) -> None: ...

class SetQuotasRequest(_message.Message):
    __slots__ = ["name", "quotas"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    name: str
    quotas: Quotas
    def __init__(self, name: _Optional[str] = ..., quotas: _Optional[_Union[Quotas, _Mapping]] = ...) -> None: ...

class SetQuotasResponse(_message.Message):
    __slots__ = ["principal"]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal: Principal
    def __init__(self, principal: _Optional[_Union[Principal, _Mapping]] = ...) -> None: ...

class TenantLink(_message.Message):
    __slots__ = ["created_at", "created_by", "expires_at", "fairness_key", "link_id", "queue", "right"]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    LINK_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RIGHT_FIELD_NUMBER: _ClassVar[int]
    created_at: _timestamp_pb2.Timestamp
    created_by: str
    expires_at: _timestamp_pb2.Timestamp
    fairness_key: str
    link_id: str
    queue: str
    right: Right
    def __init__(self, link_id: _Optional[str] = ..., queue: _Optional[str] = ..., fairness_key: _Optional[str] = ..., created_by: _Optional[str] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., right: _Optional[_Union[Right, str]] = ...) -> None: ...

class WhoAmIRequest(_message.Message):
    __slots__ = ["queue"]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    queue: str
    def __init__(self, queue: _Optional[str] = ...) -> None: ...

class WhoAmIResponse(_message.Message):
    __slots__ = ["auth_enabled", "expires_at", "intake", "key_id", "peer", "permissions", "principal", "tenant"]
    AUTH_ENABLED_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    INTAKE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    auth_enabled: bool
    expires_at: _timestamp_pb2.Timestamp
    intake: _admin_pb2.Intake
    key_id: str
    peer: str
    permissions: _containers.RepeatedCompositeFieldContainer[Permission]
    principal: str
    tenant: str
    def __init__(self, principal: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[Permission, _Mapping]]] = ..., tenant: _Optional[str] = ..., key_id: _Optional[str] = ..., expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., auth_enabled: bool = ..., peer: _Optional[str] = ..., intake: _Optional[_Union[_admin_pb2.Intake, _Mapping]] = ...) -> None: ...

class Right(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
