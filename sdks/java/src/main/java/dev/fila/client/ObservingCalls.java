package dev.fila.client;

import dev.fila.v1.DryRunPolicyRequest;
import dev.fila.v1.DryRunPolicyResponse;
import dev.fila.v1.Event;
import dev.fila.v1.FilaAdminGrpc;
import dev.fila.v1.FindKeysRequest;
import dev.fila.v1.FindKeysResponse;
import dev.fila.v1.GetQueueVersionRequest;
import dev.fila.v1.GetQueueVersionResponse;
import dev.fila.v1.GetSeriesRequest;
import dev.fila.v1.GetSeriesResponse;
import dev.fila.v1.GetStatusRequest;
import dev.fila.v1.GetStatusResponse;
import dev.fila.v1.ListKeyPoliciesRequest;
import dev.fila.v1.ListLateRequest;
import dev.fila.v1.ListLateResponse;
import dev.fila.v1.ListPendingRequest;
import dev.fila.v1.ListQueueVersionsRequest;
import dev.fila.v1.PendingMessage;
import dev.fila.v1.PreviewKeyPolicyRequest;
import dev.fila.v1.PreviewKeyPolicyResponse;
import dev.fila.v1.QueueVersion;
import dev.fila.v1.WatchEventsRequest;
import dev.fila.v1.WatchEventsResponse;
import dev.fila.v1.WatchStatsRequest;
import dev.fila.v1.WatchStatsResponse;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What operators look at: the broker's state, keys in numbers, what happens, settings over time.
 */
public abstract sealed class ObservingCalls extends AdminCalls permits DeadLetterCalls {
    ObservingCalls(Connection connection) {
        super(connection);
    }

    /**
     * Says what is wrong, and how the broker is: version, disk, connections, damage. Who is no
     * admin is told the version, the disk and whether it is stopping, and troubles of its queues.
     */
    public GetStatusResponse getStatus() {
        return getStatus(null, null, 0);
    }

    /**
     * Says how the broker is, and what is wrong with one queue, or with all when it is null. A
     * fairness key leaves out the pauses of other keys. At most {@code maxTroubles}, up to 100; 0
     * for 4.
     */
    public GetStatusResponse getStatus(
            @Nullable String queue, @Nullable String fairnessKey, int maxTroubles) {
        GetStatusRequest request =
                GetStatusRequest.newBuilder()
                        .setQueue(orEmpty(queue))
                        .setFairnessKey(orEmpty(fairnessKey))
                        .setMaxTroubles(
                                Arguments.inRange("maxTroubles", maxTroubles, 0, Integer.MAX_VALUE))
                        .build();
        return call(Rpc.GET_STATUS, request, Map.of());
    }

    /** Ranks the 20 fairness keys of all queues whose next message waits longest. */
    public ListLateResponse listLate() {
        return listLate(null, 0);
    }

    /**
     * Ranks the fairness keys of one queue, or of all when it is null, by how long their next
     * message has been waiting, with the cause. At most {@code maxKeys}, up to 1,000; 0 for 20.
     * Throws QueueNotFoundException.
     */
    public ListLateResponse listLate(@Nullable String queue, int maxKeys) {
        ListLateRequest request =
                ListLateRequest.newBuilder()
                        .setQueue(orEmpty(queue))
                        .setMaxKeys(Arguments.inRange("maxKeys", maxKeys, 0, Integer.MAX_VALUE))
                        .build();
        return call(Rpc.LIST_LATE, request, about(orEmpty(queue)));
    }

    /** What was set for single keys of a queue. Throws QueueNotFoundException. */
    public List<dev.fila.v1.KeyPolicy> listKeyPolicies(String queue) {
        return listKeyPolicies(queue, null);
    }

    /**
     * What was set for single keys of a queue, or for the one named, also when that is nothing.
     * Throws QueueNotFoundException.
     */
    public List<dev.fila.v1.KeyPolicy> listKeyPolicies(String queue, @Nullable String fairnessKey) {
        ListKeyPoliciesRequest request =
                ListKeyPoliciesRequest.newBuilder()
                        .setQueue(queue)
                        .setFairnessKey(orEmpty(fairnessKey))
                        .build();
        return call(Rpc.LIST_KEY_POLICIES, request, about(queue)).getPoliciesList();
    }

    /**
     * Says what {@link #setKeyPolicy} would do in one channel, and does nothing: when the key's
     * messages would go, and who would wait longer. Throws QueueNotFoundException,
     * ChannelNotFoundException, InvalidException.
     */
    public PreviewKeyPolicyResponse previewKeyPolicy(
            String queue, @Nullable String channel, String fairnessKey, KeyPolicy policy) {
        PreviewKeyPolicyRequest request =
                PreviewKeyPolicyRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(orEmpty(channel))
                        .setPolicy(policy.request(fairnessKey))
                        .build();
        return call(Rpc.PREVIEW_KEY_POLICY, request, about(queue, orDefault(channel)));
    }

    /**
     * Lists messages that are not done, in offset order, 100 unless the options say more: what each
     * is doing and since when, without headers and payload. The right to view is enough. Throws
     * QueueNotFoundException, ChannelNotFoundException.
     */
    public List<PendingMessage> listPending(String queue, PeekOptions options) {
        ListPendingRequest request =
                ListPendingRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(options.channel().orElse(""))
                        .setMaxMessages(options.maxMessages().orElse(100))
                        .setAfterOffset(options.afterOffset().orElse(0L))
                        .setFairnessKey(options.fairnessKey().orElse(""))
                        .build();
        return call(Rpc.LIST_PENDING, request, about(queue, options.channel().orElse("default")))
                .getMessagesList();
    }

    /** Finds 20 fairness keys that begin so, in the channel {@code default}. */
    public FindKeysResponse findKeys(String queue, String prefix) {
        return findKeys(queue, null, prefix, 0);
    }

    /**
     * Finds a queue's fairness keys that begin so, those with most pending first; at most {@code
     * limit}, up to 256, 0 for 20. Throws QueueNotFoundException, ChannelNotFoundException.
     */
    public FindKeysResponse findKeys(
            String queue, @Nullable String channel, String prefix, int limit) {
        FindKeysRequest request =
                FindKeysRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(orEmpty(channel))
                        .setPrefix(prefix)
                        .setLimit(Arguments.inRange("limit", limit, 0, Integer.MAX_VALUE))
                        .build();
        return call(Rpc.FIND_KEYS, request, about(queue, orDefault(channel)));
    }

    /**
     * Looks back at the last hour of a channel and of up to 50 of its keys, in points of ten
     * seconds. The keys are recorded from then on, for the hour that follows. Throws
     * QueueNotFoundException, ChannelNotFoundException, InvalidException.
     */
    public GetSeriesResponse getSeries(
            String queue, @Nullable String channel, Collection<String> keys) {
        GetSeriesRequest request =
                GetSeriesRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(orEmpty(channel))
                        .addAllKeys(keys)
                        .build();
        return call(Rpc.GET_SERIES, request, about(queue, orDefault(channel)));
    }

    /**
     * Watches queues and their leading keys in numbers: everything at first, and after a broken
     * stream, then about once a second what changed. The watch throws QueueNotFoundException,
     * ChannelNotFoundException, InvalidException.
     */
    public Watch<WatchStatsResponse> watchStats(StatsWatch what) {
        WatchStatsRequest request = what.request();
        ResumedStream<WatchStatsRequest, WatchStatsResponse> stream =
                new ResumedStream<>(
                        connection,
                        FilaAdminGrpc.getWatchStatsMethod(),
                        request,
                        (asked, answer) -> asked,
                        about(String.join(", ", request.getQueuesList()), request.getChannel()),
                        () -> true);
        return new Watch<>(stream, List::of);
    }

    /**
     * Tells what happened, oldest first, and with {@link EventFilter.Builder#follow()} what happens
     * from then on. A broken stream is resumed where it was. The watch throws
     * QueueNotFoundException, NotAllowedException.
     */
    public Watch<Event> watchEvents(EventFilter filter) {
        WatchEventsRequest request = filter.request();
        ResumedStream<WatchEventsRequest, WatchEventsResponse> stream =
                new ResumedStream<>(
                        connection,
                        FilaAdminGrpc.getWatchEventsMethod(),
                        request,
                        (asked, answer) ->
                                asked.toBuilder()
                                        .setAfterPosition(answer.getNextPosition())
                                        .build(),
                        about(request.getQueue()),
                        request::getFollow);
        return new Watch<>(stream, WatchEventsResponse::getEventsList);
    }

    // Settings over time.

    /** All versions of a queue's settings that are kept, newest first. */
    public List<QueueVersion> listQueueVersions(String queue) {
        return listQueueVersions(queue, 0, 0);
    }

    /**
     * The versions of a queue's settings, newest first: who changed what, when, and why. Only those
     * below {@code before} and at most {@code limit}, 0 for all; the last 100 are kept. Throws
     * QueueNotFoundException.
     */
    public List<QueueVersion> listQueueVersions(String queue, long before, int limit) {
        ListQueueVersionsRequest request =
                ListQueueVersionsRequest.newBuilder()
                        .setQueue(queue)
                        .setBefore(Arguments.inRange("before", before, 0, Long.MAX_VALUE))
                        .setLimit(Arguments.inRange("limit", limit, 0, Integer.MAX_VALUE))
                        .build();
        return call(Rpc.LIST_QUEUE_VERSIONS, request, about(queue)).getVersionsList();
    }

    /**
     * One version of a queue's settings, the newest for 0. Throws QueueNotFoundException,
     * NotFoundException.
     */
    public GetQueueVersionResponse getQueueVersion(String queue, long number) {
        GetQueueVersionRequest request =
                GetQueueVersionRequest.newBuilder()
                        .setQueue(queue)
                        .setNumber(Arguments.inRange("number", number, 0, Long.MAX_VALUE))
                        .build();
        return call(Rpc.GET_QUEUE_VERSION, request, about(queue));
    }

    /**
     * Says how these settings would route a queue's newest messages and judge its newest dead
     * letters: the {@code last} of each, up to 1,000, 0 for 100. Nothing is changed. Throws
     * QueueNotFoundException, InvalidException.
     */
    public DryRunPolicyResponse dryRunPolicy(String queue, QueueSettings settings, int last) {
        DryRunPolicyRequest request =
                DryRunPolicyRequest.newBuilder()
                        .setQueue(queue)
                        .setConfig(settings.config())
                        .setUpdateMask(settings.mask())
                        .setLast(Arguments.inRange("last", last, 0, Integer.MAX_VALUE))
                        .build();
        return call(Rpc.DRY_RUN_POLICY, request, about(queue));
    }
}
