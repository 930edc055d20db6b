package dev.fila.client;

import java.util.concurrent.Executor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The threads of one client: as many as are busy, none of them for long after it has nothing to do.
 */
final class ClientThreads {
    private static final long IDLE_S = 10;

    private final ThreadPoolExecutor own;
    private final Executor executor;

    /** Runs the program's code on the given executor, on our own threads where there is none. */
    ClientThreads(@Nullable Executor given) {
        AtomicInteger number = new AtomicInteger();
        own =
                new ThreadPoolExecutor(
                        0,
                        Integer.MAX_VALUE,
                        IDLE_S,
                        TimeUnit.SECONDS,
                        new SynchronousQueue<>(),
                        task -> {
                            Thread thread =
                                    new Thread(task, "fila-client-" + number.incrementAndGet());
                            thread.setDaemon(true);
                            return thread;
                        });
        // After close there may still be answers to tell, such as that the client was closed.
        own.setRejectedExecutionHandler((task, closed) -> task.run());
        executor = given == null ? own : given;
    }

    /** Where the program's code runs. */
    Executor executor() {
        return executor;
    }

    /** Where ours runs. */
    Executor own() {
        return own;
    }

    /** Ends each thread once it is done with what it runs now. */
    void close() {
        own.shutdown();
    }
}
