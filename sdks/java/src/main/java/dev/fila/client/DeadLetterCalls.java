package dev.fila.client;

import com.google.protobuf.ByteString;
import dev.fila.v1.CancelOperationRequest;
import dev.fila.v1.DeadLetterFilter;
import dev.fila.v1.DropDeadLettersRequest;
import dev.fila.v1.EditDeadLetterRequest;
import dev.fila.v1.FilaAdminGrpc;
import dev.fila.v1.ListOperationsRequest;
import dev.fila.v1.Operation;
import dev.fila.v1.StartOperationRequest;
import dev.fila.v1.WatchOperationRequest;
import dev.fila.v1.WatchOperationResponse;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Dead letters by the handful and by the thousand: dropped, edited, moved back by the broker
 * itself.
 */
public abstract sealed class DeadLetterCalls extends ObservingCalls permits ScheduleCalls {
    DeadLetterCalls(Connection connection) {
        super(connection);
    }

    /**
     * Drops the dead letters with these offsets (1 to 1,000) for good. Returns how many were there.
     * Throws QueueNotFoundException, InvalidException.
     */
    public long dropDeadLetters(String dlq, Collection<Long> offsets) {
        DropDeadLettersRequest request =
                DropDeadLettersRequest.newBuilder().setDlqQueue(dlq).addAllOffsets(offsets).build();
        return call(Rpc.DROP_DEAD_LETTERS, request, about(dlq)).getDropped();
    }

    /**
     * Sends a dead letter back to the queue it came from with these headers and this payload in
     * place of its own. Returns the new message's id. Throws QueueNotFoundException,
     * MessageNotFoundException, InvalidException, ConflictException.
     */
    public String editDeadLetter(
            String dlq, long offset, Map<String, String> headers, byte[] payload) {
        EditDeadLetterRequest request =
                EditDeadLetterRequest.newBuilder()
                        .setDlqQueue(dlq)
                        .setOffset(Arguments.inRange("offset", offset, 0, Long.MAX_VALUE))
                        .putAllHeaders(headers)
                        .setPayload(ByteString.copyFrom(payload))
                        .build();
        return call(Rpc.EDIT_DEAD_LETTER, request, about(dlq)).getMessageId();
    }

    /** Starts an operation on all dead letters that are there, as fast as it goes. */
    public Operation startOperation(String dlq, StartOperationRequest.Kind kind) {
        return startOperation(dlq, kind, OperationOptions.defaults());
    }

    /**
     * Starts to move dead letters back ({@code KIND_REDRIVE}), to drop those that are meant ({@code
     * KIND_DELETE}) or all ({@code KIND_PURGE}), in the broker itself: its caller may go away.
     * Throws QueueNotFoundException, InvalidException, ConflictException (one runs on that queue
     * already), SourceQueueGoneException.
     */
    public Operation startOperation(
            String dlq, StartOperationRequest.Kind kind, OperationOptions options) {
        StartOperationRequest.Builder request =
                StartOperationRequest.newBuilder()
                        .setDlqQueue(dlq)
                        .setKind(kind)
                        .setRatePerSecond(options.ratePerSecond());
        if (!options.filter().equals(DeadLetterFilter.getDefaultInstance())) {
            request.setFilter(options.filter());
        }
        return call(Rpc.START_OPERATION, request.build(), about(dlq)).getOperation();
    }

    /**
     * The operations on a dead-letter queue, or on all when it is null, newest first; those that
     * have ended, too.
     */
    public List<Operation> listOperations(@Nullable String dlq) {
        ListOperationsRequest request =
                ListOperationsRequest.newBuilder().setDlqQueue(orEmpty(dlq)).build();
        return call(Rpc.LIST_OPERATIONS, request, about(orEmpty(dlq))).getOperationsList();
    }

    /**
     * Ends an operation, and returns how it stands; what it did is done. Throws NotFoundException.
     */
    public Operation cancelOperation(String dlq, String operationId) {
        CancelOperationRequest request =
                CancelOperationRequest.newBuilder().setDlqQueue(dlq).setId(operationId).build();
        return call(Rpc.CANCEL_OPERATION, request, about(dlq)).getOperation();
    }

    /**
     * Tells how an operation stands: at once, then each time it has come further, at most twice a
     * second, until it has ended. The watch throws NotFoundException.
     */
    public Watch<Operation> watchOperation(String dlq, String operationId) {
        AtomicBoolean isRunning = new AtomicBoolean(true);
        ResumedStream<WatchOperationRequest, WatchOperationResponse> stream =
                new ResumedStream<>(
                        connection,
                        FilaAdminGrpc.getWatchOperationMethod(),
                        WatchOperationRequest.newBuilder()
                                .setDlqQueue(dlq)
                                .setId(operationId)
                                .build(),
                        (asked, answer) -> {
                            var state = answer.getOperation().getState();
                            isRunning.set(state == Operation.State.STATE_RUNNING);
                            return asked;
                        },
                        about(dlq),
                        isRunning::get);
        return new Watch<>(stream, answer -> List.of(answer.getOperation()));
    }
}
