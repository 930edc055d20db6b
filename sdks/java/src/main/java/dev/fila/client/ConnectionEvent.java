package dev.fila.client;

import dev.fila.client.errors.FilaException;
import java.time.Duration;
import java.util.Optional;

/**
 * Something happened to a consumer's stream.
 *
 * @param kind what
 * @param queue the queue it consumes
 * @param channel the channel it consumes; empty means {@code default}
 * @param error why it was lost; empty when it is back
 * @param outage when it is back: for how long it was gone
 * @param leasesLost when it is back: how many messages lost their lease, of those in hand and in
 *     the buffer
 */
public record ConnectionEvent(
        Kind kind,
        String queue,
        String channel,
        Optional<FilaException> error,
        Duration outage,
        int leasesLost) {
    /** What may happen. */
    public enum Kind {
        /** The stream broke, and is being reopened. */
        LOST,
        /** The same, because the broker said that it is stopping, or that another node serves. */
        DRAINING,
        /** The stream is open again. */
        BACK
    }
}
