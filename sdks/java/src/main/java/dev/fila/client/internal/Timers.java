package dev.fila.client.internal;

import java.time.Duration;

/**
 * Monotonic time, and things to do when it has passed. Handed in, so that a test can say what time
 * it is.
 */
public interface Timers extends AutoCloseable {
    /** Nanoseconds since some fixed moment; never goes back. */
    long now();

    /**
     * Runs the task once the delay has passed, unless it is cancelled before. The task must be
     * quick.
     */
    Timer schedule(Duration delay, Runnable task);

    /** Forgets everything that was scheduled. */
    @Override
    void close();

    /** Something that was scheduled. */
    interface Timer {
        /** Does nothing when the task has begun. */
        void cancel();
    }
}
