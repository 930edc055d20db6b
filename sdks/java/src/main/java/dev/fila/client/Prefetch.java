package dev.fila.client;

import dev.fila.client.internal.AdaptivePrefetch;
import dev.fila.client.internal.FixedPrefetch;
import dev.fila.client.internal.PrefetchControl;
import java.time.Duration;

/** How many messages a consumer holds leased at once, those in your hands included. */
public final class Prefetch {
    // As many as a consumer can name when it resumes a broken stream.
    private static final int MESSAGES_MAX = 10_000;

    private final int fixed;
    private final Duration buffered;

    private Prefetch(int fixed, Duration buffered) {
        this.fixed = fixed;
        this.buffered = buffered;
    }

    /** As many as keep your threads busy, but no more than 50 ms of work in the buffer. */
    public static Prefetch auto() {
        return auto(Duration.ofNanos(AdaptivePrefetch.BUFFER_US * 1_000));
    }

    /** The same with another bound on the work that lies in the buffer, 1 ms to 1 min. */
    public static Prefetch auto(Duration buffered) {
        Arguments.positive("buffered", buffered);
        Arguments.atMost("buffered", buffered, Duration.ofMinutes(1));
        return new Prefetch(0, buffered);
    }

    /** Always so many, 1 to 10,000; the broker may give fewer. */
    public static Prefetch of(int messages) {
        return new Prefetch(
                Arguments.inRange("prefetch", messages, 1, MESSAGES_MAX), Duration.ZERO);
    }

    PrefetchControl newControl() {
        return fixed > 0
                ? new FixedPrefetch(fixed)
                : new AdaptivePrefetch(buffered.toNanos() / 1_000);
    }

    @Override
    public String toString() {
        return fixed > 0 ? String.valueOf(fixed) : "auto(" + buffered + ")";
    }
}
