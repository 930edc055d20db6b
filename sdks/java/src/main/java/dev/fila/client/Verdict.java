package dev.fila.client;

import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How messages are settled; those that are settled alike travel together.
 *
 * @param isAck they are done; else the rest says how they are not
 * @param error what went wrong
 * @param delayMs when they come back, null where the queue's policy decides
 * @param isDeadLetter they become dead letters now
 * @param isRelease they did not fail
 */
record Verdict(
        boolean isAck,
        String error,
        @Nullable Long delayMs,
        boolean isDeadLetter,
        boolean isRelease) {
    static final Verdict ACK = new Verdict(true, "", null, false, false);
    static final Verdict RELEASE = new Verdict(false, "", null, false, true);

    static Verdict nack(String error, @Nullable Duration delay) {
        Objects.requireNonNull(error, "error");
        return new Verdict(
                false,
                error,
                delay == null ? null : Arguments.millis("delay", delay),
                false,
                false);
    }

    static Verdict reject(String error) {
        Objects.requireNonNull(error, "error");
        return new Verdict(false, error, null, true, false);
    }
}
