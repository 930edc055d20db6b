package dev.fila.client;

import dev.fila.client.internal.Liveness;
import dev.fila.client.internal.Timers;
import dev.fila.v1.ConsumeSessionRequest;
import dev.fila.v1.ConsumeSessionResponse;
import dev.fila.v1.FilaServiceGrpc;
import java.time.Duration;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * What a consumer says over one stream, from its opening to its close, and by which rules the
 * broker judges it. Its session's lock guards it.
 */
final class SessionStream {
    /** How long a closing session waits for the broker to end the stream. */
    static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(2);

    /** The broker's bound on the leases in one frame. */
    private static final int FRAME_LEASES_MAX = 10_000;

    private final Timers timers;
    private final BidiStream<ConsumeSessionRequest, ConsumeSessionResponse> stream;
    private final Liveness liveness = new Liveness();
    private final long openSentAt;
    private int toldWindow;
    private boolean isOpen;
    private boolean hasRules;
    private boolean isCloseSent;
    private volatile boolean isOver;

    SessionStream(
            Connection connection,
            Settler settler,
            ConsumeSessionRequest.Open open,
            BidiStream.Events<ConsumeSessionResponse> events) {
        timers = connection.timers;
        openSentAt = timers.now();
        toldWindow = open.getMaxInFlight();
        stream =
                BidiStream.open(
                        connection,
                        FilaServiceGrpc.getConsumeSessionMethod(),
                        settler.known(),
                        events);
        send(ConsumeSessionRequest.newBuilder().setOpen(open));
    }

    /**
     * The broker has answered. An older one, without a word of its timeout, knows neither begun nor
     * alive.
     */
    void opened(ConsumeSessionResponse.Opened opened) {
        isOpen = true;
        hasRules = opened.getVisibilityTimeoutMs() > 0;
        if (hasRules) {
            liveness.opened(openSentAt, Duration.ofMillis(opened.getVisibilityTimeoutMs()));
        } else {
            liveness.openedWithoutRules();
        }
    }

    boolean isOpen() {
        return isOpen;
    }

    /** Whether the broker knows what is begun, who is alive, and what is given back. */
    boolean hasRules() {
        return hasRules;
    }

    /** Whether the broker has heard of us lately enough that what it delivered is still ours. */
    boolean mayHandOut() {
        return liveness.mayHandOut(timers.now());
    }

    /**
     * Whether nobody has asked the broker lately: this process slept, or was stopped for a while.
     */
    boolean shouldAsk() {
        return hasRules && liveness.shouldAsk(timers.now());
    }

    /** Whether everything that was said has left this process. */
    boolean isWritten() {
        return isOpen && stream.isWritten();
    }

    /** Whether something that was said on an open stream has not left this process. */
    boolean isWriting() {
        return isOpen && !stream.isWritten();
    }

    boolean isCloseSent() {
        return isCloseSent;
    }

    // What is said.

    /** Sets how many messages may be held; what is given back is returned in the same step. */
    void window(int size, List<Long> giveBack) {
        if (hasRules && (size != toldWindow || !giveBack.isEmpty())) {
            toldWindow = size;
            send(
                    ConsumeSessionRequest.newBuilder()
                            .setWindow(
                                    ConsumeSessionRequest.Window.newBuilder()
                                            .setSize(size)
                                            .addAllGiveBack(giveBack)));
        }
    }

    /** These messages were handed to the program. */
    void begun(List<Long> leases) {
        for (int from = 0; hasRules && from < leases.size(); from += FRAME_LEASES_MAX) {
            List<Long> part =
                    leases.subList(from, Math.min(from + FRAME_LEASES_MAX, leases.size()));
            send(
                    ConsumeSessionRequest.newBuilder()
                            .setBegun(
                                    ConsumeSessionRequest.Begun.newBuilder().addAllLeaseIds(part)));
        }
    }

    void settle(SettleFrame frame) {
        stream.send(frame.sessionRequest());
    }

    /**
     * Says that the consumer lives. Returns how long until it is due again; zero when it never is.
     */
    Duration alive(LongSupplier handlingTimeUs) {
        if (isOver || !hasRules) {
            return Duration.ZERO;
        }
        long number = liveness.sayAlive(timers.now());
        if (number != 0) {
            send(
                    ConsumeSessionRequest.newBuilder()
                            .setAlive(
                                    ConsumeSessionRequest.Alive.newBuilder()
                                            .setSequence(number)
                                            .setHandlingTimeUs(handlingTimeUs.getAsLong())));
        }
        return liveness.interval();
    }

    /** The broker has heard this frame. */
    void heard(long sequence) {
        liveness.answered(sequence);
    }

    /** Nothing more will come from us; what is still held goes back, uncounted. */
    void close() {
        if (!isCloseSent) {
            isCloseSent = true;
            send(
                    ConsumeSessionRequest.newBuilder()
                            .setClose(ConsumeSessionRequest.Close.newBuilder().setRelease(true)));
            timers.schedule(
                    CLOSE_TIMEOUT, () -> stream.cancel("the broker did not end the stream"));
        }
    }

    /**
     * Ends the stream: closes it, or breaks it off without a word. One that was closed stays so.
     */
    void end(boolean release) {
        if (release) {
            close();
        } else if (!isCloseSent) {
            stream.cancel("the consumer leaves with unsettled messages");
        }
    }

    /** The stream has ended. */
    void over() {
        isOver = true;
    }

    private void send(ConsumeSessionRequest.Builder request) {
        stream.send(request.build());
    }
}
