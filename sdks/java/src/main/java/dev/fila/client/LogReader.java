package dev.fila.client;

import dev.fila.v1.FilaAdminGrpc;
import dev.fila.v1.ReadLogRequest;
import dev.fila.v1.ReadLogResponse;
import java.util.Iterator;
import java.util.Map;

/**
 * Retained messages in offset order, read as fast as they are asked for, leasing nothing. A broken
 * stream is resumed where it was, and throws UnavailableException when the broker stays away for
 * {@link ClientOptions#retryFor()}. For one thread at a time; close it when you do not read to the
 * end.
 */
public final class LogReader implements Iterator<StoredMessage>, AutoCloseable {
    private final Watch<StoredMessage> log;

    LogReader(Connection connection, ReadLogRequest request) {
        ResumedStream<ReadLogRequest, ReadLogResponse> stream =
                new ResumedStream<>(
                        connection,
                        FilaAdminGrpc.getReadLogMethod(),
                        request,
                        (asked, answer) ->
                                asked.toBuilder().setFromOffset(answer.getNextOffset()).build(),
                        Map.of("queue", request.getQueue()),
                        () -> false);
        log =
                new Watch<>(
                        stream,
                        answer ->
                                answer.getMessagesList().stream().map(StoredMessage::new).toList());
    }

    @Override
    public boolean hasNext() {
        return log.hasNext();
    }

    @Override
    public StoredMessage next() {
        return log.next();
    }

    /** Stops reading. */
    @Override
    public void close() {
        log.close();
    }
}
