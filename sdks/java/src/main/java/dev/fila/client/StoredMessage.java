package dev.fila.client;

import com.google.protobuf.ByteString;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A message as it is peeked at or read from the log: nobody's lease, nothing to settle. Immutable.
 */
public class StoredMessage {
    private final dev.fila.v1.Message wire;

    StoredMessage(dev.fila.v1.Message wire) {
        this.wire = wire;
    }

    dev.fila.v1.Message wire() {
        return wire;
    }

    /** UUIDv7 made at enqueue; retry, dead-letter and redrive keep it. */
    public final String id() {
        return wire.getId();
    }

    /** The producer's bytes; a copy each time. */
    public final byte[] payload() {
        return wire.getPayload().toByteArray();
    }

    /** The producer's bytes, to be read without a copy. */
    public final ByteBuffer payloadBuffer() {
        return wire.getPayload().asReadOnlyByteBuffer();
    }

    /** The producer's bytes read as UTF-8. */
    public final String payloadText() {
        return wire.getPayload().toStringUtf8();
    }

    /** What the producer sent along; cannot be changed. */
    public final Map<String, String> headers() {
        return wire.getHeadersMap();
    }

    /** The queue it is in. */
    public final String queue() {
        return wire.getMetadata().getQueueId();
    }

    /** The channel it was delivered in; empty where it was not delivered. */
    public final String channel() {
        return wire.getMetadata().getChannel();
    }

    /** Position in the queue's log, from 1. */
    public final long offset() {
        return wire.getMetadata().getOffset();
    }

    /** The key it is scheduled under. */
    public final String fairnessKey() {
        return wire.getMetadata().getFairnessKey();
    }

    /** The fairness key's relative share, 1 to 1000. */
    public final int weight() {
        return wire.getMetadata().getWeight();
    }

    /** What a delivery costs its fairness key. */
    public final double cost() {
        return wire.getMetadata().getCost();
    }

    /** The token buckets it needs a token from. */
    public final List<String> throttleKeys() {
        return List.copyOf(wire.getMetadata().getThrottleKeysList());
    }

    /**
     * Its priority among the messages of its fairness key, 0 to 3, where 3 goes first and 1 is
     * usual.
     */
    public final int priority() {
        return wire.getMetadata().hasPriority() ? wire.getMetadata().getPriority() : 1;
    }

    /** Earlier deliveries in this channel that were begun and failed; 0 at the first. */
    public final int attemptCount() {
        return wire.getMetadata().getAttemptCount();
    }

    /** When the producer's call was accepted. */
    public final Instant enqueuedAt() {
        return Arguments.instant(wire.getTimestamps().getEnqueuedAt());
    }

    /** When this log entry was appended. */
    public final Instant appendedAt() {
        return Arguments.instant(wire.getTimestamps().getAppendedAt());
    }

    /**
     * When a delayed message becomes ready, as {@code peek} shows it; empty where it is not
     * delayed.
     */
    public final Optional<Instant> dueAt() {
        return wire.getTimestamps().hasDueAt()
                ? Optional.of(Arguments.instant(wire.getTimestamps().getDueAt()))
                : Optional.empty();
    }

    /** Why it was given up; empty outside dead-letter queues. */
    public final Optional<DeadLetter> deadLetter() {
        return wire.getMetadata().hasDeadLetter()
                ? Optional.of(DeadLetter.of(wire.getMetadata().getDeadLetter()))
                : Optional.empty();
    }

    @Override
    public String toString() {
        ByteString payload = wire.getPayload();
        return getClass().getSimpleName()
                + "["
                + id()
                + " queue="
                + queue()
                + " offset="
                + offset()
                + " attemptCount="
                + attemptCount()
                + " payload="
                + payload.size()
                + " B]";
    }
}
