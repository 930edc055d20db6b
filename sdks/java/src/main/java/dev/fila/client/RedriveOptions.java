package dev.fila.client;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How many dead letters to move back, and how fast. Immutable. */
public final class RedriveOptions {
    private final @Nullable Long count;
    private final @Nullable Double ratePerSecond;
    private final List<Long> offsets;
    private final @Nullable Duration timeout;

    private RedriveOptions(Builder builder) {
        count = builder.count;
        ratePerSecond = builder.ratePerSecond;
        offsets = builder.offsets;
        timeout = builder.timeout;
    }

    /** With nothing asked for. */
    public static RedriveOptions defaults() {
        return builder().build();
    }

    /** Begins with nothing asked for. */
    public static Builder builder() {
        return new Builder();
    }

    /** Most dead letters to move; empty means all that are there at the start. */
    public Optional<Long> count() {
        return Optional.ofNullable(count);
    }

    /** The pace; empty means as fast as it goes. */
    public Optional<Double> ratePerSecond() {
        return Optional.ofNullable(ratePerSecond);
    }

    /** Just those with these offsets, at most 1,000; empty means all. */
    public List<Long> offsets() {
        return offsets;
    }

    /**
     * How long the call may take; empty means the client's callTimeout. A paced redrive takes its
     * time.
     */
    public Optional<Duration> timeout() {
        return Optional.ofNullable(timeout);
    }

    /** Collects what is asked for; each is explained at the accessor of the same name. */
    public static final class Builder {
        private @Nullable Long count;
        private @Nullable Double ratePerSecond;
        private List<Long> offsets = List.of();
        private @Nullable Duration timeout;

        private Builder() {}

        /** Sets {@link RedriveOptions#count()}. */
        public Builder count(long value) {
            count = Arguments.inRange("count", value, 0, Long.MAX_VALUE);
            return this;
        }

        /** Sets {@link RedriveOptions#ratePerSecond()}. */
        public Builder ratePerSecond(double value) {
            ratePerSecond = value;
            return this;
        }

        /** Sets {@link RedriveOptions#offsets()}. */
        public Builder offsets(Collection<Long> value) {
            offsets = List.copyOf(value);
            return this;
        }

        /** Sets {@link RedriveOptions#timeout()}. */
        public Builder timeout(Duration value) {
            timeout = Arguments.notNegative("timeout", value);
            return this;
        }

        /** What was asked for up to now. */
        public RedriveOptions build() {
            return new RedriveOptions(this);
        }
    }
}
