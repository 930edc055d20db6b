package dev.fila.client;

import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.ItemResult;
import dev.fila.client.internal.Answer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** The results of one slice of an enqueueMany: done when each of its messages has one. */
final class SliceReceivers implements Frame.Receivers {
    private final AtomicReferenceArray<ItemResult> results;
    private final List<Integer> positions;
    private final AtomicInteger unresolved;
    private final CompletableFuture<AtomicReferenceArray<ItemResult>> done;

    SliceReceivers(int size) {
        results = new AtomicReferenceArray<>(size);
        positions = java.util.stream.IntStream.range(0, size).boxed().toList();
        unresolved = new AtomicInteger(size);
        done = new CompletableFuture<>();
    }

    private SliceReceivers(SliceReceivers whole, List<Integer> indexes) {
        results = whole.results;
        positions = indexes.stream().map(whole.positions::get).toList();
        unresolved = whole.unresolved;
        done = whole.done;
    }

    /**
     * The results in the slice's order, once all are there. Only a thread that waits depends on it.
     */
    CompletableFuture<AtomicReferenceArray<ItemResult>> done() {
        return done;
    }

    @Override
    public void stored(int index, MessageId id, Answer.Batch answers) {
        resolve(index, new ItemResult(id.value(), id.offset(), null));
    }

    @Override
    public void failed(int index, FilaException error, Answer.Batch answers) {
        resolve(index, new ItemResult("", 0, error));
    }

    @Override
    public SliceReceivers part(List<Integer> indexes) {
        return new SliceReceivers(this, indexes);
    }

    private void resolve(int index, ItemResult result) {
        results.set(positions.get(index), result);
        if (unresolved.decrementAndGet() == 0) {
            done.complete(results);
        }
    }
}
