package dev.fila.client;

import dev.fila.client.ConnectionEvent.Kind;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.NotOwnerException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Optional;

/**
 * How long a consumer has been without its stream, when it asks for it again, and what the program
 * learns of it. Its session's lock guards it, but for {@link #waitBefore}.
 */
final class Outage {
    private static final System.Logger LOG = System.getLogger("dev.fila.client");

    /** A consumer asks so often for its stream within the broker's grace, at least. */
    private static final int RETRIES_PER_GRACE = 5;

    private final Connection connection;
    private final String queue;
    private final String channel;
    private volatile long beganAt;
    private volatile Duration grace = Duration.ZERO;
    private int attempt;
    private boolean isTold;

    Outage(Connection connection, Settler settler) {
        this.connection = connection;
        queue = settler.queue;
        channel = settler.channel;
        beganAt = connection.timers.now();
    }

    /** An open stream was lost. */
    void begin(FilaException why) {
        beganAt = connection.timers.now();
        attempt = 0;
        isTold = true;
        LOG.log(
                Level.WARNING,
                "consumer of {0} lost its stream, reopening it: {1}",
                queue,
                why.getMessage());
        boolean isDraining =
                why.reason().equals("SHUTTING_DOWN") || why instanceof NotOwnerException;
        tell(isDraining ? Kind.DRAINING : Kind.LOST, Optional.of(why), Duration.ZERO, 0);
    }

    /**
     * The stream is open. From now on the broker keeps what is held for this long after it breaks.
     */
    void end(Duration disconnectGrace, int leasesLost) {
        grace = disconnectGrace;
        attempt = 0;
        if (isTold) {
            isTold = false;
            Duration lasted = Duration.ofNanos(connection.timers.now() - beganAt);
            LOG.log(
                    Level.WARNING,
                    "consumer of {0} has its stream back after {1} ms, {2} leases lost",
                    queue,
                    lasted.toMillis(),
                    leasesLost);
            tell(Kind.BACK, Optional.empty(), lasted, leasesLost);
        }
    }

    private void tell(Kind kind, Optional<FilaException> error, Duration lasted, int leasesLost) {
        connection.events.tell(
                new ConnectionEvent(kind, queue, channel, error, lasted, leasesLost));
    }

    /** How long to wait before the stream is asked for again. */
    Duration nextWait() {
        return waitBefore(attempt++);
    }

    /** Often enough to be back within the grace; later at the client's own pace. */
    Duration waitBefore(int number) {
        Duration wait = connection.options.backoff().waitBefore(number);
        Duration pace = grace.dividedBy(RETRIES_PER_GRACE);
        boolean withinGrace = connection.timers.now() - beganAt < grace.toNanos();
        return withinGrace && !pace.isZero() && wait.compareTo(pace) > 0 ? pace : wait;
    }

    /** When the stream is given up, by the timers. */
    long giveUpAt() {
        Duration patience = connection.options.reconnectFor();
        return patience == null
                ? connection.timers.now() + Long.MAX_VALUE / 2
                : beganAt + patience.toNanos();
    }
}
