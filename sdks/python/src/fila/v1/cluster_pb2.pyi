# Generated from proto/ by `make gen`; do not edit.
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
NODE_ROLE_GONE: NodeRole
NODE_ROLE_HALTED: NodeRole
NODE_ROLE_OWNER: NodeRole
NODE_ROLE_STANDBY: NodeRole
NODE_ROLE_UNSPECIFIED: NodeRole

class ClusterNode(_message.Message):
    __slots__ = ["behind_records", "client_addr", "clock_offset_ms", "differing_settings", "in_sync", "lacks", "log_format", "node", "node_id", "peer_addr", "position", "redis_addr", "role", "since", "store_format", "version"]
    BEHIND_RECORDS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ADDR_FIELD_NUMBER: _ClassVar[int]
    CLOCK_OFFSET_MS_FIELD_NUMBER: _ClassVar[int]
    DIFFERING_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    IN_SYNC_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    LOG_FORMAT_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDR_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    REDIS_ADDR_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    STORE_FORMAT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    behind_records: int
    client_addr: str
    clock_offset_ms: int
    differing_settings: _containers.RepeatedScalarFieldContainer[str]
    in_sync: bool
    lacks: str
    log_format: int
    node: str
    node_id: int
    peer_addr: str
    position: int
    redis_addr: str
    role: NodeRole
    since: _timestamp_pb2.Timestamp
    store_format: int
    version: str
    def __init__(self, node: _Optional[str] = ..., role: _Optional[_Union[NodeRole, str]] = ..., since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., position: _Optional[int] = ..., behind_records: _Optional[int] = ..., in_sync: bool = ..., lacks: _Optional[str] = ..., version: _Optional[str] = ..., store_format: _Optional[int] = ..., log_format: _Optional[int] = ..., clock_offset_ms: _Optional[int] = ..., differing_settings: _Optional[_Iterable[str]] = ..., client_addr: _Optional[str] = ..., redis_addr: _Optional[str] = ..., peer_addr: _Optional[str] = ..., node_id: _Optional[int] = ...) -> None: ...

class GetClusterStatusRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GetClusterStatusResponse(_message.Message):
    __slots__ = ["group", "nodes", "short_terms", "skipped_records", "takeovers", "term", "unconfirmed_bytes", "unconfirmed_records", "written_format"]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    SHORT_TERMS_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    TAKEOVERS_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    UNCONFIRMED_BYTES_FIELD_NUMBER: _ClassVar[int]
    UNCONFIRMED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FORMAT_FIELD_NUMBER: _ClassVar[int]
    group: str
    nodes: _containers.RepeatedCompositeFieldContainer[ClusterNode]
    short_terms: int
    skipped_records: int
    takeovers: int
    term: int
    unconfirmed_bytes: int
    unconfirmed_records: int
    written_format: int
    def __init__(self, group: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[ClusterNode, _Mapping]]] = ..., term: _Optional[int] = ..., short_terms: _Optional[int] = ..., unconfirmed_records: _Optional[int] = ..., unconfirmed_bytes: _Optional[int] = ..., takeovers: _Optional[int] = ..., skipped_records: _Optional[int] = ..., written_format: _Optional[int] = ...) -> None: ...

class MoveOwnerRequest(_message.Message):
    __slots__ = ["node"]
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class MoveOwnerResponse(_message.Message):
    __slots__ = ["node", "term"]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    node: str
    term: int
    def __init__(self, node: _Optional[str] = ..., term: _Optional[int] = ...) -> None: ...

class RemoveNodeRequest(_message.Message):
    __slots__ = ["node"]
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    def __init__(self, node: _Optional[str] = ...) -> None: ...

class RemoveNodeResponse(_message.Message):
    __slots__ = ["node", "peer_addr"]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PEER_ADDR_FIELD_NUMBER: _ClassVar[int]
    node: str
    peer_addr: str
    def __init__(self, node: _Optional[str] = ..., peer_addr: _Optional[str] = ...) -> None: ...

class UpgradeGroupRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class UpgradeGroupResponse(_message.Message):
    __slots__ = ["format", "is_raised", "node", "term"]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    IS_RAISED_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    format: int
    is_raised: bool
    node: str
    term: int
    def __init__(self, format: _Optional[int] = ..., is_raised: bool = ..., node: _Optional[str] = ..., term: _Optional[int] = ...) -> None: ...

class NodeRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
