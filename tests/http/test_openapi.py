"""The OpenAPI document is one, describes what is served, and keeps what it ever promised."""

from __future__ import annotations

import copy
import importlib
import os
import pkgutil
import sys
from pathlib import Path

import pytest
import requests
import schemathesis
import yaml
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

import fila.v1
from fila_http.v1.routes import ROUTES

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "proto/plugins"))

import http_promises  # noqa: E402 - a plugin of the generator, found by the line above
import http_rows  # noqa: E402
from http_openapi_3_0 import as_3_0  # noqa: E402
from http_rows import BadRow, pool_of, read_rows  # noqa: E402

DOCUMENT = yaml.load((ROOT / "docs/openapi.yaml").read_text(), yaml.CSafeLoader)
OURS = [
    importlib.import_module(f"fila.v1.{module.name}")
    for module in pkgutil.iter_modules(fila.v1.__path__)
    if module.name.endswith("_pb2")
]


def file_of(module) -> FileDescriptorProto:
    made = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(made)
    return made


def in_order(files):
    """As a compiler hands them over: a file after those that it imports."""
    ready: dict[str, FileDescriptorProto] = {}
    while len(ready) < len(files):
        ready |= {each.name: each for each in files if ready.keys() >= set(each.dependency)}
    return list(ready.values())


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Reads the rows of http.yaml after `change` had them."""
    from google.protobuf import field_mask_pb2, timestamp_pb2

    libraries = [file_of(timestamp_pb2), file_of(field_mask_pb2)]
    files = [file_of(module) for module in OURS]

    def read(change=None):
        said = yaml.load((ROOT / "proto/http.yaml").read_text(), yaml.CSafeLoader)
        if change is not None:
            change(said)
        (tmp_path / "http.yaml").write_text(yaml.safe_dump(said, sort_keys=False))
        monkeypatch.setattr(http_rows, "FILE", tmp_path / "http.yaml")
        return read_rows(pool_of(in_order([*libraries, *files])), files)

    return read


@pytest.mark.costly("the validator follows every reference of four hundred schemas")
@pytest.mark.parametrize(("name", "version"), [("openapi.yaml", "3.1.0"), ("openapi-3.0.yaml", "3.0.3")])
def test_the_document_is_openapi(name, version):
    from openapi_spec_validator import validate

    document = yaml.load((ROOT / "docs" / name).read_text(), yaml.CSafeLoader)
    assert document["openapi"] == version
    validate(document)


def test_the_document_in_3_0_says_what_the_other_does():
    told = as_3_0(
        {"openapi": "3.1.0", "schema": {"type": ["string", "integer"], "format": "uint64", "minimum": 0}}
    )
    assert told == {"openapi": "3.0.3", "schema": {"type": "string", "format": "uint64"}}
    told = as_3_0({"type": "string", "contentEncoding": "base64", "pattern": "^x$"})
    assert told == {"openapi": "3.0.3", "type": "string", "format": "byte"}
    told = as_3_0({"a": {"$ref": "#/b", "description": "c"}, "d": {"$ref": "#/b"}})
    assert told["a"] == {"description": "c", "allOf": [{"$ref": "#/b"}]}
    assert told["d"] == {"$ref": "#/b"}


@pytest.mark.parametrize("schema", [{"type": ["string", "null"]}, {"type": "string", "const": "a"}])
def test_what_3_0_has_no_words_for_is_refused(schema):
    with pytest.raises(ValueError, match=r"OpenAPI 3\.0 has"):
        as_3_0({"schema": schema})


def test_every_route_is_described_and_every_rpc_has_one_or_a_reason(rows):
    described = {
        (operation["operationId"], verb.upper())
        for path in DOCUMENT["paths"].values()
        for verb, operation in path.items()
    }
    assert (
        described
        == {(route.name, route.verb) for route in ROUTES}
        == {(row.name, row.verb) for row in rows()}
    )


def test_every_field_says_what_it_means():
    silent = [
        f"{name}.{field}"
        for name, schema in DOCUMENT["components"]["schemas"].items()
        for field, about in schema.get("properties", {}).items()
        if not about.get("description")
    ]
    assert not silent


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda said: said["FilaAdmin"].pop("GetStats"), "GetStats has no row. Add one below FilaAdmin"),
        (lambda said: said["FilaAdmin"].update(Gone="GET /v1/gone"), "Gone is no RPC"),
        (lambda said: said["FilaAdmin"].update(GetStats="GET v1/stats"), "write its route like"),
        (lambda said: said["FilaAdmin"].update(GetStats={"none": ""}), "says why"),
        (
            lambda said: said["FilaAdmin"].update(GetStats={"rute": "GET /v1/stats"}),
            "rute is no part of a row",
        ),
        (
            lambda said: said["FilaAdmin"].update(ExplainKey="GET /v1/queues/{queue}/keys/{fairness_key}"),
            "can't stand in the path",
        ),
        (lambda said: said["FilaAdmin"].update(CreateQueue="GET /v1/queues/new"), "which a query can't hold"),
        (
            lambda said: said["FilaAdmin"].update(GetStats="GET /v1/queues/{queue}"),
            "have one method and path",
        ),
        (lambda said: said["FilaService"].update(EnqueueStream="POST /v1/stream"), "takes a stream"),
        (
            lambda said: said["FilaService"].update(Ack={"route": "POST /v1/ack", "raw": ["POST /v1/raw"]}),
            "`raw` is for a message",
        ),
        (
            lambda said: said["FilaService"].update(
                Ack={"route": "POST /v1/queues/{queue}/ack", "needs": ["queue"]}
            ),
            "queue stands in neither body nor query",
        ),
        (lambda said: said["FilaService"]["Enqueue"].update(raw=["POST v1/raw"]), "write its route like"),
        (lambda said: said["FilaAdmin"].update(GetStats="GET /v1/stats/{key}"), "can't stand in the path"),
    ],
)
def test_a_row_that_is_missing_or_wrong_is_told_with_what_to_write(rows, change, says):
    with pytest.raises(BadRow) as told:
        rows(change)
    assert says in str(told.value)


def test_two_rows_of_one_name_are_none(rows, tmp_path, monkeypatch):
    assert rows()
    text = (tmp_path / "http.yaml").read_text()
    (tmp_path / "twice.yaml").write_text(text.replace("FilaAdmin:\n", "FilaAdmin:\n  GetStats: GET /v1/x\n"))
    monkeypatch.setattr(http_rows, "FILE", tmp_path / "twice.yaml")
    with pytest.raises(BadRow, match="GetStats has two rows"):
        read_rows(None, [])


def test_what_was_promised_is_kept_and_what_is_new_is_added(rows, tmp_path):
    promised = tmp_path / "promises.txt"
    text = (ROOT / "cli/src/fila_http/v1/promises.txt").read_text()
    promised.write_text(text)
    assert http_promises.grown(promised, rows()) == text

    fewer = [line for line in text.splitlines() if "GetStats" not in line]
    promised.write_text("\n".join(fewer))
    assert http_promises.grown(promised, rows()) == text, "new lines are added"

    promised.write_text(text)
    with pytest.raises(BadRow, match=r"only grows.*GET /v1/queues/\{queue\}/stats GetStats"):
        http_promises.grown(
            promised, rows(lambda said: said["FilaAdmin"].update(GetStats={"none": "no more"}))
        )
    promised.write_text(text + "fila.v1.Message.gone string\n")
    with pytest.raises(BadRow, match=r"only grows.*Message\.gone"):
        http_promises.grown(promised, rows())


def needed():
    """(verb, path, where, name, the schema) of all that may not be left out, or be empty."""
    for path, verbs in DOCUMENT["paths"].items():
        for verb, operation in verbs.items():
            schema = (
                operation.get("requestBody", {})
                .get("content", {})
                .get("application/json", {})
                .get("schema", {})
            )
            for name in schema.get("required", []):
                yield verb.upper(), path, "body", name, schema["properties"]
            for each in operation.get("parameters", []):
                if each.get("required") and each["in"] == "query":
                    yield verb.upper(), path, "query", each["name"], {}


@pytest.mark.e2e
@pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")
@pytest.mark.parametrize(
    ("verb", "path", "where", "name", "properties"),
    [pytest.param(*each, id=f"{each[0]} {each[1]} {each[3]}") for each in needed()],
)
def test_what_the_document_calls_needed_the_broker_refuses_to_miss(
    gateway, queue, verb, path, where, name, properties
):
    path = path.replace("{queue}", queue).replace("{dlqQueue}", f"{queue}.dlq")
    empty = [] if properties.get(name, {}).get("type") == "array" else ""
    filled = {
        each: "x" for each, about in properties.items() if about.get("type") == "string" and each != name
    }
    for value in ({}, {name: empty}, filled | {name: empty}):
        if where == "query":
            answer = gateway.call(verb, f"{path}?{name}=" if value else path)
        else:
            answer = gateway.call(verb, path, value)
        assert answer.status in (400, 404, 409), answer


IN_SOAK = bool(os.environ.get("FILA_SOAK"))
EXAMPLES = 200 if IN_SOAK else 2
"""Requests of each kind and operation."""


@pytest.mark.e2e
@pytest.mark.needs("module:fila_server.core.runtime.engine", "module:schemathesis")
@pytest.mark.timeout(0 if IN_SOAK else 300)
@pytest.mark.costly("hundreds of requests, made from the document")
@pytest.mark.parametrize("kind", ["right", "wrong"])
def test_nothing_that_the_document_allows_or_forbids_makes_the_gateway_stumble(bounded_gateway, queue, kind):
    """Requests made from the document: no 5xx, no status that is not described, and answers as they are described."""
    gateway = bounded_gateway(wait_ms_max=20)
    with requests.Session() as session:
        tried = sum(try_operation(operation, gateway, session, queue, kind) for operation in operations())
    assert tried > 50 * EXAMPLES
    assert gateway.get("/readyz").status == 200


def operations():
    described = copy.deepcopy(DOCUMENT)
    # Streams have no end; they have tests of their own.
    streams = {route.name for route in ROUTES if route.events}
    for path, verbs in [*described["paths"].items()]:
        kept = {verb: each for verb, each in verbs.items() if each["operationId"] not in streams}
        described["paths"][path] = kept
    found = schemathesis.openapi.from_dict(described).get_all_operations()
    return [each.ok() for each in found if isinstance(each, Ok)]


def try_operation(operation, gateway, session, queue, kind):
    mode = GenerationMode.POSITIVE if kind == "right" else GenerationMode.NEGATIVE
    tried = 0

    # Derandomized: what is found here is found again, and what is not is left to the longer runs, which draw anew.
    @settings(
        max_examples=EXAMPLES,
        database=None,
        derandomize=not IN_SOAK,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode), st.booleans())
    def send(case, on_a_queue_there_is):
        nonlocal tried
        if on_a_queue_there_is and operation.method.upper() != "DELETE":
            case.path_parameters |= {name: queue for name in case.path_parameters if name == "queue"}
        answer = case.call(base_url=gateway.base, session=session, timeout=20)
        case.validate_response(
            answer, checks=[not_a_server_error, content_type_conformance, response_schema_conformance]
        )
        tried += 1

    try:
        send()
    except Unsatisfiable:
        assert kind == "wrong", operation.label  # of an operation without parameters nothing is wrong
    return tried
