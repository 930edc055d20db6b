package dev.fila.client.internal;

import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * A window that follows how fast the program works: enough that no loop waits for the wire, no more
 * than 50 ms of work.
 *
 * <p>What lies in a client's buffer is out of the broker's hands: another consumer can't take it,
 * and no quiet tenant can overtake it. So the buffer is measured in time, not in messages:
 *
 * <pre>
 * buffered work = unbegun messages x median handling time / loops that come free      at most bufferUs
 * </pre>
 *
 * <p>A function of (time, event) to (window, give back), with no clock and no I/O. All SDKs behave
 * alike here; one file of steps, replayed by each of them, holds them together. Not safe for
 * several threads: its session's lock guards it.
 */
public final class AdaptivePrefetch implements PrefetchControl {
    /** How much work may lie in the buffer unless a program says otherwise, in microseconds. */
    public static final long BUFFER_US = 50_000;

    /**
     * How many messages may lie in the buffer, however quick they are; and how many in hand beyond
     * the loops.
     */
    private static final int BUFFER_MESSAGES_MAX = 1_000;

    /** The broker's bound on a session's window. */
    private static final int WINDOW_MAX = 10_000;

    /** A message that waited {@code bufferUs} times this shows that the median misled. */
    private static final int AGE_FACTOR = 4;

    /**
     * So many messages must be settled for each that may lie in the buffer, and anew for each that
     * went back: so at most one in four is delivered in vain, however uneven the work is.
     */
    private static final int SETTLED_PER_BUFFERED = 4;

    /** No moment: of a settlement that is not answered. */
    private static final long NEVER = Long.MIN_VALUE;

    private static final class Loop {
        final int size;
        int held; // messages that it took and that are in hand
        boolean isIdle = true;
        long beganUs;
        boolean isSettled; // it has settled all it took, and has not asked for more since
        boolean hasLeft; // its places left the window with that
        long answeredUs = NEVER;

        Loop(int size) {
            this.size = size;
        }

        /** Whether it has something to work on and counts as coming free until a moment. */
        boolean isCounted() {
            return !isIdle && countedSinceUs() != NEVER;
        }

        long countedSinceUs() {
            return isSettled ? answeredUs : beganUs;
        }
    }

    private final HandlingTimes times = new HandlingTimes();
    private final HandlingTimes after =
            new HandlingTimes(); // from the broker's answer to the asking
    private final long bufferUs;
    private final Map<Long, Loop> loops = new HashMap<>();
    private final Arrivals arrivals = new Arrivals();
    private int window;
    private boolean acksFirst = true; // until a loop has shown how soon it asks after the answer
    private boolean hasMoved; // whether a loop's places left the window or came back to it
    private int earned = SETTLED_PER_BUFFERED; // what was settled, less what went back
    private int busyLoops;
    private int inHand;
    private int unbegun;
    private long decidedUs;

    /** A controller that lets so much work lie in the buffer, in microseconds. */
    public AdaptivePrefetch(long bufferUs) {
        this.bufferUs = bufferUs;
    }

    @Override
    public HandlingTimes times() {
        return times;
    }

    @Override
    public boolean acksFirst() {
        return acksFirst;
    }

    @Override
    public int window() {
        return window;
    }

    // Events that change counts. They come with every message, so they decide nothing.

    @Override
    public void began(long nowUs, long loop, int count) {
        Loop taker = loops.get(loop);
        if (taker != null) {
            asks(taker, nowUs);
            taker.held += count;
        }
        inHand += count;
        unbegun -= count;
        arrivals.takeOldest(count);
    }

    /**
     * It decides when the loop's places leave the window, and for the last message of a loop that
     * passed them on: no other event may come before the next delivery, which a window that is too
     * wide would make too large.
     */
    @Override
    public @Nullable Decision settled(long nowUs, long loop, int count) {
        inHand -= count;
        earned = Math.min(earned + count, SETTLED_PER_BUFFERED * BUFFER_MESSAGES_MAX);
        Loop worker = loops.get(loop);
        if (worker != null) {
            worker.held -= count;
            if (worker.held == 0 && !worker.isIdle) {
                worker.isSettled = true;
                worker.answeredUs = NEVER;
                if (acksFirst) {
                    hasMoved = true;
                    worker.hasLeft = true;
                    return decide(nowUs);
                }
            }
        }
        return inHand > 0 || busyLoops > 0 ? null : decide(nowUs);
    }

    @Override
    public void answered(long nowUs, long loop) {
        Loop worker = loops.get(loop);
        if (worker != null && worker.isSettled) {
            worker.answeredUs = nowUs;
        }
    }

    @Override
    public void dropped(int count) {
        unbegun -= count;
        arrivals.takeOldest(count);
    }

    // Events that decide.

    @Override
    public @Nullable Decision joined(long nowUs, long loop, int size) {
        loops.put(loop, new Loop(size));
        return decide(nowUs);
    }

    @Override
    public @Nullable Decision left(long nowUs, long loop) {
        Loop leaver = loops.remove(loop);
        busyLoops -= leaver != null && !leaver.isIdle ? 1 : 0;
        return decide(nowUs);
    }

    @Override
    public @Nullable Decision delivered(long nowUs, int count) {
        unbegun += count;
        arrivals.add(nowUs, count);
        return decide(nowUs);
    }

    @Override
    public @Nullable Decision idle(long nowUs, long loop) {
        Loop waiting = loops.get(loop);
        if (waiting != null) {
            asks(waiting, nowUs);
            busyLoops--;
            waiting.isIdle = true;
        }
        return decide(nowUs);
    }

    /** A loop that is just asking is not stuck, however long it took. */
    @Override
    public @Nullable Decision handled(
            long nowUs, long handlingUs, @Nullable Long asking, @Nullable Long afterUs) {
        times.add(handlingUs);
        if (afterUs != null) {
            after.add(afterUs);
            acksFirst = after.medianUs() > bufferUs;
        }
        Loop asker = asking == null ? null : loops.get(asking);
        if (asker != null) {
            asks(asker, nowUs);
        }
        return decide(nowUs);
    }

    /** A loop asks for more: it counts as coming free from now on. */
    private void asks(Loop loop, long nowUs) {
        if (loop.isIdle) {
            busyLoops++;
        } else if (loop.hasLeft) {
            hasMoved = true;
        }
        loop.isIdle = false;
        loop.isSettled = false;
        loop.hasLeft = false;
        loop.beganUs = nowUs;
    }

    @Override
    public @Nullable Decision tick(long nowUs) {
        return decide(nowUs);
    }

    /** When a loop becomes stuck, or the oldest message too old. */
    @Override
    public OptionalLong checkAtUs() {
        if (arrivals.isEmpty()) {
            return OptionalLong.empty();
        }
        LongStream stuck =
                loops.values().stream()
                        .filter(Loop::isCounted)
                        .mapToLong(loop -> loop.countedSinceUs() + bufferUs);
        return LongStream.concat(LongStream.of(arrivals.oldestUs() + AGE_FACTOR * bufferUs), stuck)
                .filter(moment -> moment > decidedUs)
                .min();
    }

    // The decision.

    private @Nullable Decision decide(long nowUs) {
        decidedUs = nowUs;
        int idle = 0;
        int coming = 0;
        int places = 0;
        for (Loop loop : loops.values()) {
            if (loop.isIdle) {
                idle++;
                places += loop.size;
            } else if (!loop.isCounted() || nowUs - loop.countedSinceUs() < bufferUs) {
                coming++;
                places += loop.isSettled && acksFirst ? 0 : Math.max(0, loop.size - loop.held);
            }
            // Else it has worked for longer than that, and comes free nobody knows when.
        }
        // With a loop idle nothing lies unbegun for longer than it takes to hand it out.
        boolean aged =
                idle == 0
                        && unbegun > 1
                        && !arrivals.isEmpty()
                        && nowUs - arrivals.oldestUs() >= AGE_FACTOR * bufferUs;
        if (aged) {
            times.clear();
            earned = SETTLED_PER_BUFFERED;
        }
        int hands = hands(places);
        int buffer = bufferMessages(idle + coming);
        int target = Math.min(hands + buffer, WINDOW_MAX);
        int spare = Math.max(0, hands - inHand);
        int giveBack = 0;
        if (idle == 0 && (aged || unbegun > spare + 2 * buffer)) {
            giveBack = Math.max(0, unbegun - spare - buffer);
        }
        boolean tells = giveBack > 0 || isWorthTelling(target, idle);
        hasMoved = false;
        if (!tells) {
            return null;
        }
        window = target;
        earned = Math.max(0, earned - SETTLED_PER_BUFFERED * giveBack);
        unbegun -= giveBack;
        arrivals.dropNewest(giveBack);
        return new Decision(target, giveBack);
    }

    /**
     * How many messages may be in hand: those that are, and one for each free place of the loops
     * that come free. So a loop that passes its messages on is not held up.
     */
    private int hands(int places) {
        int slots = loops.values().stream().mapToInt(loop -> loop.size).sum();
        return Math.min(inHand + places, Math.max(slots, BUFFER_MESSAGES_MAX));
    }

    /** How many messages may wait: what the loops that come free do in {@code bufferUs}. */
    private int bufferMessages(int comingFree) {
        if (comingFree == 0 || 5 * times.medianUs() > 4 * bufferUs) {
            return 0; // so near to bufferUs half of what waits would go back
        }
        if (times.count() == 0) {
            return 1;
        }
        return (int)
                Math.min(
                        earned / SETTLED_PER_BUFFERED,
                        bufferUs * comingFree / Math.max(times.medianUs(), 1));
    }

    /** Whether the difference matters: small ones would cost a frame for every message. */
    private boolean isWorthTelling(int target, int idle) {
        if (hasMoved) {
            return target != window;
        }
        if (target > window) {
            boolean starved = idle > 0 && window <= inHand;
            return starved || target - window >= Math.max(1, window >> 3);
        }
        return window - target >= Math.max(1, window >> 2);
    }
}
