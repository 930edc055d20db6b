package dev.fila.client;

import dev.fila.client.internal.SystemTimers;
import dev.fila.client.internal.Timers;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The settings of a client, each with its default. Immutable: {@link #builder()} makes one, {@link
 * #toBuilder()} one that differs.
 */
public final class ClientOptions {
    private static final Duration KEEPALIVE_TIME = Duration.ofSeconds(30);
    private static final Duration KEEPALIVE_TIMEOUT = Duration.ofSeconds(10);

    private final Duration connectTimeout;
    private final Duration callTimeout;
    private final Duration retryFor;
    private final @Nullable Duration reconnectFor;
    private final Duration waitWhenOverloaded;
    private final boolean batching;
    private final Duration linger;
    private final int frameMessagesMax;
    private final int frameBytesMax;
    private final int framesInFlightMax;
    private final long waitingBytesMax;
    private final Prefetch prefetch;
    private final String name;
    private final Backoff backoff;
    private final Duration keepAliveTime;
    private final Duration keepAliveTimeout;
    private final @Nullable TlsOptions tls;
    private final @Nullable String apiKey;
    private final ConnectionListener connectionListener;
    private final @Nullable Executor executor;
    private final Supplier<Timers> timers;

    private ClientOptions(Builder builder) {
        connectTimeout = builder.connectTimeout;
        callTimeout = builder.callTimeout;
        retryFor = builder.retryFor;
        reconnectFor = builder.reconnectFor;
        waitWhenOverloaded = builder.waitWhenOverloaded;
        batching = builder.batching;
        linger = builder.linger;
        frameMessagesMax = builder.frameMessagesMax;
        frameBytesMax = builder.frameBytesMax;
        framesInFlightMax = builder.framesInFlightMax;
        waitingBytesMax = builder.waitingBytesMax;
        prefetch = builder.prefetch;
        name = builder.name;
        backoff = builder.backoff;
        keepAliveTime = builder.keepAliveTime;
        keepAliveTimeout = builder.keepAliveTimeout;
        tls = builder.tls;
        apiKey = builder.apiKey;
        connectionListener = builder.connectionListener;
        executor = builder.executor;
        timers = builder.timers;
    }

    /** The defaults. */
    public static ClientOptions defaults() {
        return builder().build();
    }

    /** Begins with the defaults. */
    public static Builder builder() {
        return new Builder();
    }

    /** Begins with these settings. */
    public Builder toBuilder() {
        Builder builder = new Builder();
        builder.connectTimeout = connectTimeout;
        builder.callTimeout = callTimeout;
        builder.retryFor = retryFor;
        builder.reconnectFor = reconnectFor;
        builder.waitWhenOverloaded = waitWhenOverloaded;
        builder.batching = batching;
        builder.linger = linger;
        builder.frameMessagesMax = frameMessagesMax;
        builder.frameBytesMax = frameBytesMax;
        builder.framesInFlightMax = framesInFlightMax;
        builder.waitingBytesMax = waitingBytesMax;
        builder.prefetch = prefetch;
        builder.name = name;
        builder.backoff = backoff;
        builder.keepAliveTime = keepAliveTime;
        builder.keepAliveTimeout = keepAliveTimeout;
        builder.tls = tls;
        builder.apiKey = apiKey;
        builder.connectionListener = connectionListener;
        builder.executor = executor;
        builder.timers = timers;
        return builder;
    }

    /** How long connecting waits for the broker to answer. */
    public Duration connectTimeout() {
        return connectTimeout;
    }

    /** How long one call, or one frame of enqueues, may go unanswered before it counts as lost. */
    public Duration callTimeout() {
        return callTimeout;
    }

    /**
     * How long an unreachable broker is tried again before a call throws UnavailableException.
     * Zero: not at all.
     */
    public Duration retryFor() {
        return retryFor;
    }

    /**
     * How long a consumer tries to get its stream back before it throws UnavailableException; null
     * for ever.
     */
    public @Nullable Duration reconnectFor() {
        return reconnectFor;
    }

    /**
     * How long a call that is refused with OverloadedException is tried again, waiting as long as
     * the broker suggests each time. Zero throws at once, so that the caller feels the pressure.
     */
    public Duration waitWhenOverloaded() {
        return waitWhenOverloaded;
    }

    /** Whether concurrent enqueues travel together. Off: each is a call of its own. */
    public boolean batching() {
        return batching;
    }

    /**
     * Longest an enqueue may wait for company while an earlier frame is unanswered; at most 5 ms.
     * With nothing unanswered it is sent at once.
     */
    public Duration linger() {
        return linger;
    }

    /**
     * Most messages in one frame, at most 10,000. Larger frames cost less a message, and hold up
     * the others longer.
     */
    public int frameMessagesMax() {
        return frameMessagesMax;
    }

    /** A frame is sent when its headers and payloads reach this, at most 8 MiB. */
    public int frameBytesMax() {
        return frameBytesMax;
    }

    /** Unanswered frames of enqueues; more hide the broker's pace instead of following it. */
    public int framesInFlightMax() {
        return framesInFlightMax;
    }

    /** Bytes of enqueues not yet sent; beyond it enqueues wait, in the thread that makes them. */
    public long waitingBytesMax() {
        return waitingBytesMax;
    }

    /** How many messages a consumer holds at once, unless its own options say otherwise. */
    public Prefetch prefetch() {
        return prefetch;
    }

    /**
     * The consumers' name for people, at most 128 bytes; unless given, the machine and the process.
     */
    public String name() {
        return name;
    }

    /** How long to wait before trying again, and again. */
    public Backoff backoff() {
        return backoff;
    }

    /**
     * A silent connection is asked for a sign of life after this long; gRPC takes at least 10 s.
     */
    public Duration keepAliveTime() {
        return keepAliveTime;
    }

    /** A connection that gives none within this long counts as broken. */
    public Duration keepAliveTimeout() {
        return keepAliveTimeout;
    }

    /** Whether the program said nothing about pings. */
    boolean hasUsualKeepAlive() {
        return keepAliveTime.equals(KEEPALIVE_TIME) && keepAliveTimeout.equals(KEEPALIVE_TIMEOUT);
    }

    /** TLS; null for none, unless an address begins with https://. */
    public @Nullable TlsOptions tls() {
        return tls;
    }

    /**
     * Sent with every call as {@code authorization: Bearer}; null takes the environment's
     * FILA_API_KEY, if there is one.
     */
    public @Nullable String apiKey() {
        return apiKey;
    }

    /**
     * Is told when a consumer's stream is lost, draining, or back. Runs on a thread of the
     * executor.
     */
    public ConnectionListener connectionListener() {
        return connectionListener;
    }

    /**
     * Where the program's own code runs: what depends on the client's futures, handlers, listeners.
     * Null for threads of the client's own, which end with it.
     */
    public @Nullable Executor executor() {
        return executor;
    }

    private static String nameOfProcess() {
        String host = System.getenv().getOrDefault("HOSTNAME", "java");
        return host + ":" + ProcessHandle.current().pid();
    }

    Supplier<Timers> timers() {
        return timers;
    }

    /**
     * Collects settings. Each is explained at the accessor of the same name; a value out of range
     * is refused.
     */
    public static final class Builder {
        private Duration connectTimeout = Duration.ofSeconds(10);
        private Duration callTimeout = Duration.ofSeconds(30);
        private Duration retryFor = Duration.ofSeconds(30);
        private @Nullable Duration reconnectFor = null;
        private Duration waitWhenOverloaded = Duration.ZERO;
        private boolean batching = true;
        private Duration linger = Duration.ofMillis(5);
        private int frameMessagesMax = 200;
        private int frameBytesMax = 1 << 20;
        private int framesInFlightMax = 4;
        private long waitingBytesMax = 64L << 20;
        private Prefetch prefetch = Prefetch.auto();
        private String name = ClientOptions.nameOfProcess();
        private Backoff backoff = Backoff.standard();
        private Duration keepAliveTime = KEEPALIVE_TIME;
        private Duration keepAliveTimeout = KEEPALIVE_TIMEOUT;
        private @Nullable TlsOptions tls = null;
        private @Nullable String apiKey = null;
        private ConnectionListener connectionListener = event -> {};
        private @Nullable Executor executor = null;
        private Supplier<Timers> timers = SystemTimers::new;

        private Builder() {}

        /** Sets {@link ClientOptions#connectTimeout()}. */
        public Builder connectTimeout(Duration value) {
            connectTimeout = Arguments.positive("connectTimeout", value);
            return this;
        }

        /** Sets {@link ClientOptions#callTimeout()}. */
        public Builder callTimeout(Duration value) {
            callTimeout = Arguments.positive("callTimeout", value);
            return this;
        }

        /** Sets {@link ClientOptions#retryFor()}. */
        public Builder retryFor(Duration value) {
            retryFor = Arguments.notNegative("retryFor", value);
            return this;
        }

        /** Sets {@link ClientOptions#reconnectFor()}. */
        public Builder reconnectFor(@Nullable Duration value) {
            reconnectFor = value;
            return this;
        }

        /** Sets {@link ClientOptions#waitWhenOverloaded()}. */
        public Builder waitWhenOverloaded(Duration value) {
            waitWhenOverloaded = Arguments.notNegative("waitWhenOverloaded", value);
            return this;
        }

        /** Sets {@link ClientOptions#batching()}. */
        public Builder batching(boolean value) {
            batching = value;
            return this;
        }

        /** Sets {@link ClientOptions#linger()}. */
        public Builder linger(Duration value) {
            linger =
                    Arguments.atMost(
                            "linger", Arguments.notNegative("linger", value), Duration.ofMillis(5));
            return this;
        }

        /** Sets {@link ClientOptions#frameMessagesMax()}. */
        public Builder frameMessagesMax(int value) {
            frameMessagesMax = Arguments.inRange("frameMessagesMax", value, 1, 10_000);
            return this;
        }

        /** Sets {@link ClientOptions#frameBytesMax()}. */
        public Builder frameBytesMax(int value) {
            frameBytesMax = Arguments.inRange("frameBytesMax", value, 1, 8 << 20);
            return this;
        }

        /** Sets {@link ClientOptions#framesInFlightMax()}. */
        public Builder framesInFlightMax(int value) {
            framesInFlightMax = Arguments.inRange("framesInFlightMax", value, 1, 1_000);
            return this;
        }

        /** Sets {@link ClientOptions#waitingBytesMax()}. */
        public Builder waitingBytesMax(long value) {
            waitingBytesMax = Arguments.inRange("waitingBytesMax", value, 1, Long.MAX_VALUE);
            return this;
        }

        /** Sets {@link ClientOptions#prefetch()}. */
        public Builder prefetch(Prefetch value) {
            prefetch = Objects.requireNonNull(value, "prefetch");
            return this;
        }

        /** Sets {@link ClientOptions#name()}. */
        public Builder name(String value) {
            name = Objects.requireNonNull(value, "name");
            return this;
        }

        /** Sets {@link ClientOptions#backoff()}. */
        public Builder backoff(Backoff value) {
            backoff = Objects.requireNonNull(value, "backoff");
            return this;
        }

        /** Sets {@link ClientOptions#keepAliveTime()}. */
        public Builder keepAliveTime(Duration value) {
            keepAliveTime = Arguments.positive("keepAliveTime", value);
            return this;
        }

        /** Sets {@link ClientOptions#keepAliveTimeout()}. */
        public Builder keepAliveTimeout(Duration value) {
            keepAliveTimeout = Arguments.positive("keepAliveTimeout", value);
            return this;
        }

        /** Sets {@link ClientOptions#tls()}. */
        public Builder tls(@Nullable TlsOptions value) {
            tls = value;
            return this;
        }

        /** Sets {@link ClientOptions#apiKey()}. */
        public Builder apiKey(@Nullable String value) {
            apiKey = value;
            return this;
        }

        /** Sets {@link ClientOptions#connectionListener()}. */
        public Builder connectionListener(ConnectionListener value) {
            connectionListener = Objects.requireNonNull(value, "connectionListener");
            return this;
        }

        /** Sets {@link ClientOptions#executor()}. */
        public Builder executor(@Nullable Executor value) {
            executor = value;
            return this;
        }

        /** Time for tests. */
        Builder timers(Supplier<Timers> value) {
            timers = value;
            return this;
        }

        /** The settings as they stand now. */
        public ClientOptions build() {
            return new ClientOptions(this);
        }
    }
}
