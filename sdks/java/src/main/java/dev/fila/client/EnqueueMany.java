package dev.fila.client;

import dev.fila.client.errors.ItemResult;
import dev.fila.client.errors.SomeFailedException;
import dev.fila.client.internal.Answer;
import dev.fila.client.internal.Blocking;
import dev.fila.v1.EnqueueMessage;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/** Many messages on their way in large frames, a window of them at a time. */
final class EnqueueMany {
    private final Producer producer;
    private final Connection connection;
    private final ClientOptions options;
    private final String queue;
    private final Deque<SliceReceivers> underWay = new ArrayDeque<>();
    private final List<ItemResult> results = new ArrayList<>();
    private List<EnqueueMessage> slice = new ArrayList<>();
    private int sliceBytes;

    EnqueueMany(Producer producer, Connection connection, String queue) {
        this.producer = producer;
        this.connection = connection;
        this.options = connection.options;
        this.queue = queue;
    }

    /** Sends them as fast as the broker takes them; returns the ids in order. */
    List<MessageId> send(Iterable<NewMessage> messages) {
        for (NewMessage message : messages) {
            put(TraceHeaders.in(message.wire()));
        }
        leave();
        while (!underWay.isEmpty()) {
            collect();
        }
        if (!results.stream().allMatch(ItemResult::isOk)) {
            throw new SomeFailedException(results);
        }
        return results.stream()
                .map(result -> new MessageId(result.messageId(), result.offset()))
                .toList();
    }

    private void put(EnqueueMessage message) {
        if (EnqueueCall.isTooLargeToShare(message)) {
            leave();
            sendAlone(message);
        } else {
            share(message);
        }
        // One slice more than may be in flight, so that the producer always finds the next.
        while (underWay.size() > options.framesInFlightMax()) {
            collect();
        }
    }

    private void sendAlone(EnqueueMessage message) {
        SliceReceivers receivers = new SliceReceivers(1);
        Answer.Batch answers = new Answer.Batch(connection.executor());
        EnqueueCall.send(connection, queue, message)
                .whenComplete(
                        (stored, failure) -> {
                            if (failure == null) {
                                receivers.stored(0, stored, answers);
                            } else {
                                receivers.failed(0, EnqueueCall.errorOf(failure), answers);
                            }
                        });
        underWay.addLast(receivers);
    }

    private void share(EnqueueMessage message) {
        int size = message.getSerializedSize();
        if (sliceBytes + size > options.frameBytesMax()) {
            leave();
        }
        slice.add(message);
        sliceBytes += size;
        if (slice.size() >= options.frameMessagesMax() || sliceBytes >= options.frameBytesMax()) {
            leave();
        }
    }

    private void leave() {
        if (slice.isEmpty()) {
            return;
        }
        SliceReceivers receivers = new SliceReceivers(slice.size());
        producer.enqueueSlice(queue, slice, receivers);
        underWay.addLast(receivers);
        slice = new ArrayList<>();
        sliceBytes = 0;
    }

    private void collect() {
        SliceReceivers oldest = underWay.removeFirst();
        var done = Blocking.await(oldest.done());
        for (int i = 0; i < done.length(); i++) {
            results.add(done.get(i));
        }
    }
}
