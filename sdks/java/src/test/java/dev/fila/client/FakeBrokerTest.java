package dev.fila.client;

import dev.fila.client.fake.FakeBroker;
import dev.fila.v1.EnqueueResult;
import dev.fila.v1.EnqueueStreamRequest;
import dev.fila.v1.EnqueueStreamResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A fake broker, and clients of it that wait hardly at all before they try again. */
abstract class FakeBrokerTest {
    private static final long WAIT_S = 10;

    FakeBroker broker;
    FilaClient client;

    @BeforeEach
    void startBroker() {
        broker = new FakeBroker();
    }

    @AfterEach
    void stopEverything() {
        if (client != null) {
            client.closeAndRelease();
        }
        broker.close();
    }

    static ClientOptions.Builder quick() {
        return ClientOptions.builder()
                .callTimeout(Duration.ofSeconds(5))
                .retryFor(Duration.ofSeconds(5))
                .backoff(Backoff.between(Duration.ofMillis(1), Duration.ofMillis(20)));
    }

    void connect() {
        connect(quick());
    }

    void connect(ClientOptions.Builder options) {
        client = FilaClient.connect(broker.address(), options.build());
    }

    /** Runs a call on a thread of its own. */
    static <T> CompletableFuture<T> async(Supplier<T> call) {
        CompletableFuture<T> future = new CompletableFuture<>();
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                future.complete(call.get());
                            } catch (Throwable failure) {
                                future.completeExceptionally(failure);
                            }
                        });
        thread.setDaemon(true);
        thread.start();
        return future;
    }

    static <T> T get(Future<T> future) {
        try {
            return future.get(WAIT_S, TimeUnit.SECONDS);
        } catch (InterruptedException | TimeoutException late) {
            throw new AssertionError("nothing came of it", late);
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof RuntimeException error) {
                throw error;
            }
            throw new AssertionError(failed.getCause());
        }
    }

    static void until(BooleanSupplier holds) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_S);
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("it never came to hold");
            }
            Thread.onSpinWait();
        }
    }

    /** An answer by which every message of a frame was stored. */
    static EnqueueStreamResponse stored(EnqueueStreamRequest frame, long firstOffset) {
        EnqueueStreamResponse.Builder response =
                EnqueueStreamResponse.newBuilder().setSequence(frame.getSequence());
        for (int i = 0; i < frame.getBatch().getMessagesCount(); i++) {
            long offset = firstOffset + i;
            response.addResults(
                    EnqueueResult.newBuilder().setMessageId("id-" + offset).setOffset(offset));
        }
        return response.build();
    }
}
