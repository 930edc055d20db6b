"""Whether the SDKs and the scenarios keep up with the wire.

A call that an SDK lacks is found here, and so is a field of a request that no scenario gives: it may then be missing in
any of the languages.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from runner.scenarios import Scenario, load

from fila import methods
from fila.v1 import admin_pb2, auth_pb2, operation_pb2, service_pb2, sink_pb2

HERE = Path(__file__).parent
SDKS = HERE.parent

SERVICES = [
    module.DESCRIPTOR.services_by_name[name]
    for module, name in (
        (service_pb2, "FilaService"),
        (admin_pb2, "FilaAdmin"),
        (auth_pb2, "FilaAuth"),
        (sink_pb2, "FilaSink"),
    )
]
CALLS = {f"{service.name}/{method.name}": method for service in SERVICES for method in service.methods}

WITHOUT_METHOD = {
    "FilaService/EnqueueBatch": "EnqueueStream carries batches, several at a time",
    "FilaService/Consume": "ConsumeSession delivers, and settles on the same stream",
    "FilaService/Ack": "AckBatch takes one as well",
    "FilaService/Nack": "NackBatch takes one as well",
    "FilaSink/OpenSink": "for writers of sinks (pipeline/), which speak the stubs",
    "FilaSink/Stage": "as OpenSink",
    "FilaSink/Publish": "as OpenSink",
    "FilaSink/Drop": "as OpenSink",
    "FilaAdmin/GetClusterStatus": "operators of a group have `fila cluster status`",
    "FilaAdmin/MoveOwner": "as GetClusterStatus, `fila cluster move`",
    "FilaAdmin/RemoveNode": "as GetClusterStatus, `fila cluster remove`",
    "FilaAdmin/UpgradeGroup": "as GetClusterStatus, `fila cluster upgrade`",
    "FilaSink/ListSinks": "operators of sinks have `fila sink list`",
}
"""Calls that no SDK has a method for, on purpose."""

WITHOUT_ARGUMENT = {
    "ForgetPrincipal.validate_only": "GetPrincipal says what would go",
    "WhoAmI.queue": "for the gateway, which takes messages of senders that know nothing of Fila",
    "Redrive.after_offset": "for page after page; StartOperation and WatchOperation tell how far they are",
    "Redrive.up_to_offset": "as after_offset",
    "ListKeyPolicies.after": "for page after page of a file that `fila export --keys` writes",
    "ListLimits.throttle_key": "get_limit asks by it",
    "ListPending.before_offset": "for tasks that share a listing, as Spark's do; a program turns pages",
    "GetMessage.with_past": "of a broker with a history: fila trace, the gateway, the console and Python's SDK ask it",
    "GetMessage.offset": "as with_past",
    "UpdateQueue.update_mask": "made of the settings that are given",
    "DryRunPolicy.update_mask": "made of the settings that are given",
}
"""Fields of requests that no SDK takes as they are, on purpose."""

OPERATIONS = {
    "PurgeQueue": "purge",
    "PeekMessages": "peek",
    "EnqueueStream": "enqueue_many",
    "ConsumeSession": "consume",
    "AckBatch": "ack_many",
    "NackBatch": "nack_many",
    "ExtendLease": "extend",
}
"""What the protocol calls a call, where it is not the same in snake case."""

ARGUMENTS = {
    "dlq_queue": "queue",
    "CreateQueue.name": "queue",
    "CreateChannel.head": "start",
    "CreateChannel.oldest": "start",
    "CreateChannel.offset": "start",
    "CreateChannel.time": "start",
    "WatchOperation.id": "operation_id",
    "CancelOperation.id": "operation_id",
    "Grant.permissions": "produce consume manage view cancel admin",
    "RevokeGrant.permissions": "produce",
    "PreviewKeyPolicy.policy": "fairness_key weight paused max_in_flight rate_per_second burst"
    " cap_by_default rate_by_default committed_per_second committed_by_default",
    "SetLimit.limit": "name rates max_in_flight budget learn shadow",
    "DeleteLimit.limit_name": "name",
    "SetQuotas.quotas": "messages_per_second bytes_per_second connections streams in_flight stored_bytes",
}
"""What the protocol calls a field, where it has another name there."""


def snake(name: str) -> str:
    """WhoAmI is who_am_i."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def sources(folder: str, pattern: str, *left_out: str) -> str:
    """What people wrote of an SDK, without its table of calls."""
    paths = [path for path in (SDKS / folder).glob(pattern) if not path.name.endswith(left_out)]
    assert paths, f"no sources in {folder}"
    return "\n".join(path.read_text() for path in sorted(paths))


PYTHON_NAMES = {
    call.path.removeprefix("/fila.v1."): name
    for name, call in vars(methods).items()
    if isinstance(call, methods.Method)
}
PYTHON = sources("python/src/fila", "*.py", "methods.py")
GO = sources("go", "*.go", "_test.go")
JS = sources("js/src", "*.ts", "methods.ts")
JAVA = sources("java/src/main/java/dev/fila/client", "*.java", "Rpc.java")


def is_used(language: str, path: str, method: MethodDescriptor) -> bool:
    """Whether an SDK's own code makes this call."""
    name = method.name
    camel = name[0].lower() + name[1:]
    match language:
        case "python":
            return path in PYTHON_NAMES and bool(re.search(rf"\b{PYTHON_NAMES[path]}\b", PYTHON))
        case "go":
            return bool(re.search(rf"\.(service|admin|auth)\.{name}\b|_{name}_FullMethodName\b", GO))
        case "js":
            return bool(
                re.search(rf"\b(method|auth)\.{camel}\b|\{{[^}}]*\b{camel}\b[^}}]*\}} = \w+\.method\b", JS)
            )
        case _:
            return bool(re.search(rf"\bRpc\.{snake(name).upper()}\b|\bget{name}Method\(\)", JAVA))


@pytest.mark.parametrize("language", ["python", "go", "js", "java"])
def test_every_call_of_the_wire_has_a_method_in_every_sdk(language: str) -> None:
    missing = {path for path, method in CALLS.items() if not is_used(language, path, method)}

    assert missing - set(WITHOUT_METHOD) == set()


def test_what_is_left_out_on_purpose_is_still_there_and_still_left_out() -> None:
    assert set(WITHOUT_METHOD) <= set(CALLS)
    fields = {
        f"{method.name}.{field}" for method in CALLS.values() for field in method.input_type.fields_by_name
    }
    assert set(WITHOUT_ARGUMENT) <= fields
    used = {path for path in WITHOUT_METHOD if is_used("python", path, CALLS[path])}
    assert used == set()


def given_arguments(scenarios: list[Scenario]) -> dict[str, set[str]]:
    """All arguments that the scenarios give to each operation; of a nested one its parts, too."""
    given: dict[str, set[str]] = defaultdict(set)
    for step in (step for scenario in scenarios for step in scenario.steps):
        arguments = step.arguments if isinstance(step.arguments, dict) else {}
        given[step.operation].update(arguments)
        for name, value in arguments.items():
            if isinstance(value, dict):
                given[step.operation] |= {f"{name}.{part}" for part in value}
    return given


GIVEN = given_arguments(load(HERE / "scenarios"))


def arguments_of(method: str, message: Descriptor) -> dict[str, list[str]]:
    """Under which names the protocol has each field of a request."""
    names = {}
    for field in message.fields:
        path = f"{method}.{field.name}"
        if path in WITHOUT_ARGUMENT:
            continue
        name = ARGUMENTS.get(path) or ARGUMENTS.get(field.name, field.name)
        of_time = field.message_type is not None and field.message_type.name == "Timestamp"
        is_renamed = name != field.name
        names[path] = name.split() if is_renamed else [f"{name}_ms" if of_time else name]
    return names


def test_every_call_is_in_a_scenario() -> None:
    missing = {
        path
        for path, method in CALLS.items()
        if path not in WITHOUT_METHOD and OPERATIONS.get(method.name, snake(method.name)) not in GIVEN
    }

    assert missing == set()


def test_every_field_of_an_operators_request_is_in_a_scenario() -> None:
    missing = {
        path
        for call, method in CALLS.items()
        if call.startswith(("FilaAdmin/", "FilaAuth/")) and call not in WITHOUT_METHOD
        for path, names in arguments_of(method.name, method.input_type).items()
        if not set(names) <= GIVEN[OPERATIONS.get(method.name, snake(method.name))]
    }

    assert missing == set()


@pytest.mark.parametrize(
    ("message", "operations", "argument"),
    [
        (admin_pb2.QueueConfig, ["create_queue", "update_queue"], "config"),
        (operation_pb2.DeadLetterFilter, ["start_operation"], "filter"),
    ],
    ids=["settings", "filters"],
)
def test_every_part_of_what_is_nested_is_in_a_scenario(
    message: type, operations: list[str], argument: str
) -> None:
    given = {name for operation in operations for name in GIVEN[operation]}
    names = {
        f"{field.name}_ms"
        if field.message_type is not None and field.message_type.name == "Timestamp"
        else field.name
        for field in message.DESCRIPTOR.fields  # type: ignore[attr-defined]
    }

    assert {name for name in names if f"{argument}.{name}" not in given} == set()
