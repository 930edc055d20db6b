package dev.fila.client;

import dev.fila.client.errors.FilaException;
import dev.fila.client.internal.Answer;
import dev.fila.v1.EnqueueBatchRequest;
import dev.fila.v1.EnqueueMessage;
import dev.fila.v1.EnqueueStreamRequest;
import java.util.ArrayList;
import java.util.List;

/** Messages that travel to the broker together, and where the answer for each of them goes. */
final class Frame {
    /** Where the answer for each message of a frame goes. */
    interface Receivers {
        /** Message {@code index} was stored. */
        void stored(int index, MessageId id, Answer.Batch answers);

        /** Message {@code index} was refused, or its answer is lost. */
        void failed(int index, FilaException error, Answer.Batch answers);

        /** The receivers of only these messages, which are sent again. */
        Receivers part(List<Integer> indexes);
    }

    /** The queue of every message that names none itself. */
    final String queue;

    final List<EnqueueMessage> messages;
    final Receivers receivers;

    /** When its first message was given. */
    final long firstAt;

    /** How often its messages were sent before. */
    final int tries;

    long sentAt;
    int bytes;

    Frame(
            String queue,
            List<EnqueueMessage> messages,
            Receivers receivers,
            long firstAt,
            int tries) {
        this.queue = queue;
        this.messages = messages;
        this.receivers = receivers;
        this.firstAt = firstAt;
        this.tries = tries;
    }

    boolean isFull(ClientOptions options) {
        return messages.size() >= options.frameMessagesMax() || bytes >= options.frameBytesMax();
    }

    /** The queue of one of its messages. */
    String queueOf(int index) {
        String own = messages.get(index).getQueue();
        return own.isEmpty() ? queue : own;
    }

    /** A frame of only these messages, to send them again. */
    Frame part(List<Integer> indexes) {
        List<EnqueueMessage> some = new ArrayList<>(indexes.size());
        indexes.forEach(index -> some.add(messages.get(index)));
        return new Frame(queue, some, receivers.part(indexes), firstAt, tries + 1);
    }

    EnqueueStreamRequest request(long sequence) {
        return EnqueueStreamRequest.newBuilder()
                .setSequence(sequence)
                .setBatch(EnqueueBatchRequest.newBuilder().setQueue(queue).addAllMessages(messages))
                .build();
    }

    void failAll(FilaException error, Answer.Batch answers) {
        for (int i = 0; i < messages.size(); i++) {
            receivers.failed(i, error, answers);
        }
    }
}
