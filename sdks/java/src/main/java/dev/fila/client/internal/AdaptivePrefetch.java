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

    private static final class Loop {
        final int size;
        boolean isIdle = true;
        long beganUs;

        Loop(int size) {
            this.size = size;
        }
    }

    private final HandlingTimes times = new HandlingTimes();
    private final long bufferUs;
    private final Map<Long, Loop> loops = new HashMap<>();
    private final Arrivals arrivals = new Arrivals();
    private int window;
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
    public int window() {
        return window;
    }

    // Events that change counts. They come with every message, so they decide nothing.

    @Override
    public void began(long nowUs, long loop, int count) {
        Loop taker = loops.get(loop);
        if (taker != null) {
            busyLoops += taker.isIdle ? 1 : 0;
            taker.isIdle = false;
            taker.beganUs = nowUs;
        }
        inHand += count;
        unbegun -= count;
        arrivals.takeOldest(count);
    }

    /**
     * The last one of a loop that passed its messages on decides: no other event may come before
     * the next delivery, which a window that is too wide would make too large.
     */
    @Override
    public @Nullable Decision settled(long nowUs, int count) {
        inHand -= count;
        return inHand > 0 || busyLoops > 0 ? null : decide(nowUs);
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
            busyLoops -= waiting.isIdle ? 0 : 1;
            waiting.isIdle = true;
        }
        return decide(nowUs);
    }

    /** A loop that is just asking is not stuck, however long it took. */
    @Override
    public @Nullable Decision handled(long nowUs, long handlingUs, @Nullable Long asking) {
        times.add(handlingUs);
        Loop asker = asking == null ? null : loops.get(asking);
        if (asker != null) {
            busyLoops += asker.isIdle ? 1 : 0;
            asker.isIdle = false;
            asker.beganUs = nowUs;
        }
        return decide(nowUs);
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
                        .filter(loop -> !loop.isIdle)
                        .mapToLong(loop -> loop.beganUs + bufferUs);
        return LongStream.concat(LongStream.of(arrivals.oldestUs() + AGE_FACTOR * bufferUs), stuck)
                .filter(moment -> moment > decidedUs)
                .min();
    }

    // The decision.

    private @Nullable Decision decide(long nowUs) {
        decidedUs = nowUs;
        int idle = 0;
        int free = 0;
        int coming = 0;
        int places = 0;
        for (Loop loop : loops.values()) {
            if (loop.isIdle) {
                idle++;
                free += loop.size;
            } else if (nowUs - loop.beganUs < bufferUs) {
                coming++;
                places += loop.size;
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
        }
        int hands = hands(free, places);
        int buffer = bufferMessages(idle + coming);
        int target = Math.min(hands + buffer, WINDOW_MAX);
        int spare = Math.max(0, hands - inHand);
        int giveBack = 0;
        if (idle == 0 && (aged || unbegun > spare + 2 * buffer)) {
            giveBack = Math.max(0, unbegun - spare - buffer);
        }
        if (giveBack == 0 && !isWorthTelling(target, idle)) {
            return null;
        }
        window = target;
        unbegun -= giveBack;
        arrivals.dropNewest(giveBack);
        return new Decision(target, giveBack);
    }

    /**
     * How many messages may be in hand: one for each place in the loops that come free, and what
     * the others hold. Of a loop that passes its messages on, all that it passed on and one more,
     * so that it is not held up.
     */
    private int hands(int free, int places) {
        int slots = loops.values().stream().mapToInt(loop -> loop.size).sum();
        return Math.min(
                Math.max(free + places, inHand + free), Math.max(slots, BUFFER_MESSAGES_MAX));
    }

    /** How many messages may wait: what the loops that come free do in {@code bufferUs}. */
    private int bufferMessages(int comingFree) {
        if (comingFree == 0 || times.medianUs() > bufferUs) {
            return 0;
        }
        if (times.count() == 0) {
            return 1;
        }
        // A few quick messages prove little: so each further sample at most doubles what may wait.
        long proven = Math.min(1L << times.count(), BUFFER_MESSAGES_MAX);
        return (int) Math.min(proven, bufferUs * comingFree / Math.max(times.medianUs(), 1));
    }

    /** Whether the difference matters: small ones would cost a frame for every message. */
    private boolean isWorthTelling(int target, int idle) {
        if (target > window) {
            boolean starved = idle > 0 && window <= inHand;
            return starved || target - window >= Math.max(1, window >> 3);
        }
        return window - target >= Math.max(1, window >> 2);
    }
}
