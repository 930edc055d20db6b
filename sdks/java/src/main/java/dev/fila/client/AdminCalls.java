package dev.fila.client;

import dev.fila.client.internal.Blocking;
import dev.fila.v1.CancelMessagesRequest;
import dev.fila.v1.CancelMessagesResponse;
import dev.fila.v1.ChannelInfo;
import dev.fila.v1.ConfigEntry;
import dev.fila.v1.ConsumerInfo;
import dev.fila.v1.CreateQueueRequest;
import dev.fila.v1.DeleteChannelRequest;
import dev.fila.v1.DeleteQueueRequest;
import dev.fila.v1.ExplainKeyRequest;
import dev.fila.v1.ExplainKeyResponse;
import dev.fila.v1.GetConfigRequest;
import dev.fila.v1.GetMessageRequest;
import dev.fila.v1.GetMessageResponse;
import dev.fila.v1.GetQueueRequest;
import dev.fila.v1.GetQueueResponse;
import dev.fila.v1.GetStatsRequest;
import dev.fila.v1.GetStatsResponse;
import dev.fila.v1.ListChannelsRequest;
import dev.fila.v1.ListConfigRequest;
import dev.fila.v1.ListConsumersRequest;
import dev.fila.v1.ListQueuesRequest;
import dev.fila.v1.PeekMessagesRequest;
import dev.fila.v1.PurgeChannelRequest;
import dev.fila.v1.PurgeQueueRequest;
import dev.fila.v1.QueueConfig;
import dev.fila.v1.QueueInfo;
import dev.fila.v1.ReadLogRequest;
import dev.fila.v1.RedriveRequest;
import dev.fila.v1.SeekChannelRequest;
import dev.fila.v1.SeekChannelResponse;
import dev.fila.v1.SetConfigRequest;
import dev.fila.v1.SetKeyPolicyRequest;
import dev.fila.v1.SetKeyPolicyResponse;
import dev.fila.v1.SkipMessageRequest;
import dev.fila.v1.SkipMessageResponse;
import dev.fila.v1.UpdateQueueRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What operators do with a client: queues, channels, statistics, runtime config, dead letters, the
 * log.
 *
 * <p>Where an answer has more than one value it is the wire's own message, so that what a newer
 * broker adds is there to read. A channel that is null means {@code default}, except where a method
 * says otherwise. Calls wait on the thread that makes them; interrupting it cancels the call.
 */
public abstract sealed class AdminCalls permits ObservingCalls {
    final Connection connection;

    AdminCalls(Connection connection) {
        this.connection = connection;
    }

    // Queues.

    /** Makes a queue with default settings, and its dead-letter queue {@code <queue>.dlq}. */
    public void createQueue(String queue) {
        createQueue(queue, QueueSettings.builder().build());
    }

    /** Makes a queue and its dead-letter queue. Throws QueueExistsException, InvalidException. */
    public void createQueue(String queue, QueueSettings settings) {
        CreateQueueRequest request =
                CreateQueueRequest.newBuilder().setName(queue).setConfig(settings.config()).build();
        call(Rpc.CREATE_QUEUE, request, about(queue));
    }

    /** A queue's settings, defaults filled in. Throws QueueNotFoundException. */
    public GetQueueResponse getQueue(String queue) {
        return call(
                Rpc.GET_QUEUE, GetQueueRequest.newBuilder().setQueue(queue).build(), about(queue));
    }

    /**
     * Changes the settings given, and no other; they apply at once to what waits. Returns them all.
     * Throws QueueNotFoundException, InvalidException.
     */
    public QueueConfig updateQueue(String queue, QueueSettings settings) {
        UpdateQueueRequest request =
                UpdateQueueRequest.newBuilder()
                        .setQueue(queue)
                        .setConfig(settings.config())
                        .setUpdateMask(settings.mask())
                        .build();
        return call(Rpc.UPDATE_QUEUE, request, about(queue)).getConfig();
    }

    /**
     * As {@link #updateQueue(String, QueueSettings)}, only if this is the version of the settings,
     * as {@link #getQueue} tells it; 0 for any. The comment, at most 1,024 bytes, is kept with the
     * version. Throws ConflictException where somebody else changed them since.
     */
    public QueueConfig updateQueue(
            String queue, QueueSettings settings, long expectedVersion, String comment) {
        UpdateQueueRequest request =
                UpdateQueueRequest.newBuilder()
                        .setQueue(queue)
                        .setConfig(settings.config())
                        .setUpdateMask(settings.mask())
                        .setExpectedVersion(
                                Arguments.inRange(
                                        "expectedVersion", expectedVersion, 0, Long.MAX_VALUE))
                        .setComment(comment)
                        .build();
        // A second run would find the version that the first one made.
        return call(Rpc.UPDATE_QUEUE.repeatableIf(expectedVersion == 0), request, about(queue))
                .getConfig();
    }

    /**
     * Deletes a queue, its own dead-letter queue, and everything in them. Throws
     * QueueNotFoundException.
     */
    public void deleteQueue(String queue) {
        deleteQueue(queue, false);
    }

    /**
     * The same; while a published batch of a sink is still on its way into the queue, only with
     * {@code force}: else it throws ConflictException.
     */
    public void deleteQueue(String queue, boolean force) {
        DeleteQueueRequest request =
                DeleteQueueRequest.newBuilder().setQueue(queue).setForce(force).build();
        call(Rpc.DELETE_QUEUE, request, about(queue));
    }

    /** Every queue with its depth, in flight and consumers, sorted by name. */
    public List<QueueInfo> listQueues() {
        return call(Rpc.LIST_QUEUES, ListQueuesRequest.getDefaultInstance(), Map.of())
                .getQueuesList();
    }

    /**
     * Queues whose names begin with {@code prefix} and have {@code containing} in them, in letters
     * of either case, both may be empty: at most {@code pageSize}, up to 1,000 and 0 for all, and
     * behind the name {@code pageToken}.
     */
    public List<QueueInfo> listQueues(
            String prefix, String containing, int pageSize, String pageToken) {
        ListQueuesRequest request =
                ListQueuesRequest.newBuilder()
                        .setPrefix(prefix)
                        .setContaining(containing)
                        .setPageSize(pageSize)
                        .setPageToken(pageToken)
                        .build();
        return call(Rpc.LIST_QUEUES, request, Map.of()).getQueuesList();
    }

    /** A queue in numbers, over all its channels. Throws QueueNotFoundException. */
    public GetStatsResponse getStats(String queue) {
        return getStats(queue, null, 0);
    }

    /**
     * A queue in numbers: over all channels when {@code channel} is null, else of one. At most
     * {@code maxKeys} keys, 0 for 1,000. Throws QueueNotFoundException, ChannelNotFoundException.
     */
    public GetStatsResponse getStats(String queue, @Nullable String channel, int maxKeys) {
        GetStatsRequest request =
                GetStatsRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(orEmpty(channel))
                        .setMaxKeys(maxKeys)
                        .build();
        return call(Rpc.GET_STATS, request, about(queue, channel));
    }

    /** Drops all pending messages of a queue. Returns how many. Throws QueueNotFoundException. */
    public long purge(String queue) {
        return purge(queue, PurgeOptions.defaults());
    }

    /** Drops some of a queue's pending messages. Returns how many. */
    public long purge(String queue, PurgeOptions options) {
        PurgeQueueRequest.Builder request = PurgeQueueRequest.newBuilder().setQueue(queue);
        options.fairnessKey().ifPresent(request::setFairnessKey);
        options.channel().ifPresent(request::setChannel);
        Map<String, String> known = about(queue, options.channel().orElse(null));
        return call(Rpc.PURGE_QUEUE, request.build(), known, options.timeout().orElse(null))
                .getPurged();
    }

    /**
     * Looks at up to ten pending messages, in offset order, without leasing them. Throws
     * QueueNotFoundException.
     */
    public List<StoredMessage> peek(String queue) {
        return peek(queue, PeekOptions.defaults());
    }

    /** Looks at pending messages in offset order without leasing them. */
    public List<StoredMessage> peek(String queue, PeekOptions options) {
        PeekMessagesRequest request =
                PeekMessagesRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(options.channel().orElse(""))
                        .setMaxMessages(options.maxMessages().orElse(10))
                        .setAfterOffset(options.afterOffset().orElse(0L))
                        .setFairnessKey(options.fairnessKey().orElse(""))
                        .build();
        Map<String, String> known = about(queue, options.channel().orElse("default"));
        return call(Rpc.PEEK_MESSAGES, request, known).getMessagesList().stream()
                .map(StoredMessage::new)
                .toList();
    }

    /** Moves all dead letters back to the queue they came from, oldest first. Returns how many. */
    public long redrive(String dlq) {
        return redrive(dlq, RedriveOptions.defaults());
    }

    /**
     * Moves dead letters back to the queue they came from, oldest first. Returns how many. Throws
     * QueueNotFoundException, InvalidException (no dead-letter queue), SourceQueueGoneException.
     */
    public long redrive(String dlq, RedriveOptions options) {
        RedriveRequest request =
                RedriveRequest.newBuilder()
                        .setDlqQueue(dlq)
                        .setCount(options.count().orElse(0L))
                        .setRatePerSecond(options.ratePerSecond().orElse(0.0))
                        .addAllOffsets(options.offsets())
                        .build();
        return call(Rpc.REDRIVE, request, about(dlq), options.timeout().orElse(null)).getRedriven();
    }

    // Channels.

    /** Adds a channel that starts at the head. Returns the first offset it will see. */
    public long createChannel(String queue, String channel) {
        return createChannel(queue, channel, ChannelSettings.defaults());
    }

    /**
     * Adds a channel. Returns the first offset it will see. Throws QueueNotFoundException,
     * ChannelExistsException.
     */
    public long createChannel(String queue, String channel, ChannelSettings settings) {
        var request = settings.request().setQueue(queue).setChannel(channel).build();
        return call(Rpc.CREATE_CHANNEL, request, about(queue, channel)).getStartOffset();
    }

    /**
     * Deletes a channel, its leases and what it had pending. Throws QueueNotFoundException,
     * ChannelNotFoundException.
     */
    public void deleteChannel(String queue, String channel) {
        DeleteChannelRequest request =
                DeleteChannelRequest.newBuilder().setQueue(queue).setChannel(channel).build();
        call(Rpc.DELETE_CHANNEL, request, about(queue, channel));
    }

    /** A queue's channels in numbers, sorted by name. Throws QueueNotFoundException. */
    public List<ChannelInfo> listChannels(String queue) {
        ListChannelsRequest request = ListChannelsRequest.newBuilder().setQueue(queue).build();
        return call(Rpc.LIST_CHANNELS, request, about(queue)).getChannelsList();
    }

    /**
     * Moves a channel to an offset; its leases end. Returns the offset it is at now. Throws
     * QueueNotFoundException, ChannelNotFoundException.
     */
    public long seekChannel(String queue, @Nullable String channel, long offset) {
        return seek(queue, channel, SeekChannelRequest.newBuilder().setOffset(offset)).getOffset();
    }

    /** Moves a channel to the first message appended at this moment or later; its leases end. */
    public long seekChannel(String queue, @Nullable String channel, Instant moment) {
        return seek(queue, channel, at(moment)).getOffset();
    }

    /**
     * Says what {@link #seekChannel(String, String, long)} would do, and does nothing: how many
     * messages would be delivered again, how many not any more, how many leases would end.
     */
    public SeekChannelResponse previewSeek(String queue, @Nullable String channel, long offset) {
        SeekChannelRequest.Builder target = SeekChannelRequest.newBuilder().setOffset(offset);
        return seek(queue, channel, target.setValidateOnly(true));
    }

    /** Says what {@link #seekChannel(String, String, Instant)} would do, and does nothing. */
    public SeekChannelResponse previewSeek(String queue, @Nullable String channel, Instant moment) {
        return seek(queue, channel, at(moment).setValidateOnly(true));
    }

    private static SeekChannelRequest.Builder at(Instant moment) {
        return SeekChannelRequest.newBuilder().setTime(Arguments.timestamp(moment));
    }

    private SeekChannelResponse seek(
            String queue, @Nullable String channel, SeekChannelRequest.Builder target) {
        SeekChannelRequest request = target.setQueue(queue).setChannel(orEmpty(channel)).build();
        var rpc = Rpc.SEEK_CHANNEL.repeatableIf(request.getValidateOnly());
        return call(rpc, request, about(queue, orDefault(channel)));
    }

    /**
     * Drops what is pending in one channel, of one key unless that is null; other channels keep
     * theirs. Returns how many messages. Throws QueueNotFoundException, ChannelNotFoundException.
     */
    public long purgeChannel(String queue, @Nullable String channel, @Nullable String fairnessKey) {
        PurgeChannelRequest.Builder request =
                PurgeChannelRequest.newBuilder().setQueue(queue).setChannel(orEmpty(channel));
        if (fairnessKey != null) {
            request.setFairnessKey(fairnessKey);
        }
        return call(Rpc.PURGE_CHANNEL, request.build(), about(queue, orDefault(channel)))
                .getPurged();
    }

    /**
     * Who consumes a queue, over all channels unless one is named, and what each holds; oldest
     * first.
     */
    public List<ConsumerInfo> listConsumers(String queue, @Nullable String channel) {
        ListConsumersRequest request =
                ListConsumersRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(orEmpty(channel))
                        .build();
        return call(Rpc.LIST_CONSUMERS, request, about(queue, channel)).getConsumersList();
    }

    // Runtime config.

    /**
     * Sets a runtime config value, visible to hooks when this returns; empty deletes it. Throws
     * InvalidException.
     */
    public void setConfig(String key, String value) {
        SetConfigRequest request =
                SetConfigRequest.newBuilder().setKey(key).setValue(value).build();
        call(Rpc.SET_CONFIG, request, Map.of("config_key", key));
    }

    /** A runtime config value. Throws ConfigKeyNotFoundException. */
    public String getConfig(String key) {
        GetConfigRequest request = GetConfigRequest.newBuilder().setKey(key).build();
        return call(Rpc.GET_CONFIG, request, Map.of("config_key", key)).getValue();
    }

    /** The runtime config values whose key starts with the prefix, sorted by key. */
    public Map<String, String> listConfig(String prefix) {
        ListConfigRequest request = ListConfigRequest.newBuilder().setPrefix(prefix).build();
        Map<String, String> values = new LinkedHashMap<>();
        for (ConfigEntry entry : call(Rpc.LIST_CONFIG, request, Map.of()).getEntriesList()) {
            values.put(entry.getKey(), entry.getValue());
        }
        return Collections.unmodifiableMap(values);
    }

    // Fairness keys.

    /**
     * Weighs, pauses, resumes, caps or slows one fairness key. Returns its policy now. Throws
     * QueueNotFoundException, InvalidException.
     */
    public SetKeyPolicyResponse setKeyPolicy(String queue, String fairnessKey, KeyPolicy policy) {
        SetKeyPolicyRequest request = policy.request(fairnessKey).setQueue(queue).build();
        return call(Rpc.SET_KEY_POLICY, request, about(queue));
    }

    /**
     * Says what holds a fairness key's next message, and where its last hour of waiting went.
     * Throws QueueNotFoundException, ChannelNotFoundException.
     */
    public ExplainKeyResponse explainKey(
            String queue, @Nullable String channel, String fairnessKey) {
        ExplainKeyRequest request =
                ExplainKeyRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(orEmpty(channel))
                        .setFairnessKey(fairnessKey)
                        .build();
        return call(Rpc.EXPLAIN_KEY, request, about(queue, orDefault(channel)));
    }

    /**
     * Makes the first message of a key a dead letter, with the reason {@code skipped}, so that
     * those behind it go on; unless {@code messageId} is null, only if it is that one. For queues
     * whose order of keys is strict. Throws QueueNotFoundException, ChannelNotFoundException.
     */
    public SkipMessageResponse skipMessage(
            String queue,
            @Nullable String channel,
            String fairnessKey,
            @Nullable String messageId) {
        SkipMessageRequest request =
                SkipMessageRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(orEmpty(channel))
                        .setFairnessKey(fairnessKey)
                        .setMessageId(orEmpty(messageId))
                        .build();
        return call(Rpc.SKIP_MESSAGE, request, about(queue, orDefault(channel)));
    }

    // One message.

    /**
     * Says where one message is: it waits, is delayed or leased, failed, is dead, or is not known
     * any more. Throws QueueNotFoundException, ChannelNotFoundException, InvalidException.
     */
    public GetMessageResponse getMessage(String queue, @Nullable String channel, String messageId) {
        return getMessage(GetMessageRequest.newBuilder().setMessageId(messageId), queue, channel);
    }

    /** Says the same of a message that was enqueued with this dedup key. */
    public GetMessageResponse getMessageByDedupKey(
            String queue, @Nullable String channel, String dedupKey) {
        return getMessage(GetMessageRequest.newBuilder().setDedupKey(dedupKey), queue, channel);
    }

    private GetMessageResponse getMessage(
            GetMessageRequest.Builder request, String queue, @Nullable String channel) {
        request.setQueue(queue).setChannel(orEmpty(channel));
        return call(Rpc.GET_MESSAGE, request.build(), about(queue, orDefault(channel)));
    }

    /**
     * Takes messages back that are not done, by their ids and their dedup keys, at most 10,000 a
     * call. Returns what became of each, ids first: it waited and is gone, a consumer had it, whose
     * ack is refused from now on, or the channel has no such message. Throws
     * QueueNotFoundException, ChannelNotFoundException, InvalidException.
     */
    public List<CancelMessagesResponse.Outcome> cancelMessages(
            String queue,
            @Nullable String channel,
            List<String> messageIds,
            List<String> dedupKeys) {
        CancelMessagesRequest request =
                CancelMessagesRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(orEmpty(channel))
                        .addAllMessageIds(messageIds)
                        .addAllDedupKeys(dedupKeys)
                        .build();
        return call(Rpc.CANCEL_MESSAGES, request, about(queue, orDefault(channel)))
                .getOutcomesList();
    }

    // The log.

    /** Reads retained messages in offset order, leasing nothing. */
    public LogReader readLog(String queue, LogRange range) {
        ReadLogRequest.Builder request =
                ReadLogRequest.newBuilder()
                        .setQueue(queue)
                        .setFromOffset(range.fromOffset().orElse(0L))
                        .setToOffset(range.toOffset().orElse(0L))
                        .setFairnessKey(range.fairnessKey().orElse(""))
                        .setMaxBatch(range.maxBatch().orElse(0));
        range.fromTime().map(Arguments::timestamp).ifPresent(request::setFromTime);
        range.toTime().map(Arguments::timestamp).ifPresent(request::setToTime);
        return new LogReader(connection, request.build());
    }

    final <Q, A> A call(Rpc<Q, A> rpc, Q request, Map<String, String> known) {
        return call(rpc, request, known, null);
    }

    private <Q, A> A call(
            Rpc<Q, A> rpc, Q request, Map<String, String> known, @Nullable Duration timeout) {
        Duration patience = timeout == null ? connection.options.callTimeout() : timeout;
        return Blocking.await(connection.call(rpc, request, known, patience));
    }

    static Map<String, String> about(String queue) {
        return Map.of("queue", queue);
    }

    static Map<String, String> about(String queue, @Nullable String channel) {
        return Map.of("queue", queue, "channel", orEmpty(channel));
    }

    static String orEmpty(@Nullable String given) {
        return given == null ? "" : given;
    }

    static String orDefault(@Nullable String channel) {
        return channel == null ? "default" : channel;
    }
}
