package dev.fila.client;

import dev.fila.client.internal.Answer;
import dev.fila.client.internal.Blocking;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A delivery to work on and then settle before its lease ends.
 *
 * <p>Each way to settle comes twice. {@code ack()} returns once the broker has made it durable, and
 * throws when it was refused. {@code ackAsync()} is on its way when it returns; its future says how
 * it went, and a refusal that nobody asks for is logged. What is settled while others are
 * unanswered travels together.
 *
 * <p>All of these throw {@link dev.fila.client.errors.LeaseLostException} when the lease had ended,
 * {@link dev.fila.client.errors.MessageNotFoundException} when the message is gone, and {@link
 * dev.fila.client.errors.UnavailableException} when the broker is.
 */
public final class Message extends StoredMessage {
    private final Settler settler;
    private final long leaseId;

    /** When the lease ends, by the client's timers. */
    private volatile long heldUntil;

    /** The place of the program that took it; its session's. */
    @Nullable Loop taker;

    private volatile boolean settled;
    private @Nullable String lostReason;
    private @Nullable CompletableFuture<String> lost;

    Message(dev.fila.v1.Message wire, Settler settler, long heldUntil) {
        super(wire);
        this.settler = settler;
        this.leaseId = wire.getMetadata().getLeaseId();
        this.heldUntil = heldUntil;
    }

    /**
     * The messages of one delivery. The broker keeps their leases for {@code renewal}, or leaves
     * them what is written in them when that is zero: its clock tells how long that is, ours from
     * when it runs.
     */
    static List<Message> delivered(
            List<dev.fila.v1.Message> wire, Settler settler, Duration renewal, long now) {
        var times = wire.get(0).getTimestamps();
        Duration lease =
                Duration.between(
                        Arguments.instant(times.getLeasedAt()),
                        Arguments.instant(times.getLeaseExpiresAt()));
        Duration held = renewal.isZero() ? lease : renewal;
        boolean isEndless = held.isZero() || held.isNegative();
        long heldUntil = now + (isEndless ? Long.MAX_VALUE / 4 : held.toNanos());
        return wire.stream().map(message -> new Message(message, settler, heldUntil)).toList();
    }

    /** This delivery's lease; a new number each time. */
    public long leaseId() {
        return leaseId;
    }

    /** When it was delivered, by the broker's clock. */
    public Instant leasedAt() {
        return Arguments.instant(wire().getTimestamps().getLeasedAt());
    }

    /**
     * When the lease ends as it was delivered, by the broker's clock; {@link #extend} answers the
     * new end.
     */
    public Instant leaseExpiresAt() {
        return Arguments.instant(wire().getTimestamps().getLeaseExpiresAt());
    }

    /** Whether somebody had begun it in this channel before, and it failed or came back. */
    public boolean isRedelivered() {
        return wire().getMetadata().getRedelivered();
    }

    /**
     * Whether it was sent to a consumer of this channel before, and came back before anybody had
     * begun it.
     */
    public boolean cameBack() {
        return wire().getMetadata().getCameBack();
    }

    /** Whether the program must not see it before the broker knows that it is begun. */
    boolean mustBeDeclared() {
        return isRedelivered() || cameBack();
    }

    // Settling.

    /** The message is done. */
    public void ack() {
        settle(Verdict.ACK);
    }

    /** As {@link #ack()}, without waiting. */
    public CompletableFuture<Void> ackAsync() {
        return settleAsync(Verdict.ACK);
    }

    /**
     * The message failed. The queue's policy decides when it comes back, or whether it becomes a
     * dead letter.
     *
     * @param error why; kept with a dead letter
     */
    public void nack(String error) {
        settle(Verdict.nack(error, null));
    }

    /**
     * As {@link #nack(String)}, and it comes back after this delay; {@code max_attempts} still
     * caps.
     */
    public void nack(String error, Duration delay) {
        settle(Verdict.nack(error, delay));
    }

    /** As {@link #nack(String)}, without waiting. */
    public CompletableFuture<Void> nackAsync(String error) {
        return settleAsync(Verdict.nack(error, null));
    }

    /** As {@link #nack(String, Duration)}, without waiting. */
    public CompletableFuture<Void> nackAsync(String error, Duration delay) {
        return settleAsync(Verdict.nack(error, delay));
    }

    /**
     * The message can't be worked on, now or later: it becomes a dead letter at once, whatever the
     * policy says.
     */
    public void reject(String error) {
        settle(Verdict.reject(error));
    }

    /** As {@link #reject}, without waiting. */
    public CompletableFuture<Void> rejectAsync(String error) {
        return settleAsync(Verdict.reject(error));
    }

    /** The message did not fail: back to its place, with the attempts it had, for somebody else. */
    public void release() {
        settle(Verdict.RELEASE);
    }

    /** As {@link #release}, without waiting. */
    public CompletableFuture<Void> releaseAsync() {
        return settleAsync(Verdict.RELEASE);
    }

    /**
     * The provider behind a limit refused the call (HTTP's 429). For all workers, the limit closes
     * for so long, at most 5 minutes, and slows down. The message did not fail: it goes back to its
     * place, and comes when the limit lets it. Where none of its limits learns, this is a nack with
     * that delay. A handler may throw it instead.
     */
    public void limited(LimitedException refusal) {
        settle(refusal.verdict());
    }

    /** As {@link #limited}, without waiting. */
    public CompletableFuture<Void> limitedAsync(LimitedException refusal) {
        return settleAsync(refusal.verdict());
    }

    /**
     * Holds the message for so long from now, at most 12 h. Returns when the lease now ends, by the
     * broker's clock.
     */
    public Instant extend(Duration longer) {
        return Blocking.await(settler.extend(this, longer));
    }

    private void settle(Verdict verdict) {
        Answer<Void> answer = Answer.awaited();
        settler.settle(this, verdict, answer);
        Blocking.await(answer);
    }

    private CompletableFuture<Void> settleAsync(Verdict verdict) {
        Answer<Void> answer = Answer.given();
        settler.settle(this, verdict, answer);
        return answer;
    }

    /** Whether the program has settled it, however that went. */
    public boolean isSettled() {
        return settled;
    }

    // A lease that ends before its time.

    /**
     * Whether the lease is known to be over although nobody settled the message: somebody else gets
     * it.
     */
    public boolean isLost() {
        return lostReason().isPresent();
    }

    /**
     * Why the lease is over, where it is: a word of the broker's such as {@code EXPIRED} or {@code
     * SEEK}. A purge leaves begun messages alone.
     */
    public synchronized Optional<String> lostReason() {
        return Optional.ofNullable(lostReason);
    }

    /**
     * Completes with the reason if the lease is lost while the message is in hand, and never
     * otherwise.
     */
    public synchronized CompletableFuture<String> lost() {
        CompletableFuture<String> future = lost;
        if (future == null) {
            future = new CompletableFuture<>();
            lost = future;
            if (lostReason != null) {
                future.complete(lostReason);
            }
        }
        return future.copy();
    }

    /**
     * Notes that the lease is over; returns what tells the program, to be run on a thread of its
     * own.
     */
    synchronized @Nullable Runnable lose(String reason) {
        if (lostReason != null) {
            return null;
        }
        lostReason = reason;
        CompletableFuture<String> future = lost;
        return future == null ? null : () -> future.complete(reason);
    }

    void markSettled() {
        settled = true;
    }

    Settler settler() {
        return settler;
    }

    long heldUntil() {
        return heldUntil;
    }

    void holdUntil(long moment) {
        heldUntil = moment;
    }
}
