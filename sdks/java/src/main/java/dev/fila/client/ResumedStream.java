package dev.fila.client;

import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.internal.Blocking;
import dev.fila.client.internal.ErrorMapping;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A call that answers with a stream, followed over as many streams as it takes: a broken one is
 * opened again with the request as it stands then. Read by one thread at a time, closed by any.
 */
final class ResumedStream<Q, A> {
    private static final Status ENDED =
            Status.UNAVAILABLE.withDescription("the broker ended the stream");

    private final Connection connection;
    private final MethodDescriptor<Q, A> method;
    private final BiFunction<Q, A, Q> movedOn;
    private final Map<String, String> known;
    private final BooleanSupplier goesOn;
    private Q request;
    private volatile @Nullable ClientCall<Q, A> call;
    private volatile boolean ended;
    private @Nullable Iterator<A> answers;
    private int attempt;
    private long lostAt;

    /**
     * {@code movedOn} makes of a request and an answer to it the request that goes on behind them;
     * {@code known} is what the call is about, for the error it may end in; {@code goesOn} says
     * whether the call is not over when the broker ends a stream: it is stopping.
     */
    ResumedStream(
            Connection connection,
            MethodDescriptor<Q, A> method,
            Q request,
            BiFunction<Q, A, Q> movedOn,
            Map<String, String> known,
            BooleanSupplier goesOn) {
        this.connection = connection;
        this.method = method;
        this.request = request;
        this.movedOn = movedOn;
        this.known = known;
        this.goesOn = goesOn;
    }

    /** The next answer; null when there are no more, or this was closed. */
    @Nullable A next() {
        while (!ended) {
            try {
                Iterator<A> open = answers == null ? open() : answers;
                if (!open.hasNext()) {
                    if (goesOn.getAsBoolean()) {
                        throw ENDED.asRuntimeException();
                    }
                    ended = true;
                    return null;
                }
                A answer = open.next();
                attempt = 0;
                // Before it is handed out: after a break, go on behind it.
                request = movedOn.apply(request, answer);
                return answer;
            } catch (StatusRuntimeException failure) {
                resumeAfter(failure);
            }
        }
        return null;
    }

    void close() {
        ended = true;
        cancel();
    }

    private void cancel() {
        ClientCall<Q, A> open = call;
        if (open != null) {
            open.cancel("the program has read enough", null);
        }
    }

    private Iterator<A> open() {
        Blocking.await(connection.ready(connection.deadlineAfter(connection.options.retryFor())));
        ClientCall<Q, A> begun = connection.newCall(method, CallOptions.DEFAULT);
        call = begun;
        Iterator<A> opened = ClientCalls.blockingServerStreamingCall(begun, request);
        answers = opened;
        if (ended) {
            cancel(); // closed meanwhile
        }
        return opened;
    }

    private void resumeAfter(StatusRuntimeException failure) {
        answers = null;
        if (Thread.currentThread().isInterrupted()) {
            ended = true;
            throw Blocking.interrupted(new InterruptedException("while reading a stream"));
        }
        if (ended) {
            return; // the failure is the cancellation's own
        }
        FilaException error =
                ErrorMapping.unavailableUnlessSaid(ErrorMapping.ofCall(failure, known));
        connection.follow(error);
        lostAt = attempt == 0 ? connection.timers.now() : lostAt;
        long wait = connection.options.backoff().waitBefore(attempt++).toNanos();
        long patience = connection.options.retryFor().toNanos();
        if (!(error instanceof UnavailableException)
                || connection.timers.now() + wait - lostAt > patience) {
            ended = true;
            throw error;
        }
        try {
            TimeUnit.NANOSECONDS.sleep(wait);
        } catch (InterruptedException interrupted) {
            ended = true;
            throw Blocking.interrupted(interrupted);
        }
    }
}
