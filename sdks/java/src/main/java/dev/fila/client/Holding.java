package dev.fila.client;

import dev.fila.client.internal.FixedPrefetch;
import dev.fila.client.internal.PrefetchControl;
import dev.fila.client.internal.Timers;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What one consumer holds: messages that wait in its buffer, and those its program has in hand.
 *
 * <pre>
 * delivered ──► ready ──► in hand ──► settled            began: a loop took it
 *                  │           └────► lost               the broker took the lease back
 *                  └─► given back, revoked, past its lease
 * </pre>
 *
 * <p>Each step is told to the prefetch controller, whose decisions become windows. Its session's
 * lock guards it.
 */
final class Holding {
    /**
     * Handling times are taken of messages handed out at least this far apart: a quick loop need
     * not time each.
     */
    private static final long SAMPLE_EVERY_NS = 1_000_000;

    /** Is told what the controller decides. */
    interface Teller {
        void tell(int window, List<Long> giveBack);
    }

    PrefetchControl control;

    private final Timers timers;
    private final Teller teller;
    private final Deque<Message> ready = new ArrayDeque<>();
    private final Map<String, Message> inHand = new HashMap<>();
    private final Map<Long, Loop.Sample> sampled = new HashMap<>();
    private final Map<Long, Loop> unanswered =
            new HashMap<>(); // by the last lease they had in hand
    private final List<Message> superseded = new ArrayList<>();
    private long nextSampleAt;
    private long loops;
    private Duration renewal = Duration.ZERO;

    Holding(PrefetchControl control, Timers timers, Teller teller) {
        this.control = control;
        this.timers = timers;
        this.teller = teller;
        this.nextSampleAt = timers.now();
    }

    /**
     * How long the broker keeps a lease from when it begins; zero when that does not count from
     * then.
     */
    void renewFor(Duration time) {
        renewal = time;
    }

    /** Changes to a window of one size; says whether it was not one before. */
    boolean becomeFixed(int window) {
        boolean was = control instanceof FixedPrefetch;
        control = was ? control : new FixedPrefetch(window);
        return !was;
    }

    // Loops.

    Loop join(int size) {
        Loop loop = new Loop(++loops);
        obey(control.joined(nowUs(), loop.number, size));
        return loop;
    }

    void part(Loop loop) {
        unanswered.remove(loop.lastLease);
        obey(control.left(nowUs(), loop.number));
    }

    // Handing out.

    void deliver(List<Message> messages) {
        ready.addAll(messages);
        obey(control.delivered(nowUs(), messages.size()));
    }

    /** Hands out up to so many messages whose leases run; none while the session is not heard. */
    List<Message> take(Loop loop, int countMax, boolean mayHandOut) {
        long now = timers.now();
        if (loop.sample != null) {
            askedAgain(loop, now);
        }
        List<Message> taken = new ArrayList<>(Math.min(countMax, ready.size()));
        while (mayHandOut && !ready.isEmpty() && taken.size() < countMax) {
            Message message = ready.removeFirst();
            if (message.heldUntil() - now > 0) {
                taken.add(message);
            } else {
                // It waited here past its lease: it is, or will be, delivered to somebody else.
                control.dropped(1);
            }
        }
        if (taken.isEmpty()) {
            obey(control.idle(now / 1_000, loop.number));
        } else {
            begin(taken, loop, now);
        }
        return taken;
    }

    private void begin(List<Message> taken, Loop loop, long now) {
        long until = now + renewal.toNanos();
        for (Message message : taken) {
            Message former = inHand.get(message.id());
            if (former != null) {
                superseded.add(former);
                drop(former, false);
            }
            inHand.put(message.id(), message);
            message.taker = loop;
            if (until - message.heldUntil() > 0) {
                message.holdUntil(until);
            }
        }
        loop.inHand += taken.size();
        unanswered.remove(loop.lastLease);
        loop.answeredAt = null;
        control.began(now / 1_000, loop.number, taken.size());
        if (now - nextSampleAt >= 0) {
            nextSampleAt = now + SAMPLE_EVERY_NS;
            Loop.Sample sample = new Loop.Sample(now, taken.size());
            loop.sample = sample;
            taken.forEach(message -> sampled.put(message.leaseId(), sample));
        }
    }

    // What becomes of what is held.

    /** Takes out of the buffer what came last, and returns its leases. */
    private List<Long> giveUp(int count) {
        List<Long> leases = new ArrayList<>(count);
        while (leases.size() < count && !ready.isEmpty()) {
            leases.add(ready.removeLast().leaseId());
        }
        return leases;
    }

    /** Takes everything out of the buffer, and returns its leases. */
    List<Long> giveUpAll() {
        control.dropped(ready.size());
        return giveUp(ready.size());
    }

    /** A message in hand is being settled; says whether it was in hand. */
    boolean settle(String messageId, long leaseId) {
        Message message = inHand.get(messageId);
        if (message == null || message.leaseId() != leaseId) {
            return false;
        }
        drop(message, true);
        return true;
    }

    /** The broker has answered the settlement of these. */
    void answered(List<SettleFrame.Item> items) {
        if (unanswered.isEmpty()) {
            return;
        }
        long now = timers.now();
        for (SettleFrame.Item item : items) {
            Loop loop = unanswered.remove(item.leaseId());
            if (loop != null) {
                answered(loop, now);
            }
        }
    }

    private void answered(Loop loop, long now) {
        loop.answeredAt = now;
        control.answered(now / 1_000, loop.number);
    }

    /** What became of leases that the broker took back. */
    record Lost(List<Message> inHand, int waiting) {
        /** How many of them were held; one that was settled before is not. */
        int count() {
            return inHand.size() + waiting;
        }
    }

    /**
     * The broker took these leases back: drops what waits, returns what the program has in hand.
     */
    Lost lose(Collection<Long> leases) {
        Set<Long> lost = Set.copyOf(leases);
        int waited = ready.size();
        ready.removeIf(message -> lost.contains(message.leaseId()));
        int dropped = waited - ready.size();
        if (dropped > 0) {
            control.dropped(dropped);
        }
        List<Message> lostInHand =
                inHand.values().stream()
                        .filter(message -> lost.contains(message.leaseId()))
                        .toList();
        lostInHand.forEach(message -> drop(message, false));
        return new Lost(lostInHand, dropped);
    }

    /** What was in hand of messages that were handed out again: their former leases are over. */
    List<Message> takeSuperseded() {
        List<Message> all = List.copyOf(superseded);
        superseded.clear();
        return all;
    }

    private void drop(Message message, boolean isSettled) {
        inHand.remove(message.id());
        long now = timers.now();
        Loop loop = Objects.requireNonNull(message.taker);
        obey(control.settled(now / 1_000, loop.number, 1));
        if (--loop.inHand == 0) {
            loop.lastLease = message.leaseId();
            if (isSettled) {
                unanswered.put(loop.lastLease, loop);
            } else {
                answered(loop, now); // lost: no answer will come
            }
        }
        Loop.Sample sample = sampled.remove(message.leaseId());
        if (sample != null && --sample.unsettled == 0 && sample.isAskedAgain) {
            handled(sample, now, null, null);
        }
    }

    // What there is.

    boolean hasReady() {
        return !ready.isEmpty();
    }

    boolean hasInHand() {
        return !inHand.isEmpty();
    }

    int inHandCount() {
        return inHand.size();
    }

    boolean isInHand(Message message) {
        return inHand.get(message.id()) == message;
    }

    long leaseOf(String messageId) {
        Message message = inHand.get(messageId);
        return message == null ? 0 : message.leaseId();
    }

    List<Message> inHand() {
        return List.copyOf(inHand.values());
    }

    List<Long> leasesInHand() {
        return inHand.values().stream().map(Message::leaseId).toList();
    }

    List<Long> leases() {
        List<Long> leases = new ArrayList<>(leasesInHand());
        ready.forEach(message -> leases.add(message.leaseId()));
        return leases;
    }

    // Measuring.

    /** A loop came back for more; its sample is over as soon as its messages are settled too. */
    private void askedAgain(Loop loop, long now) {
        Loop.Sample sample = loop.sample;
        loop.sample = null;
        if (sample != null) {
            sample.isAskedAgain = true;
            if (sample.unsettled == 0) {
                handled(sample, now, loop.number, loop.inHand == 0 ? afterUs(loop, now) : null);
            }
        }
    }

    /** How long ago what the loop settled last was answered. */
    private static long afterUs(Loop loop, long now) {
        return loop.answeredAt == null ? 0 : (now - loop.answeredAt) / 1_000;
    }

    private void handled(
            Loop.Sample sample, long now, @Nullable Long asking, @Nullable Long afterUs) {
        long handlingUs = (now - sample.beganAt) / 1_000 / sample.count;
        obey(control.handled(now / 1_000, handlingUs, asking, afterUs));
    }

    // What the controller decides.

    /**
     * How long until the controller wants to be asked again; empty while nothing depends on time
     * alone.
     */
    OptionalLong nextCheckNanos() {
        OptionalLong at = control.checkAtUs();
        return at.isEmpty()
                ? at
                : OptionalLong.of(Math.max(0, at.getAsLong() * 1_000 - timers.now()));
    }

    void tick() {
        obey(control.tick(nowUs()));
    }

    private void obey(PrefetchControl.@Nullable Decision decision) {
        if (decision != null) {
            teller.tell(decision.window(), giveUp(decision.giveBack()));
        }
    }

    private long nowUs() {
        return timers.now() / 1_000;
    }
}
