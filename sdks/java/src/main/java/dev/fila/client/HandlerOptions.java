package dev.fila.client;

import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** How a handler is run. Immutable. */
public final class HandlerOptions {
    private final int concurrency;
    private final ConsumeOptions consume;
    private final @Nullable Executor executor;

    private HandlerOptions(Builder builder) {
        concurrency = builder.concurrency;
        consume = builder.consume;
        executor = builder.executor;
    }

    /** One message at a time. */
    public static HandlerOptions defaults() {
        return builder().build();
    }

    /** So many messages at a time. */
    public static HandlerOptions concurrency(int messages) {
        return builder().concurrency(messages).build();
    }

    /** Begins with the defaults. */
    public static Builder builder() {
        return new Builder();
    }

    /** How many messages are handled at once, each on a thread of its own. */
    public int concurrency() {
        return concurrency;
    }

    /** What is consumed. */
    public ConsumeOptions consume() {
        return consume;
    }

    /** Where the handlers run; empty means on threads of the client's own. */
    public Optional<Executor> executor() {
        return Optional.ofNullable(executor);
    }

    /** Collects options. */
    public static final class Builder {
        private int concurrency = 1;
        private ConsumeOptions consume = ConsumeOptions.defaults();
        private @Nullable Executor executor;

        private Builder() {}

        /** Handle so many messages at once, 1 to 10,000. */
        public Builder concurrency(int messages) {
            concurrency = Arguments.inRange("concurrency", messages, 1, 10_000);
            return this;
        }

        /** Consume like this. */
        public Builder consume(ConsumeOptions value) {
            consume = Objects.requireNonNull(value, "consume");
            return this;
        }

        /**
         * Run the handlers here. It must give each of them a thread, such as {@code
         * Executors.newVirtualThreadPerTaskExecutor()} does.
         */
        public Builder executor(Executor value) {
            executor = Objects.requireNonNull(value, "executor");
            return this;
        }

        /** The options as they stand now. */
        public HandlerOptions build() {
            return new HandlerOptions(this);
        }
    }
}
