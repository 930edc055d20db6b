package dev.fila.client;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * A provider refused the call (HTTP's 429). Thrown by a {@link MessageHandler}, or given to {@link
 * Message#limited}, it slows the message's limit down for all workers.
 */
public final class LimitedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Verdict verdict;

    /** The provider did not say for how long. */
    public LimitedException(String error) {
        this(error, null, "");
    }

    /** The provider asked for so long; at most 5 minutes count. */
    public LimitedException(String error, @Nullable Duration retryAfter) {
        this(error, retryAfter, "");
    }

    /**
     * As above, of one limit.
     *
     * @param limit one of the message's throttle keys; empty for each of them whose limit learns
     */
    public LimitedException(String error, @Nullable Duration retryAfter, String limit) {
        super(error);
        verdict = Verdict.limited(error, retryAfter, limit);
    }

    Verdict verdict() {
        return verdict;
    }
}
