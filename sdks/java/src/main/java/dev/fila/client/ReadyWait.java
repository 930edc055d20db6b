package dev.fila.client;

import dev.fila.client.errors.ErrorDetails;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.internal.Addresses;
import dev.fila.client.internal.Timers;
import io.grpc.ConnectivityState;
import io.grpc.Status.Code;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * Waits until the connection stands, asking for it again at the pace of our own backoff instead of
 * gRPC's.
 *
 * <p>A process that stood still past its time saw nothing meanwhile, and gRPC's word for a failure
 * stands until an attempt succeeds: it asks once more, and looks for a while.
 */
final class ReadyWait {
    /** A connection that stood for a moment and broke leaves IDLE, as before it: nobody is told. */
    private static final Duration LOOK = Duration.ofMillis(100);

    /** A timer that is later than this was late because the process stood still. */
    private static final long STOOD_STILL_NS = Duration.ofMillis(250).toNanos();

    private static final Duration FAIR = Duration.ofMillis(3_500);

    private final Connection connection;
    private final Addresses addresses;
    private final long giveUpAt;
    private final IntFunction<Duration> pace;
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private int attempt;
    private @Nullable ConnectivityState awaited;
    private Timers.@Nullable Timer retry;
    private Timers.@Nullable Timer again;
    private Timers.@Nullable Timer deadline;

    ReadyWait(
            Connection connection, Addresses addresses, long giveUpAt, IntFunction<Duration> pace) {
        this.connection = connection;
        this.addresses = addresses;
        this.giveUpAt = giveUpAt;
        this.pace = pace;
    }

    CompletableFuture<Void> begin() {
        giveUpBy(giveUpAt);
        ready.whenComplete((done, failure) -> cancelTimers());
        look();
        return ready;
    }

    private synchronized void giveUpBy(long at) {
        if (!ready.isDone()) {
            long left = Math.max(at - connection.timers.now(), Duration.ofMillis(1).toNanos());
            deadline = connection.timers.schedule(Duration.ofNanos(left), () -> timeIsUp(at));
        }
    }

    private void timeIsUp(long at) {
        if (connection.timers.now() - at <= STOOD_STILL_NS) {
            giveUp();
            return;
        }
        giveUpBy(connection.timers.now() + FAIR.toNanos());
        connection.connectNow();
        look();
    }

    private synchronized void cancelTimers() {
        for (Timers.Timer timer : new Timers.Timer[] {deadline, retry, again}) {
            if (timer != null) {
                timer.cancel();
            }
        }
    }

    private void look() {
        ConnectivityState state = connection.state();
        switch (state) {
            case READY -> {
                connection.stands();
                ready.complete(null);
            }
            case SHUTDOWN -> ready.completeExceptionally(Connection.closedError());
            case CONNECTING -> await(state);
            case IDLE -> {
                lookAgainSoon();
                await(state);
            }
            case TRANSIENT_FAILURE -> {
                if (!connection.widen()) {
                    connection.findOutWhy(this::fail);
                }
                askAgainLater();
                await(state);
            }
        }
    }

    private synchronized void await(ConnectivityState state) {
        if (awaited != state && !ready.isDone()) {
            awaited = state;
            connection.onceStateIsNot(
                    state,
                    () -> {
                        synchronized (this) {
                            awaited = null;
                        }
                        look();
                    });
        }
    }

    private synchronized void lookAgainSoon() {
        if (again == null && !ready.isDone()) {
            again =
                    connection.timers.schedule(
                            LOOK,
                            () -> {
                                synchronized (this) {
                                    again = null;
                                }
                                look();
                            });
        }
    }

    private synchronized void askAgainLater() {
        if (retry != null || ready.isDone()) {
            return;
        }
        retry =
                connection.timers.schedule(
                        pace.apply(attempt++),
                        () -> {
                            synchronized (this) {
                                retry = null;
                            }
                            connection.connectNow();
                            look();
                        });
    }

    private void giveUp() {
        String text =
                "no Fila broker answers at "
                        + addresses
                        + ". Start fila-server there, or connect elsewhere";
        fail(text);
    }

    private void fail(String text) {
        ready.completeExceptionally(
                new UnavailableException(ErrorDetails.of(Code.UNAVAILABLE, text)));
    }
}
