package dev.fila.client;

import dev.fila.v1.WatchStatsRequest;
import java.util.Collection;
import java.util.List;

/** Which queues to watch, and which of their fairness keys. Immutable. */
public final class StatsWatch {
    private final WatchStatsRequest request;

    private StatsWatch(WatchStatsRequest request) {
        this.request = request;
    }

    /** All queues, each channel in numbers and no keys. */
    public static StatsWatch defaults() {
        return builder().build();
    }

    /** Begins with all queues. */
    public static Builder builder() {
        return new Builder();
    }

    WatchStatsRequest request() {
        return request;
    }

    /** Collects what to watch. */
    public static final class Builder {
        private final WatchStatsRequest.Builder request = WatchStatsRequest.newBuilder();

        private Builder() {}

        /** The queues, at most 20. */
        public Builder queues(Collection<String> value) {
            request.clearQueues().addAllQueues(value);
            return this;
        }

        /** The same. */
        public Builder queues(String... value) {
            return queues(List.of(value));
        }

        /** The channel; {@code default} unless set. */
        public Builder channel(String value) {
            request.setChannel(value);
            return this;
        }

        /** By what the leading keys are ranked, largest first; their backlog unless set. */
        public Builder order(WatchStatsRequest.Order value) {
            request.setOrder(value);
            return this;
        }

        /** How many leading keys to tell, at most 50; 20 unless set. */
        public Builder top(int value) {
            request.setTop(Arguments.inRange("top", value, 0, Integer.MAX_VALUE));
            return this;
        }

        /** Keys to tell besides, at most 50. */
        public Builder keys(Collection<String> value) {
            request.clearKeys().addAllKeys(value);
            return this;
        }

        /** The same. */
        public Builder keys(String... value) {
            return keys(List.of(value));
        }

        /** What was asked for up to now. */
        public StatsWatch build() {
            return new StatsWatch(request.build());
        }
    }
}
