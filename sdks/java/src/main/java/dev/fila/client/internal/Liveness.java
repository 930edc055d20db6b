package dev.fila.client.internal;

import java.time.Duration;
import java.util.ArrayDeque;

/**
 * Until when a session may hand messages out: a broker that was not heard from may have given them
 * to others.
 *
 * <p>The consumer says that it is alive, the broker answers. Whatever the broker answered last, it
 * has heard from this consumer no earlier than that frame was sent; so for a visibility timeout
 * from the sending it has not called the consumer silent. Times are the client's monotonic
 * nanoseconds: no two machines' clocks agree. Not safe for several threads: its session's lock
 * guards it.
 */
public final class Liveness {
    /** So many frames are sent within a visibility timeout. */
    private static final int ALIVE_PER_TIMEOUT = 4;

    /** A frame is sent at least this often, however long the timeout. */
    private static final Duration INTERVAL_MAX = Duration.ofSeconds(10);

    /** More unanswered frames would say nothing new. */
    private static final int UNANSWERED_MAX = 8;

    private record Frame(long sequence, long sentAt) {}

    private final ArrayDeque<Frame> unanswered = new ArrayDeque<>();
    private long timeout;
    private long sequence;
    private long handOutUntil;
    private long askedAt;
    private boolean isHeard;
    private boolean isWithoutRules;

    /** The broker answered an open that was sent then; from now on it judges by this timeout. */
    public void opened(long sentAt, Duration visibilityTimeout) {
        timeout = visibilityTimeout.toNanos();
        unanswered.clear();
        handOutUntil = sentAt + timeout;
        askedAt = sentAt;
        isHeard = true;
        isWithoutRules = false;
    }

    /** The broker is older than these rules. */
    public void openedWithoutRules() {
        isWithoutRules = true;
        isHeard = true;
    }

    /** Whether messages may be handed out now. */
    public boolean mayHandOut(long now) {
        return isHeard && (isWithoutRules || now - handOutUntil < 0);
    }

    /** How long after one frame the next is due. */
    public Duration interval() {
        Duration part = Duration.ofNanos(timeout / ALIVE_PER_TIMEOUT);
        return part.compareTo(INTERVAL_MAX) < 0 ? part : INTERVAL_MAX;
    }

    /** The number of a frame to send now; 0 when enough are unanswered. */
    public long sayAlive(long now) {
        if (unanswered.size() >= UNANSWERED_MAX) {
            return 0;
        }
        askedAt = now;
        unanswered.addLast(new Frame(++sequence, now));
        return sequence;
    }

    /** Whether nobody has asked the broker for as long as should pass between two frames. */
    public boolean shouldAsk(long now) {
        return now - askedAt >= interval().toNanos();
    }

    /** The broker heard the frame of this number. */
    public void answered(long number) {
        while (!unanswered.isEmpty() && unanswered.getFirst().sequence() <= number) {
            Frame frame = unanswered.removeFirst();
            long until = frame.sentAt() + timeout;
            if (frame.sequence() == number && until - handOutUntil > 0) {
                handOutUntil = until;
            }
        }
    }
}
