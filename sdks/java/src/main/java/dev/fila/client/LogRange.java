package dev.fila.client;

import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Which of a queue's retained messages to read: all the bounds given must hold. Immutable. */
public final class LogRange {
    private final @Nullable Long fromOffset;
    private final @Nullable Long toOffset;
    private final @Nullable Instant fromTime;
    private final @Nullable Instant toTime;
    private final @Nullable String fairnessKey;
    private final @Nullable Integer maxBatch;

    private LogRange(Builder builder) {
        fromOffset = builder.fromOffset;
        toOffset = builder.toOffset;
        fromTime = builder.fromTime;
        toTime = builder.toTime;
        fairnessKey = builder.fairnessKey;
        maxBatch = builder.maxBatch;
    }

    /** With nothing asked for. */
    public static LogRange defaults() {
        return builder().build();
    }

    /** Begins with nothing asked for. */
    public static Builder builder() {
        return new Builder();
    }

    /** The first offset; empty means the oldest retained. */
    public Optional<Long> fromOffset() {
        return Optional.ofNullable(fromOffset);
    }

    /** Read below this offset; empty means up to the head as of the call. */
    public Optional<Long> toOffset() {
        return Optional.ofNullable(toOffset);
    }

    /** Only what was appended at this moment or later. */
    public Optional<Instant> fromTime() {
        return Optional.ofNullable(fromTime);
    }

    /** Only what was appended before this moment. */
    public Optional<Instant> toTime() {
        return Optional.ofNullable(toTime);
    }

    /** Only this key's messages; empty means all. */
    public Optional<String> fairnessKey() {
        return Optional.ofNullable(fairnessKey);
    }

    /** Most messages in one frame of the answer; empty means 100. */
    public Optional<Integer> maxBatch() {
        return Optional.ofNullable(maxBatch);
    }

    /** Collects what is asked for; each is explained at the accessor of the same name. */
    public static final class Builder {
        private @Nullable Long fromOffset;
        private @Nullable Long toOffset;
        private @Nullable Instant fromTime;
        private @Nullable Instant toTime;
        private @Nullable String fairnessKey;
        private @Nullable Integer maxBatch;

        private Builder() {}

        /** Sets {@link LogRange#fromOffset()}. */
        public Builder fromOffset(long value) {
            fromOffset = Arguments.inRange("fromOffset", value, 0, Long.MAX_VALUE);
            return this;
        }

        /** Sets {@link LogRange#toOffset()}. */
        public Builder toOffset(long value) {
            toOffset = Arguments.inRange("toOffset", value, 0, Long.MAX_VALUE);
            return this;
        }

        /** Sets {@link LogRange#fromTime()}. */
        public Builder fromTime(Instant value) {
            fromTime = Objects.requireNonNull(value, "fromTime");
            return this;
        }

        /** Sets {@link LogRange#toTime()}. */
        public Builder toTime(Instant value) {
            toTime = Objects.requireNonNull(value, "toTime");
            return this;
        }

        /** Sets {@link LogRange#fairnessKey()}. */
        public Builder fairnessKey(String value) {
            fairnessKey = Objects.requireNonNull(value, "fairnessKey");
            return this;
        }

        /** Sets {@link LogRange#maxBatch()}. */
        public Builder maxBatch(int value) {
            maxBatch = Arguments.inRange("maxBatch", value, 0, Integer.MAX_VALUE);
            return this;
        }

        /** What was asked for up to now. */
        public LogRange build() {
            return new LogRange(this);
        }
    }
}
