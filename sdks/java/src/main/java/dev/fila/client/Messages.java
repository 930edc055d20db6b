package dev.fila.client;

import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * One loop over a consumer's messages, for one thread at a time. Between two messages the loop
 * holds what it was given and asks for nothing.
 */
public final class Messages implements Iterator<Message>, AutoCloseable {
    private final TakingLoop loop;
    private @Nullable Message next;

    Messages(TakingLoop loop) {
        this.loop = loop;
    }

    /**
     * Waits for a message. False when the consumer was closed, or has been idle for as long as it
     * was told to wait.
     */
    @Override
    public boolean hasNext() {
        if (next == null) {
            List<Message> taken = loop.take();
            next = taken.isEmpty() ? null : taken.get(0);
        }
        return next != null;
    }

    /** The next message: yours to settle now. */
    @Override
    public Message next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the consumer has ended");
        }
        Message message = Objects.requireNonNull(next);
        next = null;
        return message;
    }

    /** The next message, waiting at most so long for it. */
    public Optional<Message> poll(Duration patience) {
        if (next == null) {
            List<Message> taken = loop.take(Arguments.notNegative("patience", patience));
            next = taken.isEmpty() ? null : taken.get(0);
        }
        Message message = next;
        next = null;
        return Optional.ofNullable(message);
    }

    /** Whether the consumer was closed, so that nothing will come any more. */
    public boolean hasEnded() {
        return loop.hasEnded();
    }

    /** Ends this loop; the consumer's others go on. */
    @Override
    public void close() {
        loop.close();
    }
}
