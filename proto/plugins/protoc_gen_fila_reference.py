"""A buf plugin: docs/api-reference.md, from the comments in the proto files.

The reference says what the proto files say, because it is made from them: the services with their RPCs first,
then every message in the order of its file. Links go from a type's name to where it is described.
"""

import sys
from collections.abc import Iterator

from google.protobuf.compiler import plugin_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from proto_comments import (
    ENUM_VALUES,
    FILE_ENUMS,
    FILE_MESSAGES,
    FILE_SERVICES,
    MESSAGE_ENUMS,
    MESSAGE_FIELDS,
    MESSAGE_NESTED,
    SERVICE_METHODS,
    Path,
    prose,
)

PAGE = "api-reference.md"
INTRODUCTION = """\
<!-- Generated from proto/ by `make gen`; do not edit. -->

# API reference: `fila.v1`

Every call of the broker, from the comments in `proto/fila/v1/`. The server listens on port 5555 and answers
reflection and health checks, so any gRPC client works without these files:

```sh
grpcurl -plaintext -d '{"queue": "orders", "payload": "aGVsbG8="}' localhost:5555 fila.v1.FilaService/Enqueue
```

## Errors

An error's text names the field, the bound, and what to do next. It carries a `google.rpc.ErrorInfo` with the domain
`fila` and one of these reasons for programs; RESOURCE_EXHAUSTED also carries a `google.rpc.RetryInfo`. In a batch the
same code, text and reason stand in the item's [ItemStatus](#itemstatus).

| Status | Reasons | When |
|---|---|---|
| INVALID_ARGUMENT | `INVALID_FIELD`, `LIMIT_EXCEEDED` | a field is missing, malformed or beyond its bound |
| NOT_FOUND | `QUEUE_NOT_FOUND`, `CHANNEL_NOT_FOUND`, `MESSAGE_NOT_FOUND`, `CONFIG_KEY_NOT_FOUND` | \
it is not there; or the message is not leased and no lease_id was given |
| ALREADY_EXISTS | `QUEUE_EXISTS`, `CHANNEL_EXISTS` | it is there already |
| FAILED_PRECONDITION | `LEASE_LOST`, `SOURCE_QUEUE_GONE` | \
the lease_id given is not the message's current one; the queue to redrive to is gone |
| ABORTED | `VERSION_STALE` | somebody else changed the settings since they were read; look, and change them anew |
| RESOURCE_EXHAUSTED | `OVERLOADED`, `QUEUE_FULL`, `HOOKS_FULL`, `DISK_FLOOR` | \
the mailbox, the queue's `max_depth` or `max_bytes`, or the disk is full; try again later |
| UNAVAILABLE | `SHUTTING_DOWN` | the server is going; connect again |
| UNAVAILABLE | `NOT_OWNER` | another node of the group serves; ErrorInfo's `owner` is its address, where it is known |
| UNIMPLEMENTED | `UNIMPLEMENTED` | this server does not do that yet |
| DATA_LOSS | `LOG_DAMAGED` | ReadLog came to messages that the disk damaged; the text says where to read on |
| INTERNAL | `INTERNAL` | our mistake; the server's log says more |
"""

SYNTAX = 12
"""Where the source locations have the file's first comment."""

Field = FieldDescriptorProto


class Page:
    """One file's part of the reference."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._comment_by_path = {
            tuple(location.path): location.leading_comments
            for location in file.source_code_info.location
            if location.leading_comments
        }
        self._lead = next(
            (
                detached
                for location in file.source_code_info.location
                if tuple(location.path) == (SYNTAX,)
                for detached in [*location.leading_detached_comments, location.leading_comments]
            ),
            "",
        )

    def lines(self) -> Iterator[str]:
        yield f"## `{self._file.name.rsplit('/', 1)[-1]}`"
        yield ""
        if self._lead:
            yield _prose(self._lead)
            yield ""
        for index, service in enumerate(self._file.service):
            yield from self._service(service, (FILE_SERVICES, index))
        for index, message in enumerate(self._file.message_type):
            yield from self._message(message, message.name, (FILE_MESSAGES, index))
        for index, enum in enumerate(self._file.enum_type):
            yield from self._enum(enum, enum.name, (FILE_ENUMS, index))

    def _comment(self, path: Path) -> str:
        return _prose(self._comment_by_path.get(path, ""))

    def _service(self, service: ServiceDescriptorProto, path: Path) -> Iterator[str]:
        yield f"### {service.name}"
        yield ""
        yield self._comment(path)
        yield ""
        yield "| RPC | Request | Response | |"
        yield "|---|---|---|---|"
        for index, method in enumerate(service.method):
            asks = _link(method.input_type) + (" (stream)" if method.client_streaming else "")
            answers = _link(method.output_type) + (" (stream)" if method.server_streaming else "")
            yield f"| `{method.name}` | {asks} | {answers} | {self._comment((*path, SERVICE_METHODS, index))} |"
        yield ""

    def _message(self, message: DescriptorProto, name: str, path: Path) -> Iterator[str]:
        yield f"### {name}"
        yield ""
        yield self._comment(path)
        yield ""
        if message.field:
            yield "| Field | Number | Type | |"
            yield "|---|---|---|---|"
        maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        for index, field in enumerate(message.field):
            about = self._comment((*path, MESSAGE_FIELDS, index))
            if field.HasField("oneof_index") and not field.proto3_optional:
                about = f"(one of `{message.oneof_decl[field.oneof_index].name}`) {about}"
            yield f"| `{field.name}` | {field.number} | {_type(field, maps)} | {about} |"
        if message.field:
            yield ""
        for index, nested in enumerate(message.nested_type):
            if not nested.options.map_entry:
                yield from self._message(nested, f"{name}.{nested.name}", (*path, MESSAGE_NESTED, index))
        for index, enum in enumerate(message.enum_type):
            yield from self._enum(enum, f"{name}.{enum.name}", (*path, MESSAGE_ENUMS, index))

    def _enum(self, enum: EnumDescriptorProto, name: str, path: Path) -> Iterator[str]:
        yield f"### {name}"
        yield ""
        yield self._comment(path)
        yield ""
        yield "| Value | Number | |"
        yield "|---|---|---|"
        for index, value in enumerate(enum.value):
            yield f"| `{value.name}` | {value.number} | {self._comment((*path, ENUM_VALUES, index))} |"
        yield ""


def _prose(comment: str) -> str:
    return prose(comment).replace("|", "\\|")


def _link(type_name: str) -> str:
    name = type_name.removeprefix(".fila.v1.")
    if name.startswith("."):
        return f"`{name.removeprefix('.')}`"
    return f"[{name}](#{name.lower().replace('.', '')})"


def _type(field: Field, maps: dict[str, DescriptorProto]) -> str:
    entry = maps.get(field.type_name.rsplit(".", 1)[-1])
    if entry is not None:
        return f"map<{_type(entry.field[0], {})}, {_type(entry.field[1], {})}>"
    name = _link(field.type_name) if field.type_name else Field.Type.Name(field.type)[5:].lower()
    if field.label == Field.LABEL_REPEATED:
        return f"repeated {name}"
    return f"optional {name}" if field.proto3_optional else name


def generate(request: plugin_pb2.CodeGeneratorRequest) -> plugin_pb2.CodeGeneratorResponse:
    ours = [file for file in request.proto_file if file.name in set(request.file_to_generate)]
    # Services first: who looks something up starts from a call.
    ours.sort(key=lambda file: ("service" not in file.name, "admin" not in file.name))
    lines = [line for file in ours for line in Page(file).lines()]
    response = plugin_pb2.CodeGeneratorResponse(
        supported_features=plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    )
    response.file.add(name=PAGE, content="\n".join([INTRODUCTION, *lines]).rstrip() + "\n")
    return response


if __name__ == "__main__":
    asked = plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    sys.stdout.buffer.write(generate(asked).SerializeToString())
