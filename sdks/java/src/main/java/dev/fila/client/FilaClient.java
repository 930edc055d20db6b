package dev.fila.client;

import dev.fila.client.errors.CallInterruptedException;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.ItemResult;
import dev.fila.client.errors.SomeFailedException;
import dev.fila.client.internal.Answer;
import dev.fila.client.internal.Blocking;
import dev.fila.v1.EnqueueMessage;
import dev.fila.v1.LeaseRequest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * A client of one broker, for any number of threads, platform or virtual.
 *
 * <pre>{@code
 * try (FilaClient client = FilaClient.connect("localhost:5555")) {
 *     client.enqueue("orders", Map.of("tenant", "acme"), payload);
 *     try (Consumer consumer = client.consume("orders")) {
 *         for (Message message : consumer) {
 *             message.ack();
 *         }
 *     }
 * }
 * }</pre>
 *
 * <p>One client is one connection, one stream for all it enqueues, and one stream for each
 * consumer. Every method throws a {@link FilaException}, whose documentation draws the tree; an
 * argument that is wrong in itself is an IllegalArgumentException or a NullPointerException. A
 * method that waits can be interrupted: it throws {@link
 * dev.fila.client.errors.CallInterruptedException}.
 */
public final class FilaClient extends KeyCalls implements AutoCloseable {
    static final String VERSION = "0.1.0";

    /** How much longer than its wait a pull may go unanswered. */
    private static final Duration LEASE_GRACE = Duration.ofSeconds(10);

    private final Producer producer;
    private final Deliveries deliveries;
    private final AtomicBoolean closed = new AtomicBoolean();

    private FilaClient(Connection connection) {
        super(connection);
        producer = new Producer(connection);
        deliveries = new Deliveries(connection);
    }

    /**
     * Connects to the broker that the environment's {@code FILA_ADDR} names, or to localhost:5555.
     */
    public static FilaClient connect() {
        return connect(ClientOptions.defaults());
    }

    /** The same with settings. */
    public static FilaClient connect(ClientOptions options) {
        String address = System.getenv("FILA_ADDR");
        return connect(address == null || address.isBlank() ? "localhost:5555" : address, options);
    }

    /**
     * Connects to the broker at {@code host:port}, with or without {@code http://} ({@code
     * https://} for TLS); several addresses have commas between them.
     */
    public static FilaClient connect(String address) {
        return connect(address, ClientOptions.defaults());
    }

    /** The same with settings. */
    public static FilaClient connect(String address, ClientOptions options) {
        return connect(List.of(address), options);
    }

    /**
     * Connects to the first of several addresses that answers, and to the next when that is lost.
     * Of a group of brokers it goes to the node that serves, also where only a standby was named.
     * Throws {@link dev.fila.client.errors.UnavailableException} when none answers within {@link
     * ClientOptions#connectTimeout()}, and at once when the two do not agree on TLS, or something
     * else answers there.
     */
    public static FilaClient connect(List<String> addresses, ClientOptions options) {
        Connection connection = new Connection(addresses, options);
        try {
            Blocking.await(connection.ready(connection.deadlineAfter(options.connectTimeout())));
            return new FilaClient(connection);
        } catch (RuntimeException failure) {
            connection.close();
            throw failure;
        }
    }

    /**
     * Sends what waits, settles what is under way, gives back what consumers have not handed out,
     * and disconnects. Calls that are still open then fail with {@link
     * dev.fila.client.errors.ClientClosedException}. Closing twice does nothing.
     *
     * <p>What your program has in hand has failed when the queue's disconnect grace is over: an
     * error that makes a try-with-resources close the client may be that message's doing, and
     * uncounted it would come back for ever.
     */
    @Override
    public void close() {
        close(false);
    }

    /**
     * As {@link #close()}, and gives back what your program has in hand too, uncounted: for a
     * worker that is told to go.
     */
    public void closeAndRelease() {
        close(true);
    }

    private void close(boolean release) {
        if (closed.compareAndSet(false, true)) {
            producer.close();
            deliveries.close(release);
            connection.close();
        }
    }

    // Producing.

    /** Stores a message without headers; returns once it is as durable as the queue asks for. */
    public MessageId enqueue(String queue, byte[] payload) {
        return enqueue(queue, NewMessage.of(payload));
    }

    /** Stores a message with headers. */
    public MessageId enqueue(String queue, Map<String, String> headers, byte[] payload) {
        return enqueue(queue, NewMessage.of(headers, payload));
    }

    /**
     * Stores a message; returns its id and offset once it is as durable as the queue asks for.
     * Concurrent calls travel together; a call alone is sent at once.
     *
     * <p>Throws {@link dev.fila.client.errors.QueueNotFoundException}, {@link
     * dev.fila.client.errors.InvalidException}, {@link dev.fila.client.errors.OverloadedException};
     * {@link dev.fila.client.errors.UnavailableException} when it was certainly not sent; {@link
     * dev.fila.client.errors.AnswerLostException} when it was sent and the answer did not come. An
     * enqueue whose answer was lost is never repeated by the client, unless it has a dedup key: it
     * could be stored twice.
     */
    public MessageId enqueue(String queue, NewMessage message) {
        Answer<MessageId> answer = Answer.awaited();
        enqueue(queue, message, answer);
        return Blocking.await(answer);
    }

    /**
     * As {@link #enqueue(String, NewMessage)}, without waiting for the answer. Waits, in the
     * calling thread, only while more than {@link ClientOptions#waitingBytesMax()} waits to be
     * sent. What depends on the future runs on the client's executor.
     */
    public CompletableFuture<MessageId> enqueueAsync(String queue, NewMessage message) {
        Answer<MessageId> answer = Answer.given();
        enqueue(queue, message, answer);
        return answer;
    }

    private void enqueue(String queue, NewMessage message, Answer<MessageId> answer) {
        Objects.requireNonNull(queue, "queue");
        EnqueueMessage wire = TraceHeaders.in(message.wire());
        if (connection.options.batching() && !EnqueueCall.isTooLargeToShare(wire)) {
            producer.enqueue(queue, wire, answer);
            return;
        }
        EnqueueCall.send(connection, queue, wire)
                .whenComplete(
                        (stored, failure) -> {
                            Answer.Batch answers = new Answer.Batch(connection.executor());
                            if (failure == null) {
                                answers.complete(answer, stored);
                            } else {
                                answers.fail(answer, EnqueueCall.errorOf(failure));
                            }
                            answers.deliver();
                        });
    }

    /**
     * Stores many messages, a window of large frames at a time; the fastest way to produce. They
     * are read as fast as the broker takes them, so the iterable may make them as it goes. Returns
     * the ids in order. One bad message does not fail its neighbours: if any was refused, {@link
     * SomeFailedException} tells what became of each one.
     */
    public List<MessageId> enqueueMany(String queue, Iterable<NewMessage> messages) {
        Objects.requireNonNull(queue, "queue");
        return new EnqueueMany(producer, connection, queue).send(messages);
    }

    // Consuming.

    /** Consumes a queue's channel {@code default}. */
    public Consumer consume(String queue) {
        return consume(queue, ConsumeOptions.defaults());
    }

    /**
     * Returns a consumer to loop over. Its stream is opened by the first loop, whose errors it
     * throws.
     */
    public Consumer consume(String queue, ConsumeOptions options) {
        Objects.requireNonNull(queue, "queue");
        connection.checkOpen();
        return new Consumer(
                () -> deliveries.newSession(queue, options),
                connection.executor(),
                options.stopWhenIdle().orElse(null));
    }

    /**
     * Runs a handler on a queue's messages until the result is closed. Whether the queue exists is
     * known later: what ends the handlers is logged, and {@link Handling#done()} fails with it.
     */
    public Handling handle(String queue, HandlerOptions options, MessageHandler handler) {
        Objects.requireNonNull(handler, "handler");
        Consumer consumer = consume(queue, options.consume());
        return new Handling(
                queue,
                consumer,
                options.concurrency(),
                handler,
                options.executor().orElse(connection.threads.own()));
    }

    /** Pulls up to so many messages that are ready, without waiting. */
    public List<Message> lease(String queue, int maxMessages) {
        return lease(queue, maxMessages, LeaseOptions.defaults());
    }

    /**
     * Pulls up to so many messages, 1 to 10,000, that are ready. Empty when there were none. Throws
     * {@link dev.fila.client.errors.QueueNotFoundException}, {@link
     * dev.fila.client.errors.ChannelNotFoundException}, {@link
     * dev.fila.client.errors.InvalidException}.
     */
    public List<Message> lease(String queue, int maxMessages, LeaseOptions options) {
        Duration wait = options.waitFor().orElse(Duration.ZERO);
        String channel = options.channel().orElse("default");
        LeaseRequest request =
                LeaseRequest.newBuilder()
                        .setQueue(queue)
                        .setChannel(options.channel().orElse(""))
                        .setMaxMessages(
                                Arguments.inRange("maxMessages", maxMessages, 1, Integer.MAX_VALUE))
                        .setWaitMs(
                                (int) Math.min(Arguments.millis("wait", wait), Integer.MAX_VALUE))
                        .build();
        Map<String, String> known = Map.of("queue", queue, "channel", channel);
        var answer =
                Blocking.await(connection.call(Rpc.LEASE, request, known, wait.plus(LEASE_GRACE)));
        return deliveries.pulled(queue, channel, answer.getMessagesList());
    }

    // Settling by id, for when only that is at hand. The client remembers the lease under which it
    // delivered the
    // message, so that a late ack cannot settle somebody else's.

    /** As {@link Message#ack()}, in the channel {@code default}. */
    public void ack(String queue, String messageId) {
        ack(queue, null, messageId);
    }

    /** As {@link Message#ack()}. */
    public void ack(String queue, @Nullable String channel, String messageId) {
        settle(queue, channel, messageId, Verdict.ACK);
    }

    /** As {@link Message#nack(String)}, in the channel {@code default}. */
    public void nack(String queue, String messageId, String error) {
        nack(queue, null, messageId, error, null);
    }

    /**
     * As {@link Message#nack(String, Duration)}; the queue's policy decides where the delay is
     * null.
     */
    public void nack(
            String queue,
            @Nullable String channel,
            String messageId,
            String error,
            @Nullable Duration delay) {
        settle(queue, channel, messageId, Verdict.nack(error, delay));
    }

    /** As {@link Message#reject(String)}. */
    public void reject(String queue, @Nullable String channel, String messageId, String error) {
        settle(queue, channel, messageId, Verdict.reject(error));
    }

    /** As {@link Message#release()}. */
    public void release(String queue, @Nullable String channel, String messageId) {
        settle(queue, channel, messageId, Verdict.RELEASE);
    }

    /** As {@link Message#extend(Duration)}, which also tells the consumer. */
    public Instant extend(
            String queue, @Nullable String channel, String messageId, Duration longer) {
        Deliveries.Delivery delivery = find(queue, channel, messageId);
        return Blocking.await(delivery.settler().extend(messageId, delivery.leaseId(), longer));
    }

    private void settle(String queue, @Nullable String channel, String messageId, Verdict verdict) {
        Deliveries.Delivery delivery = find(queue, channel, messageId);
        Answer<Void> answer = Answer.awaited();
        delivery.settler().settle(messageId, delivery.leaseId(), verdict, answer);
        Blocking.await(answer);
    }

    private Deliveries.Delivery find(String queue, @Nullable String channel, String messageId) {
        Objects.requireNonNull(queue, "queue");
        Objects.requireNonNull(messageId, "messageId");
        return deliveries.find(queue, channel == null ? "default" : channel, messageId);
    }

    /**
     * Acks many messages, in few frames. {@link SomeFailedException} tells which were refused and
     * why.
     */
    public void ackMany(Collection<Message> messages) {
        settleMany(messages, Verdict.ACK);
    }

    /** Nacks many messages for one reason, in few frames. */
    public void nackMany(Collection<Message> messages, String error) {
        settleMany(messages, Verdict.nack(error, null));
    }

    /** Nacks many messages for one reason, to come back after this delay. */
    public void nackMany(Collection<Message> messages, String error, Duration delay) {
        settleMany(messages, Verdict.nack(error, delay));
    }

    private static void settleMany(Collection<Message> messages, Verdict verdict) {
        List<Answer<Void>> answers = new ArrayList<>(messages.size());
        Map<Settler, List<Message>> bySettler = new LinkedHashMap<>();
        Map<Settler, List<Answer<Void>>> answersBySettler = new LinkedHashMap<>();
        for (Message message : messages) {
            Answer<Void> answer = Answer.awaited();
            answers.add(answer);
            bySettler.computeIfAbsent(message.settler(), any -> new ArrayList<>()).add(message);
            answersBySettler
                    .computeIfAbsent(message.settler(), any -> new ArrayList<>())
                    .add(answer);
        }
        bySettler.forEach(
                (settler, some) -> settler.settleAll(some, verdict, answersBySettler.get(settler)));
        List<ItemResult> results = new ArrayList<>(messages.size());
        int index = 0;
        for (Message message : messages) {
            results.add(
                    new ItemResult(message.id(), message.offset(), errorOf(answers.get(index++))));
        }
        if (!results.stream().allMatch(ItemResult::isOk)) {
            throw new SomeFailedException(results);
        }
    }

    private static @Nullable FilaException errorOf(Answer<Void> answer) {
        try {
            Blocking.await(answer);
            return null;
        } catch (CallInterruptedException interrupted) {
            throw interrupted;
        } catch (FilaException error) {
            return error;
        }
    }
}
