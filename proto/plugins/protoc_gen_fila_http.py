"""A buf plugin: what `fila http` serves, from proto/http.yaml and the comments in the proto files.

routes.py       the table of routes, which the gateway turns requests by
openapi.yaml    the same for people and their tools
openapi-3.0.yaml    that in the form of before, for generators of clients that ask for it
promises.txt    what was ever promised, so that /v1 only grows
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.compiler import plugin_pb2

from http_openapi import Document
from http_openapi_3_0 import as_3_0
from http_promises import grown
from http_rows import BadRow, Row, pool_of, read_rows
from proto_comments import comments_of

OUT = "fila_http/v1"
PROMISED = Path(__file__).parents[2] / "cli/src" / OUT / "promises.txt"

MARK = "# Generated from proto/ by `make gen`; do not edit.\n"
ROUTES_HEADER = '''\
"""Every route of `fila http`, as proto/http.yaml says."""

from fila.v1 import {modules}
from fila_http.route import Events, Route

ROUTES = (
'''


def routes(rows: list[Row]) -> str:
    """The module with the table."""
    modules = sorted({_module(message.file.name) for row in rows for message in (row.request, row.response)})
    lines = [MARK, ROUTES_HEADER.format(modules=", ".join(modules))]
    for row in rows:
        lines.append("    Route(\n")
        lines += [f"        {name}={value},\n" for name, value in _arguments(row).items()]
        lines.append("    ),\n")
    return "".join([*lines, ")\n"])


def _arguments(row: Row) -> dict[str, str]:
    said = {
        "name": repr(row.name),
        "verb": repr(row.verb),
        "path": repr(row.path),
        "call": repr(f"/{row.method.containing_service.full_name}/{row.method.name}"),
        "request": f"{_module(row.request.file.name)}.{row.request.name}",
        "response": f"{_module(row.response.file.name)}.{row.response.name}",
    }
    if row.in_path:
        said["in_path"] = repr(tuple(row.in_path))
    if row.raw:
        said["raw"] = "True"
    if row.body:
        said["body"] = repr(row.body)
    if row.method.server_streaming:
        given = {**row.events, "of": tuple(row.events.get("of", ()))}
        given.setdefault("name", row.response.name)
        said["events"] = f"Events({', '.join(f'{name}={value!r}' for name, value in sorted(given.items()))})"
    return said


def _module(file: str) -> str:
    return file.rsplit("/", 1)[-1].removesuffix(".proto") + "_pb2"


def generate(request: plugin_pb2.CodeGeneratorRequest) -> plugin_pb2.CodeGeneratorResponse:
    response = plugin_pb2.CodeGeneratorResponse(
        supported_features=plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    )
    files = list(request.proto_file)
    ours = [file for file in files if file.name in set(request.file_to_generate)]
    try:
        rows = read_rows(pool_of(files), ours)
        promised = grown(PROMISED, rows)
    except BadRow as error:
        response.error = f"proto/http.yaml: {error}"
        return response
    comments = {name: text for file in ours for name, text in comments_of(file).items()}
    document = Document(comments).write(rows)
    for name, content in (
        ("routes.py", routes(rows)),
        ("openapi.yaml", MARK + _as_text(document)),
        ("openapi-3.0.yaml", MARK + _as_text(as_3_0(document))),
        ("promises.txt", promised),
    ):
        response.file.add(name=f"{OUT}/{name}", content=content)
    return response


def _as_text(document: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True)
    return text


if __name__ == "__main__":
    asked = plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    sys.stdout.buffer.write(generate(asked).SerializeToString())
