"""The calls of the wire, and which of them may be repeated when an answer was lost.

Repeating is a promise about meaning, not about transport: reading twice is harmless, and setting
the same value twice leaves the same state. Enqueueing twice makes two messages, purging twice may
drop what came in between, and deleting twice may delete what somebody made anew. Those are
repeated only when it is certain that the first attempt never reached the broker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from fila.v1 import admin_pb2 as admin
from fila.v1 import auth_pb2 as auth
from fila.v1 import cluster_pb2 as cluster
from fila.v1 import events_pb2 as events
from fila.v1 import limit_pb2 as limit
from fila.v1 import operation_pb2 as operation
from fila.v1 import schedule_pb2 as schedule
from fila.v1 import service_pb2 as service
from fila.v1 import version_pb2 as version
from fila.v1 import watch_pb2 as watch

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True, eq=False)
class Method(Generic[Request, Response]):
    """One call of the wire."""

    path: str
    request: type[Request]
    response: type[Response]
    repeatable: bool
    """Whether a second run after a lost answer leaves the same state and gives as good an answer."""

    @property
    def serialize(self) -> Callable[[Any], bytes]:
        """Return what turns a request into bytes."""
        return self.request.SerializeToString

    @property
    def parse(self) -> Callable[[bytes], Response]:
        """Return what turns bytes into a response."""
        return self.response.FromString


def _service(
    name: str, request: type[Request], response: type[Response], *, repeatable: bool
) -> Method[Request, Response]:
    return Method(f"/fila.v1.FilaService/{name}", request, response, repeatable)


def _admin(
    name: str, request: type[Request], response: type[Response], *, repeatable: bool
) -> Method[Request, Response]:
    return Method(f"/fila.v1.FilaAdmin/{name}", request, response, repeatable)


def _auth(
    name: str, request: type[Request], response: type[Response], *, repeatable: bool
) -> Method[Request, Response]:
    return Method(f"/fila.v1.FilaAuth/{name}", request, response, repeatable)


ENQUEUE = _service("Enqueue", service.EnqueueRequest, service.EnqueueResponse, repeatable=False)
ENQUEUE_STREAM = _service(
    "EnqueueStream", service.EnqueueStreamRequest, service.EnqueueStreamResponse, repeatable=False
)
CONSUME_SESSION = _service(
    "ConsumeSession", service.ConsumeSessionRequest, service.ConsumeSessionResponse, repeatable=False
)
# A pull whose answer is lost leaves its messages leased until they expire; pulling again is right.
LEASE = _service("Lease", service.LeaseRequest, service.LeaseResponse, repeatable=True)
# Settling carries lease ids, so a repetition can never settle somebody else's delivery.
ACK_BATCH = _service("AckBatch", service.AckBatchRequest, service.SettleBatchResponse, repeatable=True)
NACK_BATCH = _service("NackBatch", service.NackBatchRequest, service.SettleBatchResponse, repeatable=True)
EXTEND_LEASE = _service(
    "ExtendLease", service.ExtendLeaseRequest, service.ExtendLeaseResponse, repeatable=True
)

# A second run finds nothing of what the first one took back, and says so.
CANCEL_MESSAGES = _service(
    "CancelMessages", service.CancelMessagesRequest, service.CancelMessagesResponse, repeatable=False
)

CREATE_QUEUE = _admin("CreateQueue", admin.CreateQueueRequest, admin.CreateQueueResponse, repeatable=False)
GET_QUEUE = _admin("GetQueue", admin.GetQueueRequest, admin.GetQueueResponse, repeatable=True)
UPDATE_QUEUE = _admin("UpdateQueue", admin.UpdateQueueRequest, admin.UpdateQueueResponse, repeatable=True)
DELETE_QUEUE = _admin("DeleteQueue", admin.DeleteQueueRequest, admin.DeleteQueueResponse, repeatable=False)
LIST_QUEUES = _admin("ListQueues", admin.ListQueuesRequest, admin.ListQueuesResponse, repeatable=True)
PURGE_QUEUE = _admin("PurgeQueue", admin.PurgeQueueRequest, admin.PurgeQueueResponse, repeatable=False)
PEEK_MESSAGES = _admin("PeekMessages", admin.PeekMessagesRequest, admin.PeekMessagesResponse, repeatable=True)
GET_STATS = _admin("GetStats", admin.GetStatsRequest, admin.GetStatsResponse, repeatable=True)
SET_CONFIG = _admin("SetConfig", admin.SetConfigRequest, admin.SetConfigResponse, repeatable=True)
GET_CONFIG = _admin("GetConfig", admin.GetConfigRequest, admin.GetConfigResponse, repeatable=True)
LIST_CONFIG = _admin("ListConfig", admin.ListConfigRequest, admin.ListConfigResponse, repeatable=True)
REDRIVE = _admin("Redrive", admin.RedriveRequest, admin.RedriveResponse, repeatable=False)
CREATE_CHANNEL = _admin(
    "CreateChannel", admin.CreateChannelRequest, admin.CreateChannelResponse, repeatable=False
)
DELETE_CHANNEL = _admin(
    "DeleteChannel", admin.DeleteChannelRequest, admin.DeleteChannelResponse, repeatable=False
)
LIST_CHANNELS = _admin("ListChannels", admin.ListChannelsRequest, admin.ListChannelsResponse, repeatable=True)
# A second seek would take back the leases given since the first.
SEEK_CHANNEL = _admin("SeekChannel", admin.SeekChannelRequest, admin.SeekChannelResponse, repeatable=False)
PURGE_CHANNEL = _admin(
    "PurgeChannel", admin.PurgeChannelRequest, admin.PurgeChannelResponse, repeatable=False
)
READ_LOG = _admin("ReadLog", admin.ReadLogRequest, admin.ReadLogResponse, repeatable=True)
SET_KEY_POLICY = _admin(
    "SetKeyPolicy", admin.SetKeyPolicyRequest, admin.SetKeyPolicyResponse, repeatable=True
)
PREVIEW_KEY_POLICY = _admin(
    "PreviewKeyPolicy", admin.PreviewKeyPolicyRequest, admin.PreviewKeyPolicyResponse, repeatable=True
)
# A second one would skip the message behind.
SKIP_MESSAGE = _admin("SkipMessage", admin.SkipMessageRequest, admin.SkipMessageResponse, repeatable=False)
WATCH_STATS = _admin("WatchStats", watch.WatchStatsRequest, watch.WatchStatsResponse, repeatable=True)
GET_SERIES = _admin("GetSeries", watch.GetSeriesRequest, watch.GetSeriesResponse, repeatable=True)
DRY_RUN_POLICY = _admin(
    "DryRunPolicy", admin.DryRunPolicyRequest, admin.DryRunPolicyResponse, repeatable=True
)
LIST_QUEUE_VERSIONS = _admin(
    "ListQueueVersions",
    version.ListQueueVersionsRequest,
    version.ListQueueVersionsResponse,
    repeatable=True,
)
GET_QUEUE_VERSION = _admin(
    "GetQueueVersion", version.GetQueueVersionRequest, admin.GetQueueVersionResponse, repeatable=True
)
# A second one would find the first one's.
CREATE_SCHEDULE = _admin(
    "CreateSchedule", schedule.CreateScheduleRequest, schedule.CreateScheduleResponse, repeatable=False
)
UPDATE_SCHEDULE = _admin(
    "UpdateSchedule", schedule.UpdateScheduleRequest, schedule.UpdateScheduleResponse, repeatable=True
)
PAUSE_SCHEDULE = _admin(
    "PauseSchedule", schedule.PauseScheduleRequest, schedule.PauseScheduleResponse, repeatable=True
)
DELETE_SCHEDULE = _admin(
    "DeleteSchedule", schedule.DeleteScheduleRequest, schedule.DeleteScheduleResponse, repeatable=False
)
GET_SCHEDULE = _admin(
    "GetSchedule", schedule.GetScheduleRequest, schedule.GetScheduleResponse, repeatable=True
)
LIST_SCHEDULES = _admin(
    "ListSchedules", schedule.ListSchedulesRequest, schedule.ListSchedulesResponse, repeatable=True
)
SET_LIMIT = _admin("SetLimit", limit.SetLimitRequest, limit.SetLimitResponse, repeatable=True)
DELETE_LIMIT = _admin("DeleteLimit", limit.DeleteLimitRequest, limit.DeleteLimitResponse, repeatable=False)
LIST_LIMITS = _admin("ListLimits", limit.ListLimitsRequest, limit.ListLimitsResponse, repeatable=True)
# A second one would forget what was spent since the first.
RESET_LIMIT = _admin("ResetLimit", limit.ResetLimitRequest, limit.ResetLimitResponse, repeatable=False)
# A second start would find the first one running, or begin another.
START_OPERATION = _admin(
    "StartOperation", operation.StartOperationRequest, operation.StartOperationResponse, repeatable=False
)
WATCH_OPERATION = _admin(
    "WatchOperation", operation.WatchOperationRequest, operation.WatchOperationResponse, repeatable=True
)
LIST_OPERATIONS = _admin(
    "ListOperations", operation.ListOperationsRequest, operation.ListOperationsResponse, repeatable=True
)
CANCEL_OPERATION = _admin(
    "CancelOperation", operation.CancelOperationRequest, operation.CancelOperationResponse, repeatable=True
)
EDIT_DEAD_LETTER = _admin(
    "EditDeadLetter", operation.EditDeadLetterRequest, operation.EditDeadLetterResponse, repeatable=False
)
FIND_KEYS = _admin("FindKeys", watch.FindKeysRequest, watch.FindKeysResponse, repeatable=True)
EXPLAIN_KEY = _admin("ExplainKey", admin.ExplainKeyRequest, admin.ExplainKeyResponse, repeatable=True)
LIST_PENDING = _admin("ListPending", admin.ListPendingRequest, admin.ListPendingResponse, repeatable=True)
GET_MESSAGE = _admin("GetMessage", admin.GetMessageRequest, admin.GetMessageResponse, repeatable=True)
LIST_CONSUMERS = _admin(
    "ListConsumers", admin.ListConsumersRequest, admin.ListConsumersResponse, repeatable=True
)
GET_STATUS = _admin("GetStatus", events.GetStatusRequest, events.GetStatusResponse, repeatable=True)
LIST_LATE = _admin("ListLate", events.ListLateRequest, events.ListLateResponse, repeatable=True)
LIST_KEY_POLICIES = _admin(
    "ListKeyPolicies", events.ListKeyPoliciesRequest, events.ListKeyPoliciesResponse, repeatable=True
)
WATCH_EVENTS = _admin("WatchEvents", events.WatchEventsRequest, events.WatchEventsResponse, repeatable=True)
# They are named by offsets that are never given again.
DROP_DEAD_LETTERS = _admin(
    "DropDeadLetters", events.DropDeadLettersRequest, events.DropDeadLettersResponse, repeatable=True
)

# Not repeated: each repetition would make one more key, of which nobody sees the secret.
CREATE_KEY = _auth("CreateKey", auth.CreateKeyRequest, auth.CreateKeyResponse, repeatable=False)
ROTATE_KEY = _auth("RotateKey", auth.RotateKeyRequest, auth.RotateKeyResponse, repeatable=False)
REVOKE_KEY = _auth("RevokeKey", auth.RevokeKeyRequest, auth.RevokeKeyResponse, repeatable=False)
GRANT = _auth("Grant", auth.GrantRequest, auth.GrantResponse, repeatable=True)
FORGET_PRINCIPAL = _auth(
    "ForgetPrincipal", auth.ForgetPrincipalRequest, auth.ForgetPrincipalResponse, repeatable=False
)
REVOKE_GRANT = _auth("RevokeGrant", auth.RevokeGrantRequest, auth.RevokeGrantResponse, repeatable=False)
GET_PRINCIPAL = _auth("GetPrincipal", auth.GetPrincipalRequest, auth.GetPrincipalResponse, repeatable=True)
WHO_AM_I = _auth("WhoAmI", auth.WhoAmIRequest, auth.WhoAmIResponse, repeatable=True)
# As a key's: one that nobody saw is one more.
CREATE_TENANT_LINK = _auth(
    "CreateTenantLink", auth.CreateTenantLinkRequest, auth.CreateTenantLinkResponse, repeatable=False
)
LIST_TENANT_LINKS = _auth(
    "ListTenantLinks", auth.ListTenantLinksRequest, auth.ListTenantLinksResponse, repeatable=True
)
REVOKE_TENANT_LINK = _auth(
    "RevokeTenantLink", auth.RevokeTenantLinkRequest, auth.RevokeTenantLinkResponse, repeatable=False
)
LIST_PRINCIPALS = _auth(
    "ListPrincipals", auth.ListPrincipalsRequest, auth.ListPrincipalsResponse, repeatable=True
)
SET_QUOTAS = _auth("SetQuotas", auth.SetQuotasRequest, auth.SetQuotasResponse, repeatable=True)
LIST_AUDIT = _auth("ListAudit", auth.ListAuditRequest, auth.ListAuditResponse, repeatable=True)
GET_CLUSTER_STATUS = _admin(
    "GetClusterStatus", cluster.GetClusterStatusRequest, cluster.GetClusterStatusResponse, repeatable=True
)
MOVE_OWNER = _admin("MoveOwner", cluster.MoveOwnerRequest, cluster.MoveOwnerResponse, repeatable=False)
REMOVE_NODE = _admin("RemoveNode", cluster.RemoveNodeRequest, cluster.RemoveNodeResponse, repeatable=False)
