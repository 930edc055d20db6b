package dev.fila.client;

import dev.fila.client.errors.ClientClosedException;
import dev.fila.client.errors.ErrorDetails;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.internal.Answer;
import dev.fila.client.internal.Blocking;
import dev.fila.client.internal.Sender;
import dev.fila.client.internal.Timers;
import dev.fila.v1.EnqueueMessage;
import dev.fila.v1.EnqueueStreamRequest;
import dev.fila.v1.EnqueueStreamResponse;
import dev.fila.v1.FilaServiceGrpc;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Enqueues on their way to the broker, over one EnqueueStream: concurrent calls travel together.
 *
 * <pre>
 * enqueue ──► gathering frame ──┐
 *                               ├──► pump ──► in flight ──► the stream's answers ──► each caller
 * enqueueMany ──► its slices ───┘
 * </pre>
 *
 * <p>When a gathering frame leaves: with nothing in flight at once, so a lone call does not wait;
 * with one frame in flight when that is answered, or when as many messages have gathered as it
 * holds, 32 at least; with more in flight when they are answered; in any case after the linger, or
 * when the frame is full. So a busy producer's frames grow by themselves.
 *
 * <p>When the stream breaks, the answers of what was in flight are lost. A message with a dedup key
 * is sent again: the broker recognises it. Any other is not, for it may have been stored: its
 * caller gets AnswerLostException and decides. What had not been sent stays here and goes over the
 * next stream.
 */
final class Producer {
    private final Connection connection;
    private final ClientOptions options;
    private final Timers timers;
    private final FrameAnswers frameAnswers;
    private final Sender sender;

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition roomOrIdle = lock.newCondition();
    private final Deque<Frame> full = new ArrayDeque<>();
    private final Set<Frame> delayed = new HashSet<>();
    private final FramesInFlight inFlight = new FramesInFlight();
    private @Nullable Frame gathering;
    private @Nullable GatheredReceivers gatheringReceivers;
    private @Nullable BidiStream<EnqueueStreamRequest, EnqueueStreamResponse> stream;
    private boolean opening;
    private boolean pumping;
    private boolean closed;
    private long waitingBytes;
    private long sequence;
    private int inHand;
    private int retries;
    private Timers.@Nullable Timer linger;
    private Timers.@Nullable Timer watchdog;

    Producer(Connection connection) {
        this.connection = connection;
        this.options = connection.options;
        this.timers = connection.timers;
        this.frameAnswers = new FrameAnswers(options, timers);
        this.sender = new Sender(connection.threads.own(), this::pump);
    }

    // What the client calls.

    /**
     * Puts a message with whatever else is enqueued around now. Waits while too much waits already.
     */
    void enqueue(String queue, EnqueueMessage message, Answer<MessageId> answer) {
        int size = message.getSerializedSize();
        boolean isDue;
        lock.lock();
        try {
            awaitRoom();
            Frame frame = gathering;
            if (frame != null && frame.bytes + size > options.frameBytesMax()) {
                full.addLast(frame);
                frame = null;
            }
            if (frame == null) {
                gatheringReceivers = new GatheredReceivers();
                frame = new Frame(queue, new ArrayList<>(), gatheringReceivers, timers.now(), 0);
                gathering = frame;
            }
            frame.messages.add(
                    queue.equals(frame.queue)
                            ? message
                            : message.toBuilder().setQueue(queue).build());
            gatheringReceivers.add(answer);
            frame.bytes += size;
            waitingBytes += size;
            sender.gathered();
            if (frame.isFull(options)) {
                full.addLast(frame);
                gathering = null;
            }
            isDue = stream == null ? !opening : isDue();
        } finally {
            lock.unlock();
        }
        if (isDue) {
            sender.ask();
        }
    }

    /** Puts a slice of an enqueueMany, whose sender waits by itself for what it has under way. */
    void enqueueSlice(String queue, List<EnqueueMessage> messages, SliceReceivers receivers) {
        lock.lock();
        try {
            checkOpen();
            full.addLast(new Frame(queue, messages, receivers, timers.now(), 0));
        } finally {
            lock.unlock();
        }
        pump();
    }

    private void awaitRoom() {
        checkOpen();
        try {
            while (waitingBytes >= options.waitingBytesMax()) {
                roomOrIdle.await();
                checkOpen();
            }
        } catch (InterruptedException interrupted) {
            throw Blocking.interrupted(interrupted);
        }
    }

    private void checkOpen() {
        if (closed) {
            throw Connection.closedError();
        }
    }

    /**
     * Sends what waits and takes in what is answered, for as long as a call may take; fails the
     * rest.
     */
    void close() {
        long left = options.callTimeout().toNanos();
        boolean interrupted = false;
        lock.lock();
        try {
            while (isBusy() && left > 0 && !interrupted) {
                try {
                    left = roomOrIdle.awaitNanos(left);
                } catch (InterruptedException hurry) {
                    interrupted = true;
                }
            }
            closed = true;
        } finally {
            lock.unlock();
        }
        loseInFlight(Connection.closedError("the client was closed before the answer came"));
        BidiStream<EnqueueStreamRequest, EnqueueStreamResponse> last = stream;
        if (last != null) {
            last.cancel("the client was closed");
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean isBusy() {
        return gathering != null
                || !full.isEmpty()
                || !inFlight.isEmpty()
                || inHand > 0
                || !delayed.isEmpty();
    }

    // Sending.

    /** Sends what may go now, one thread at a time: it finds what others put meanwhile. */
    private void pump() {
        while (true) {
            Frame frame;
            long number;
            BidiStream<EnqueueStreamRequest, EnqueueStreamResponse> to;
            lock.lock();
            try {
                to = stream;
                if (to == null) {
                    if (opening || (gathering == null && full.isEmpty())) {
                        return;
                    }
                    opening = true;
                    break;
                }
                frame = pumping ? null : nextFrame();
                if (frame == null) {
                    return;
                }
                pumping = true;
                number = ++sequence;
                frame.sentAt = timers.now();
                inFlight.add(number, frame);
                watch();
            } finally {
                lock.unlock();
            }
            to.send(frame.request(number));
            lock.lock();
            pumping = false;
            lock.unlock();
        }
        open();
    }

    /** The frame to send now, or null when it is time to wait. */
    private @Nullable Frame nextFrame() {
        if (!isDue()) {
            return null;
        }
        Frame frame = full.pollFirst();
        if (frame == null) {
            frame = gathering;
            gathering = null;
        }
        if (frame != null && frame.receivers instanceof GatheredReceivers) {
            waitingBytes -= frame.bytes;
            roomOrIdle.signalAll();
        }
        return frame;
    }

    /** Whether a frame may go now. */
    private boolean isDue() {
        if (inFlight.count() >= options.framesInFlightMax()) {
            return false;
        }
        return !full.isEmpty() || (gathering != null && !lingers(gathering));
    }

    private boolean lingers(Frame frame) {
        if (inFlight.isEmpty() || inFlight.wantsSecond(frame.messages.size())) {
            return false;
        }
        long remaining = frame.firstAt + options.linger().toNanos() - timers.now();
        if (remaining <= 0) {
            return false;
        }
        if (linger == null) {
            linger =
                    timers.schedule(
                            Duration.ofNanos(remaining),
                            () -> {
                                lock.lock();
                                linger = null;
                                lock.unlock();
                                pump();
                            });
        }
        return true;
    }

    // The stream.

    private void open() {
        connection
                .ready(connection.deadlineAfter(options.retryFor()))
                .whenComplete(
                        (ready, failure) -> {
                            try {
                                if (failure == null) {
                                    openStream();
                                    return;
                                }
                                notOpening();
                                failWaiting((FilaException) failure);
                            } catch (ClientClosedException closedMeanwhile) {
                                notOpening();
                                failWaiting(closedMeanwhile);
                            }
                        });
    }

    private void openStream() {
        StreamEvents events = new StreamEvents();
        var opened =
                BidiStream.open(
                        connection, FilaServiceGrpc.getEnqueueStreamMethod(), Map.of(), events);
        lock.lock();
        try {
            if (!events.over && !closed) {
                opening = false;
                stream = opened;
            }
        } finally {
            lock.unlock();
        }
        pump();
    }

    private void notOpening() {
        lock.lock();
        opening = false;
        lock.unlock();
    }

    private final class StreamEvents implements BidiStream.Events<EnqueueStreamResponse> {
        private boolean over;

        @Override
        public void received(EnqueueStreamResponse response) {
            takeIn(response);
            sender.ask();
        }

        @Override
        public void ended(FilaException why) {
            Duration wait;
            lock.lock();
            try {
                over = true;
                stream = null;
                // Nothing is opened before the backoff is over.
                opening = true;
                wait = options.backoff().waitBefore(retries++);
            } finally {
                lock.unlock();
            }
            loseInFlight(why);
            timers.schedule(
                    wait,
                    () -> {
                        notOpening();
                        pump();
                    });
        }
    }

    // Answers.

    private void takeIn(EnqueueStreamResponse response) {
        Frame frame;
        lock.lock();
        try {
            frame = inFlight.take(response.getSequence());
            if (frame == null) {
                return;
            }
            // Until its answers are given or it waits to be sent again, closing must wait for it.
            inHand++;
            retries = 0;
        } finally {
            lock.unlock();
        }
        Answer.Batch answers = new Answer.Batch(connection.executor());
        List<Integer> again = frameAnswers.takeIn(frame, response, answers);
        answers.deliver();
        if (again.isEmpty()) {
            lock.lock();
            inHand--;
            roomOrIdle.signalAll();
            lock.unlock();
            return;
        }
        Frame part = frame.part(again);
        lock.lock();
        try {
            inHand--;
            delayed.add(part);
        } finally {
            lock.unlock();
        }
        timers.schedule(options.backoff().waitBefore(part.tries - 1), () -> putAgain(part));
        failWaitingIfClosed();
    }

    private void putAgain(Frame part) {
        lock.lock();
        try {
            if (!delayed.remove(part)) {
                return;
            }
            full.addLast(part);
        } finally {
            lock.unlock();
        }
        pump();
    }

    /** The stream is over: what may be repeated goes back to the front, the rest learns why. */
    private void loseInFlight(FilaException why) {
        List<Frame> lost;
        lock.lock();
        try {
            lost = inFlight.takeAll();
            inHand++;
        } finally {
            lock.unlock();
        }
        Answer.Batch answers = new Answer.Batch(connection.executor());
        Deque<Frame> again = new ArrayDeque<>();
        for (Frame frame : lost) {
            List<Integer> repeatable = frameAnswers.lose(frame, why, answers);
            if (!repeatable.isEmpty()) {
                again.addFirst(frame.part(repeatable));
            }
        }
        answers.deliver();
        lock.lock();
        try {
            again.forEach(full::addFirst);
            inHand--;
            roomOrIdle.signalAll();
        } finally {
            lock.unlock();
        }
        failWaitingIfClosed();
    }

    private void failWaitingIfClosed() {
        lock.lock();
        boolean nobodySends = closed;
        lock.unlock();
        if (nobodySends) {
            failWaiting(
                    Connection.closedError("the client was closed before the message was sent"));
        }
    }

    private void failWaiting(FilaException why) {
        List<Frame> waiting;
        lock.lock();
        try {
            waiting = new ArrayList<>(full);
            full.clear();
            if (gathering != null) {
                waiting.add(gathering);
                gathering = null;
            }
            if (closed) {
                waiting.addAll(delayed);
                delayed.clear();
            }
            waitingBytes = 0;
            roomOrIdle.signalAll();
        } finally {
            lock.unlock();
        }
        Answer.Batch answers = new Answer.Batch(connection.executor());
        waiting.forEach(frame -> frame.failAll(why, answers));
        answers.deliver();
    }

    // A broker that does not answer.

    private void watch() {
        if (watchdog == null) {
            watchdog = timers.schedule(options.callTimeout(), this::checkOldest);
        }
    }

    private void checkOldest() {
        BidiStream<EnqueueStreamRequest, EnqueueStreamResponse> silent;
        lock.lock();
        try {
            watchdog = null;
            Frame oldest = inFlight.oldest();
            if (oldest == null) {
                return;
            }
            long remaining = oldest.sentAt + options.callTimeout().toNanos() - timers.now();
            if (remaining > 0) {
                watchdog = timers.schedule(Duration.ofNanos(remaining), this::checkOldest);
                return;
            }
            silent = stream;
        } finally {
            lock.unlock();
        }
        if (silent != null) {
            String text = "the broker has not answered within " + options.callTimeout();
            silent.cancel(new UnavailableException(ErrorDetails.of(Code.DEADLINE_EXCEEDED, text)));
        }
    }
}
