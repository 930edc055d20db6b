"""The comments of proto files, as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto

# The numbers by which a descriptor's source locations name its parts.
FILE_MESSAGES, FILE_ENUMS, FILE_SERVICES = 4, 5, 6
MESSAGE_FIELDS, MESSAGE_NESTED, MESSAGE_ENUMS = 2, 3, 4
SERVICE_METHODS = ENUM_VALUES = 2

Path = tuple[int, ...]


def prose(comment: str) -> str:
    """A comment as one paragraph a blank line; remarks to the linter are not for readers."""
    kept = [line.strip() for line in comment.splitlines() if not line.strip().startswith("buf:lint")]
    paragraphs = "\n".join(kept).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def comments_of(file: FileDescriptorProto) -> dict[str, str]:
    """The comment of each message, field, enum, value, service and method, by its full name."""
    by_path = {
        tuple(location.path): prose(location.leading_comments)
        for location in file.source_code_info.location
        if location.leading_comments
    }
    return {f"{file.package}.{name}": by_path[path] for name, path in _places(file) if path in by_path}


def _places(file: FileDescriptorProto) -> Iterator[tuple[str, Path]]:
    for index, message in enumerate(file.message_type):
        yield from _in_message(message, message.name, (FILE_MESSAGES, index))
    for index, enum in enumerate(file.enum_type):
        yield from _in_enum(enum, enum.name, (FILE_ENUMS, index))
    for index, service in enumerate(file.service):
        yield service.name, (FILE_SERVICES, index)
        for number, method in enumerate(service.method):
            yield f"{service.name}.{method.name}", (FILE_SERVICES, index, SERVICE_METHODS, number)


def _in_message(message: Any, name: str, path: Path) -> Iterator[tuple[str, Path]]:
    yield name, path
    for index, field in enumerate(message.field):
        yield f"{name}.{field.name}", (*path, MESSAGE_FIELDS, index)
    for index, nested in enumerate(message.nested_type):
        yield from _in_message(nested, f"{name}.{nested.name}", (*path, MESSAGE_NESTED, index))
    for index, enum in enumerate(message.enum_type):
        yield from _in_enum(enum, f"{name}.{enum.name}", (*path, MESSAGE_ENUMS, index))


def _in_enum(enum: Any, name: str, path: Path) -> Iterator[tuple[str, Path]]:
    yield name, path
    for index, value in enumerate(enum.value):
        yield f"{name}.{value.name}", (*path, ENUM_VALUES, index)
