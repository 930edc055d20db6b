"""A request of HTTP becomes a request of the broker: path, query, headers and body, each field from one place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from starlette.datastructures import Headers, QueryParams

from fila.v1.admin_pb2 import Intake
from fila.v1.service_pb2 import EnqueueBatchRequest, EnqueueRequest
from fila_http import feedback, judged_json, proto_json
from fila_http.problems import Code, Problem, invalid
from fila_http.route import Route

JSON = "application/json"
HEADER_PREFIX = b"fila-header-"
IDEMPOTENCY_KEY = "idempotency-key"
DEDUP_KEY_BYTES_MAX = 128
ONCE = ("content-type", IDEMPOTENCY_KEY, feedback.HEADER, "last-event-id")
"""Headers that are given once: of two, a proxy before the gateway may have judged the other one."""
SCALAR_MESSAGES = frozenset({"google.protobuf.Timestamp", "google.protobuf.FieldMask"})
MASK = "update_mask"
_DIGITS = re.compile(r"-?[0-9]{1,20}")
"""JSON's other forms of a whole number, 1e3 and 1.0, are JSON's alone."""


def bind(
    route: Route,
    path: Mapping[str, str],
    query: QueryParams,
    headers: Headers,
    body: bytes,
    items_max: int,
    intake: Intake | None = None,
) -> Message:
    """The request's message; lists and objects of the body have at most `items_max` members. `intake` says what headers
    are kept beside a body that is stored as it is. Raises Problem."""
    names = [name for name, _ in headers.raw]
    if len(names) > len(set(names)):
        _check_given_once(headers)
    has_idempotency_key = IDEMPOTENCY_KEY.encode() in names
    if has_idempotency_key and route.request not in (EnqueueRequest, EnqueueBatchRequest):
        raise invalid(
            "Idempotency-Key is taken with messages alone: POST /v1/queues/{queue}/messages, and .../messages/batch"
        )
    request = route.request()
    if is_raw := is_payload(route, headers):
        _take_raw(request, query, headers, body, items_max)
    else:
        _take_query(request, route, query, items_max)
        try:
            _take_body(request, route, headers, body, items_max)
        except Problem as problem:
            raise _with_the_raw_way(problem, request) from None
    for name in route.in_path:
        setattr(request, name, path[name])
    if has_idempotency_key:
        _take_idempotency_key(request, headers[IDEMPOTENCY_KEY], is_raw=is_raw)
    if feedback.HEADER in headers:
        feedback.take_limited(request, headers[feedback.HEADER])
    if intake is not None:
        _take_in(request, headers, intake)
    if route.events is not None and route.events.resume and "last-event-id" in headers:
        proto_json.into(request, {route.events.resume: headers["last-event-id"]}, items_max, "Last-Event-ID")
    return request


def _check_given_once(headers: Headers) -> None:
    for name in ONCE:
        if len(headers.getlist(name)) > 1:
            raise invalid(f"the request has more than one header {name}; send one")


def is_payload(route: Route, headers: Headers) -> bool:
    """Whether the body is a message's payload, to be taken as it is."""
    return route.raw or (route.request is EnqueueRequest and not _is_json(headers))


def _is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == JSON


# The query.


def _take_query(request: Message, route: Route, query: QueryParams, items_max: int) -> None:
    fields: Iterable[Any] = request.DESCRIPTOR.fields
    if route.has_body and not route.body:
        fields = ()
    elsewhere = {*route.in_path, route.body}
    _take_parameters(request, [field for field in fields if field.name not in elsewhere], query, items_max)


def _take_parameters(message: Message, fields: Iterable[Any], query: QueryParams, items_max: int) -> None:
    known = {name: field for field in fields for name in (field.json_name, field.name)}
    value: dict[str, Any] = {}
    for name in query:
        field = known.get(name)
        if field is None:
            names = ", ".join(dict.fromkeys(each.json_name for each in known.values())) or "no parameters"
            raise invalid(f"the query has no parameter {name!r} here; there are {names}")
        texts = query.getlist(name)
        if field.is_repeated:
            value[field.name] = [_parameter(field, text) for text in texts]
        elif len(texts) > 1 or field.name in value:
            raise invalid(f"the query gives {name} more than once")
        elif not _is_blank(field, texts[0]):
            value[field.name] = _parameter(field, texts[0])
    proto_json.into(message, value, items_max, "the query")


def _is_blank(field: FieldDescriptor, text: str) -> bool:
    """`?limit=` gives no limit."""
    return not text and field.type != FieldDescriptor.TYPE_STRING


def _parameter(field: FieldDescriptor, text: str) -> Any:
    if field.type == FieldDescriptor.TYPE_BOOL:
        if text not in ("true", "false"):
            raise invalid(f"the query's {field.json_name} must be true or false, got {text[:40]!r}")
        return text == "true"
    if field.name == MASK:
        return _camel_mask(text)
    if field.type in judged_json.WHOLE_NUMBERS and not _DIGITS.fullmatch(text):
        raise invalid(f"the query: {field.json_name} must be a whole number in digits, got {text[:40]!r}")
    return text


# The body.


def _take_body(request: Message, route: Route, headers: Headers, body: bytes, items_max: int) -> None:
    if not route.has_body:
        if body:
            raise invalid(f"{route.verb} takes no body; the fields go into the query")
        return
    if body and not _is_json(headers):
        raise Problem(
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            f"the body must be JSON: send it with content-type: {JSON}, got {headers.get('content-type', 'none')!r}",
            Code.INVALID_ARGUMENT,
        )
    if not body.strip() and (route.body or route.request is EnqueueRequest):
        raise invalid(
            "the body is empty, and needed here: send a JSON object, {} at least", reason="INVALID_JSON"
        )
    value = proto_json.loads(body, items_max)
    if route.body:
        part = getattr(request, route.body)
        part.SetInParent()
        proto_json.check_once(body, proto_json.into(part, value, items_max))
        if MASK in request.DESCRIPTOR.fields_by_name and not request.HasField(MASK):
            mask = getattr(request, MASK)
            mask.paths.extend(paths_of(value, part.DESCRIPTOR))
        return
    for name in route.in_path:
        if {name, request.DESCRIPTOR.fields_by_name[name].json_name} & value.keys():
            raise invalid(f"{name} stands in the path; leave it out of the body")
    if isinstance(value.get("updateMask"), str):
        value["updateMask"] = _camel_mask(value["updateMask"])
    proto_json.check_once(body, proto_json.into(request, value, items_max))


def paths_of(value: dict[str, Any], descriptor: Any) -> list[str]:
    """The paths of all that a JSON object gives, which fits: a PATCH without a mask changes what it names."""
    fields = {name: field for field in descriptor.fields for name in (field.json_name, field.name)}
    found: list[str] = []
    for name, given in value.items():
        field = fields[name]
        is_nested = (
            field.message_type is not None
            and not field.is_repeated
            and field.message_type.full_name not in SCALAR_MESSAGES
        )
        if is_nested and isinstance(given, dict) and given:
            found += [f"{field.name}.{rest}" for rest in paths_of(given, field.message_type)]
        else:
            found.append(field.name)
    return found


def _camel_mask(text: str) -> str:
    """protobuf's JSON has masks in camelCase alone; the protos' own names are understood as well."""
    first, *rest = text.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def check_coding(headers: Headers) -> None:
    """Raises Problem for a body that was compressed: as a payload it would be stored as its consumer can't read it."""
    for coding in headers.getlist("content-encoding"):
        if coding.lower() != "identity":
            raise Problem(
                415,
                "UNSUPPORTED_MEDIA_TYPE",
                f"bodies are taken as they are, without Content-Encoding, got {coding[:40]!r}; a payload that is "
                "itself compressed says so by its content-type, like application/gzip",
                Code.INVALID_ARGUMENT,
                {"Accept-Encoding": "identity"},
            )


# A message as it is.


_OPTION = re.compile(r"(messages\[\d+\]\.)?options\.")


def _with_the_raw_way(problem: Problem, request: Message) -> Problem:
    """Who sends what is JSON and no message of ours, as webhooks do, is told where that is taken. Who gives a field of
    our options means us."""
    if problem.reason not in ("INVALID_FIELD", "INVALID_JSON") or not isinstance(
        request, EnqueueRequest | EnqueueBatchRequest
    ):
        return problem
    if _OPTION.match(problem.detail):
        return problem
    problem.detail += (
        "; to store a body as it is, whatever its type, POST it to /v1/queues/{queue}/messages/raw"
    )
    return problem


def _take_raw(request: Message, query: QueryParams, headers: Headers, body: bytes, items_max: int) -> None:
    assert isinstance(request, EnqueueRequest)
    request.payload = body
    for name, value in headers.raw:
        if name == HEADER_PREFIX:
            raise invalid("Fila-Header- names no header: Fila-Header-Tenant is the message's header tenant")
        if name.startswith(HEADER_PREFIX):
            key = name[len(HEADER_PREFIX) :].decode("ascii", "replace")
            if key in request.headers:
                raise invalid(
                    f"the request has more than one Fila-Header-{key}; a message has each header once"
                )
            try:
                request.headers[key] = value.decode("utf-8")
            except UnicodeDecodeError:
                raise invalid(f"Fila-Header-{key} must be UTF-8") from None
    if query:
        _take_parameters(request.options, request.options.DESCRIPTOR.fields, query, items_max)


def _take_in(request: Message, headers: Headers, intake: Intake) -> None:
    """What a sender says that knows nothing of Fila, where nothing was said in Fila's own words."""
    assert isinstance(request, EnqueueRequest)
    for name in intake.headers:
        # A header that is given more than once is one, as HTTP has it.
        if name not in request.headers and (values := headers.getlist(name)):
            request.headers[name] = ", ".join(map(_text_of, values))
    for name in () if request.options.dedup_key else intake.dedup_headers:
        if value := headers.get(name, ""):
            _check_key(key := _text_of(value), name)
            request.options.dedup_key = key
            return


def _text_of(value: str) -> str:
    """Headers come as Latin-1; UTF-8 in them means UTF-8."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return value


def _take_idempotency_key(request: Message, key: str, *, is_raw: bool) -> None:
    # Headers come as Latin-1; UTF-8 in them means UTF-8.
    try:
        key = key.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise invalid("Idempotency-Key must be UTF-8") from None
    if not key:
        raise invalid("Idempotency-Key must not be empty; leave it out")
    if isinstance(request, EnqueueRequest):
        if request.options.dedup_key not in ("", key):
            where = "the query's" if is_raw else "the body's"
            raise invalid(f"Idempotency-Key and {where} dedupKey differ; give one of them")
        _check_key(key)
        request.options.dedup_key = key
    elif isinstance(request, EnqueueBatchRequest):
        _check_key(f"{key}/{len(request.messages)}")
        for index, message in enumerate(request.messages):
            if message.options.dedup_key:
                raise invalid(
                    f"Idempotency-Key and the dedupKey of messages[{index}] differ; give one of them"
                )
            message.options.dedup_key = f"{key}/{index}"


def _check_key(key: str, header: str = "Idempotency-Key") -> None:
    if (size := len(key.encode())) > DEDUP_KEY_BYTES_MAX:
        raise invalid(
            f"{header} may have {DEDUP_KEY_BYTES_MAX} bytes (in a batch with the index that is added), "
            f"and has {size}",
            reason="LIMIT_EXCEEDED",
        )
