package dev.fila.client;

import dev.fila.client.internal.PrefetchControl;
import dev.fila.client.internal.Timers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * How the messages of one session come to the program's threads, and how these learn of leases that
 * were lost. One lock, the session's, guards all of it.
 */
final class HandOut {
    /**
     * How late the prefetch controller may be asked: a loop may take a message after the timer was
     * set.
     */
    private static final long TICK_NS_MAX = 50_000_000;

    /** What the session knows of its stream, and is told. */
    interface Stream {
        /** Whether no message comes any more; throws what ended it, unless that was leaving. */
        boolean isOver();

        /** Whether what was delivered is still ours. */
        boolean mayHandOut();

        /** Nothing may be handed out: asks the broker for a word, unless it was asked lately. */
        void askWhetherHeard();

        /** Whether everything that was said has reached the wire. */
        boolean isWritten();

        /** So many messages may be held from now on, and these are given back. */
        void tellWindow(int window, List<Long> giveBack);

        /** These messages were handed to the program. */
        void tellBegun(List<Long> leases);
    }

    final Holding holding;
    final BegunQueue begun;

    private final ReentrantLock lock;
    private final Condition arrived;
    private final Condition changed;
    private final Timers timers;
    private final Executor executor;
    private final Stream stream;
    private final List<Runnable> toTell = new ArrayList<>();
    private volatile boolean hasToTell; // so that most looks at it take no lock
    private Timers.@Nullable Timer tick;
    private long deliveredAt = Long.MIN_VALUE;

    HandOut(
            ReentrantLock lock,
            PrefetchControl control,
            Timers timers,
            Executor executor,
            Stream stream) {
        this.lock = lock;
        this.timers = timers;
        this.executor = executor;
        this.stream = stream;
        arrived = lock.newCondition();
        changed = lock.newCondition();
        holding = new Holding(control, timers, stream::tellWindow);
        begun = new BegunQueue(timers, this::flushBegun, stream::tellBegun);
    }

    // Threads that wait for messages.

    /**
     * Waits for messages: for {@code patience} at most, unless that is null, and until nothing has
     * arrived for {@code idle}, unless that is null. Time in which the broker can't be heard is not
     * idle. Returns none when there will be none any more, and null when the patience is over.
     */
    @Nullable List<Message> take(
            Loop loop, int countMax, @Nullable Duration patience, @Nullable Duration idle)
            throws InterruptedException {
        long beganAt = timers.now();
        long idleSince = beganAt;
        lock.lockInterruptibly();
        try {
            while (!stream.isOver()) {
                boolean mayHandOut = stream.mayHandOut();
                if (!mayHandOut) {
                    stream.askWhetherHeard();
                    idleSince = timers.now();
                }
                List<Message> taken = holding.take(loop, countMax, mayHandOut);
                watch();
                if (!taken.isEmpty()) {
                    notice(holding.takeSuperseded(), "LEASE_LOST");
                    begun.add(taken);
                    taken = onceToldOf(taken);
                    if (!taken.isEmpty()) {
                        return taken;
                    }
                    continue;
                }
                long now = timers.now();
                long patienceLeft = left(patience, beganAt, now);
                idleSince = Math.max(idleSince, deliveredAt); // also what other loops got
                long idleLeft = left(idle, idleSince, now);
                if (idleLeft <= 0) {
                    return List.of();
                } else if (patienceLeft <= 0) {
                    return null;
                }
                arrived.awaitNanos(Math.min(patienceLeft, idleLeft));
            }
            return List.of();
        } finally {
            if (holding.hasReady()) {
                arrived.signal(); // a signal that came for this thread is meant for another now
            }
            lock.unlock();
            tellProgram();
        }
    }

    private static long left(@Nullable Duration limit, long since, long now) {
        return limit == null ? Long.MAX_VALUE : since + limit.toNanos() - now;
    }

    /**
     * Waits, for messages that were sent before, until the broker was told that they are begun: one
     * that kills its worker in its first milliseconds would otherwise never count as failed.
     * Returns those that are still in hand.
     */
    private List<Message> onceToldOf(List<Message> taken) throws InterruptedException {
        if (taken.stream().noneMatch(Message::mustBeDeclared)) {
            return taken;
        }
        begun.flush();
        List<Message> still = taken;
        while (!still.isEmpty() && !stream.isOver()) {
            if (stream.isWritten()) {
                return still;
            }
            changed.await();
            still = still.stream().filter(holding::isInHand).toList();
        }
        return List.of();
    }

    /** Something changed that a thread may be waiting for. */
    void wakeAll() {
        lock.lock();
        arrived.signalAll();
        changed.signalAll();
        lock.unlock();
    }

    /** What was said has reached the wire. */
    void written() {
        lock.lock();
        changed.signalAll();
        lock.unlock();
    }

    /** Waits for a change at most so long; returns what is left of the time. */
    long awaitChange(long nanos) throws InterruptedException {
        return changed.awaitNanos(nanos);
    }

    // What the program and the broker do.

    /** A message is being settled. */
    void settle(String messageId, long leaseId) {
        lock.lock();
        try {
            if (holding.settle(messageId, leaseId)) {
                begun.settled(leaseId);
            }
        } finally {
            lock.unlock();
        }
    }

    /** What was being settled is answered. */
    void answered(List<SettleFrame.Item> items) {
        lock.lock();
        try {
            holding.answered(items);
        } finally {
            lock.unlock();
        }
    }

    void deliver(List<Message> messages) {
        holding.deliver(messages);
        deliveredAt = timers.now();
        messages.forEach(message -> arrived.signal());
        watch();
    }

    /** The broker took these leases back; returns how many of them were held. */
    int lose(List<Long> leases, String reason) {
        leases.forEach(begun::settled);
        Holding.Lost lost = holding.lose(leases);
        notice(lost.inHand(), reason);
        changed.signalAll();
        return lost.count();
    }

    private void notice(List<Message> lost, String reason) {
        for (Message message : lost) {
            Runnable told = message.lose(reason);
            if (told != null) {
                toTell.add(told);
                hasToTell = true;
            }
        }
    }

    /** Runs what depends on lost leases; to be called without the lock. */
    void tellProgram() {
        if (!hasToTell) {
            return;
        }
        List<Runnable> all;
        lock.lock();
        try {
            hasToTell = false;
            all = List.copyOf(toTell);
            toTell.clear();
        } finally {
            lock.unlock();
        }
        all.forEach(executor::execute);
    }

    // What time does.

    private void flushBegun() {
        lock.lock();
        try {
            begun.flush();
        } finally {
            lock.unlock();
        }
    }

    /** Sees to it that the prefetch controller is asked when time alone changes something. */
    private void watch() {
        OptionalLong wait = tick == null ? holding.nextCheckNanos() : OptionalLong.empty();
        if (wait.isPresent()) {
            tick =
                    timers.schedule(
                            Duration.ofNanos(Math.min(wait.getAsLong(), TICK_NS_MAX)), this::look);
        }
    }

    private void look() {
        lock.lock();
        try {
            tick = null;
            if (holding.nextCheckNanos().orElse(1) == 0) {
                holding.tick();
            }
            watch();
        } finally {
            lock.unlock();
        }
    }
}
