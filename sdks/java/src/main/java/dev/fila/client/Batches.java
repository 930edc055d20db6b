package dev.fila.client;

import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

/** One loop over lists of what has arrived, for one thread at a time: at least one message each. */
public final class Batches implements Iterator<List<Message>>, AutoCloseable {
    private final TakingLoop loop;
    private List<Message> next = List.of();

    Batches(TakingLoop loop) {
        this.loop = loop;
    }

    /**
     * Waits for messages. False when the consumer was closed, or has been idle for as long as it
     * was told to wait.
     */
    @Override
    public boolean hasNext() {
        if (next.isEmpty()) {
            next = loop.take();
        }
        return !next.isEmpty();
    }

    /** What has arrived: yours to settle now. */
    @Override
    public List<Message> next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the consumer has ended");
        }
        List<Message> batch = next;
        next = List.of();
        return batch;
    }

    /**
     * What has arrived, waiting at most so long for the first message; empty when there was none.
     */
    public List<Message> poll(Duration patience) {
        List<Message> batch =
                next.isEmpty() ? loop.take(Arguments.notNegative("patience", patience)) : next;
        next = List.of();
        return batch;
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
