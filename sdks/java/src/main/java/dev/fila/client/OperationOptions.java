package dev.fila.client;

import dev.fila.v1.DeadLetterFilter;
import java.time.Instant;

/**
 * Which dead letters a long operation means, of those that are there when it starts, and how fast
 * it goes: all that is said must hold. Immutable.
 */
public final class OperationOptions {
    private final DeadLetterFilter filter;
    private final double ratePerSecond;

    private OperationOptions(Builder builder) {
        filter = builder.filter.build();
        ratePerSecond = builder.ratePerSecond;
    }

    /** All of them, as fast as it goes. */
    public static OperationOptions defaults() {
        return builder().build();
    }

    /** Begins with all of them. */
    public static Builder builder() {
        return new Builder();
    }

    DeadLetterFilter filter() {
        return filter;
    }

    double ratePerSecond() {
        return ratePerSecond;
    }

    /** Collects what must hold. */
    public static final class Builder {
        private final DeadLetterFilter.Builder filter = DeadLetterFilter.newBuilder();
        private double ratePerSecond;

        private Builder() {}

        /** Only of this fairness key. */
        public Builder fairnessKey(String value) {
            filter.setFairnessKey(value);
            return this;
        }

        /**
         * Only those that died of this: {@code max_attempts}, {@code on_failure}, {@code ttl} or
         * {@code rejected}.
         */
        public Builder reason(String value) {
            filter.setReason(value);
            return this;
        }

        /** Only those whose last error has this text in it. */
        public Builder error(String value) {
            filter.setError(value);
            return this;
        }

        /** Only those that died at this moment or later. */
        public Builder diedFrom(Instant value) {
            filter.setDiedFrom(Arguments.timestamp(value));
            return this;
        }

        /** Only those that died before this moment. */
        public Builder diedBefore(Instant value) {
            filter.setDiedBefore(Arguments.timestamp(value));
            return this;
        }

        /** Only those that failed in this channel. */
        public Builder sourceChannel(String value) {
            filter.setSourceChannel(value);
            return this;
        }

        /** Most messages a second; as fast as it goes unless set. */
        public Builder ratePerSecond(double value) {
            ratePerSecond = value;
            return this;
        }

        /** What was said up to now. */
        public OperationOptions build() {
            return new OperationOptions(this);
        }
    }
}
