"""The words edges and core exchange: what a frame asks for, and what an answer is.

A command's frame is the serialized request of the wire contract, an answer's payload the
serialized response, so an edge stays a thin translator and can be replaced. The compiled
core repeats these numbers in `commands.pxd` beside this; a test holds the two together.
"""

from typing import Final

# Hot path: FilaService.
ENQUEUE: Final = 1  # EnqueueRequest -> EnqueueResponse
ENQUEUE_BATCH: Final = 2  # EnqueueBatchRequest -> EnqueueBatchResponse
ENQUEUE_STREAM: Final = 3  # EnqueueStreamRequest -> EnqueueStreamResponse
ENQUEUE_ATOMIC: Final = 4  # EnqueueBatchRequest of one queue, all or nothing -> EnqueueBatchResponse
ACK: Final = 5  # AckRequest -> AckResponse
NACK: Final = 6  # NackRequest -> NackResponse, answered after the failure's decision is durable
ACK_BATCH: Final = 7  # AckBatchRequest -> SettleBatchResponse
NACK_BATCH: Final = 8  # NackBatchRequest -> SettleBatchResponse
EXTEND_LEASE: Final = 9  # ExtendLeaseRequest -> ExtendLeaseResponse
LEASE: Final = 10  # LeaseRequest -> LeaseResponse, after at most wait_ms
CANCEL: Final = (
    11  # the caller of this LEASE went away: empty, or Settle with the leases of an answer it never saw; or it
    # waits no longer: b"over", and is answered as if its time were over, unless it was answered already
)
CONSUME_OPEN: Final = 12  # ConsumeRequest; deliveries follow under the same token
SESSION_OPEN: Final = 13  # ConsumeSessionRequest{open}
SESSION: Final = 14  # any later ConsumeSessionRequest of the session `token`
WRITTEN: Final = 15  # empty; the oldest unreported delivery of consumer `token` was written
CONSUMER_CLOSE: Final = (
    16  # empty: the stream broke; or b"release", b"half-closed", b"drain": see core/consumers/leaving.pyx
)
LISTENED: Final = 17  # empty; the edge runs and has read its sockets
CANCEL_MESSAGES: Final = 18  # CancelMessagesRequest, and seam_frames.Canceller -> CancelMessagesResponse

# FilaAdmin.
CREATE_QUEUE: Final = 32  # CreateQueueRequest, validated and complete -> CreateQueueResponse
UPDATE_QUEUE: Final = 33  # UpdateQueueRequest with the merged config -> UpdateQueueResponse
DELETE_QUEUE: Final = 34
GET_QUEUE: Final = 35
LIST_QUEUES: Final = 36
PURGE_QUEUE: Final = 37
PEEK_MESSAGES: Final = 38
GET_STATS: Final = 39  # seam_frames.StatsAsked -> GetStatsResponse
SET_CONFIG: Final = 40
GET_CONFIG: Final = 41
LIST_CONFIG: Final = 42
CREATE_CHANNEL: Final = 43
DELETE_CHANNEL: Final = 44
LIST_CHANNELS: Final = 45
SEEK_CHANNEL: Final = 46
PURGE_CHANNEL: Final = 47
SET_KEY_POLICY: Final = 48
EXPLAIN_KEY: Final = 49
REDRIVE_PAGE: Final = 50  # kept free: operations/redrive.py looks at a page with PEEK_MESSAGES
REDRIVE_MOVE: Final = 51  # seam_frames.RedrivePage -> seam_frames.RedrivenPage
DECIDE: Final = 52  # seam_frames.Decision, the answer to the failure event of the same number
METRICS: Final = 53  # empty -> a snapshot for telemetry
LIST_PENDING: Final = 92  # ListPendingRequest -> ListPendingResponse
GET_MESSAGE: Final = 91  # GetMessageRequest -> GetMessageResponse, as far as the core knows
LIST_CONSUMERS: Final = 54  # ListConsumersRequest -> ListConsumersResponse, oldest first
WAITING_LONGEST_PAGE: Final = (
    60  # seam_frames.WaitingLongestPage -> WaitingLongestKeys: a part of one queue's keys
)
KEY_POLICIES: Final = 61  # seam_frames.PolicyPage -> seam_frames.PolicyPart: a part of one queue's keys

# FilaSink.
OPEN_SINK: Final = 64  # OpenSinkRequest -> OpenSinkResponse
STAGE: Final = 65  # StageRequest -> StageResponse, once it is on the disk
PUBLISH: Final = 66  # PublishRequest -> PublishResponse, once all of the batch is in its queues
DROP_STAGED: Final = 67  # DropRequest -> DropResponse
MOVE_STAGED: Final = 68  # the core's own: a staged frame on its way into its queue
LIST_SINKS: Final = 69  # ListSinksRequest -> ListSinksResponse
# Keys, grants, and what admins did: core/admin/access.pxd.
ACCESS_CHANGE: Final = 55  # seam_frames.AccessChange -> empty, once durable
ACCESS_READ: Final = 56  # empty -> seam_frames.AccessChange
AUDIT_READ: Final = 57  # seam_frames.AuditPage -> seam_frames.AuditRecords
# Watching, and what operators' calls keep: core/admin/watch.pxd, seek_preview.pxd, operation_records.pxd.
FIND_KEYS: Final = 70  # seam_frames.FindPage -> seam_frames.KeyRows: a part of one queue's keys
WATCH_ROWS: Final = 71  # seam_frames.WatchPage -> seam_frames.KeyRows
SEEK_PREVIEW: Final = 72  # seam_frames.SeekPart -> seam_frames.SeekCount: a part of one channel's frames
OPERATION_RECORDS_CHANGE: Final = 73  # seam_frames.OperationRecordsChange -> empty, once durable
OPERATION_RECORDS_READ: Final = 74  # seam_frames.OperationRecordsPage -> seam_frames.OperationRecords
STATS_PAGE: Final = 79  # seam_frames.StatsPage -> seam_frames.StatsPart: a part of one queue's keys
STORED_BYTES: Final = (
    78  # seam_frames.StoredPage -> seam_frames.StoredBytes: of some keys, in a part of the queues
)
TROUBLES_PAGE: Final = (
    83  # seam_frames.TroublesPage -> TroublesFound: a part of the queues, or of the buckets
)
SKIP_MESSAGE: Final = 90  # SkipMessageRequest -> SkipMessageResponse
SET_LIMIT: Final = 84  # SetLimitRequest, validated and complete -> SetLimitResponse
DELETE_LIMIT: Final = 85
LIST_LIMITS: Final = 86
RESET_LIMIT: Final = 87
# Schedules: core/index/schedules.pxd.
FIRE: Final = 110  # seam_frames.Firing -> EnqueueResponse
SCHEDULE_CHANGE: Final = 111  # seam_frames.ScheduleChange -> empty, once durable
HOLDERS: Final = 80  # seam_frames.Holders -> seam_frames.Held: messages in flight by principal, their bounds

# What drain() returns.
REPLY: Final = 0  # final answer to a unary command
FRAME: Final = 1  # write to the stream `token`
DELIVERY: Final = 2  # as FRAME, then report WRITTEN
END: Final = 3  # the stream `token` is over
EVENT: Final = 4  # for the hooks
LOST: Final = 5  # a range of a queue's log is lost to damage: a ReadLogRequest that names it
NOTICE: Final = 6  # something happened by itself: core/lifecycle/revoked.pxd
