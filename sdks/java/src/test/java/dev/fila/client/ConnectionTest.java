package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.client.errors.AnswerLostException;
import dev.fila.client.errors.CallInterruptedException;
import dev.fila.client.errors.ClientClosedException;
import dev.fila.client.errors.ConfigKeyNotFoundException;
import dev.fila.client.errors.NotAllowedException;
import dev.fila.client.errors.OverloadedException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.v1.GetConfigResponse;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ConnectionTest extends FakeBrokerTest {
    @Test
    void aBrokerThatIsNotThereIsUnavailableAndNamed() {
        ClientOptions options = quick().connectTimeout(Duration.ofMillis(200)).build();
        UnavailableException error =
                assertThrows(
                        UnavailableException.class,
                        () -> FilaClient.connect("localhost:1", options));
        assertTrue(error.getMessage().contains("localhost:1"), error.getMessage());
    }

    @Test
    void aProcessThatStoodStillPastItsPatienceLooksOnceMore() {
        ManualTimers timers = new ManualTimers();
        ClientOptions options =
                quick().timers(() -> timers).connectTimeout(Duration.ofSeconds(1)).build();
        broker.kill();
        var connecting = async(() -> FilaClient.connect(broker.address(), options));
        until(() -> !timers.isEmpty());
        broker.restart();
        timers.stall(Duration.ofMinutes(1));
        client = get(connecting);
    }

    @Test
    void anAddressThatIsNoneIsRefusedAtOnce() {
        assertThrows(IllegalArgumentException.class, () -> FilaClient.connect("ftp://localhost"));
        assertThrows(
                IllegalArgumentException.class, () -> FilaClient.connect("localhost:5555/queue"));
        assertThrows(
                IllegalArgumentException.class,
                () -> FilaClient.connect(List.of(), quick().build()));
    }

    @Test
    void ofSeveralAddressesTheFirstThatAnswersIsUsed() {
        client =
                FilaClient.connect(
                        List.of("localhost:1", "http://" + broker.address()), quick().build());
        assertEquals("", client.getConfig("anything"));
    }

    @Test
    void theApiKeyIsSentWithEveryCall() {
        connect(quick().apiKey("secret"));
        client.getConfig("anything");
        var authorization = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
        assertEquals("Bearer secret", broker.headers.get(0).get(authorization));
    }

    @Test
    void aRefusalCarriesTheBrokersReasonAndWhatTheCallWasAbout() {
        broker.getConfig =
                request -> {
                    throw broker.refusal(Status.NOT_FOUND, "CONFIG_KEY_NOT_FOUND", "no such key");
                };
        connect();
        ConfigKeyNotFoundException error =
                assertThrows(ConfigKeyNotFoundException.class, () -> client.getConfig("color"));
        assertEquals("color", error.configKey());
        assertEquals("CONFIG_KEY_NOT_FOUND", error.reason());
        assertEquals("no such key", error.getMessage());
        assertTrue(
                List.of(error.getStackTrace()).stream()
                        .anyMatch(frame -> frame.getClassName().equals(getClass().getName())));
    }

    @Test
    void aReasonOfANewerBrokerFallsBackToItsStatus() {
        broker.getConfig =
                request -> {
                    throw broker.refusal(
                            Status.UNAUTHENTICATED, "KEY_EXPIRED", "the key has expired");
                };
        connect();
        assertEquals(
                "KEY_EXPIRED",
                assertThrows(NotAllowedException.class, () -> client.getConfig("color")).reason());
    }

    @Test
    void overloadSaysWhenToTryAgain() {
        broker.getConfig =
                request -> {
                    throw broker.refusal(
                            Status.RESOURCE_EXHAUSTED, "OVERLOADED", "busy", Duration.ofMillis(70));
                };
        connect();
        OverloadedException error =
                assertThrows(OverloadedException.class, () -> client.getConfig("color"));
        assertEquals(Duration.ofMillis(70), error.retryAfter().orElseThrow());
    }

    @Test
    void aReadWhoseAnswerWasLostIsRepeatedAndAnEnqueueIsNot() {
        AtomicInteger asked = new AtomicInteger();
        broker.getConfig =
                request -> {
                    if (asked.incrementAndGet() == 1) {
                        throw Status.UNAVAILABLE
                                .withDescription("the connection broke")
                                .asRuntimeException();
                    }
                    return GetConfigResponse.newBuilder().setValue("blue").build();
                };
        broker.enqueue =
                request -> {
                    throw Status.UNAVAILABLE
                            .withDescription("the connection broke")
                            .asRuntimeException();
                };
        connect(quick().batching(false));
        assertEquals("blue", client.getConfig("color"));
        assertThrows(AnswerLostException.class, () -> client.enqueue("orders", new byte[0]));
    }

    @Test
    void aStoppingBrokerIsWaitedFor() {
        AtomicInteger asked = new AtomicInteger();
        broker.enqueue =
                request -> {
                    if (asked.incrementAndGet() == 1) {
                        throw broker.refusal(Status.UNAVAILABLE, "SHUTTING_DOWN", "stopping");
                    }
                    return dev.fila.v1.EnqueueResponse.newBuilder().setMessageId("id-2").build();
                };
        connect(quick().batching(false));
        assertEquals("id-2", client.enqueue("orders", new byte[0]).value());
    }

    @Test
    void interruptingAThreadCancelsItsCall() throws InterruptedException {
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch never = new CountDownLatch(1);
        broker.getConfig =
                request -> {
                    asked.countDown();
                    awaitQuietly(never);
                    return GetConfigResponse.getDefaultInstance();
                };
        connect();
        CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                client.getConfig("color");
                            } catch (CallInterruptedException expected) {
                                interrupted.complete(Thread.currentThread().isInterrupted());
                            }
                        });
        thread.start();
        asked.await();
        thread.interrupt();
        assertTrue(get(interrupted));
        never.countDown();
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException over) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void everyCallOnAClosedClientSaysSo() {
        connect();
        client.close();
        client.close();
        assertThrows(ClientClosedException.class, () -> client.getConfig("color"));
        assertThrows(ClientClosedException.class, () -> client.consume("orders"));
        assertThrows(ClientClosedException.class, () -> client.enqueue("orders", new byte[0]));
        assertThrows(ClientClosedException.class, () -> client.lease("orders", 1));
    }

    @Test
    void noThreadIsLeftAfterClose() {
        connect();
        var stored = client.enqueueAsync("orders", NewMessage.of("x"));
        var stream = broker.producer();
        stream.send(stored(stream.next(), 1));
        get(stored);
        client.close();
        until(
                () ->
                        Thread.getAllStackTraces().keySet().stream()
                                .noneMatch(thread -> thread.getName().startsWith("fila-")));
    }

    @Test
    void aPayloadBeyondTheBoundIsTheBrokersToRefuse() {
        broker.enqueue =
                request -> {
                    throw broker.refusal(
                            Status.INVALID_ARGUMENT, "LIMIT_EXCEEDED", "payload is beyond 1 MiB");
                };
        connect(quick().batching(false));
        assertThrows(
                dev.fila.client.errors.LimitExceededException.class,
                () -> client.enqueue("orders", new byte[2 << 20]));
    }
}
