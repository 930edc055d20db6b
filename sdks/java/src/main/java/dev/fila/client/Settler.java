package dev.fila.client;

import dev.fila.client.errors.ErrorDetails;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.InternalException;
import dev.fila.client.internal.Answer;
import dev.fila.client.internal.Sender;
import dev.fila.v1.AckBatchRequest;
import dev.fila.v1.ConsumeSessionResponse;
import dev.fila.v1.ExtendLeaseRequest;
import dev.fila.v1.ItemStatus;
import dev.fila.v1.NackBatchRequest;
import dev.fila.v1.SettleBatchResponse;
import io.grpc.Status.Code;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Acks and nacks on their way to the broker, of one consumer or of what was pulled from one queue
 * and channel.
 *
 * <pre>
 * ack, nack ──► open frames ──► pump ──► transport ──► answer ──► the callers
 *               one a verdict    at most 4 unanswered; the rest gather
 * </pre>
 *
 * <p>The transport is the consumer's own session while that stands, and AckBatch and NackBatch
 * otherwise: so a message can be settled whatever became of the stream it came by. A frame whose
 * answer was lost is sent again, which is safe: it names leases, and a lease is settled once.
 */
final class Settler {
    /** The broker's bound on one frame. */
    static final int FRAME_LEASES_MAX = 10_000;

    /** Unanswered frames; what is settled meanwhile gathers in the next ones. */
    private static final int FRAMES_IN_FLIGHT_MAX = 4;

    /**
     * As many, once FEW_LEASES or more are unanswered. The broker fills the room that a frame makes
     * with one delivery, and that is settled by one frame again: so the pieces of a window that
     * circulate never grow by themselves. With more frames in flight they are as many more and
     * smaller, and each costs both sides a frame.
     */
    private static final int LARGE_FRAMES_IN_FLIGHT_MAX = 2;

    private static final int FEW_LEASES = 64;

    /** How long closing waits for what is unanswered. */
    private static final Duration FLUSH_TIMEOUT = Duration.ofSeconds(5);

    /** Which leases are held, by message. */
    interface HeldLeases {
        /** The lease under which a message is held; 0 when it is not known. */
        long leaseOf(String messageId);

        /** A message is being settled. */
        void forget(String messageId, long leaseId);

        /** What was being settled is answered; the callers learn of it next. */
        default void answered(List<SettleFrame.Item> items) {}
    }

    /** A way to the broker; the answer comes to {@link #answered} or {@link #refused}. */
    interface Transport {
        void send(SettleFrame frame);
    }

    final String queue;
    final String channel;

    private final Connection connection;
    private final HeldLeases held;
    private final Sender sender;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition answeredSome = lock.newCondition();
    private final Map<Verdict, SettleFrame> open = new LinkedHashMap<>();
    private final Deque<SettleFrame> repeat = new ArrayDeque<>();
    private final Map<Long, SettleFrame> inFlight = new LinkedHashMap<>();
    private Transport transport = this::sendByCall;
    private Runnable whenQuiet = () -> {};
    private boolean onSession;
    private boolean pumping;
    private boolean closed;
    private long sequence;

    Settler(Connection connection, String queue, String channel, HeldLeases held) {
        this.connection = connection;
        this.queue = queue;
        this.channel = channel;
        this.held = held;
        sender = new Sender(connection.threads.own(), this::pump);
    }

    Connection connection() {
        return connection;
    }

    HeldLeases held() {
        return held;
    }

    // What messages and clients call.

    void settle(Message message, Verdict verdict, Answer<Void> answer) {
        settleAll(List.of(message), verdict, List.of(answer));
    }

    /** Settles many alike, in as few frames as may be. */
    void settleAll(List<Message> messages, Verdict verdict, List<Answer<Void>> answers) {
        for (int i = 0; i < messages.size(); i++) {
            Message message = messages.get(i);
            message.markSettled();
            put(message.id(), message.leaseId(), verdict, answers.get(i));
        }
        askIfDue();
    }

    void settle(String messageId, long leaseId, Verdict verdict, Answer<Void> answer) {
        put(messageId, leaseId, verdict, answer);
        askIfDue();
    }

    private void put(String messageId, long leaseId, Verdict verdict, Answer<Void> answer) {
        // First, so that a revocation that comes now says nothing of it.
        held.forget(messageId, leaseId);
        lock.lock();
        try {
            if (closed) {
                throw closedError();
            }
            SettleFrame frame = open.get(verdict);
            if (frame != null && frame.items.size() >= FRAME_LEASES_MAX) {
                repeat.addLast(frame);
                frame = null;
            }
            if (frame == null) {
                frame = new SettleFrame(++sequence, verdict);
                open.put(verdict, frame);
            }
            frame.items.add(new SettleFrame.Item(messageId, leaseId, answer));
            sender.gathered();
        } finally {
            lock.unlock();
        }
    }

    CompletableFuture<Instant> extend(Message message, Duration longer) {
        return extend(message.id(), message.leaseId(), longer)
                .thenApply(
                        until -> {
                            message.holdUntil(connection.deadlineAfter(longer));
                            return until;
                        });
    }

    CompletableFuture<Instant> extend(String messageId, long leaseId, Duration longer) {
        ExtendLeaseRequest request =
                ExtendLeaseRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(channel)
                        .setMessageId(messageId)
                        .setLeaseId(leaseId)
                        .setExtendMs(Arguments.millis("longer", longer))
                        .build();
        Map<String, String> known = new HashMap<>(known());
        known.put("message_id", messageId);
        known.put("lease_id", Long.toUnsignedString(leaseId));
        return connection
                .call(Rpc.EXTEND_LEASE, request, known)
                .thenApply(answer -> Arguments.instant(answer.getLeaseExpiresAt()));
    }

    Map<String, String> known() {
        return Map.of("queue", queue, "channel", channel.isEmpty() ? "default" : channel);
    }

    // On the way.

    private void askIfDue() {
        lock.lock();
        boolean isDue = !isFull();
        lock.unlock();
        if (isDue) {
            sender.ask();
        }
    }

    private void pump() {
        while (true) {
            SettleFrame frame;
            Transport way;
            lock.lock();
            try {
                frame = pumping || isFull() ? null : nextFrame();
                if (frame == null) {
                    return;
                }
                pumping = true;
                way = transport;
                inFlight.put(frame.sequence, frame);
            } finally {
                lock.unlock();
            }
            way.send(frame);
            lock.lock();
            pumping = false;
            lock.unlock();
        }
    }

    /** Whether what is settled now has to gather; called with the lock held. */
    private boolean isFull() {
        if (inFlight.size() < LARGE_FRAMES_IN_FLIGHT_MAX) {
            return false;
        }
        int leases = 0;
        for (SettleFrame frame : inFlight.values()) {
            leases += frame.items.size();
        }
        return leases >= FEW_LEASES || inFlight.size() >= FRAMES_IN_FLIGHT_MAX;
    }

    private @Nullable SettleFrame nextFrame() {
        if (!repeat.isEmpty()) {
            return repeat.removeFirst();
        }
        var frames = open.values().iterator();
        if (!frames.hasNext()) {
            return null;
        }
        SettleFrame frame = frames.next();
        frames.remove();
        return frame;
    }

    /** A session's answer: it names leases, not places. */
    void settled(ConsumeSessionResponse.Settled settled) {
        SettleFrame frame;
        lock.lock();
        try {
            frame = inFlight.get(settled.getSequence());
        } finally {
            lock.unlock();
        }
        if (frame == null) {
            return;
        }
        Map<Integer, ItemStatus> statusByIndex = new HashMap<>();
        if (settled.getFailuresCount() > 0) {
            Map<Long, Integer> indexByLease = new HashMap<>();
            for (int i = 0; i < frame.items.size(); i++) {
                indexByLease.put(frame.items.get(i).leaseId(), i);
            }
            for (ConsumeSessionResponse.Failure failure : settled.getFailuresList()) {
                Integer index = indexByLease.get(failure.getLeaseId());
                if (index != null) {
                    statusByIndex.put(index, failure.getStatus());
                }
            }
        }
        answered(frame, statusByIndex);
    }

    private void answered(SettleFrame frame, Map<Integer, ItemStatus> statusByIndex) {
        finish(frame, answers -> frame.answer(statusByIndex, answers));
    }

    private void refused(SettleFrame frame, FilaException error) {
        finish(frame, answers -> frame.fail(error, answers));
    }

    private void finish(SettleFrame frame, java.util.function.Consumer<Answer.Batch> outcome) {
        lock.lock();
        boolean first;
        try {
            first = inFlight.remove(frame.sequence, frame);
            answeredSome.signalAll();
        } finally {
            lock.unlock();
        }
        if (first) {
            held.answered(frame.items);
            Answer.Batch answers = new Answer.Batch(connection.executor());
            outcome.accept(answers);
            answers.deliver();
            sender.ask();
            tellIfQuiet();
        }
    }

    private void tellIfQuiet() {
        lock.lock();
        Runnable told = isBusy() ? () -> {} : whenQuiet;
        lock.unlock();
        told.run();
    }

    // By calls, for leases whose session is gone or never was.

    private void sendByCall(SettleFrame frame) {
        boolean repeatable = !frame.namesNoLease();
        CompletableFuture<SettleBatchResponse> call;
        if (frame.verdict.isAck()) {
            AckBatchRequest acks =
                    AckBatchRequest.newBuilder()
                            .setQueue(queue)
                            .setChannel(channel)
                            .addAllItems(frame.callItems())
                            .build();
            call = connection.call(Rpc.ACK_BATCH.repeatableIf(repeatable), acks, known());
        } else {
            NackBatchRequest nacks =
                    NackBatchRequest.newBuilder()
                            .setQueue(queue)
                            .setChannel(channel)
                            .addAllItems(frame.callItems())
                            .build();
            call = connection.call(Rpc.NACK_BATCH.repeatableIf(repeatable), nacks, known());
        }
        call.whenComplete(
                (answer, failure) -> {
                    if (failure != null) {
                        refused(frame, (FilaException) failure);
                    } else if (answer.getResultsCount() != frame.items.size()) {
                        String wrong =
                                frame.items.size()
                                        + " messages were settled, but "
                                        + answer.getResultsCount()
                                        + " results came back";
                        refused(
                                frame,
                                new InternalException(ErrorDetails.of(Code.INTERNAL, wrong)));
                    } else {
                        Map<Integer, ItemStatus> statusByIndex = new HashMap<>();
                        for (int i = 0; i < answer.getResultsCount(); i++) {
                            if (answer.getResults(i).getCode() != 0) {
                                statusByIndex.put(i, answer.getResults(i));
                            }
                        }
                        answered(frame, statusByIndex);
                    }
                });
    }

    // Where to.

    /** From now on frames go over a session, which is told whenever nothing is unanswered. */
    void useSession(Transport session, Runnable quiet) {
        lock.lock();
        try {
            transport = session;
            whenQuiet = quiet;
            onSession = true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * The session is over: what it left unanswered is sent again, by calls, and so is all that
     * follows.
     */
    void useCalls() {
        lock.lock();
        try {
            if (!onSession) {
                return;
            }
            onSession = false;
            transport = this::sendByCall;
            for (SettleFrame frame : inFlight.values()) {
                frame.repeated = true;
                repeat.addLast(frame);
            }
            inFlight.clear();
        } finally {
            lock.unlock();
        }
        pump();
    }

    /** Whether anything was settled that the broker has not answered. */
    boolean hasUnanswered() {
        lock.lock();
        try {
            return isBusy();
        } finally {
            lock.unlock();
        }
    }

    private boolean isBusy() {
        return !open.isEmpty() || !repeat.isEmpty() || !inFlight.isEmpty();
    }

    /**
     * All that the broker must not return on a resume: what is held, and what is being settled, as
     * it may not know of that. At most as many as a resume may name, those held first: of what is
     * being settled and not named the broker has settled nearly all already, and delivers the rest
     * again.
     */
    List<Long> named(List<Long> held) {
        List<Long> leases = new ArrayList<>(held);
        lock.lock();
        try {
            for (Collection<SettleFrame> frames :
                    List.of(open.values(), repeat, inFlight.values())) {
                frames.forEach(frame -> frame.items.forEach(item -> leases.add(item.leaseId())));
            }
        } finally {
            lock.unlock();
        }
        return leases.subList(0, Math.min(leases.size(), FRAME_LEASES_MAX));
    }

    /** Waits a while for what is unanswered, then fails the rest and refuses what comes. */
    void close() {
        long patience = FLUSH_TIMEOUT.toNanos();
        List<SettleFrame> left = new ArrayList<>();
        boolean interrupted = false;
        lock.lock();
        try {
            while (isBusy() && patience > 0 && !interrupted) {
                try {
                    patience = answeredSome.awaitNanos(patience);
                } catch (InterruptedException hurry) {
                    interrupted = true;
                }
            }
            closed = true;
            left.addAll(open.values());
            left.addAll(repeat);
            left.addAll(inFlight.values());
            open.clear();
            repeat.clear();
            inFlight.clear();
        } finally {
            lock.unlock();
        }
        Answer.Batch answers = new Answer.Batch(connection.executor());
        left.forEach(frame -> frame.fail(closedError(), answers));
        answers.deliver();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static FilaException closedError() {
        return Connection.closedError(
                "the client was closed; the message comes back when its lease ends");
    }
}
