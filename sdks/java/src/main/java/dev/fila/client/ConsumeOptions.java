package dev.fila.client;

import dev.fila.v1.ConsumeSessionRequest;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What to consume and how. Immutable. */
public final class ConsumeOptions {
    private final @Nullable String channel;
    private final @Nullable Prefetch prefetch;
    private final @Nullable Duration stopWhenIdle;
    private final @Nullable Duration maxLeaseRenewal;
    private final @Nullable String name;

    private ConsumeOptions(Builder builder) {
        channel = builder.channel;
        prefetch = builder.prefetch;
        stopWhenIdle = builder.stopWhenIdle;
        maxLeaseRenewal = builder.maxLeaseRenewal;
        name = builder.name;
    }

    /** The channel {@code default}, the client's prefetch, for ever. */
    public static ConsumeOptions defaults() {
        return builder().build();
    }

    /** Begins with the defaults. */
    public static Builder builder() {
        return new Builder();
    }

    /** The channel; empty means {@code default}. */
    public Optional<String> channel() {
        return Optional.ofNullable(channel);
    }

    /** How many messages are held at once; empty means as the client's options say. */
    public Optional<Prefetch> prefetch() {
        return Optional.ofNullable(prefetch);
    }

    /** Loops end when nothing has arrived for so long; empty means never. */
    public Optional<Duration> stopWhenIdle() {
        return Optional.ofNullable(stopWhenIdle);
    }

    /** How long the broker keeps leases of this consumer while it lives; empty means 10 min. */
    public Optional<Duration> maxLeaseRenewal() {
        return Optional.ofNullable(maxLeaseRenewal);
    }

    /** The consumer's name for people, who see it in lists; empty means the client's. */
    public Optional<String> name() {
        return Optional.ofNullable(name);
    }

    /** The first frame of a session, but for what the session itself knows. */
    ConsumeSessionRequest.Open.Builder openRequest(String defaultName) {
        ConsumeSessionRequest.Open.Builder open =
                ConsumeSessionRequest.Open.newBuilder()
                        .setChannel(channel().orElse(""))
                        .setTracksBegun(true)
                        .setName(name().orElse(defaultName));
        maxLeaseRenewal().map(Duration::toMillis).ifPresent(open::setMaxLeaseRenewalMs);
        return open;
    }

    /** Collects options. */
    public static final class Builder {
        private @Nullable String channel;
        private @Nullable Prefetch prefetch;
        private @Nullable Duration stopWhenIdle;
        private @Nullable Duration maxLeaseRenewal;
        private @Nullable String name;

        private Builder() {}

        /** Consume this channel. */
        public Builder channel(String value) {
            channel = Objects.requireNonNull(value, "channel");
            return this;
        }

        /** Hold so many messages at once. */
        public Builder prefetch(Prefetch value) {
            prefetch = Objects.requireNonNull(value, "prefetch");
            return this;
        }

        /** Hold so many messages at once, 1 to 10,000. */
        public Builder prefetch(int messages) {
            return prefetch(Prefetch.of(messages));
        }

        /**
         * End the loops when nothing has arrived for so long. Time in which the broker can't be
         * heard does not count.
         */
        public Builder stopWhenIdle(Duration value) {
            stopWhenIdle = Arguments.notNegative("stopWhenIdle", value);
            return this;
        }

        /**
         * While the consumer lives, the broker keeps the lease of a message for so long from when
         * it was handed out, at most 12 h; zero leaves the queue's visibility timeout. So a handler
         * that takes long need not extend, and one that hangs is noticed all the same.
         */
        public Builder maxLeaseRenewal(Duration value) {
            Arguments.notNegative("maxLeaseRenewal", value);
            maxLeaseRenewal = Arguments.atMost("maxLeaseRenewal", value, Duration.ofHours(12));
            return this;
        }

        /** The consumer's name for people, at most 128 bytes. */
        public Builder name(String value) {
            name = Objects.requireNonNull(value, "name");
            return this;
        }

        /** The options as they stand now. */
        public ConsumeOptions build() {
            return new ConsumeOptions(this);
        }
    }
}
