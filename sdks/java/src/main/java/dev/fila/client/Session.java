package dev.fila.client;

import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.OverloadedException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.internal.ErrorMapping;
import dev.fila.client.internal.Timers;
import dev.fila.v1.ConsumeSessionRequest;
import dev.fila.v1.ConsumeSessionResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One consumer's stream, kept alive: deliveries come down it, settlements go up, and it is resumed
 * when it breaks.
 *
 * <pre>
 * connecting ──► open ──► leaving ──► over
 *     ▲           │          nothing is taken any more; closed as soon as all in hand is settled
 *     └─ backoff ◄┘
 * </pre>
 *
 * <p>While the stream is broken nothing is handed out: the broker may have given what waits here to
 * others. Once it is resumed, what the broker still holds for this consumer goes on as if nothing
 * had happened.
 */
final class Session implements Settler.HeldLeases, Settler.Transport, HandOut.Stream {
    /** The window with a broker that can't change it while the stream is open. */
    private static final int OLDER_BROKER_WINDOW = 256;

    private final Connection connection;
    private final Timers timers;
    private final ConsumeOptions options;
    private final Settler settler;
    private final Runnable whenOver;
    private final ReentrantLock lock = new ReentrantLock();
    private final HandOut handOut;
    private final Holding holding;
    private final Outage outage;
    private final List<Long> untoldGiveBack = new ArrayList<>();

    private @Nullable SessionStream stream;
    private long consumerId;
    private Duration visibilityTimeout = Duration.ofSeconds(30);
    private Duration renewal = Duration.ZERO;
    private boolean started;
    private boolean reopening;
    private boolean leaving;
    private boolean over;
    private @Nullable FilaException failure;

    Session(Connection connection, String queue, ConsumeOptions options, Runnable whenOver) {
        this.connection = connection;
        this.timers = connection.timers;
        this.options = options;
        this.whenOver = whenOver;
        settler = new Settler(connection, queue, options.channel().orElse(""), this);
        Prefetch prefetch = options.prefetch().orElse(connection.options.prefetch());
        handOut = new HandOut(lock, prefetch.newControl(), timers, connection.executor(), this);
        holding = handOut.holding;
        outage = new Outage(connection, settler);
    }

    Settler settler() {
        return settler;
    }

    // Loops.

    Loop join(int size) {
        connection.checkOpen();
        Loop loop;
        boolean isFirst;
        lock.lock();
        try {
            loop = holding.join(size);
            isFirst = !started && !leaving;
            started = true;
        } finally {
            lock.unlock();
        }
        if (isFirst) {
            connect();
        }
        return loop;
    }

    void part(Loop loop) {
        lock.lock();
        holding.part(loop);
        lock.unlock();
    }

    /** See {@link HandOut#take}. */
    @Nullable List<Message> take(
            Loop loop, int countMax, @Nullable Duration patience, @Nullable Duration idle)
            throws InterruptedException {
        return handOut.take(loop, countMax, patience, idle);
    }

    @Override
    public boolean isOver() {
        if (failure != null) {
            throw ErrorMapping.again(failure);
        }
        return over || leaving;
    }

    /** Whether the loops have ended, or will as soon as they ask. */
    boolean hasEnded() {
        return locked(() -> over || leaving);
    }

    // Settling.

    @Override
    public long leaseOf(String messageId) {
        return locked(() -> holding.leaseOf(messageId));
    }

    @Override
    public void forget(String messageId, long leaseId) {
        handOut.settle(messageId, leaseId);
    }

    @Override
    public void answered(List<SettleFrame.Item> items) {
        handOut.answered(items);
    }

    /** Messages that are in hand, for who settles them once this is over. */
    List<Message> inHand() {
        return locked(() -> holding.inHand());
    }

    @Override
    public void send(SettleFrame frame) {
        lock.lock();
        SessionStream current = stream;
        lock.unlock();
        // On a broken stream its end sends the frame another way.
        if (current != null) {
            current.settle(frame);
        }
    }

    private <T> T locked(Supplier<T> step) {
        lock.lock();
        try {
            return step.get();
        } finally {
            lock.unlock();
        }
    }

    // The stream.

    private void connect() {
        connection
                .ready(outage.giveUpAt(), outage::waitBefore)
                .whenComplete(
                        (ready, error) -> {
                            try {
                                if (error != null) {
                                    finish((FilaException) error);
                                } else if (!open()) {
                                    finish(null);
                                }
                            } catch (FilaException closed) {
                                finish(closed);
                            }
                        });
    }

    /** Opens a stream; false when nobody needs one any more. */
    private boolean open() {
        lock.lock();
        try {
            if (over || leaving && !holding.hasInHand()) {
                return false;
            }
            untoldGiveBack.clear();
            ConsumeSessionRequest.Open.Builder open =
                    options.openRequest(connection.options.name())
                            .setQueue(settler.queue)
                            .setMaxInFlight(windowNow());
            if (consumerId != 0) {
                open.setResume(
                        ConsumeSessionRequest.Resume.newBuilder()
                                .setConsumerId(consumerId)
                                .addAllLeaseIds(settler.named(holding.leases())));
            }
            SessionStream opening =
                    new SessionStream(connection, settler, open.build(), new StreamEvents());
            stream = over ? null : opening;
            return true;
        } finally {
            lock.unlock();
        }
    }

    private int windowNow() {
        int wanted = leaving ? holding.inHandCount() : holding.control.window();
        return Math.max(1, wanted); // 0 would mean 256
    }

    private final class StreamEvents implements BidiStream.Events<ConsumeSessionResponse> {
        @Override
        public void received(ConsumeSessionResponse response) {
            if (response.hasSettled()) {
                settler.settled(response.getSettled());
                return;
            }
            lock.lock();
            try {
                switch (response.getResponseCase()) {
                    case OPENED -> opened(response.getOpened());
                    case DELIVERY -> deliver(response.getDelivery().getMessagesList());
                    case REVOKED ->
                            lose(
                                    response.getRevoked().getLeaseIdsList(),
                                    response.getRevoked().getReason());
                    case ALIVE -> heard(response.getAlive().getSequence());
                    default -> {} // of a newer broker
                }
            } finally {
                lock.unlock();
            }
            handOut.tellProgram();
        }

        @Override
        public void written() {
            handOut.written();
        }

        @Override
        public void ended(FilaException why) {
            broken(why);
        }
    }

    private void opened(ConsumeSessionResponse.Opened opened) {
        SessionStream current = stream;
        if (current == null) {
            return;
        }
        current.opened(opened);
        if (!current.hasRules() && holding.becomeFixed(OLDER_BROKER_WINDOW)) {
            reopening = true;
            current.close();
            return;
        }
        int leasesLost = 0;
        settler.useSession(this, this::closeWhenSettled);
        if (current.hasRules()) {
            consumerId = opened.getConsumerId();
            visibilityTimeout = Duration.ofMillis(opened.getVisibilityTimeoutMs());
            renewal = Duration.ofMillis(opened.getMaxLeaseRenewalMs());
            holding.renewFor(renewal);
            leasesLost = lose(opened.getLostLeaseIdsList(), "LEASE_LOST");
            handOut.begun.restart(holding.leasesInHand());
            tellWindow(holding.control.window(), List.of());
            sayAlive(current);
        }
        outage.end(Duration.ofMillis(opened.getDisconnectGraceMs()), leasesLost);
        handOut.wakeAll();
        if (leaving) {
            leaveStream();
        }
    }

    private void deliver(List<dev.fila.v1.Message> wire) {
        if (wire.isEmpty() || reopening) {
            return; // given back by the close
        }
        if (leaving) {
            tellWindow(
                    0, wire.stream().map(message -> message.getMetadata().getLeaseId()).toList());
            return;
        }
        List<Message> messages = Message.delivered(wire, settler, renewal, timers.now());
        handOut.deliver(messages);
    }

    private int lose(List<Long> leases, String reason) {
        int held = handOut.lose(leases, reason);
        closeWhenSettled();
        return held;
    }

    private void heard(long sequence) {
        SessionStream current = stream;
        if (current == null) {
            return;
        }
        boolean wasSilent = !current.mayHandOut();
        current.heard(sequence);
        if (wasSilent) {
            if (!current.mayHandOut()) {
                // An answer to an old one: asked anew, as the broker is back.
                current.alive(holding.control.times()::medianUs);
            }
            handOut.wakeAll();
        }
    }

    // What is said unasked.

    @Override
    public boolean mayHandOut() {
        return stream != null && stream.mayHandOut();
    }

    @Override
    public void askWhetherHeard() {
        if (stream != null && stream.shouldAsk()) {
            stream.alive(holding.control.times()::medianUs);
        }
    }

    @Override
    public boolean isWritten() {
        return stream != null && stream.isWritten();
    }

    @Override
    public void tellBegun(List<Long> leases) {
        if (stream != null) {
            stream.begun(leases);
        }
    }

    @Override
    public void tellWindow(int window, List<Long> giveBack) {
        untoldGiveBack.addAll(giveBack);
        if (stream != null && stream.hasRules()) {
            stream.window(leaving ? 0 : window, List.copyOf(untoldGiveBack));
            untoldGiveBack.clear();
        }
    }

    private void sayAlive(SessionStream on) {
        lock.lock();
        try {
            Duration next = on.alive(holding.control.times()::medianUs);
            if (!next.isZero()) {
                timers.schedule(next, () -> sayAlive(on));
            }
        } finally {
            lock.unlock();
        }
    }

    // A broken stream.

    private void broken(FilaException why) {
        boolean mayPass = why instanceof UnavailableException || why instanceof OverloadedException;
        boolean isClosing; // nothing was lost then: we said that we go, or broke off ourselves
        boolean tryAgain;
        Duration wait;
        lock.lock();
        try {
            SessionStream ended = stream;
            stream = null;
            isClosing = over || ended != null && ended.isCloseSent();
            if (ended != null) {
                ended.over();
                if (mayPass && ended.isOpen() && !isClosing && !connection.isClosed()) {
                    outage.begin(why);
                }
            }
            wait = reopening ? Duration.ZERO : outage.nextWait();
            boolean isPatient = timers.now() + wait.toNanos() - outage.giveUpAt() <= 0;
            boolean goesOn = reopening || mayPass && isPatient && !isClosing;
            tryAgain = goesOn && !over && !connection.isClosed();
            reopening = false;
        } finally {
            lock.unlock();
        }
        handOut.wakeAll();
        settler.useCalls();
        if (tryAgain) {
            timers.schedule(wait, this::connect);
        } else {
            finish(isClosing ? null : why);
        }
    }

    private void finish(@Nullable FilaException why) {
        lock.lock();
        try {
            over = true;
            failure = failure == null ? why : failure;
            stream = null;
        } finally {
            lock.unlock();
        }
        handOut.wakeAll();
        settler.useCalls();
        whenOver.run();
    }

    // Leaving.

    /**
     * Takes nothing more, gives back what waits. The stream closes once all that was handed out is
     * settled.
     */
    void leave() {
        boolean isDone;
        lock.lock();
        try {
            if (leaving || over) {
                return;
            }
            leaving = true;
            // Without a stream a later resume does not name them, which gives them back too.
            tellWindow(0, holding.giveUpAll());
            leaveStream();
            isDone = stream == null && !holding.hasInHand();
        } finally {
            lock.unlock();
        }
        handOut.wakeAll();
        if (isDone) {
            finish(null);
        }
    }

    private void leaveStream() {
        if (stream != null && stream.isOpen()) {
            // What is still in hand then has failed when the broker's grace is over.
            timers.schedule(visibilityTimeout, () -> endStream(false));
            closeWhenSettled();
        }
    }

    private void closeWhenSettled() {
        lock.lock();
        try {
            boolean isOpen = stream != null && stream.isOpen();
            if (leaving && isOpen && !holding.hasInHand() && !settler.hasUnanswered()) {
                stream.close();
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Ends the stream: giving back what is in hand, or else without a word, as if the process had
     * ended, so that what is in hand counts soon.
     */
    private void endStream(boolean release) {
        lock.lock();
        try {
            over |= !release;
            if (stream != null) {
                stream.end(release);
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Leaves at once. With {@code release} what the program has in hand goes back too, uncounted;
     * else it has failed when the broker's grace is over.
     */
    void close(boolean release) {
        leave();
        long left = SessionStream.CLOSE_TIMEOUT.toNanos();
        boolean interrupted = false;
        lock.lock();
        try {
            // Broken off at once, the stream would lose the word that gives back what waited.
            while (!release && stream != null && stream.isWriting() && left > 0) {
                left = handOut.awaitChange(left);
            }
            endStream(release);
            while (stream != null && left > 0) {
                left = handOut.awaitChange(left);
            }
            over = true;
        } catch (InterruptedException hurry) {
            interrupted = true;
        } finally {
            lock.unlock();
        }
        handOut.wakeAll();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
