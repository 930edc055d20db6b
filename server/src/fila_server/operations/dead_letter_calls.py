"""What may be asked about dead letters beyond one page: long operations, and one sent back in another form."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator

from fila.v1 import admin_pb2
from fila.v1 import operation_pb2 as pb
from fila_server.access.admission import Admission, Caller
from fila_server.access.table import RPCS
from fila_server.broker.calls import Broker
from fila_server.broker.mirror import DLQ_SUFFIX
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands
from fila_server.events import emit
from fila_server.hooks.packed import KeyLimits
from fila_server.operations.audit import Record, carry_out, field
from fila_server.operations.dead_letter_operations import DeadLetterOperations
from fila_server.operations.redrive import Redrive
from fila_server.operations.requests import AdminRules


class DeadLetterCalls:
    """Answers StartOperation, WatchOperation, ListOperations, CancelOperation and EditDeadLetter."""

    def __init__(self, broker: Broker, limits: Limits, check: AdminRules, admission: Admission) -> None:
        self._broker = broker
        self._check = check
        self._admission = admission
        self._key_limits = KeyLimits(
            fairness_key_bytes=limits.fairness_key_bytes_max,
            throttle_key_bytes=limits.throttle_key_bytes_max,
            throttle_keys=limits.throttle_keys_max,
        )
        self._operations = DeadLetterOperations(broker, self._key_limits)

    async def start(self, request: pb.StartOperationRequest, caller: Caller) -> bytes:
        self._check.operation(request)
        if request.kind == pb.StartOperationRequest.KIND_REDRIVE:
            self._check_source(request.dlq_queue, caller)
        # As many commands as there are pages: the record is a change of its own.
        await carry_out(self._broker.call, "StartOperation", commands.ACCESS_CHANGE, request, caller, b"")
        operation = await self._operations.start(request, caller)
        return pb.StartOperationResponse(operation=operation).SerializeToString()

    async def list(self, request: pb.ListOperationsRequest, caller: Caller) -> bytes:
        if request.dlq_queue:
            self._check.dlq(request.dlq_queue)
        listed = await self._operations.listed(
            request.dlq_queue, lambda dlq: self._admission.may_watch(caller, dlq)
        )
        return pb.ListOperationsResponse(operations=listed).SerializeToString()

    async def cancel(self, request: pb.CancelOperationRequest, caller: Caller) -> bytes:
        self._check.dlq(request.dlq_queue)
        await carry_out(self._broker.call, "CancelOperation", commands.ACCESS_CHANGE, request, caller, b"")
        operation = await self._operations.cancel(request.dlq_queue, request.id)
        return pb.CancelOperationResponse(operation=operation).SerializeToString()

    def watch(self, request: pb.WatchOperationRequest) -> AsyncGenerator[bytes, None]:
        self._check.dlq(request.dlq_queue)
        return self._operations.watch(request.dlq_queue, request.id)

    async def edit(self, request: pb.EditDeadLetterRequest, caller: Caller) -> bytes:
        self._check.edit(request)
        self._check_source(request.dlq_queue, caller)
        headers = dict(request.headers)
        after = _digest(headers, request.payload)
        # Its payload is nobody's business but the reader's: the record has what stands for it.
        reported = Record(
            act="EditDeadLetter",
            principal=caller.name,
            peer=caller.peer,
            key_id=caller.key_id,
            queue=request.dlq_queue,
            details={"offset": str(request.offset), "after": after},
            claimed_address=caller.claimed_address,
        )
        redrive = Redrive(self._broker, _redrive_of(request.dlq_queue), self._key_limits)
        before = await redrive.look_at(request.offset)
        reported.details["before"] = _digest(dict(before.headers), before.payload)
        await self._broker.call(commands.ACCESS_CHANGE, field(reported))
        message_id = await redrive.edit(before, headers, request.payload)
        emit(
            "dead_letters.edited",
            queue=request.dlq_queue,
            principal=caller.name if caller.number is not None else "",
            peer=caller.peer,
            offset=request.offset,
            message_id=message_id,
        )
        return pb.EditDeadLetterResponse(message_id=message_id).SerializeToString()

    def _check_source(self, dlq: str, caller: Caller) -> None:
        """What is moved arrives in the source queue."""
        source = dlq.removesuffix(DLQ_SUFFIX)
        if caller.number is not None and source != dlq:
            self._admission.check(caller, RPCS["FilaAdmin/UpdateQueue"], source)


def _redrive_of(dlq: str) -> admin_pb2.RedriveRequest:
    return admin_pb2.RedriveRequest(dlq_queue=dlq)


def _digest(headers: dict[str, str], payload: bytes) -> str:
    """What stands for a message: enough to see that two are the same."""
    whole = hashlib.sha256(repr(sorted(headers.items())).encode())
    whole.update(payload)
    return f"sha256:{whole.hexdigest()[:16]}"
