package dev.fila.client.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.client.ClientOptions;
import dev.fila.client.ConsumeOptions;
import dev.fila.client.Consumer;
import dev.fila.client.FilaClient;
import dev.fila.client.HandlerOptions;
import dev.fila.client.Handling;
import dev.fila.client.Message;
import dev.fila.client.MessageId;
import dev.fila.client.NewMessage;
import dev.fila.client.errors.AnswerLostException;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.LeaseLostException;
import dev.fila.client.errors.LimitExceededException;
import dev.fila.client.errors.MessageNotFoundException;
import dev.fila.client.errors.QueueNotFoundException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.fake.BlackHole;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.io.TempDir;

/** What goes wrong between a client and a real broker. */
@Tag("broker")
class FaultsTest {
    @TempDir static Path folder;
    private static BrokerProcess broker;

    private String queue;

    @BeforeAll
    static void startBroker() {
        broker = BrokerProcess.start(folder);
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @BeforeEach
    void nameQueue(TestInfo test) {
        queue = test.getTestMethod().orElseThrow().getName();
    }

    private static FilaClient connect() {
        return FilaClient.connect(broker.address());
    }

    private FilaClient connectToNewQueue() {
        FilaClient client = connect();
        client.createQueue(queue);
        return client;
    }

    @Test
    void nothingThatWasAnsweredIsLostWhenTheBrokerIsKilledAndConsumersGoOn() {
        Set<String> stored = ConcurrentHashMap.newKeySet();
        Set<String> handled = ConcurrentHashMap.newKeySet();
        try (FilaClient client = connectToNewQueue();
                Handling handling =
                        client.handle(
                                queue,
                                HandlerOptions.concurrency(4),
                                message -> handled.add(message.id()))) {
            List<CompletableFuture<?>> all = new ArrayList<>();
            for (int i = 0; i < 2_000; i++) {
                if (i == 700) {
                    broker.kill();
                    broker.start();
                }
                all.add(
                        client.enqueueAsync(queue, NewMessage.of("m" + i))
                                .handle(
                                        (id, failure) -> {
                                            if (failure == null) {
                                                return stored.add(id.value());
                                            }
                                            assertTrue(
                                                    failure instanceof AnswerLostException,
                                                    failure.toString());
                                            return false;
                                        }));
            }
            all.forEach(CompletableFuture::join);
            assertTrue(stored.size() >= 1_000, "stored " + stored.size());
            until(() -> handled.containsAll(stored));
            until(() -> client.getStats(queue).getInFlight() == 0);
        }
    }

    @Test
    void aCutNetworkIsNoticedByKeepalive() {
        ClientOptions options =
                ClientOptions.builder()
                        .keepAliveTime(Duration.ofSeconds(10))
                        .keepAliveTimeout(Duration.ofMillis(500))
                        .retryFor(Duration.ZERO)
                        .build();
        try (FilaClient direct = connectToNewQueue();
                BlackHole network = new BlackHole(broker.address());
                FilaClient client = FilaClient.connect(network.address(), options)) {
            direct.enqueue(queue, NewMessage.of("before"));
            network.swallow();
            CompletableFuture<MessageId> lost =
                    client.enqueueAsync(queue, NewMessage.of("perhaps"));
            CompletionException failure =
                    assertThrows(
                            CompletionException.class,
                            () -> lost.orTimeout(25, java.util.concurrent.TimeUnit.SECONDS).join());
            assertTrue(failure.getCause() instanceof AnswerLostException, failure.toString());
            assertThrows(UnavailableException.class, () -> client.getConfig("anything"));
        }
    }

    @Test
    void aPayloadBeyondTheLimitAndAQueueThatIsNotThereAreTold() {
        try (FilaClient client = connectToNewQueue()) {
            assertThrows(
                    LimitExceededException.class,
                    () -> client.enqueue(queue, new byte[(1 << 20) + 1]));
            assertEquals(
                    "nope",
                    assertThrows(
                                    QueueNotFoundException.class,
                                    () -> client.enqueue("nope", new byte[1]))
                            .queue());
            try (Consumer consumer = client.consume("nope")) {
                assertThrows(QueueNotFoundException.class, () -> consumer.iterator().hasNext());
            }
        }
    }

    @Test
    void aSecondAckIsRefusedAndHarmsNothing() {
        try (FilaClient client = connectToNewQueue()) {
            client.enqueue(queue, NewMessage.of("x"));
            try (Consumer consumer = client.consume(queue)) {
                Message message = consumer.iterator().next();
                message.ack();
                FilaException refused = assertThrows(FilaException.class, message::ack);
                assertTrue(
                        refused instanceof MessageNotFoundException
                                || refused instanceof LeaseLostException);
            }
        }
    }

    @Test
    void aSlowConsumerDoesNotKeepAFastOneFromTheRest() {
        try (FilaClient client = connectToNewQueue()) {
            client.enqueueMany(
                    queue, IntStream.range(0, 100).mapToObj(i -> NewMessage.of("m" + i))::iterator);
            try (Consumer slow = client.consume(queue)) {
                Message held = slow.iterator().next();
                Set<String> seen = new HashSet<>();
                ConsumeOptions untilIdle =
                        ConsumeOptions.builder().stopWhenIdle(Duration.ofSeconds(1)).build();
                try (Consumer fast = client.consume(queue, untilIdle)) {
                    for (Message message : fast) {
                        seen.add(message.id());
                        message.ack();
                    }
                }
                assertEquals(99, seen.size());
                held.ack();
            }
            until(() -> client.getStats(queue).getDepth() == 0);
        }
    }

    private static void until(java.util.function.BooleanSupplier holds) {
        long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!holds.getAsBoolean()) {
            assertTrue(System.nanoTime() < deadline, "it never came to hold");
            Thread.onSpinWait();
        }
    }
}
