package dev.fila.client;

import dev.fila.v1.WatchEventsRequest;
import java.util.Collection;
import java.util.List;

/** Which events to tell: all that is said must hold. Immutable. */
public final class EventFilter {
    private final WatchEventsRequest request;

    private EventFilter(WatchEventsRequest request) {
        this.request = request;
    }

    /** All that are kept, and no more. */
    public static EventFilter defaults() {
        return builder().build();
    }

    /** Begins with all that are kept. */
    public static Builder builder() {
        return new Builder();
    }

    WatchEventsRequest request() {
        return request;
    }

    /** Collects what must hold. */
    public static final class Builder {
        private final WatchEventsRequest.Builder request = WatchEventsRequest.newBuilder();

        private Builder() {}

        /** Only of this queue. */
        public Builder queue(String value) {
            request.setQueue(value);
            return this;
        }

        /**
         * Only of these kinds: {@code queue.created}, or {@code queue} for all that begin with it.
         * At most 64.
         */
        public Builder kinds(Collection<String> value) {
            request.clearKinds().addAllKinds(value);
            return this;
        }

        /** The same. */
        public Builder kinds(String... value) {
            return kinds(List.of(value));
        }

        /** Only of this fairness key. */
        public Builder fairnessKey(String value) {
            request.setFairnessKey(value);
            return this;
        }

        /** Only those after the event at this position. */
        public Builder afterPosition(long value) {
            request.setAfterPosition(Arguments.inRange("afterPosition", value, 0, Long.MAX_VALUE));
            return this;
        }

        /** Go on with what happens; without it the watch ends with what is kept. */
        public Builder follow() {
            request.setFollow(true);
            return this;
        }

        /** What was said up to now. */
        public EventFilter build() {
            return new EventFilter(request.build());
        }
    }
}
