"""The OpenAPI document (3.1) of the rows: every route with its fields, every message as protobuf's JSON writes it."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from http_rows import KEY, Row

Json = dict[str, Any]
F = FieldDescriptor

ABOUT = """\
Fila over HTTP: every call of the broker that needs no stream in both directions.

Bodies are protobuf's JSON: names in camelCase, 64-bit integers as strings (numbers are taken as well), bytes in base64,
times as RFC 3339, fields at zero written, `null` as a field left out, unknown fields refused. Errors are
`application/problem+json`. v1 only grows: fields and routes are added, so ignore what you do not know in answers.
"""
JSON = "application/json"
OCTETS = "application/octet-stream"
PROBLEM_JSON = "application/problem+json"
EVENT_STREAM = "text/event-stream"

WITH_IDEMPOTENCY_KEY = ("Enqueue", "EnqueueRaw", "EnqueueByAddress", "EnqueueBatch")
WITH_LIMITED = ("Ack", "Nack", "AckBatch", "NackBatch")
BODY_NEEDED = "Enqueue"
MESSAGE_ID = "message_id"
ABOUT_RAW = (
    "Its payload is the body, byte for byte, whatever its content type; `Fila-Header-<name>` are its headers, names in "
    "lower case."
)
ABOUT_KEY = (
    "The caller's key. It may do nothing but produce to this queue; any other is refused here, since addresses are "
    "passed on and written down."
)
SUMMARY_RAW = {
    False: "Store the body as a message, as it is",
    True: "Store the body as a message, by an address that holds the key",
}
WAIT_MS_MAX = 30_000

INTEGERS: dict[int, tuple[str, int, int]] = {
    F.TYPE_INT32: ("int32", -(1 << 31), (1 << 31) - 1),
    F.TYPE_UINT32: ("uint32", 0, (1 << 32) - 1),
}
LONG_INTEGERS: dict[int, str] = {F.TYPE_INT64: "int64", F.TYPE_UINT64: "uint64", F.TYPE_FIXED64: "uint64"}
SCALARS: dict[int, Json] = {
    F.TYPE_STRING: {"type": "string"},
    F.TYPE_BOOL: {"type": "boolean"},
    F.TYPE_BYTES: {"type": "string", "contentEncoding": "base64", "pattern": "^[A-Za-z0-9+/_-]*={0,2}$"},
    F.TYPE_DOUBLE: {"type": "number", "format": "double"},
}
WELL_KNOWN: dict[str, Json] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.FieldMask": {"type": "string", "description": "Paths, parted by commas."},
}

PROBLEM: Json = {
    "type": "object",
    "description": "Why a request was refused (RFC 9457).",
    "required": ["type", "title", "status", "detail", "reason", "code"],
    "properties": {
        "type": {"type": "string", "description": "`urn:fila:` and the reason."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {
            "type": "string",
            "description": "For people: names the field, the bound, what to do next.",
        },
        "reason": {"type": "string", "description": "For programs, as in the gRPC API."},
        "code": {"type": "string", "description": "The gRPC status: NOT_FOUND, INVALID_ARGUMENT, ..."},
    },
}


class Document:
    """The document while it grows."""

    def __init__(self, comments: dict[str, str]) -> None:
        self._comments = comments
        self._schemas: dict[str, Json] = {"Problem": PROBLEM}

    def write(self, rows: list[Row]) -> Json:
        """The whole document."""
        paths: dict[str, Json] = {}
        for row in rows:
            paths.setdefault(row.url, {})[row.verb.lower()] = self._operation(row)
        services = dict.fromkeys(row.method.containing_service.full_name for row in rows)
        return {
            "openapi": "3.1.0",
            "info": {
                "title": "Fila",
                "version": "1",
                "description": ABOUT,
                "license": {"name": "Apache-2.0"},
            },
            "servers": [{"url": "/", "description": "The server of this document: `fila http`."}],
            "security": [{"key": []}, {}],
            "tags": [
                {"name": name.rsplit(".", 1)[-1], "description": self._comments.get(name, "")}
                for name in services
            ],
            "paths": paths,
            "components": {
                "schemas": dict(sorted(self._schemas.items())),
                "responses": {"Problem": _problem_response()},
                "securitySchemes": {
                    "key": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "A key of the broker; none where the broker asks for none.",
                    }
                },
            },
        }

    def _operation(self, row: Row) -> Json:
        said = self._comments.get(row.method.full_name, "")
        summary = said.split(". ")[0].rstrip(".")
        if row.raw:
            summary, said = SUMMARY_RAW[row.by_address], f"{said} {ABOUT_RAW}"
        operation: Json = {
            "operationId": row.name,
            "tags": [row.method.containing_service.name],
            "summary": summary,
            "description": said,
        }
        if row.by_address:
            operation["security"] = [{}]
        parameters = self._parameters(row)
        if parameters:
            operation["parameters"] = parameters
        if body := self._body(row):
            operation["requestBody"] = body
        operation["responses"] = {
            "200": self._answer(row),
            "default": {"$ref": "#/components/responses/Problem"},
        }
        return operation

    def _parameters(self, row: Row) -> list[Json]:
        fields: Any = row.request.fields_by_name
        found = [
            self._parameter(fields[name], "path", {"type": "string", "minLength": 1}) for name in row.in_path
        ]
        if row.by_address:
            schema = {"type": "string", "minLength": 1}
            found.append(
                {"name": KEY, "in": "path", "description": ABOUT_KEY, "schema": schema, "required": True}
            )
        for each in row.in_query:
            schema = self._schema(each, by_query=True)
            if each.name in row.needs:
                needed = self._parameter(each, "query", _not_empty(each, schema))
                found.append({**needed, "required": True})
            else:
                found.append(self._parameter(each, "query", schema))
        if row.name in WITH_IDEMPOTENCY_KEY:
            about = "The message's `dedupKey`; in a batch, with `/` and the message's index added."
            found.append(
                {
                    "name": "Idempotency-Key",
                    "in": "header",
                    "description": about,
                    "schema": {"type": "string", "minLength": 1},
                }
            )
        if row.name in WITH_LIMITED:
            about = (
                "A provider refused the call: the seconds that it asked for, empty where it did not say, and of which "
                "of the message's throttle keys, `30; limit=openai`. As `feedback` says it."
            )
            found.append(
                {"name": "Fila-Limited", "in": "header", "description": about, "schema": {"type": "string"}}
            )
        if row.events.get("resume"):
            about = "The `id` of the last event that was seen: go on after it."
            pattern = {"type": "string", "pattern": "^[0-9]{1,19}$"}
            found.append({"name": "Last-Event-ID", "in": "header", "description": about, "schema": pattern})
        return found

    def _parameter(self, field: FieldDescriptor, place: str, schema: Json) -> Json:
        parameter = {
            "name": field.json_name,
            "in": place,
            "description": self._comments.get(field.full_name, ""),
            "schema": schema,
        }
        return parameter | ({"required": True} if place == "path" else {})

    def _body(self, row: Row) -> Json:
        if row.body:
            content: Json = {JSON: {"schema": self._schema(row.request.fields_by_name[row.body])}}
            return {"required": True, "content": content}
        if row.raw:
            # JSON Schema says nothing of bytes; generators of clients know them by this format.
            content = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
            return {"required": True, "description": ABOUT_RAW, "content": content}
        if not row.in_body:
            return {}
        about = self._comments.get(row.request.full_name, "")
        properties = {each.json_name: self._described(each) for each in row.in_body}
        needed = [each for each in row.in_body if each.name in row.needs]
        for each in needed:
            properties[each.json_name] = _not_empty(each, properties[each.json_name])
        schema = _object(about, properties) | {"additionalProperties": False}
        if needed:
            schema["required"] = [each.json_name for each in needed]
        content = {JSON: {"schema": schema}}
        for name, schema in properties.items():
            if row.name == "Lease" and name == "waitMs":
                schema["maximum"] = WAIT_MS_MAX
                schema["description"] += f" Over HTTP at most {WAIT_MS_MAX:,}."
        return {"required": bool(needed) or row.name == BODY_NEEDED, "content": content}

    def _answer(self, row: Row) -> Json:
        about = self._comments.get(row.response.full_name, "") or "Done."
        if not row.method.server_streaming:
            return {"description": about, "content": {JSON: {"schema": self._ref(row.response)}}}
        fields = row.response.fields_by_name
        of: list[Any] = [fields[name].message_type for name in row.events.get("of", [])] or [row.response]
        name = row.events.get("name", row.response.name)
        schema = self._ref(of[0])
        about = (
            f"{about} Server-sent events: `event: {name}` with the JSON of {of[0].name} as `data`; `event: problem` "
            "with a Problem when the stream ends by one, `event: end` when it is over; comments while it is quiet."
        )
        return {
            "description": about,
            "content": {EVENT_STREAM: {"schema": {"type": "string"}, "x-event-data": schema}},
        }

    # Messages.

    def _described(self, field: FieldDescriptor) -> Json:
        about = self._comments.get(field.full_name, "")
        schema = self._schema(field)
        if not about:
            return schema
        # In OpenAPI 3.1 a description may stand beside a reference.
        return {**schema, "description": about}

    def _schema(self, field: FieldDescriptor, *, by_query: bool = False) -> Json:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return {
                "type": "object",
                "additionalProperties": self._single(field.message_type.fields_by_name["value"]),
            }
        single = self._single(field, by_query=by_query)
        return {"type": "array", "items": single} if field.is_repeated else single

    def _single(self, field: FieldDescriptor, *, by_query: bool = False) -> Json:
        if field.message_type is not None:
            return dict(WELL_KNOWN.get(field.message_type.full_name) or self._ref(field.message_type))
        if field.enum_type is not None:
            return self._enum(field)
        if field.type in INTEGERS:
            format_, least, most = INTEGERS[field.type]
            return {"type": "integer", "format": format_, "minimum": least, "maximum": most}
        if field.type in LONG_INTEGERS:
            format_ = LONG_INTEGERS[field.type]
            text = "^[0-9]{1,20}$" if format_ == "uint64" else "^-?[0-9]{1,19}$"
            kinds = "integer" if by_query else ["string", "integer"]
            bounds = {"minimum": 0, "maximum": (1 << 64) - 1} if format_ == "uint64" else {}
            return {"type": kinds, "format": format_, **({} if by_query else {"pattern": text}), **bounds}
        return dict(SCALARS[field.type])

    def _enum(self, field: FieldDescriptor) -> Json:
        enum: Any = field.enum_type
        name = enum.full_name.removeprefix(f"{enum.file.package}.")
        said = [
            (value.name, self._comments.get(f"{enum.full_name}.{value.name}", "")) for value in enum.values
        ]
        about = [
            self._comments.get(enum.full_name, ""),
            *(f"- `{value}`: {each}" for value, each in said if each),
        ]
        self._schemas[name] = {
            "type": "string",
            "description": "\n".join(about).strip(),
            "enum": [value for value, _ in said],
        }
        return {"$ref": f"#/components/schemas/{name}"}

    def _ref(self, message: Descriptor) -> Json:
        name = message.full_name.removeprefix(f"{message.file.package}.")
        if name not in self._schemas:
            self._schemas[name] = {}  # a message may hold itself
            properties = {field.json_name: self._described(field) for field in message.fields}
            self._schemas[name] = _object(self._comments.get(message.full_name, ""), properties)
        return {"$ref": f"#/components/schemas/{name}"}


def _object(about: str, properties: Json) -> Json:
    return {"type": "object", "description": about, "properties": properties}


def _not_empty(field: FieldDescriptor, schema: Json) -> Json:
    if field.name == MESSAGE_ID:
        return {**schema, "format": "uuid", "minLength": 36, "maxLength": 36}
    return {**schema, "minItems" if field.is_repeated else "minLength": 1}


def _problem_response() -> Json:
    return {
        "description": "The request was refused, or could not be carried out.",
        "headers": {
            "Retry-After": {
                "description": "With 429 and 503: seconds after which to try again.",
                "schema": {"type": "integer"},
            }
        },
        "content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
