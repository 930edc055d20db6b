"""JSON of a request: it is read as protobuf's own reader reads it, and its size is judged before it is read."""

from __future__ import annotations

import asyncio
import base64
import json
import os

import orjson
import pytest
from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers, QueryParams

from fila.v1 import service_pb2
from fila_http import binding, proto_json, translation
from fila_http.judged_json import Reading
from fila_http.problems import Problem
from fila_http.proto_json import OBJECTS_A_MEMBER, VALUES_A_MEMBER
from fila_http.translators import LOOP_BYTES, LOOP_VALUES, TranslatorFailed, Translators, is_for_the_loop
from fila_http.v1.routes import ROUTES
from fila_http.written_json import as_json

REQUESTS = list({route.request.DESCRIPTOR.full_name: route.request for route in ROUTES}.values())
INTEGERS = {F.TYPE_INT32: (-(2**31), 2**31 - 1), F.TYPE_UINT32: (0, 2**32 - 1)}
INTEGERS |= {
    F.TYPE_INT64: (-(2**63), 2**63 - 1),
    F.TYPE_UINT64: (0, 2**64 - 1),
    F.TYPE_FIXED64: (0, 2**64 - 1),
}
NARROWER = {"fila.v1.EnqueueOptions.priority": (0, 3)}
"""What the gateway refuses beyond, in words of its own; protobuf takes all of the type."""
WELL_KNOWN = {
    "google.protobuf.Timestamp": st.sampled_from(["2026-11-20T14:00:00Z", "1970-01-01T00:00:00.5+01:00"]),
    "google.protobuf.FieldMask": st.sampled_from(["", "maxAttempts", "maxAttempts,retry.baseMs"]),
}
LEVELS = 3
EXAMPLES = 4_000 if os.environ.get("FILA_SOAK") else 150


def base64_of(payload: bytes) -> st.SearchStrategy[str]:
    plain, url = base64.b64encode(payload).decode(), base64.urlsafe_b64encode(payload).decode()
    return st.sampled_from([plain, plain.rstrip("="), url, url.rstrip("=")])


def scalars(field) -> st.SearchStrategy:
    if field.type in INTEGERS:
        least, most = NARROWER.get(field.full_name, INTEGERS[field.type])
        whole = st.integers(least, most)
        small = st.integers(0, min(most, 1000))
        return st.one_of(whole, whole.map(str), small.map(float), small.map(lambda number: f"{number}e0"))
    if field.type == F.TYPE_ENUM:
        return st.sampled_from([*field.enum_type.values_by_name, *field.enum_type.values_by_number])
    return {
        F.TYPE_STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        F.TYPE_BYTES: st.binary(max_size=5).flatmap(base64_of),
        F.TYPE_BOOL: st.booleans(),
        F.TYPE_DOUBLE: st.one_of(
            st.floats(allow_nan=False, allow_infinity=False),
            st.integers(-9, 9),
            st.sampled_from(["1.5", "-2e3", "Infinity", "-Infinity"]),
        ),
    }[field.type]


def singles(field, levels: int) -> st.SearchStrategy:
    if field.message_type is None:
        return scalars(field)
    name = field.message_type.full_name
    return WELL_KNOWN[name] if name in WELL_KNOWN else objects(field.message_type, levels - 1)


def values(field, levels: int) -> st.SearchStrategy:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return st.dictionaries(
            st.text("aB_é", max_size=3), singles(field.message_type.fields_by_name["value"], levels)
        )
    return st.lists(singles(field, levels), max_size=3) if field.is_repeated else singles(field, levels)


@st.composite
def objects(draw, descriptor, levels: int = LEVELS):
    """JSON of the message, its names in either spelling, of a choice at most one."""
    if levels == 0 or not descriptor.fields:
        return {}
    chosen = draw(st.lists(st.sampled_from(list(descriptor.fields)), unique_by=part_of, max_size=6))
    named = [(draw(st.sampled_from([field.name, field.json_name])), field) for field in chosen]
    return {name: draw(st.one_of(st.none(), values(field, levels))) for name, field in named}


def part_of(field) -> str:
    return str((field.containing_oneof or field).name)


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_what_is_read_is_what_protobufs_own_reader_reads(data):
    made = data.draw(st.sampled_from(REQUESTS))
    value = json.loads(json.dumps(data.draw(objects(made.DESCRIPTOR))))

    assert made(**Reading(100).fields_of(value, made.DESCRIPTOR)) == ParseDict(value, made())


ANSWERS = list({route.response.DESCRIPTOR.full_name: route.response for route in ROUTES}.values())


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_what_is_written_is_what_protobufs_own_writer_writes(data):
    made = data.draw(st.sampled_from(ANSWERS + REQUESTS))
    value = json.loads(json.dumps(data.draw(objects(made.DESCRIPTOR, LEVELS + 1))))
    message = ParseDict(value, made())

    assert as_json(message) == MessageToDict(message, always_print_fields_with_no_presence=True)


# Sizes.


def batch(count: int, item: str = "{}") -> bytes:
    return f'{{"items": [{",".join([item] * count)}]}}'.encode()


def refusal(body: bytes, items_max: int) -> Problem:
    with pytest.raises(Problem) as told:
        proto_json.into(service_pb2.AckBatchRequest(), proto_json.loads(body, items_max), items_max)
    assert told.value.reason == "LIMIT_EXCEEDED", told.value
    return told.value


def test_a_list_is_counted_before_one_of_its_items_is_looked_at():
    assert refusal(batch(101, "7"), 100).detail.startswith(
        "items may have 100 items, and has 101; send fewer"
    )
    proto_json.into(service_pb2.AckBatchRequest(), proto_json.loads(batch(100), 100), 100)


def test_an_object_is_counted_as_well():
    headers = {str(number): "x" for number in range(101)}
    message = service_pb2.EnqueueRequest()
    with pytest.raises(Problem, match=r"headers may have 100 members, and has 101"):
        proto_json.into(message, {"headers": headers}, 100)


def test_values_are_counted_before_any_of_them_is_read(monkeypatch):
    def read(_: bytes) -> object:
        pytest.fail("it was read")

    monkeypatch.setattr(orjson, "loads", read)
    many = VALUES_A_MEMBER * 10 + 1
    for body in (
        batch(OBJECTS_A_MEMBER * 10),
        batch(many, "7"),
        b"[" * many,
        b'{"":' * many,
        b"," * many,
        b'"",' * many,
        b'"\\"\\\\",' * many,
        b'"' * (4 * many + 4) + b"," * many,
    ):
        assert refusal(body, 10).status == 413, body[:10]


def test_what_stands_in_a_text_is_no_value():
    text = '{"a": [1, 2, "\\"]}\\\\' * 1000
    for message in ({"payload": "YQ=="}, {"headers": {"x": text}}, {"queue": text, "headers": {text: "\\"}}):
        assert proto_json.loads(json.dumps(message).encode(), 10) == message


def test_the_loop_reads_what_is_small_and_has_few_values():
    assert is_for_the_loop(batch(LOOP_VALUES // 2 - 1))
    assert not is_for_the_loop(batch(LOOP_VALUES // 2)), "few bytes, and more values than it reads in no time"
    assert is_for_the_loop(b'"' + b"x" * (LOOP_BYTES - 2) + b'"')
    assert not is_for_the_loop(b'"' + b"x" * (LOOP_BYTES - 1) + b'"')


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_a_name_that_is_given_twice_is_found_and_no_other_is_taken_for_one(data):
    made = data.draw(st.sampled_from(REQUESTS))
    value = data.draw(objects(made.DESCRIPTOR).filter(bool))
    body = json.dumps(value, ensure_ascii=data.draw(st.booleans())).encode()
    members = proto_json.into(made(), proto_json.loads(body, 100), 100)

    proto_json.check_once(body, members)
    name = data.draw(st.sampled_from(list(value)))
    twice = body[:-1] + f", {json.dumps(name)}: {json.dumps(value[name])}}}".encode()
    members = proto_json.into(made(), proto_json.loads(twice, 100), 100)
    with pytest.raises(Problem, match="twice"):
        proto_json.check_once(twice, members)


# Beside the loop.

BATCH = next(route for route in ROUTES if route.name == "AckBatch")


def said(items_max: int = 100) -> translation.Arguments:
    headers = Headers({"content-type": "application/json"})
    return translation.arguments_of({"queue": "orders"}, QueryParams(""), headers, items_max)


@pytest.fixture
async def translators():
    made = Translators()
    yield made
    await made.close()


async def test_a_process_reads_what_the_loop_would_have_read(translators):
    body = batch(100, '{"messageId": "1", "leaseId": "2"}')
    on_the_loop = binding.bind(
        BATCH,
        {"queue": "orders"},
        QueryParams(""),
        Headers({"content-type": "application/json"}),
        body,
        100,
    )
    assert BATCH.request.FromString(await translators.read("key", BATCH, said(), body)) == on_the_loop
    with pytest.raises(Problem) as told:
        await translators.read("key", BATCH, said(), batch(101))
    assert (told.value.status, told.value.reason) == (400, "LIMIT_EXCEEDED")


async def test_a_body_that_takes_too_long_is_given_up_and_the_next_one_is_read(translators, monkeypatch):
    monkeypatch.setattr("fila_http.translators.TRANSLATE_S_MAX", 0.0)
    with pytest.raises(Problem, match="was not read within"):
        await translators.read("key", BATCH, said(), batch(100))
    monkeypatch.undo()
    assert await translators.read("key", BATCH, said(), batch(100))


async def test_a_mistake_in_a_process_is_told_in_its_own_words(translators):
    with pytest.raises(TranslatorFailed, match="DecodeError"):
        await translators.write("key", BATCH, b"\xff")
    assert await translators.read("key", BATCH, said(), batch(100))


async def test_a_caller_that_leaves_while_a_process_works_leaves_it_to_nobody_else(translators):
    await translators.read("key", BATCH, said(), batch(1))
    leaving = asyncio.ensure_future(translators.read("key", BATCH, said(), batch(100)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving

    answer = await translators.read("key", BATCH, said(), batch(2))
    assert len(service_pb2.AckBatchRequest.FromString(answer).items) == 2
