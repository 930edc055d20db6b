package dev.fila.client;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A consumer of one queue and channel: something to loop over, by one thread or by many. Each
 * message goes to one of them.
 *
 * <pre>{@code
 * try (Consumer consumer = client.consume("orders")) {
 *     for (Message message : consumer) {
 *         work(message);
 *         message.ack();
 *     }
 * }
 * }</pre>
 *
 * <p>The stream is opened by the first loop. Closing the consumer ends all its loops: what was
 * prefetched and not handed out goes back to the queue at once; what you still hold can be settled
 * until its lease ends. Java does not tell an iterator that its loop was left, so leave a loop by
 * closing the consumer.
 *
 * <p>A broken stream is resumed with backoff, for ever or for {@link ClientOptions#reconnectFor()}.
 * Any other error ends the loops, which throw it: {@link
 * dev.fila.client.errors.QueueNotFoundException}, also when the queue is deleted under them, {@link
 * dev.fila.client.errors.ChannelNotFoundException}, {@link
 * dev.fila.client.errors.InvalidException}.
 */
public final class Consumer implements Iterable<Message>, AutoCloseable {
    private static final int BATCH_MESSAGES_MAX = 1_000;

    private final Supplier<Session> openSession;
    private final Executor executor;
    private final @Nullable Duration stopWhenIdle;
    private @Nullable Session session;
    private int loops;
    private boolean closed;

    Consumer(Supplier<Session> openSession, Executor executor, @Nullable Duration stopWhenIdle) {
        this.openSession = openSession;
        this.executor = executor;
        this.stopWhenIdle = stopWhenIdle;
    }

    /** A loop over messages, for one thread. Each call begins another. */
    @Override
    public Messages iterator() {
        return new Messages(new TakingLoop(this, 1, 1, stopWhenIdle));
    }

    /**
     * Loops over lists of what has arrived: at least one message each, at most 1,000; how much
     * arrives follows how fast you work.
     */
    public Iterable<List<Message>> batches() {
        return this::batchLoop;
    }

    /**
     * One loop as {@link #batches()} makes them, for one thread, that can also be asked with a time
     * limit.
     */
    public Batches batchLoop() {
        return new Batches(new TakingLoop(this, 1, BATCH_MESSAGES_MAX, stopWhenIdle));
    }

    /**
     * Loops over lists of at most so many messages. For work that costs about the same however
     * large a list is, such as one transaction: so many are fetched for it.
     */
    public Iterable<List<Message>> batches(int messagesMax) {
        Arguments.inRange("messagesMax", messagesMax, 1, Integer.MAX_VALUE);
        return () -> batchLoop(messagesMax);
    }

    /**
     * One loop as {@link #batches(int)} makes them, for one thread, that can also be asked with a
     * time limit.
     */
    public Batches batchLoop(int messagesMax) {
        Arguments.inRange("messagesMax", messagesMax, 1, Integer.MAX_VALUE);
        return new Batches(new TakingLoop(this, messagesMax, messagesMax, stopWhenIdle));
    }

    /**
     * The messages as a publisher. Each subscriber is one loop, which takes a message when it is
     * asked for one; cancelling the subscription ends it. Subscribers are called on the client's
     * executor.
     */
    public Flow.Publisher<Message> publisher() {
        return subscriber -> new MessageSubscription(iterator(), subscriber, executor).start();
    }

    /**
     * Ends the loops for good. Gives back what waits; what is in hand can be settled until its
     * lease ends.
     */
    @Override
    public void close() {
        Session left;
        synchronized (this) {
            closed = true;
            left = session;
            session = null;
            loops = 0;
        }
        if (left != null) {
            left.leave();
        }
    }

    // For the loops.

    synchronized Session join() {
        if (closed) {
            throw Connection.closedError("this consumer was closed; call consume() for a new one");
        }
        loops++;
        if (session == null) {
            session = openSession.get();
        }
        return session;
    }

    /** A loop ends; with the last one the session is left. */
    void part(Session of) {
        synchronized (this) {
            if (session != of || --loops > 0) {
                return;
            }
            session = null;
        }
        of.leave();
    }
}
