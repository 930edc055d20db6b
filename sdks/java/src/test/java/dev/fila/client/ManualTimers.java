package dev.fila.client;

import dev.fila.client.internal.Timers;
import java.time.Duration;
import java.util.PriorityQueue;

/** Time that passes when a test says so. What is due runs on the thread that lets it pass. */
final class ManualTimers implements Timers {
    private record Task(long at, long number, Runnable run) implements Comparable<Task> {
        @Override
        public int compareTo(Task other) {
            return at != other.at ? Long.compare(at, other.at) : Long.compare(number, other.number);
        }
    }

    private final PriorityQueue<Task> tasks = new PriorityQueue<>();
    private long now = 1_000_000_000L;
    private long number;

    @Override
    public synchronized long now() {
        return now;
    }

    @Override
    public synchronized Timer schedule(Duration delay, Runnable run) {
        Task task = new Task(now + delay.toNanos(), ++number, run);
        tasks.add(task);
        return () -> {
            synchronized (this) {
                tasks.remove(task);
            }
        };
    }

    /** Time passes at once, as while a process stands still; what is due runs after all of it. */
    void stall(Duration time) {
        synchronized (this) {
            now += time.toNanos();
        }
        advance(Duration.ZERO);
    }

    synchronized boolean isEmpty() {
        return tasks.isEmpty();
    }

    void advance(Duration time) {
        long until;
        synchronized (this) {
            until = now + time.toNanos();
        }
        while (true) {
            Task due;
            synchronized (this) {
                due = tasks.peek();
                if (due == null || due.at() > until) {
                    now = until;
                    return;
                }
                tasks.remove();
                now = Math.max(now, due.at());
            }
            due.run().run();
        }
    }

    @Override
    public synchronized void close() {
        tasks.clear();
    }
}
