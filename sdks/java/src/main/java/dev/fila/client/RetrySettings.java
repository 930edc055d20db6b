package dev.fila.client;

import dev.fila.v1.RetryPolicy;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * How long a failed message waits before it is ready again. What is not said has its default when a
 * queue is created, and stays when it is updated. Immutable.
 */
public final class RetrySettings {
    private final RetryPolicy wire;
    private final Set<String> paths;

    private RetrySettings(RetryPolicy wire, Set<String> paths) {
        this.wire = wire;
        this.paths = paths;
    }

    /** Begins with nothing said. */
    public static Builder builder() {
        return new Builder();
    }

    RetryPolicy wire() {
        return wire;
    }

    /** What was said. */
    Set<String> paths() {
        return paths;
    }

    /** Collects settings. */
    public static final class Builder {
        private final RetryPolicy.Builder wire = RetryPolicy.newBuilder();
        private final Set<String> paths = new LinkedHashSet<>();

        private Builder() {}

        /** How the delay grows. */
        public Builder kind(RetryPolicy.Kind value) {
            wire.setKind(value);
            paths.add("kind");
            return this;
        }

        /** The first delay; zero for the default, 100 ms. */
        public Builder base(Duration value) {
            wire.setBaseMs(Arguments.millis("base", value));
            paths.add("base_ms");
            return this;
        }

        /** The longest delay; zero for the default, 60 s or the base, whichever is longer. */
        public Builder cap(Duration value) {
            wire.setCapMs(Arguments.millis("cap", value));
            paths.add("cap_ms");
            return this;
        }

        /** The part of the delay that is random, 0 to 1. */
        public Builder jitter(double value) {
            wire.setJitter(value);
            paths.add("jitter");
            return this;
        }

        /** The settings as they stand now. */
        public RetrySettings build() {
            return new RetrySettings(wire.build(), Set.copyOf(paths));
        }
    }
}
