package dev.fila.client;

import dev.fila.v1.AckBatchRequest;
import dev.fila.v1.CancelMessagesRequest;
import dev.fila.v1.CancelMessagesResponse;
import dev.fila.v1.CancelOperationRequest;
import dev.fila.v1.CancelOperationResponse;
import dev.fila.v1.CreateChannelRequest;
import dev.fila.v1.CreateChannelResponse;
import dev.fila.v1.CreateKeyRequest;
import dev.fila.v1.CreateKeyResponse;
import dev.fila.v1.CreateQueueRequest;
import dev.fila.v1.CreateQueueResponse;
import dev.fila.v1.CreateScheduleRequest;
import dev.fila.v1.CreateScheduleResponse;
import dev.fila.v1.CreateTenantLinkRequest;
import dev.fila.v1.CreateTenantLinkResponse;
import dev.fila.v1.DeleteChannelRequest;
import dev.fila.v1.DeleteChannelResponse;
import dev.fila.v1.DeleteLimitRequest;
import dev.fila.v1.DeleteLimitResponse;
import dev.fila.v1.DeleteQueueRequest;
import dev.fila.v1.DeleteQueueResponse;
import dev.fila.v1.DeleteScheduleRequest;
import dev.fila.v1.DeleteScheduleResponse;
import dev.fila.v1.DropDeadLettersRequest;
import dev.fila.v1.DropDeadLettersResponse;
import dev.fila.v1.DryRunPolicyRequest;
import dev.fila.v1.DryRunPolicyResponse;
import dev.fila.v1.EditDeadLetterRequest;
import dev.fila.v1.EditDeadLetterResponse;
import dev.fila.v1.EnqueueRequest;
import dev.fila.v1.EnqueueResponse;
import dev.fila.v1.ExplainKeyRequest;
import dev.fila.v1.ExplainKeyResponse;
import dev.fila.v1.ExtendLeaseRequest;
import dev.fila.v1.ExtendLeaseResponse;
import dev.fila.v1.FilaAdminGrpc;
import dev.fila.v1.FilaAuthGrpc;
import dev.fila.v1.FilaServiceGrpc;
import dev.fila.v1.FindKeysRequest;
import dev.fila.v1.FindKeysResponse;
import dev.fila.v1.ForgetPrincipalRequest;
import dev.fila.v1.ForgetPrincipalResponse;
import dev.fila.v1.GetConfigRequest;
import dev.fila.v1.GetConfigResponse;
import dev.fila.v1.GetMessageRequest;
import dev.fila.v1.GetMessageResponse;
import dev.fila.v1.GetPrincipalRequest;
import dev.fila.v1.GetPrincipalResponse;
import dev.fila.v1.GetQueueRequest;
import dev.fila.v1.GetQueueResponse;
import dev.fila.v1.GetQueueVersionRequest;
import dev.fila.v1.GetQueueVersionResponse;
import dev.fila.v1.GetScheduleRequest;
import dev.fila.v1.GetScheduleResponse;
import dev.fila.v1.GetSeriesRequest;
import dev.fila.v1.GetSeriesResponse;
import dev.fila.v1.GetStatsRequest;
import dev.fila.v1.GetStatsResponse;
import dev.fila.v1.GetStatusRequest;
import dev.fila.v1.GetStatusResponse;
import dev.fila.v1.GrantRequest;
import dev.fila.v1.GrantResponse;
import dev.fila.v1.LeaseRequest;
import dev.fila.v1.LeaseResponse;
import dev.fila.v1.ListAuditRequest;
import dev.fila.v1.ListAuditResponse;
import dev.fila.v1.ListChannelsRequest;
import dev.fila.v1.ListChannelsResponse;
import dev.fila.v1.ListConfigRequest;
import dev.fila.v1.ListConfigResponse;
import dev.fila.v1.ListConsumersRequest;
import dev.fila.v1.ListConsumersResponse;
import dev.fila.v1.ListKeyPoliciesRequest;
import dev.fila.v1.ListKeyPoliciesResponse;
import dev.fila.v1.ListLateRequest;
import dev.fila.v1.ListLateResponse;
import dev.fila.v1.ListLimitsRequest;
import dev.fila.v1.ListLimitsResponse;
import dev.fila.v1.ListOperationsRequest;
import dev.fila.v1.ListOperationsResponse;
import dev.fila.v1.ListPendingRequest;
import dev.fila.v1.ListPendingResponse;
import dev.fila.v1.ListPrincipalsRequest;
import dev.fila.v1.ListPrincipalsResponse;
import dev.fila.v1.ListQueueVersionsRequest;
import dev.fila.v1.ListQueueVersionsResponse;
import dev.fila.v1.ListQueuesRequest;
import dev.fila.v1.ListQueuesResponse;
import dev.fila.v1.ListSchedulesRequest;
import dev.fila.v1.ListSchedulesResponse;
import dev.fila.v1.ListTenantLinksRequest;
import dev.fila.v1.ListTenantLinksResponse;
import dev.fila.v1.NackBatchRequest;
import dev.fila.v1.PauseScheduleRequest;
import dev.fila.v1.PauseScheduleResponse;
import dev.fila.v1.PeekMessagesRequest;
import dev.fila.v1.PeekMessagesResponse;
import dev.fila.v1.PreviewKeyPolicyRequest;
import dev.fila.v1.PreviewKeyPolicyResponse;
import dev.fila.v1.PurgeChannelRequest;
import dev.fila.v1.PurgeChannelResponse;
import dev.fila.v1.PurgeQueueRequest;
import dev.fila.v1.PurgeQueueResponse;
import dev.fila.v1.RedriveRequest;
import dev.fila.v1.RedriveResponse;
import dev.fila.v1.ResetLimitRequest;
import dev.fila.v1.ResetLimitResponse;
import dev.fila.v1.RevokeGrantRequest;
import dev.fila.v1.RevokeGrantResponse;
import dev.fila.v1.RevokeKeyRequest;
import dev.fila.v1.RevokeKeyResponse;
import dev.fila.v1.RevokeTenantLinkRequest;
import dev.fila.v1.RevokeTenantLinkResponse;
import dev.fila.v1.RotateKeyRequest;
import dev.fila.v1.RotateKeyResponse;
import dev.fila.v1.SeekChannelRequest;
import dev.fila.v1.SeekChannelResponse;
import dev.fila.v1.SetConfigRequest;
import dev.fila.v1.SetConfigResponse;
import dev.fila.v1.SetKeyPolicyRequest;
import dev.fila.v1.SetKeyPolicyResponse;
import dev.fila.v1.SetLimitRequest;
import dev.fila.v1.SetLimitResponse;
import dev.fila.v1.SetQuotasRequest;
import dev.fila.v1.SetQuotasResponse;
import dev.fila.v1.SettleBatchResponse;
import dev.fila.v1.SkipMessageRequest;
import dev.fila.v1.SkipMessageResponse;
import dev.fila.v1.StartOperationRequest;
import dev.fila.v1.StartOperationResponse;
import dev.fila.v1.UpdateQueueRequest;
import dev.fila.v1.UpdateQueueResponse;
import dev.fila.v1.UpdateScheduleRequest;
import dev.fila.v1.UpdateScheduleResponse;
import dev.fila.v1.WhoAmIRequest;
import dev.fila.v1.WhoAmIResponse;
import io.grpc.MethodDescriptor;

/**
 * One call of the wire, and whether it may be repeated when its answer was lost.
 *
 * <p>Repeating is a promise about meaning, not about transport: reading twice is harmless, and
 * setting the same value twice leaves the same state. Enqueueing twice makes two messages, purging
 * twice may drop what came in between, and deleting twice may delete what somebody made anew. Those
 * are repeated only when it is certain that the first attempt never reached the broker.
 *
 * @param method the call
 * @param repeatable whether a second run after a lost answer leaves the same state and gives as
 *     good an answer
 */
record Rpc<Q, A>(MethodDescriptor<Q, A> method, boolean repeatable) {
    static final Rpc<EnqueueRequest, EnqueueResponse> ENQUEUE =
            once(FilaServiceGrpc.getEnqueueMethod());
    // A pull whose answer is lost leaves its messages leased until they expire; pulling again is
    // right.
    static final Rpc<LeaseRequest, LeaseResponse> LEASE =
            repeatable(FilaServiceGrpc.getLeaseMethod());
    // Settling carries lease ids, so a repetition can never settle somebody else's delivery.
    static final Rpc<AckBatchRequest, SettleBatchResponse> ACK_BATCH =
            repeatable(FilaServiceGrpc.getAckBatchMethod());
    static final Rpc<NackBatchRequest, SettleBatchResponse> NACK_BATCH =
            repeatable(FilaServiceGrpc.getNackBatchMethod());
    static final Rpc<ExtendLeaseRequest, ExtendLeaseResponse> EXTEND_LEASE =
            repeatable(FilaServiceGrpc.getExtendLeaseMethod());
    // A second run finds nothing of what the first one took back, and says so.
    static final Rpc<CancelMessagesRequest, CancelMessagesResponse> CANCEL_MESSAGES =
            once(FilaServiceGrpc.getCancelMessagesMethod());

    static final Rpc<CreateQueueRequest, CreateQueueResponse> CREATE_QUEUE =
            once(FilaAdminGrpc.getCreateQueueMethod());
    static final Rpc<GetQueueRequest, GetQueueResponse> GET_QUEUE =
            repeatable(FilaAdminGrpc.getGetQueueMethod());
    static final Rpc<UpdateQueueRequest, UpdateQueueResponse> UPDATE_QUEUE =
            repeatable(FilaAdminGrpc.getUpdateQueueMethod());
    static final Rpc<DeleteQueueRequest, DeleteQueueResponse> DELETE_QUEUE =
            once(FilaAdminGrpc.getDeleteQueueMethod());
    static final Rpc<ListQueuesRequest, ListQueuesResponse> LIST_QUEUES =
            repeatable(FilaAdminGrpc.getListQueuesMethod());
    static final Rpc<PurgeQueueRequest, PurgeQueueResponse> PURGE_QUEUE =
            once(FilaAdminGrpc.getPurgeQueueMethod());
    static final Rpc<ListPendingRequest, ListPendingResponse> LIST_PENDING =
            repeatable(FilaAdminGrpc.getListPendingMethod());
    static final Rpc<PeekMessagesRequest, PeekMessagesResponse> PEEK_MESSAGES =
            repeatable(FilaAdminGrpc.getPeekMessagesMethod());
    static final Rpc<GetStatsRequest, GetStatsResponse> GET_STATS =
            repeatable(FilaAdminGrpc.getGetStatsMethod());
    static final Rpc<SetConfigRequest, SetConfigResponse> SET_CONFIG =
            repeatable(FilaAdminGrpc.getSetConfigMethod());
    static final Rpc<GetConfigRequest, GetConfigResponse> GET_CONFIG =
            repeatable(FilaAdminGrpc.getGetConfigMethod());
    static final Rpc<ListConfigRequest, ListConfigResponse> LIST_CONFIG =
            repeatable(FilaAdminGrpc.getListConfigMethod());
    static final Rpc<RedriveRequest, RedriveResponse> REDRIVE =
            once(FilaAdminGrpc.getRedriveMethod());
    static final Rpc<CreateChannelRequest, CreateChannelResponse> CREATE_CHANNEL =
            once(FilaAdminGrpc.getCreateChannelMethod());
    static final Rpc<DeleteChannelRequest, DeleteChannelResponse> DELETE_CHANNEL =
            once(FilaAdminGrpc.getDeleteChannelMethod());
    static final Rpc<ListChannelsRequest, ListChannelsResponse> LIST_CHANNELS =
            repeatable(FilaAdminGrpc.getListChannelsMethod());
    // A second seek would take back the leases given since the first.
    static final Rpc<SeekChannelRequest, SeekChannelResponse> SEEK_CHANNEL =
            once(FilaAdminGrpc.getSeekChannelMethod());
    static final Rpc<PurgeChannelRequest, PurgeChannelResponse> PURGE_CHANNEL =
            once(FilaAdminGrpc.getPurgeChannelMethod());
    static final Rpc<SetKeyPolicyRequest, SetKeyPolicyResponse> SET_KEY_POLICY =
            repeatable(FilaAdminGrpc.getSetKeyPolicyMethod());
    // A second one would skip the message behind.
    static final Rpc<SkipMessageRequest, SkipMessageResponse> SKIP_MESSAGE =
            once(FilaAdminGrpc.getSkipMessageMethod());
    static final Rpc<ExplainKeyRequest, ExplainKeyResponse> EXPLAIN_KEY =
            repeatable(FilaAdminGrpc.getExplainKeyMethod());
    static final Rpc<GetMessageRequest, GetMessageResponse> GET_MESSAGE =
            repeatable(FilaAdminGrpc.getGetMessageMethod());
    static final Rpc<ListConsumersRequest, ListConsumersResponse> LIST_CONSUMERS =
            repeatable(FilaAdminGrpc.getListConsumersMethod());

    static final Rpc<GetStatusRequest, GetStatusResponse> GET_STATUS =
            repeatable(FilaAdminGrpc.getGetStatusMethod());
    static final Rpc<ListLateRequest, ListLateResponse> LIST_LATE =
            repeatable(FilaAdminGrpc.getListLateMethod());
    static final Rpc<ListKeyPoliciesRequest, ListKeyPoliciesResponse> LIST_KEY_POLICIES =
            repeatable(FilaAdminGrpc.getListKeyPoliciesMethod());
    static final Rpc<PreviewKeyPolicyRequest, PreviewKeyPolicyResponse> PREVIEW_KEY_POLICY =
            repeatable(FilaAdminGrpc.getPreviewKeyPolicyMethod());
    static final Rpc<FindKeysRequest, FindKeysResponse> FIND_KEYS =
            repeatable(FilaAdminGrpc.getFindKeysMethod());
    static final Rpc<GetSeriesRequest, GetSeriesResponse> GET_SERIES =
            repeatable(FilaAdminGrpc.getGetSeriesMethod());
    static final Rpc<ListQueueVersionsRequest, ListQueueVersionsResponse> LIST_QUEUE_VERSIONS =
            repeatable(FilaAdminGrpc.getListQueueVersionsMethod());
    static final Rpc<GetQueueVersionRequest, GetQueueVersionResponse> GET_QUEUE_VERSION =
            repeatable(FilaAdminGrpc.getGetQueueVersionMethod());
    static final Rpc<DryRunPolicyRequest, DryRunPolicyResponse> DRY_RUN_POLICY =
            repeatable(FilaAdminGrpc.getDryRunPolicyMethod());
    static final Rpc<CreateScheduleRequest, CreateScheduleResponse> CREATE_SCHEDULE =
            once(FilaAdminGrpc.getCreateScheduleMethod());
    static final Rpc<UpdateScheduleRequest, UpdateScheduleResponse> UPDATE_SCHEDULE =
            repeatable(FilaAdminGrpc.getUpdateScheduleMethod());
    static final Rpc<PauseScheduleRequest, PauseScheduleResponse> PAUSE_SCHEDULE =
            repeatable(FilaAdminGrpc.getPauseScheduleMethod());
    static final Rpc<DeleteScheduleRequest, DeleteScheduleResponse> DELETE_SCHEDULE =
            once(FilaAdminGrpc.getDeleteScheduleMethod());
    static final Rpc<GetScheduleRequest, GetScheduleResponse> GET_SCHEDULE =
            repeatable(FilaAdminGrpc.getGetScheduleMethod());
    static final Rpc<ListSchedulesRequest, ListSchedulesResponse> LIST_SCHEDULES =
            repeatable(FilaAdminGrpc.getListSchedulesMethod());

    static final Rpc<SetLimitRequest, SetLimitResponse> SET_LIMIT =
            repeatable(FilaAdminGrpc.getSetLimitMethod());
    static final Rpc<DeleteLimitRequest, DeleteLimitResponse> DELETE_LIMIT =
            once(FilaAdminGrpc.getDeleteLimitMethod());
    static final Rpc<ListLimitsRequest, ListLimitsResponse> LIST_LIMITS =
            repeatable(FilaAdminGrpc.getListLimitsMethod());
    // A second one would forget what was spent since the first.
    static final Rpc<ResetLimitRequest, ResetLimitResponse> RESET_LIMIT =
            once(FilaAdminGrpc.getResetLimitMethod());

    // They are named by offsets that are never given again.
    static final Rpc<DropDeadLettersRequest, DropDeadLettersResponse> DROP_DEAD_LETTERS =
            repeatable(FilaAdminGrpc.getDropDeadLettersMethod());
    static final Rpc<EditDeadLetterRequest, EditDeadLetterResponse> EDIT_DEAD_LETTER =
            once(FilaAdminGrpc.getEditDeadLetterMethod());
    // A second start would find the first one running, or begin another.
    static final Rpc<StartOperationRequest, StartOperationResponse> START_OPERATION =
            once(FilaAdminGrpc.getStartOperationMethod());
    static final Rpc<ListOperationsRequest, ListOperationsResponse> LIST_OPERATIONS =
            repeatable(FilaAdminGrpc.getListOperationsMethod());
    static final Rpc<CancelOperationRequest, CancelOperationResponse> CANCEL_OPERATION =
            repeatable(FilaAdminGrpc.getCancelOperationMethod());

    static final Rpc<WhoAmIRequest, WhoAmIResponse> WHO_AM_I =
            repeatable(FilaAuthGrpc.getWhoAmIMethod());
    // A key that was made and never seen is of no use, and no harm; but it is one more.
    static final Rpc<CreateKeyRequest, CreateKeyResponse> CREATE_KEY =
            once(FilaAuthGrpc.getCreateKeyMethod());
    static final Rpc<RotateKeyRequest, RotateKeyResponse> ROTATE_KEY =
            once(FilaAuthGrpc.getRotateKeyMethod());
    static final Rpc<RevokeKeyRequest, RevokeKeyResponse> REVOKE_KEY =
            once(FilaAuthGrpc.getRevokeKeyMethod());
    static final Rpc<GrantRequest, GrantResponse> GRANT = repeatable(FilaAuthGrpc.getGrantMethod());
    static final Rpc<RevokeGrantRequest, RevokeGrantResponse> REVOKE_GRANT =
            once(FilaAuthGrpc.getRevokeGrantMethod());
    static final Rpc<ForgetPrincipalRequest, ForgetPrincipalResponse> FORGET_PRINCIPAL =
            once(FilaAuthGrpc.getForgetPrincipalMethod());
    static final Rpc<GetPrincipalRequest, GetPrincipalResponse> GET_PRINCIPAL =
            repeatable(FilaAuthGrpc.getGetPrincipalMethod());
    static final Rpc<ListPrincipalsRequest, ListPrincipalsResponse> LIST_PRINCIPALS =
            repeatable(FilaAuthGrpc.getListPrincipalsMethod());
    static final Rpc<SetQuotasRequest, SetQuotasResponse> SET_QUOTAS =
            repeatable(FilaAuthGrpc.getSetQuotasMethod());
    static final Rpc<ListAuditRequest, ListAuditResponse> LIST_AUDIT =
            repeatable(FilaAuthGrpc.getListAuditMethod());
    static final Rpc<CreateTenantLinkRequest, CreateTenantLinkResponse> CREATE_TENANT_LINK =
            once(FilaAuthGrpc.getCreateTenantLinkMethod());
    static final Rpc<ListTenantLinksRequest, ListTenantLinksResponse> LIST_TENANT_LINKS =
            repeatable(FilaAuthGrpc.getListTenantLinksMethod());
    static final Rpc<RevokeTenantLinkRequest, RevokeTenantLinkResponse> REVOKE_TENANT_LINK =
            once(FilaAuthGrpc.getRevokeTenantLinkMethod());

    private static <Q, A> Rpc<Q, A> once(MethodDescriptor<Q, A> method) {
        return new Rpc<>(method, false);
    }

    private static <Q, A> Rpc<Q, A> repeatable(MethodDescriptor<Q, A> method) {
        return new Rpc<>(method, true);
    }

    /** The same call, repeatable or not: for requests that make a difference. */
    Rpc<Q, A> repeatableIf(boolean isRepeatable) {
        return new Rpc<>(method, isRepeatable);
    }
}
