package dev.fila.client;

import dev.fila.client.errors.FilaException;
import dev.fila.client.internal.Answer;
import java.util.ArrayList;
import java.util.List;

/** The answers of single enqueues that were gathered, one for each message of their frame. */
final class GatheredReceivers implements Frame.Receivers {
    private final List<Answer<MessageId>> answers = new ArrayList<>();

    void add(Answer<MessageId> answer) {
        answers.add(answer);
    }

    @Override
    public void stored(int index, MessageId id, Answer.Batch batch) {
        batch.complete(answers.get(index), id);
    }

    @Override
    public void failed(int index, FilaException error, Answer.Batch batch) {
        batch.fail(answers.get(index), error);
    }

    @Override
    public GatheredReceivers part(List<Integer> indexes) {
        GatheredReceivers part = new GatheredReceivers();
        indexes.forEach(index -> part.add(answers.get(index)));
        return part;
    }
}
