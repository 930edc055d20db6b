package dev.fila.client;

import dev.fila.client.errors.AnswerLostException;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.OverloadedException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.internal.ErrorMapping;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.StreamObserver;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One unary call, tried again as often as the rules of {@link Connection} say. Cancelling its
 * answer cancels it.
 */
final class RetriedCall<Q, A> {
    private final Connection connection;
    private final Rpc<Q, A> rpc;
    private final Q request;
    private final Map<String, String> known;
    private final Duration timeout;
    private final long beganAt;
    private final CompletableFuture<A> answer = new CompletableFuture<>();
    private int tries;
    private volatile @Nullable ClientCall<Q, A> current;

    RetriedCall(
            Connection connection,
            Rpc<Q, A> rpc,
            Q request,
            Map<String, String> known,
            Duration timeout) {
        this.connection = connection;
        this.rpc = rpc;
        this.request = request;
        this.known = known;
        this.timeout = timeout;
        beganAt = connection.timers.now();
        answer.whenComplete(
                (value, failure) -> {
                    if (answer.isCancelled()) {
                        cancelCurrent();
                    }
                });
    }

    CompletableFuture<A> answer() {
        return answer;
    }

    void attempt() {
        long giveUpAt = beganAt + connection.options.retryFor().toNanos();
        connection
                .ready(giveUpAt)
                .whenComplete(
                        (ready, failure) -> {
                            if (failure != null) {
                                answer.completeExceptionally(failure);
                            } else if (!answer.isDone()) {
                                send();
                            }
                        });
    }

    private void send() {
        try {
            CallOptions callOptions =
                    CallOptions.DEFAULT.withDeadlineAfter(timeout.toNanos(), TimeUnit.NANOSECONDS);
            ClientCall<Q, A> call = connection.newCall(rpc.method(), callOptions);
            current = call;
            ClientCalls.asyncUnaryCall(
                    call,
                    request,
                    new StreamObserver<A>() {
                        @Override
                        public void onNext(A value) {
                            answer.complete(value);
                        }

                        @Override
                        public void onError(Throwable failure) {
                            failed(
                                    ErrorMapping.answerLostUnlessSaid(
                                            ErrorMapping.ofCall(failure, known)));
                        }

                        @Override
                        public void onCompleted() {}
                    });
            if (answer.isCancelled()) {
                cancelCurrent();
            }
        } catch (FilaException closed) {
            answer.completeExceptionally(closed);
        }
    }

    private void failed(FilaException error) {
        if (answer.isDone()) {
            return;
        }
        connection.follow(error);
        Duration backoff = connection.options.backoff().waitBefore(tries++);
        Duration wait;
        Duration patience;
        if (error instanceof OverloadedException overloaded) {
            // At least what the broker asked for, and not all at the same moment.
            wait =
                    overloaded
                            .retryAfter()
                            .map(told -> told.plus(backoff.dividedBy(2)))
                            .orElse(backoff);
            patience = connection.options.waitWhenOverloaded();
        } else if (error instanceof UnavailableException
                && (rpc.repeatable() || !(error instanceof AnswerLostException))) {
            wait = backoff;
            patience = connection.options.retryFor();
        } else {
            answer.completeExceptionally(connection.isClosed() ? closedOver(error) : error);
            return;
        }
        boolean isOver = connection.timers.now() + wait.toNanos() > beganAt + patience.toNanos();
        if (isOver || connection.isClosed()) {
            answer.completeExceptionally(connection.isClosed() ? closedOver(error) : error);
        } else {
            connection.timers.schedule(wait, this::attempt);
        }
    }

    private static FilaException closedOver(FilaException error) {
        return ErrorMapping.isBrokersWord(error)
                ? error
                : Connection.closedError("the client was closed before the answer came");
    }

    private void cancelCurrent() {
        ClientCall<Q, A> call = current;
        if (call != null) {
            call.cancel("the program gave up on this call", null);
        }
    }
}
