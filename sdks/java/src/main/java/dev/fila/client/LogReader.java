package dev.fila.client;

import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.internal.Blocking;
import dev.fila.client.internal.ErrorMapping;
import dev.fila.v1.FilaAdminGrpc;
import dev.fila.v1.ReadLogRequest;
import dev.fila.v1.ReadLogResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Retained messages in offset order, read as fast as they are asked for, leasing nothing. A broken
 * stream is resumed where it was, and throws UnavailableException when the broker stays away for
 * {@link ClientOptions#retryFor()}. For one thread at a time; close it when you do not read to the
 * end.
 */
public final class LogReader implements Iterator<StoredMessage>, AutoCloseable {
    private final Connection connection;
    private final ReadLogRequest.Builder request;
    private final Queue<StoredMessage> page = new ArrayDeque<>();
    private @Nullable ClientCall<ReadLogRequest, ReadLogResponse> call;
    private @Nullable Iterator<ReadLogResponse> responses;
    private boolean ended;
    private int attempt;
    private long lostAt;

    LogReader(Connection connection, ReadLogRequest request) {
        this.connection = connection;
        this.request = request.toBuilder();
    }

    @Override
    public boolean hasNext() {
        while (page.isEmpty() && !ended) {
            try {
                read();
            } catch (StatusRuntimeException failure) {
                resumeAfter(failure);
            }
        }
        return !page.isEmpty();
    }

    @Override
    public StoredMessage next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the log was read to its end");
        }
        return page.remove();
    }

    /** Stops reading. */
    @Override
    public void close() {
        ended = true;
        page.clear();
        if (call != null) {
            call.cancel("the program has read enough", null);
        }
    }

    private void read() {
        if (responses == null) {
            Blocking.await(
                    connection.ready(connection.deadlineAfter(connection.options.retryFor())));
            call = connection.newCall(FilaAdminGrpc.getReadLogMethod(), CallOptions.DEFAULT);
            responses = ClientCalls.blockingServerStreamingCall(call, request.build());
        }
        if (!responses.hasNext()) {
            ended = true;
            return;
        }
        ReadLogResponse response = responses.next();
        attempt = 0;
        // Before the messages: after a break, go on behind what was handed out.
        request.setFromOffset(response.getNextOffset());
        response.getMessagesList().forEach(message -> page.add(new StoredMessage(message)));
    }

    private void resumeAfter(StatusRuntimeException failure) {
        responses = null;
        if (Thread.currentThread().isInterrupted()) {
            ended = true;
            throw Blocking.interrupted(new InterruptedException("while reading the log"));
        }
        FilaException error =
                ErrorMapping.unavailableUnlessSaid(
                        ErrorMapping.ofCall(failure, Map.of("queue", request.getQueue())));
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
