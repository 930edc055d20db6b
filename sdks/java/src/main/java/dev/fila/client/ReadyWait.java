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
 */
final class ReadyWait {
    private final Connection connection;
    private final Addresses addresses;
    private final long giveUpAt;
    private final IntFunction<Duration> pace;
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private int attempt;
    private @Nullable ConnectivityState awaited;
    private Timers.@Nullable Timer retry;

    ReadyWait(
            Connection connection, Addresses addresses, long giveUpAt, IntFunction<Duration> pace) {
        this.connection = connection;
        this.addresses = addresses;
        this.giveUpAt = giveUpAt;
        this.pace = pace;
    }

    CompletableFuture<Void> begin() {
        long patience =
                Math.max(giveUpAt - connection.timers.now(), Duration.ofMillis(1).toNanos());
        Timers.Timer deadline =
                connection.timers.schedule(Duration.ofNanos(patience), this::giveUp);
        ready.whenComplete((done, failure) -> deadline.cancel());
        look();
        return ready;
    }

    private void look() {
        ConnectivityState state = connection.state();
        switch (state) {
            case READY -> ready.complete(null);
            case SHUTDOWN -> ready.completeExceptionally(Connection.closedError());
            case IDLE, CONNECTING -> await(state);
            case TRANSIENT_FAILURE -> {
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

    private synchronized void askAgainLater() {
        if (retry != null || ready.isDone()) {
            return;
        }
        Duration wait = pace.apply(attempt++);
        if (connection.timers.now() + wait.toNanos() > giveUpAt) {
            giveUp();
            return;
        }
        retry =
                connection.timers.schedule(
                        wait,
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
        ready.completeExceptionally(
                new UnavailableException(ErrorDetails.of(Code.UNAVAILABLE, text)));
    }
}
