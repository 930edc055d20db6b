package dev.fila.client;

import dev.fila.client.internal.Timers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Which messages were handed to the program and the broker does not know it yet. What is settled
 * before it is told needs no telling. Its session's lock guards it.
 */
final class BegunQueue {
    /** How long the broker may be left in the dark about a first delivery. */
    private static final Duration DELAY = Duration.ofMillis(5);

    private final Timers timers;
    private final Runnable due;
    private final Consumer<List<Long>> tell;
    private final Set<Long> untold = new LinkedHashSet<>();
    private Timers.@Nullable Timer timer;

    /** {@code due} is run when {@link #flush} should be called. */
    BegunQueue(Timers timers, Runnable due, Consumer<List<Long>> tell) {
        this.timers = timers;
        this.due = due;
        this.tell = tell;
    }

    void add(List<Message> messages) {
        messages.forEach(message -> untold.add(message.leaseId()));
        if (timer == null) {
            timer = timers.schedule(DELAY, due);
        }
    }

    void settled(long leaseId) {
        untold.remove(leaseId);
    }

    /** Begins anew on a new stream, which is told at once of everything in hand. */
    void restart(List<Long> leasesInHand) {
        untold.clear();
        untold.addAll(leasesInHand);
        flush();
    }

    void flush() {
        if (timer != null) {
            timer.cancel();
            timer = null;
        }
        List<Long> leases = new ArrayList<>(untold);
        untold.clear();
        if (!leases.isEmpty()) {
            tell.accept(leases);
        }
    }
}
