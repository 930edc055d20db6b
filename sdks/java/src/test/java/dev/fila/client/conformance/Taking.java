package dev.fila.client.conformance;

import dev.fila.client.Batches;
import dev.fila.client.Consumer;
import dev.fila.client.Message;
import dev.fila.client.Messages;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/** A scenario's loop over a consumer, which takes a step whenever it is asked for one. */
final class Taking {
    private final Consumer consumer;
    private Messages messages;
    private Batches batches;

    Taking(Consumer consumer) {
        this.consumer = consumer;
    }

    synchronized Optional<Message> next(Duration patience) {
        if (messages == null) {
            messages = consumer.iterator();
        }
        return messages.poll(patience);
    }

    synchronized List<Message> nextBatch(Duration patience) {
        if (batches == null) {
            batches = consumer.batchLoop();
        }
        return batches.poll(patience);
    }

    boolean hasEnded() {
        return (messages == null || messages.hasEnded()) && (batches == null || batches.hasEnded());
    }

    void leave() {
        consumer.close();
    }
}
