package dev.fila.client;

import dev.fila.client.errors.FilaException;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * One subscriber of a consumer: a loop on a thread of the executor, which takes a message for each
 * that is asked for.
 */
final class MessageSubscription implements Flow.Subscription {
    private static final System.Logger LOG = System.getLogger("dev.fila.client");

    private final Messages messages;
    private final Flow.Subscriber<? super Message> subscriber;
    private final Executor executor;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private long demand;
    private boolean cancelled;
    private @Nullable IllegalArgumentException wrong;
    private @Nullable Thread thread;

    MessageSubscription(
            Messages messages, Flow.Subscriber<? super Message> subscriber, Executor executor) {
        this.messages = messages;
        this.subscriber = subscriber;
        this.executor = executor;
    }

    void start() {
        executor.execute(this::run);
    }

    @Override
    public void request(long count) {
        lock.lock();
        try {
            if (count <= 0) {
                wrong =
                        new IllegalArgumentException(
                                "a subscriber must ask for at least 1 message, got " + count);
            } else {
                demand = demand + count < 0 ? Long.MAX_VALUE : demand + count;
            }
            changed.signal();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void cancel() {
        lock.lock();
        try {
            cancelled = true;
            changed.signal();
            Thread waiting = thread;
            if (waiting != null && waiting != Thread.currentThread()) {
                waiting.interrupt();
            }
        } finally {
            lock.unlock();
        }
    }

    private void run() {
        try (messages) {
            subscriber.onSubscribe(this);
            while (awaitDemand()) {
                Message message = take();
                if (message == null) {
                    complete();
                    return;
                }
                subscriber.onNext(message);
            }
        } catch (FilaException failure) {
            if (!isCancelled()) {
                subscriber.onError(failure);
            }
        } catch (RuntimeException mistake) {
            // A subscriber that throws breaks its contract; its subscription is over.
            LOG.log(
                    System.Logger.Level.ERROR,
                    "a subscriber threw; its subscription is cancelled",
                    mistake);
        }
    }

    /**
     * Takes the next message; only while it waits here may it be interrupted. Null when there will
     * be none.
     */
    private @Nullable Message take() {
        enter(Thread.currentThread());
        try {
            return messages.hasNext() ? messages.next() : null;
        } finally {
            enter(null);
        }
    }

    private void enter(@Nullable Thread waiting) {
        lock.lock();
        thread = waiting;
        if (waiting == null && cancelled) {
            Thread.interrupted(); // meant for the wait, which is over
        }
        lock.unlock();
    }

    private boolean awaitDemand() {
        lock.lock();
        try {
            while (demand == 0 && !cancelled && wrong == null) {
                changed.awaitUninterruptibly();
            }
            if (wrong != null && !cancelled) {
                cancelled = true;
                subscriber.onError(wrong);
            }
            demand--;
            return !cancelled;
        } finally {
            lock.unlock();
        }
    }

    private boolean isCancelled() {
        lock.lock();
        try {
            return cancelled;
        } finally {
            lock.unlock();
        }
    }

    private void complete() {
        if (!isCancelled()) {
            subscriber.onComplete();
        }
    }
}
