package dev.fila.client;

import dev.fila.client.errors.AnswerLostException;
import dev.fila.client.errors.ClientClosedException;
import dev.fila.client.errors.ErrorDetails;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.InternalException;
import dev.fila.client.errors.NotAllowedException;
import dev.fila.client.errors.NotOwnerException;
import dev.fila.client.errors.NotSupportedException;
import dev.fila.client.errors.OverloadedException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.internal.Answer;
import dev.fila.client.internal.ErrorMapping;
import dev.fila.client.internal.Timers;
import dev.fila.v1.EnqueueResult;
import dev.fila.v1.EnqueueStreamResponse;
import io.grpc.Status.Code;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What becomes of a frame's messages: who is answered what, and which of them are sent again. */
final class FrameAnswers {
    private final ClientOptions options;
    private final Timers timers;

    FrameAnswers(ClientOptions options, Timers timers) {
        this.options = options;
        this.timers = timers;
    }

    /** The broker answered. Returns the places of the messages that it refused for now only. */
    List<Integer> takeIn(Frame frame, EnqueueStreamResponse response, Answer.Batch answers) {
        int count = frame.messages.size();
        if (response.getResultsCount() != count) {
            String wrong =
                    count
                            + " messages were sent, but "
                            + response.getResultsCount()
                            + " results came back";
            frame.failAll(new InternalException(ErrorDetails.of(Code.INTERNAL, wrong)), answers);
            return List.of();
        }
        List<Integer> again = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            EnqueueResult result = response.getResults(i);
            if (!result.getMessageId().isEmpty()) {
                frame.receivers.stored(
                        i, new MessageId(result.getMessageId(), result.getOffset()), answers);
                continue;
            }
            FilaException error =
                    ErrorMapping.ofItem(result.getError(), Map.of("queue", frame.queueOf(i)));
            if (mayTryAgain(error, frame)) {
                again.add(i);
            } else {
                frame.receivers.failed(i, error, answers);
            }
        }
        return again;
    }

    /**
     * The stream is over. Returns the places of the messages that may be repeated; the rest learn
     * why.
     */
    List<Integer> lose(Frame frame, FilaException why, Answer.Batch answers) {
        boolean patient =
                waited(frame) < options.retryFor().toNanos() && why instanceof UnavailableException;
        List<Integer> again = new ArrayList<>();
        for (int i = 0; i < frame.messages.size(); i++) {
            // A node that stands by has taken none of it.
            boolean mayRepeat =
                    why instanceof NotOwnerException || NewMessage.mayRepeat(frame.messages.get(i));
            if (patient && mayRepeat) {
                again.add(i);
            } else {
                frame.receivers.failed(i, asLost(why, frame.queueOf(i)), answers);
            }
        }
        return again;
    }

    /** Whether the broker refused for now only, and the caller's patience allows another try. */
    private boolean mayTryAgain(FilaException error, Frame frame) {
        if (error instanceof OverloadedException) {
            return waited(frame) < options.waitWhenOverloaded().toNanos();
        }
        return error instanceof UnavailableException
                && waited(frame) < options.retryFor().toNanos();
    }

    private long waited(Frame frame) {
        return timers.now() - frame.firstAt;
    }

    /**
     * What the sender of a message in flight must know: above all, that it may have been stored.
     */
    private static FilaException asLost(FilaException failure, String queue) {
        boolean said =
                ErrorMapping.isBrokersWord(failure) && !(failure instanceof UnavailableException);
        if (said
                || failure instanceof NotOwnerException
                || failure instanceof NotSupportedException
                || failure instanceof NotAllowedException
                || failure instanceof ClientClosedException) {
            return failure;
        }
        String text =
                "the message for "
                        + queue
                        + " may have been stored, but no answer came: "
                        + failure.getMessage();
        return new AnswerLostException(failure.details().withMessage(text).causedBy(failure));
    }
}
