package dev.fila.client;

import dev.fila.client.internal.Blocking;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A loop over a session, from the first time it asks until it is closed or there is nothing more.
 */
final class TakingLoop {
    private final Consumer consumer;
    private final int size;
    private final int countMax;
    private final @Nullable Duration stopWhenIdle;
    private @Nullable Session session;
    private @Nullable Loop loop;
    private boolean ended;

    /**
     * A loop that works on up to {@code size} messages at once, and takes up to {@code countMax}
     * that are there.
     */
    TakingLoop(Consumer consumer, int size, int countMax, @Nullable Duration stopWhenIdle) {
        this.consumer = consumer;
        this.size = size;
        this.countMax = countMax;
        this.stopWhenIdle = stopWhenIdle;
    }

    /** Waits for messages as long as the consumer's options say; empty when the loop has ended. */
    List<Message> take() {
        return take(null);
    }

    /** Waits at most so long; empty when the time is over, or the loop has ended. */
    List<Message> take(@Nullable Duration patience) {
        if (ended) {
            return List.of();
        }
        if (session == null || loop == null) {
            session = consumer.join();
            loop = session.join(size);
        }
        try {
            List<Message> taken = session.take(loop, countMax, patience, stopWhenIdle);
            if (taken == null) {
                return List.of();
            }
            if (taken.isEmpty()) {
                close();
            }
            return taken;
        } catch (InterruptedException interrupted) {
            throw Blocking.interrupted(interrupted);
        }
    }

    boolean hasEnded() {
        return ended || session != null && session.hasEnded();
    }

    void close() {
        ended = true;
        if (session != null && loop != null) {
            session.part(loop);
            consumer.part(session);
            loop = null;
        }
    }
}
