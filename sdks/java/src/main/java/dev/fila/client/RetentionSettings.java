package dev.fila.client;

import dev.fila.v1.Retention;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * How long messages are kept: soft, done ones too; hard, no others either. Zero means: soft, gone
 * when every channel is done; hard, no limit. Immutable.
 */
public final class RetentionSettings {
    private final Retention wire;
    private final Set<String> paths;

    private RetentionSettings(Retention wire, Set<String> paths) {
        this.wire = wire;
        this.paths = paths;
    }

    /** Begins with nothing said. */
    public static Builder builder() {
        return new Builder();
    }

    Retention wire() {
        return wire;
    }

    /** What was said. */
    Set<String> paths() {
        return paths;
    }

    /** Collects settings. */
    public static final class Builder {
        private final Retention.Builder wire = Retention.newBuilder();
        private final Set<String> paths = new LinkedHashSet<>();

        private Builder() {}

        /** Keep messages so long even when every channel is done with them. */
        public Builder softPeriod(Duration value) {
            wire.setSoftPeriodMs(Arguments.millis("softPeriod", value));
            paths.add("soft_period_ms");
            return this;
        }

        /** Keep so much even when every channel is done with it. */
        public Builder softBytes(long value) {
            wire.setSoftBytes(Arguments.inRange("softBytes", value, 0, Long.MAX_VALUE));
            paths.add("soft_bytes");
            return this;
        }

        /** Drop messages older than this, done or not. */
        public Builder hardPeriod(Duration value) {
            wire.setHardPeriodMs(Arguments.millis("hardPeriod", value));
            paths.add("hard_period_ms");
            return this;
        }

        /** Drop the oldest messages beyond this, done or not. */
        public Builder hardBytes(long value) {
            wire.setHardBytes(Arguments.inRange("hardBytes", value, 0, Long.MAX_VALUE));
            paths.add("hard_bytes");
            return this;
        }

        /** The settings as they stand now. */
        public RetentionSettings build() {
            return new RetentionSettings(wire.build(), Set.copyOf(paths));
        }
    }
}
