package dev.fila.client;

import dev.fila.client.errors.ErrorDetails;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.internal.ErrorMapping;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.Status.Code;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * One stream in both directions. Any thread may send; what comes is told on the connection's
 * thread, one event at a time.
 */
final class BidiStream<Q, A> {
    /** What happens to a stream. Events must be quick and must not throw. */
    interface Events<A> {
        /** The broker said something. */
        void received(A response);

        /** Everything that was sent so far has left this process. */
        default void written() {}

        /** The stream is over, for any cause: told once, with what its user should learn. */
        void ended(FilaException why);
    }

    private final ReentrantLock sending = new ReentrantLock();
    private final ClientCall<Q, A> call;
    private volatile boolean over;
    private volatile @Nullable FilaException cancelledBecause;

    private final Connection connection;

    private BidiStream(Connection connection, ClientCall<Q, A> call) {
        this.connection = connection;
        this.call = call;
    }

    /** Opens a stream; {@code known} is what it is about, for the error it may end in. */
    static <Q, A> BidiStream<Q, A> open(
            Connection connection,
            MethodDescriptor<Q, A> method,
            Map<String, String> known,
            Events<A> events) {
        // So that "ready" means that nothing waits to be written.
        CallOptions callOptions = CallOptions.DEFAULT.withOnReadyThreshold(1);
        BidiStream<Q, A> stream =
                new BidiStream<>(connection, connection.newCall(method, callOptions));
        stream.start(known, events);
        return stream;
    }

    private void start(Map<String, String> known, Events<A> events) {
        call.start(
                new ClientCall.Listener<>() {
                    @Override
                    public void onMessage(A response) {
                        call.request(1);
                        events.received(response);
                    }

                    @Override
                    public void onReady() {
                        events.written();
                    }

                    @Override
                    public void onClose(Status status, Metadata trailers) {
                        over = true;
                        FilaException because = cancelledBecause;
                        if (because == null) {
                            because = reasonOf(status, trailers, known);
                        }
                        connection.follow(because);
                        events.ended(because);
                    }
                },
                new Metadata());
        call.request(2);
    }

    private static FilaException reasonOf(
            Status status, Metadata trailers, Map<String, String> known) {
        if (status.isOk()) {
            return new UnavailableException(
                    ErrorDetails.of(Code.UNAVAILABLE, "the broker ended the stream"));
        }
        return ErrorMapping.unavailableUnlessSaid(
                ErrorMapping.ofCall(status.asRuntimeException(trailers), known));
    }

    /** Sends a message; once the stream is over that does nothing, for its end is told anyway. */
    void send(Q message) {
        sending.lock();
        try {
            if (!over) {
                call.sendMessage(message);
            }
        } catch (IllegalStateException ended) {
            over = true;
        } finally {
            sending.unlock();
        }
    }

    /** Whether everything that was sent has left this process. */
    boolean isWritten() {
        return call.isReady();
    }

    /** Ends the stream at once; its end is told with this error. */
    void cancel(FilaException why) {
        sending.lock();
        try {
            if (!over) {
                cancelledBecause = why;
            }
            over = true;
            call.cancel(why.getMessage(), null);
        } finally {
            sending.unlock();
        }
    }

    /** Ends the stream at once. */
    void cancel(String why) {
        cancel(new UnavailableException(ErrorDetails.of(Code.CANCELLED, why)));
    }
}
