"""proto/http.yaml, read and held against the protos: every RPC has a row, and every row an RPC."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

FILE = Path(__file__).parents[1] / "http.yaml"
WITHOUT_BODY = ("GET", "DELETE")
IN_PATH = frozenset({"queue", "dlq_queue", "channel", "schedule"})
"""Fields that may stand in a path: their values hold no slash."""
SCALAR_MESSAGES = frozenset({"google.protobuf.Timestamp", "google.protobuf.FieldMask"})
"""Messages that JSON writes as a text, so that they fit in a query."""

KEY = "key"
"""In the path of a raw address: the caller's key, and no field."""
OPTIONS = "options"
"""The field of a message whose fields the query holds, where the body is the payload."""
PAYLOAD = "payload"

_ROUTE = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/v1(?:/[a-z-]+|/\{[a-z_]+\})+)")
_PARTS = {"route", "raw", "needs", "body", "events", "none"}


class BadRow(Exception):
    """What is wrong with http.yaml, and what to write there."""


@dataclass(frozen=True, slots=True)
class Row:
    """One RPC over HTTP."""

    method: MethodDescriptor
    verb: str
    path: str
    body: str = ""
    """The field that is the body; empty: the body is all that stands nowhere else."""
    events: dict[str, Any] = field(default_factory=dict)
    """Of a stream: how it becomes events."""
    raw: bool = False
    """The body is a message's payload as it is."""
    needs: tuple[str, ...] = ()
    """Fields that may not be empty."""

    @property
    def name(self) -> str:
        if not self.raw:
            return str(self.method.name)
        return f"{self.method.name}{'ByAddress' if self.by_address else 'Raw'}"

    @property
    def by_address(self) -> bool:
        """Whether the caller's key stands in the path."""
        return f"{{{KEY}}}" in self.path

    @property
    def request(self) -> Descriptor:
        return self.method.input_type

    @property
    def response(self) -> Descriptor:
        return self.method.output_type

    @property
    def in_path(self) -> list[str]:
        """Fields that stand in the path."""
        return [name for name in re.findall(r"\{([a-z_]+)\}", self.path) if not (self.raw and name == KEY)]

    @property
    def in_query(self) -> list[FieldDescriptor]:
        """Fields that come by the query."""
        if self.raw:
            options: Any = self.request.fields_by_name[OPTIONS].message_type
            return list(options.fields)
        elsewhere = {*self.in_path, self.body}
        if self.verb in WITHOUT_BODY or self.body:
            return [each for each in self.request.fields if each.name not in elsewhere]
        return []

    @property
    def in_body(self) -> list[FieldDescriptor]:
        """Fields of the body, where no single field is the body."""
        if self.verb in WITHOUT_BODY or self.body or self.raw:
            return []
        return [each for each in self.request.fields if each.name not in self.in_path]

    @property
    def url(self) -> str:
        """The path with the fields' JSON names."""
        names = {name: self.request.fields_by_name[name].json_name for name in self.in_path}
        return re.sub(r"\{([a-z_]+)\}", lambda it: f"{{{names.get(it[1], it[1])}}}", self.path)


def pool_of(files: list[FileDescriptorProto]) -> DescriptorPool:
    """The files' descriptors, by themselves: the libraries' own know the protos as they were when they were made."""
    pool = DescriptorPool()
    for each in files:
        pool.Add(each)
    return pool


class _Loader(yaml.SafeLoader):
    """Two rows of one name, as a merge may leave them, are no rows: YAML itself would take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                raise BadRow(f"{name} has two rows; take one out")
        return super().construct_mapping(node, deep)


def read_rows(pool: DescriptorPool, files: list[FileDescriptorProto]) -> list[Row]:
    """Every RPC that HTTP has, in the order of http.yaml. Raises BadRow."""
    written: dict[str, dict[str, Any]] = yaml.load(FILE.read_text(), _Loader)  # noqa: S506 - safe, see above
    methods = {
        (service.name, method.name): pool.FindMethodByName(f"{each.package}.{service.name}.{method.name}")
        for each in files
        for service in each.service
        for method in service.method
    }
    named = {(service, name) for service, rows in written.items() for name in rows}
    for service, name in sorted(methods.keys() - named):
        raise BadRow(
            f"{service}/{name} has no row. Add one below {service}: `{name}: POST /v1/...` with the method and path "
            f"it has over HTTP, or `{name}: {{none: why it has none}}`; the file's head says more"
        )
    for service, name in sorted(named - methods.keys()):
        raise BadRow(f"{service}/{name} is no RPC of the protos; take the row out")
    found = [
        row
        for service, of_service in written.items()
        for name, said in of_service.items()
        for row in _rows_of(methods[service, name], said if isinstance(said, dict) else {"route": said})
    ]
    _check_distinct(found)
    return found


def _rows_of(method: MethodDescriptor, said: dict[str, Any]) -> list[Row]:
    name = f"{method.containing_service.name}/{method.name}"
    if unknown := said.keys() - _PARTS:
        raise BadRow(
            f"{name}: {', '.join(sorted(unknown))} is no part of a row; {', '.join(sorted(_PARTS))} are"
        )
    if "none" in said:
        if not str(said["none"] or "").strip() or len(said) > 1:
            raise BadRow(f"{name}: `none` says why the call is not over HTTP, and stands alone")
        return []
    verb, path = _place(name, said.get("route"))
    if method.client_streaming:
        raise BadRow(f"{name} takes a stream, which HTTP has not: write `none` with the reason")
    if "events" in said and not method.server_streaming:
        raise BadRow(f"{name} answers once; `events` is for calls that answer with a stream")
    events, needs = said.get("events") or {}, tuple(said.get("needs", ()))
    rows = [Row(method, verb, path, str(said.get("body", "")), events, needs=needs)]
    if "raw" in said and not {OPTIONS, PAYLOAD} <= set(rows[0].request.fields_by_name):
        raise BadRow(f"{name}: `raw` is for a message, with fields {PAYLOAD} and {OPTIONS}")
    rows += [Row(method, *_place(name, each), raw=True) for each in said.get("raw", ())]
    for row in rows:
        _check_fields(name, row)
    return rows


def _place(name: str, said: object) -> tuple[str, str]:
    route = _ROUTE.fullmatch(str(said))
    if route is None:
        raise BadRow(f"{name}: write its route like POST /v1/queues/{{queue}}/messages, got {said!r}")
    return route[1], route[2]


def _check_fields(name: str, row: Row) -> None:
    fields = row.request.fields_by_name
    for place in row.in_path:
        if place not in fields or place not in IN_PATH:
            raise BadRow(
                f"{name}: {{{place}}} can't stand in the path; {', '.join(sorted(IN_PATH))} can, where the request has "
                "them: other values may hold a slash, and go into the query or the body"
            )
    if row.body and row.body not in fields:
        raise BadRow(f"{name}: the request has no field {row.body} to be the body")
    for each in row.in_query:
        is_map_or_message = (
            each.message_type is not None and each.message_type.full_name not in SCALAR_MESSAGES
        )
        if is_map_or_message:
            raise BadRow(f"{name}: {each.name} is a message, which a query can't hold; use POST or `body`")
    if strange := set(row.needs) - {each.name for each in (*row.in_query, *row.in_body)}:
        raise BadRow(
            f"{name}: {', '.join(sorted(strange))} stands in neither body nor query, and can't be needed"
        )
    resume = row.events.get("resume")
    if resume and resume not in fields:
        raise BadRow(f"{name}: the request has no field {resume} to resume by")


def _check_distinct(rows: list[Row]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for row in rows:
        place = (row.verb, re.sub(r"\{[a-z_]+\}", "{}", row.path))
        if place in seen:
            raise BadRow(f"{row.name} and {seen[place]} have one method and path, {row.verb} {row.path}")
        seen[place] = row.name
