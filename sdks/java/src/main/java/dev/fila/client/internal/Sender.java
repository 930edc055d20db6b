package dev.fila.client.internal;

import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Sends what calls have gathered, on a thread of the client's own: the calls of threads that were
 * released together then leave together, where each caller's own thread would send what it finds,
 * which is its own message.
 */
public final class Sender {
    private final Executor executor;
    private final Runnable send;
    private final AtomicBoolean asked = new AtomicBoolean();
    private final AtomicLong gathered = new AtomicLong();

    /** {@code send} sends what may go now, if anything. */
    public Sender(Executor executor, Runnable send) {
        this.executor = executor;
        this.send = send;
    }

    /** Something was gathered: who is about to send waits for more of it. */
    public void gathered() {
        gathered.incrementAndGet();
    }

    /** Has it sent soon. */
    public void ask() {
        if (asked.compareAndSet(false, true)) {
            executor.execute(this::run);
        }
    }

    private void run() {
        long before = -1;
        while (before != gathered.get()) {
            before = gathered.get();
            Thread.yield();
        }
        asked.set(false); // whatever is gathered from here on asks again
        send.run();
    }
}
