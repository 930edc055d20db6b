package dev.fila.client;

import com.google.protobuf.FieldMask;
import dev.fila.v1.Durability;
import dev.fila.v1.HookFallback;
import dev.fila.v1.KeyOrder;
import dev.fila.v1.QueueConfig;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A queue's settings. What is not said has its default when a queue is created, and stays when it
 * is updated. Immutable.
 */
public final class QueueSettings {
    private final QueueConfig config;
    private final Set<String> paths;

    private QueueSettings(QueueConfig config, Set<String> paths) {
        this.config = config;
        this.paths = paths;
    }

    /** Begins with nothing said. */
    public static Builder builder() {
        return new Builder();
    }

    QueueConfig config() {
        return config;
    }

    /** Exactly what was said; of retry and retention, the parts that were. */
    FieldMask mask() {
        return FieldMask.newBuilder().addAllPaths(paths).build();
    }

    /** Collects settings. */
    public static final class Builder {
        private final QueueConfig.Builder config = QueueConfig.newBuilder();
        private final Set<String> paths = new LinkedHashSet<>();

        private Builder() {}

        /** Lua source that defines {@code on_enqueue(msg)}. */
        public Builder onEnqueueScript(String value) {
            config.setOnEnqueueScript(value);
            return said("on_enqueue_script");
        }

        /** Lua source that defines {@code on_failure(msg, attempts)}. */
        public Builder onFailureScript(String value) {
            config.setOnFailureScript(value);
            return said("on_failure_script");
        }

        /** How long a delivery is leased: 1 s to 12 h; zero for the default, 30 s. */
        public Builder visibilityTimeout(Duration value) {
            config.setVisibilityTimeoutMs(Arguments.millis("visibilityTimeout", value));
            return said("visibility_timeout_ms");
        }

        /** Failures after which a message becomes a dead letter; default 20, 0 for no cap. */
        public Builder maxAttempts(int value) {
            config.setMaxAttempts(Arguments.inRange("maxAttempts", value, 0, Integer.MAX_VALUE));
            return said("max_attempts");
        }

        /** When calls are answered: after the fsync, or after the write to the operating system. */
        public Builder durability(Durability value) {
            config.setDurability(value);
            return said("durability");
        }

        /** Most pending and leased messages; 0 for no bound. */
        public Builder maxDepth(long value) {
            config.setMaxDepth(Arguments.inRange("maxDepth", value, 0, Long.MAX_VALUE));
            return said("max_depth");
        }

        /** Most stored bytes; 0 for no bound. */
        public Builder maxBytes(long value) {
            config.setMaxBytes(Arguments.inRange("maxBytes", value, 0, Long.MAX_VALUE));
            return said("max_bytes");
        }

        /** The header whose value is the fairness key. */
        public Builder fairnessKeyHeader(String value) {
            config.setFairnessKeyHeader(value);
            return said("fairness_key_header");
        }

        /** The header whose value is the weight of the fairness key. */
        public Builder weightHeader(String value) {
            config.setWeightHeader(value);
            return said("weight_header");
        }

        /** Weight by fairness key, 1 to 1000; wins over the header. */
        public Builder weights(Map<String, Integer> value) {
            config.clearWeights().putAllWeights(value);
            return said("weights");
        }

        /** The header whose value is the cost. */
        public Builder costHeader(String value) {
            config.setCostHeader(value);
            return said("cost_header");
        }

        /**
         * The header whose value is the priority among the messages of a fairness key, 0 to 3. Not
         * with a strict order.
         */
        public Builder priorityHeader(String value) {
            config.setPriorityHeader(value);
            return said("priority_header");
        }

        /** Headers whose values are the throttle keys. */
        public Builder throttleKeyHeaders(Collection<String> value) {
            config.clearThrottleKeyHeaders().addAllThrottleKeyHeaders(value);
            return said("throttle_key_headers");
        }

        /** The same. */
        public Builder throttleKeyHeaders(String... value) {
            return throttleKeyHeaders(List.of(value));
        }

        /**
         * With a message's fairness key behind it, the name of a limit that messages of all
         * producers need, too: {@code tenant:} for {@code tenant:acme}. At most 64 bytes, without
         * {@code *}; empty for none.
         */
        public Builder keyLimit(String value) {
            config.setKeyLimit(value);
            return said("key_limit");
        }

        /** Producers may say a message's fairness key, weight and cost when they enqueue it. */
        public Builder allowProducerRouting(boolean value) {
            config.setAllowProducerRouting(value);
            return said("allow_producer_routing");
        }

        /** How long a failed message waits before it is ready again. */
        public Builder retry(RetrySettings value) {
            config.setRetry(value.wire());
            value.paths().forEach(part -> paths.add("retry." + part));
            return this;
        }

        /** What happens when {@code on_enqueue} fails. */
        public Builder hookFallback(HookFallback value) {
            config.setHookFallback(value);
            return said("hook_fallback");
        }

        /**
         * In which order the messages of one fairness key go: strict, one at a time, and a failed
         * one keeps its place.
         */
        public Builder keyOrder(KeyOrder value) {
            config.setKeyOrder(value);
            return said("key_order");
        }

        /** How long messages are kept. */
        public Builder retention(RetentionSettings value) {
            config.setRetention(value.wire());
            value.paths().forEach(part -> paths.add("retention." + part));
            return this;
        }

        /**
         * Headers of an HTTP sender that become the message's, where the gateway stores a body as
         * it is: at most 32 names in lower case.
         */
        public Builder intakeHeaders(Collection<String> value) {
            config.getIntakeBuilder().clearHeaders().addAllHeaders(value);
            return said("intake.headers");
        }

        /**
         * Headers of an HTTP sender: the first that it gives is the dedup key. At most 32 names in
         * lower case.
         */
        public Builder intakeDedupHeaders(Collection<String> value) {
            config.getIntakeBuilder().clearDedupHeaders().addAllDedupHeaders(value);
            return said("intake.dedup_headers");
        }

        /**
         * Most messages of a fairness key delivered a second, over all channels, until an operator
         * sets something else for the key; 0 for no rate.
         */
        public Builder keyRateDefault(double perSecond) {
            config.getKeyDefaultsBuilder().setRatePerSecond(perSecond);
            return said("key_defaults.rate_per_second");
        }

        /**
         * How many messages of such a key may be delivered at once after a pause, at least 1; 0 for
         * one second's worth. It needs a {@link #keyRateDefault}.
         */
        public Builder keyBurstDefault(double value) {
            config.getKeyDefaultsBuilder().setBurst(value);
            return said("key_defaults.burst");
        }

        /** Most messages of such a key leased at once in a channel; 0 for no cap. */
        public Builder keyCapDefault(int value) {
            config.getKeyDefaultsBuilder().setMaxInFlight(value);
            return said("key_defaults.max_in_flight");
        }

        /**
         * Messages of such a key that go, a second, before those of keys that are not within
         * theirs, over all channels; 0 for none.
         */
        public Builder keyCommittedDefault(double perSecond) {
            config.getKeyDefaultsBuilder().setCommittedPerSecond(perSecond);
            return said("key_defaults.committed_per_second");
        }

        /** Channels to make with the queue; only when it is created. None means {@code default}. */
        public Builder channels(Collection<String> value) {
            config.clearChannels().addAllChannels(value);
            return said("channels");
        }

        /** The same. */
        public Builder channels(String... value) {
            return channels(List.of(value));
        }

        /** How long a dedup key is remembered, at most 24 h; zero for the default, 5 min. */
        public Builder dedupWindow(Duration value) {
            config.setDedupWindowMs(Arguments.millis("dedupWindow", value));
            return said("dedup_window_ms");
        }

        /** Messages whose time to live is over become dead letters instead of being dropped. */
        public Builder ttlToDlq(boolean value) {
            config.setTtlToDlq(value);
            return said("ttl_to_dlq");
        }

        /**
         * Deliver nothing until this is false again; enqueues, acks and what is leased already go
         * on.
         */
        public Builder paused(boolean value) {
            config.setPaused(value);
            return said("paused");
        }

        /** Channels that deliver nothing until they are named here no more; the others go on. */
        public Builder pausedChannels(Collection<String> value) {
            config.clearPausedChannels().addAllPausedChannels(value);
            return said("paused_channels");
        }

        /** The same. */
        public Builder pausedChannels(String... value) {
            return pausedChannels(List.of(value));
        }

        /**
         * How long after a broken connection a consumer may come back to what it held; default 5 s,
         * zero for not at all.
         */
        public Builder disconnectGrace(Duration value) {
            config.setDisconnectGraceMs(Arguments.millis("disconnectGrace", value));
            return said("disconnect_grace_ms");
        }

        /**
         * Delete the queue after so long without a stream, pull, lease or enqueue: at least 1 s;
         * zero for never.
         */
        public Builder expiresAfterIdle(Duration value) {
            config.setExpiresAfterIdleMs(Arguments.millis("expiresAfterIdle", value));
            return said("expires_after_idle_ms");
        }

        private Builder said(String path) {
            paths.add(path);
            return this;
        }

        /** The settings as they stand now. */
        public QueueSettings build() {
            return new QueueSettings(config.build(), Set.copyOf(paths));
        }
    }
}
