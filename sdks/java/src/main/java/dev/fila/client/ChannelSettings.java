package dev.fila.client;

import dev.fila.v1.CreateChannelRequest;
import java.time.Duration;
import java.time.Instant;

/** Where a new channel starts and how long it lasts. Immutable. */
public final class ChannelSettings {
    private final CreateChannelRequest request;

    private ChannelSettings(CreateChannelRequest request) {
        this.request = request;
    }

    /** Starts at the head, lasts for ever. */
    public static ChannelSettings defaults() {
        return builder().build();
    }

    /** Begins with the defaults. */
    public static Builder builder() {
        return new Builder();
    }

    CreateChannelRequest.Builder request() {
        return request.toBuilder();
    }

    /** Collects settings. */
    public static final class Builder {
        private final CreateChannelRequest.Builder request = CreateChannelRequest.newBuilder();

        private Builder() {}

        /** See only what is appended from now on. */
        public Builder startAtHead() {
            request.setHead(true);
            return this;
        }

        /** See everything that is retained. */
        public Builder startAtOldest() {
            request.setOldest(true);
            return this;
        }

        /** See what is retained from this offset on. */
        public Builder startAt(long offset) {
            request.setOffset(Arguments.inRange("offset", offset, 0, Long.MAX_VALUE));
            return this;
        }

        /** See what was appended at this moment or later. */
        public Builder startAt(Instant moment) {
            request.setTime(Arguments.timestamp(moment));
            return this;
        }

        /**
         * Delete the channel after so long without a stream, pull or lease: at least 1 s; zero for
         * never.
         */
        public Builder expiresAfterIdle(Duration time) {
            request.setExpiresAfterIdleMs(Arguments.millis("expiresAfterIdle", time));
            return this;
        }

        /** The settings as they stand now. */
        public ChannelSettings build() {
            return new ChannelSettings(request.build());
        }
    }
}
