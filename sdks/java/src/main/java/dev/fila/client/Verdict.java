package dev.fila.client;

import dev.fila.v1.LimitFeedback;
import java.time.Duration;
import java.util.List;
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
 * @param limit a provider refused them, and asked for the delay: their throttle key, empty for each
 *     that learns; null where none did
 */
record Verdict(
        boolean isAck,
        String error,
        @Nullable Long delayMs,
        boolean isDeadLetter,
        boolean isRelease,
        @Nullable String limit) {
    static final Verdict ACK = new Verdict(true, "", null, false, false, null);
    static final Verdict RELEASE = new Verdict(false, "", null, false, true, null);

    /** A limit closes for so long at most: then the provider is asked again. */
    private static final Duration RETRY_AFTER_MAX = Duration.ofMinutes(5);

    static Verdict nack(String error, @Nullable Duration delay) {
        Objects.requireNonNull(error, "error");
        return new Verdict(
                false,
                error,
                delay == null ? null : Arguments.millis("delay", delay),
                false,
                false,
                null);
    }

    static Verdict reject(String error) {
        Objects.requireNonNull(error, "error");
        return new Verdict(false, error, null, true, false, null);
    }

    static Verdict limited(String error, @Nullable Duration retryAfter, String limit) {
        Objects.requireNonNull(error, "error");
        Objects.requireNonNull(limit, "limit");
        Duration capped = retryAfter;
        if (capped != null && capped.compareTo(RETRY_AFTER_MAX) > 0) {
            capped = RETRY_AFTER_MAX;
        }
        return new Verdict(
                false,
                error,
                capped == null ? null : Arguments.millis("retryAfter", capped),
                false,
                false,
                limit);
    }

    /** What the provider said, in a list of at most one. */
    List<LimitFeedback> feedback() {
        if (limit == null) {
            return List.of();
        }
        return List.of(
                LimitFeedback.newBuilder()
                        .setLimit(limit)
                        .setKind(LimitFeedback.Kind.KIND_LIMITED)
                        .setRetryAfterMs(delayMs == null ? 0 : delayMs)
                        .build());
    }
}
