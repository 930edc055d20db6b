package dev.fila.client;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Which pending messages to drop. Immutable. */
public final class PurgeOptions {
    private final @Nullable String channel;
    private final @Nullable String fairnessKey;
    private final @Nullable Duration timeout;

    private PurgeOptions(Builder builder) {
        channel = builder.channel;
        fairnessKey = builder.fairnessKey;
        timeout = builder.timeout;
    }

    /** With nothing asked for. */
    public static PurgeOptions defaults() {
        return builder().build();
    }

    /** Begins with nothing asked for. */
    public static Builder builder() {
        return new Builder();
    }

    /** Only in this channel; empty means in every channel. */
    public Optional<String> channel() {
        return Optional.ofNullable(channel);
    }

    /** Only this key's messages; empty means all. */
    public Optional<String> fairnessKey() {
        return Optional.ofNullable(fairnessKey);
    }

    /** How long the call may take; empty means the client's callTimeout. */
    public Optional<Duration> timeout() {
        return Optional.ofNullable(timeout);
    }

    /** Collects what is asked for; each is explained at the accessor of the same name. */
    public static final class Builder {
        private @Nullable String channel;
        private @Nullable String fairnessKey;
        private @Nullable Duration timeout;

        private Builder() {}

        /** Sets {@link PurgeOptions#channel()}. */
        public Builder channel(String value) {
            channel = Objects.requireNonNull(value, "channel");
            return this;
        }

        /** Sets {@link PurgeOptions#fairnessKey()}. */
        public Builder fairnessKey(String value) {
            fairnessKey = Objects.requireNonNull(value, "fairnessKey");
            return this;
        }

        /** Sets {@link PurgeOptions#timeout()}. */
        public Builder timeout(Duration value) {
            timeout = Arguments.notNegative("timeout", value);
            return this;
        }

        /** What was asked for up to now. */
        public PurgeOptions build() {
            return new PurgeOptions(this);
        }
    }
}
