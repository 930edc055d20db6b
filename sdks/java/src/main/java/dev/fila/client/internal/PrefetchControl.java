package dev.fila.client.internal;

import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What a session tells of its buffer, and asks for its window. Times are microseconds of one
 * monotonic clock; a loop is one place of the program that takes messages, by a number of the
 * session's own.
 */
public interface PrefetchControl {
    /**
     * What to tell the broker now, in one Window frame.
     *
     * @param window how many unsettled leases the session may hold from now on
     * @param giveBack how many unbegun messages to return with it: those that came last, which
     *     would wait longest
     */
    record Decision(int window, int giveBack) {}

    /** How long the program takes for a message. */
    HandlingTimes times();

    /**
     * Whether loops work on for long after the broker's answer to their settlements, or may do so
     * for all that is known. Then what {@link #settled} decides must be sent before the settlement.
     */
    boolean acksFirst();

    /** The window in force, which a session is opened with. */
    int window();

    /** When {@link #tick} may decide something next; empty: not before another event. */
    OptionalLong checkAtUs();

    /** A loop that works on up to {@code size} messages at once begins. */
    @Nullable Decision joined(long nowUs, long loop, int size);

    /** A loop ends. What it still has in hand stays in hand until it is settled. */
    @Nullable Decision left(long nowUs, long loop);

    /** Messages arrived in the buffer. */
    @Nullable Decision delivered(long nowUs, int count);

    /** A loop took messages out of the buffer. */
    void began(long nowUs, long loop, int count);

    /**
     * Messages that a loop took are in hand no longer: settled, released or lost. The loop may have
     * left meanwhile.
     */
    @Nullable Decision settled(long nowUs, long loop, int count);

    /**
     * The broker has answered the settlement of all that a loop took, before the loop asked for
     * more.
     */
    void answered(long nowUs, long loop);

    /**
     * Messages left the buffer otherwise: revoked, or their lease is over. They count as the
     * oldest.
     */
    void dropped(int count);

    /** A loop came free and found the buffer empty. */
    @Nullable Decision idle(long nowUs, long loop);

    /**
     * A sample: a message took so long, until it was settled and its loop had asked for more.
     * {@code asking} is the loop when it is its asking that ends the sample; its {@code began} or
     * {@code idle} follows. {@code afterUs} is how long ago the settlement of all it took was
     * answered, 0 when it is not yet; null while it holds something.
     */
    @Nullable Decision handled(
            long nowUs, long handlingUs, @Nullable Long asking, @Nullable Long afterUs);

    /** Time passed. */
    @Nullable Decision tick(long nowUs);
}
