package dev.fila.client.internal;

import dev.fila.client.errors.CallInterruptedException;
import dev.fila.client.errors.ErrorDetails;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.InternalException;
import io.grpc.Status.Code;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

/** Waiting on the program's own thread, be it a platform thread or a virtual one. */
public final class Blocking {
    private Blocking() {}

    /** The answer; on interruption the future is cancelled and the interrupt flag set again. */
    public static <T> T await(Future<T> future) {
        try {
            return future.get();
        } catch (InterruptedException interrupted) {
            future.cancel(true);
            throw interrupted(interrupted);
        } catch (ExecutionException failed) {
            throw unchecked(failed.getCause());
        }
    }

    /** What a call throws whose thread was interrupted; sets the interrupt flag again. */
    public static CallInterruptedException interrupted(InterruptedException cause) {
        Thread.currentThread().interrupt();
        String text = "the thread was interrupted while it waited for the broker";
        return new CallInterruptedException(ErrorDetails.of(Code.CANCELLED, text).causedBy(cause));
    }

    /** The error as one to throw here. */
    public static RuntimeException unchecked(Throwable error) {
        if (error instanceof FilaException known) {
            return ErrorMapping.again(known);
        }
        if (error instanceof CancellationException cancelled) {
            return cancelled;
        }
        return new InternalException(
                ErrorDetails.of(Code.INTERNAL, "a mistake of this client: " + error)
                        .causedBy(error));
    }
}
