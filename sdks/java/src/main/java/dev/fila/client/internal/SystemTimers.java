package dev.fila.client.internal;

import java.time.Duration;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The machine's monotonic clock, and one thread that keeps the appointments of one client. */
public final class SystemTimers implements Timers {
    private final ScheduledThreadPoolExecutor executor;

    /** Starts no thread before something is scheduled. */
    public SystemTimers() {
        executor =
                new ScheduledThreadPoolExecutor(
                        1,
                        task -> {
                            Thread thread = new Thread(task, "fila-timers");
                            thread.setDaemon(true);
                            return thread;
                        });
        executor.setRemoveOnCancelPolicy(true);
    }

    @Override
    public long now() {
        return System.nanoTime();
    }

    @Override
    public Timer schedule(Duration delay, Runnable task) {
        try {
            Future<?> scheduled = executor.schedule(task, delay.toNanos(), TimeUnit.NANOSECONDS);
            return () -> scheduled.cancel(false);
        } catch (RejectedExecutionException closed) {
            return () -> {};
        }
    }

    @Override
    public void close() {
        executor.shutdownNow();
    }
}
