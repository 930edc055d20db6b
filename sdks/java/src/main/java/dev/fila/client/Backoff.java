package dev.fila.client;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.DoubleSupplier;

/**
 * How long to wait before attempt after attempt: doubling, capped, half of it left to chance.
 * Clients that lost the same broker at the same moment must not come back at the same moment.
 *
 * @param base the first wait, at most
 * @param cap no wait is longer
 * @param chance numbers from 0 to 1
 */
public record Backoff(Duration base, Duration cap, DoubleSupplier chance) {
    /** Checks that 0 &lt; base &lt;= cap. */
    public Backoff {
        Objects.requireNonNull(chance, "chance");
        if (base.isNegative() || base.isZero() || base.compareTo(cap) > 0) {
            throw new IllegalArgumentException(
                    "backoff needs 0 < base <= cap, got " + base + " and " + cap);
        }
    }

    /** From 50 ms, doubling, to 5 s. */
    public static Backoff standard() {
        return between(Duration.ofMillis(50), Duration.ofSeconds(5));
    }

    /** From base, doubling, to cap. */
    public static Backoff between(Duration base, Duration cap) {
        return new Backoff(base, cap, () -> ThreadLocalRandom.current().nextDouble());
    }

    /** The wait before a retry, the first being 0. */
    public Duration waitBefore(int attempt) {
        // Doubling through a long outage would overflow; the cap is reached long before.
        double ceiling =
                Math.min(cap.toNanos(), base.toNanos() * Math.pow(2, Math.min(attempt, 32)));
        return Duration.ofNanos((long) (ceiling * (0.5 + 0.5 * chance.getAsDouble())));
    }
}
