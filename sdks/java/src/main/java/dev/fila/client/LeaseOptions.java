package dev.fila.client;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How to pull messages. Immutable. */
public final class LeaseOptions {
    private final @Nullable String channel;
    private final @Nullable Duration waitFor;

    private LeaseOptions(Builder builder) {
        channel = builder.channel;
        waitFor = builder.waitFor;
    }

    /** With nothing asked for. */
    public static LeaseOptions defaults() {
        return builder().build();
    }

    /** Begins with nothing asked for. */
    public static Builder builder() {
        return new Builder();
    }

    /** The channel; empty means {@code default}. */
    public Optional<String> channel() {
        return Optional.ofNullable(channel);
    }

    /** How long to wait for the first message; empty means not at all. */
    public Optional<Duration> waitFor() {
        return Optional.ofNullable(waitFor);
    }

    /** Collects what is asked for; each is explained at the accessor of the same name. */
    public static final class Builder {
        private @Nullable String channel;
        private @Nullable Duration waitFor;

        private Builder() {}

        /** Sets {@link LeaseOptions#channel()}. */
        public Builder channel(String value) {
            channel = Objects.requireNonNull(value, "channel");
            return this;
        }

        /** Sets {@link LeaseOptions#waitFor()}. */
        public Builder waitFor(Duration value) {
            waitFor = Arguments.notNegative("waitFor", value);
            return this;
        }

        /** What was asked for up to now. */
        public LeaseOptions build() {
            return new LeaseOptions(this);
        }
    }
}
