package dev.fila.client;

import dev.fila.client.errors.FilaException;
import dev.fila.v1.EnqueueMessage;
import dev.fila.v1.EnqueueRequest;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** One message as a call of its own, beside the stream that the others share. */
final class EnqueueCall {
    /**
     * A larger message always travels so. The broker ends a stream at a frame above 16 MiB, and
     * with it the messages of everybody that were in flight; a call that is too large is refused
     * alone.
     */
    private static final int ALONE_FROM_BYTES = 8 << 20;

    private EnqueueCall() {}

    static boolean isTooLargeToShare(EnqueueMessage message) {
        return message.getPayload().size() > ALONE_FROM_BYTES;
    }

    /** Completes on the connection's thread. */
    static CompletableFuture<MessageId> send(
            Connection connection, String queue, EnqueueMessage message) {
        EnqueueRequest.Builder request =
                EnqueueRequest.newBuilder()
                        .setQueue(queue)
                        .putAllHeaders(message.getHeadersMap())
                        .setPayload(message.getPayload());
        if (message.hasOptions()) {
            request.setOptions(message.getOptions());
        }
        boolean repeatable = NewMessage.mayRepeat(message);
        return connection
                .call(Rpc.ENQUEUE.repeatableIf(repeatable), request.build(), Map.of("queue", queue))
                .thenApply(stored -> new MessageId(stored.getMessageId(), stored.getOffset()));
    }

    /** What a call of {@link #send} failed with. */
    static FilaException errorOf(Throwable failure) {
        Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
        return (FilaException) cause;
    }
}
