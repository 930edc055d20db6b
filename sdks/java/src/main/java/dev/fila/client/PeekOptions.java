package dev.fila.client;

import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Which pending messages to look at. Immutable. */
public final class PeekOptions {
    private final @Nullable String channel;
    private final @Nullable Integer maxMessages;
    private final @Nullable Long afterOffset;
    private final @Nullable String fairnessKey;

    private PeekOptions(Builder builder) {
        channel = builder.channel;
        maxMessages = builder.maxMessages;
        afterOffset = builder.afterOffset;
        fairnessKey = builder.fairnessKey;
    }

    /** With nothing asked for. */
    public static PeekOptions defaults() {
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

    /** Most messages wanted, 1 to 1,000; empty means 10, and 100 to list them. */
    public Optional<Integer> maxMessages() {
        return Optional.ofNullable(maxMessages);
    }

    /** Only messages after this offset: the last one's, to turn the page. */
    public Optional<Long> afterOffset() {
        return Optional.ofNullable(afterOffset);
    }

    /** Only this key's messages; empty means all. */
    public Optional<String> fairnessKey() {
        return Optional.ofNullable(fairnessKey);
    }

    /** Collects what is asked for; each is explained at the accessor of the same name. */
    public static final class Builder {
        private @Nullable String channel;
        private @Nullable Integer maxMessages;
        private @Nullable Long afterOffset;
        private @Nullable String fairnessKey;

        private Builder() {}

        /** Sets {@link PeekOptions#channel()}. */
        public Builder channel(String value) {
            channel = Objects.requireNonNull(value, "channel");
            return this;
        }

        /** Sets {@link PeekOptions#maxMessages()}. */
        public Builder maxMessages(int value) {
            maxMessages = Arguments.inRange("maxMessages", value, 1, Integer.MAX_VALUE);
            return this;
        }

        /** Sets {@link PeekOptions#afterOffset()}. */
        public Builder afterOffset(long value) {
            afterOffset = Arguments.inRange("afterOffset", value, 0, Long.MAX_VALUE);
            return this;
        }

        /** Sets {@link PeekOptions#fairnessKey()}. */
        public Builder fairnessKey(String value) {
            fairnessKey = Objects.requireNonNull(value, "fairnessKey");
            return this;
        }

        /** What was asked for up to now. */
        public PeekOptions build() {
            return new PeekOptions(this);
        }
    }
}
