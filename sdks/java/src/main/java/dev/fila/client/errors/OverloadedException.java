package dev.fila.client.errors;

import java.time.Duration;
import java.util.Optional;

/** The broker is at a bound of its capacity and stored nothing. The same call may succeed later. */
public class OverloadedException extends FilaException {
    private static final long serialVersionUID = 1;

    /** Makes one from what is known. Public so that a program's tests can make their own. */
    public OverloadedException(ErrorDetails details) {
        super(details);
    }

    /** How long the broker suggests to wait; empty when it said nothing. */
    public Optional<Duration> retryAfter() {
        return details().retryAfterIfKnown();
    }
}
