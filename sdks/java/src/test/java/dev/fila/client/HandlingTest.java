package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.client.errors.QueueNotFoundException;
import dev.fila.client.fake.FakeStream;
import dev.fila.v1.ConsumeSessionRequest;
import dev.fila.v1.ConsumeSessionResponse;
import dev.fila.v1.MessageMetadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Handlers and subscribers, as they are run on a session. */
class HandlingTest extends FakeBrokerTest {
    private FakeStream<ConsumeSessionRequest, ConsumeSessionResponse> session;

    private void openSession() {
        session = broker.session();
        session.next();
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setOpened(
                                ConsumeSessionResponse.Opened.newBuilder()
                                        .setConsumerId(1)
                                        .setVisibilityTimeoutMs(30_000)
                                        .setMaxLeaseRenewalMs(600_000))
                        .build());
    }

    private void deliver(long... leaseIds) {
        ConsumeSessionResponse.Delivery.Builder delivery =
                ConsumeSessionResponse.Delivery.newBuilder();
        for (long leaseId : leaseIds) {
            delivery.addMessages(
                    dev.fila.v1.Message.newBuilder()
                            .setId("m" + leaseId)
                            .setMetadata(MessageMetadata.newBuilder().setLeaseId(leaseId)));
        }
        session.send(ConsumeSessionResponse.newBuilder().setDelivery(delivery).build());
    }

    private ConsumeSessionRequest settled() {
        ConsumeSessionRequest request = session.next(any -> any.hasAck() || any.hasNack());
        answer(request);
        return request;
    }

    private void answer(ConsumeSessionRequest request) {
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setSettled(
                                ConsumeSessionResponse.Settled.newBuilder()
                                        .setSequence(
                                                request.hasAck()
                                                        ? request.getAck().getSequence()
                                                        : request.getNack().getSequence()))
                        .build());
    }

    /** Three threads that all take part in the session: one that came later would open another. */
    private Handling handleWithAllAtWork() throws Exception {
        CyclicBarrier allAtWork = new CyclicBarrier(4);
        Handling handling = handle(3, message -> allAtWork.await());
        deliver(1, 2, 3);
        allAtWork.await();
        return handling;
    }

    private Handling handle(int concurrency, MessageHandler handler) {
        return handle(quick(), concurrency, handler);
    }

    private Handling handle(
            ClientOptions.Builder clientOptions, int concurrency, MessageHandler handler) {
        connect(clientOptions);
        HandlerOptions options =
                HandlerOptions.builder()
                        .concurrency(concurrency)
                        .consume(ConsumeOptions.builder().prefetch(10).build())
                        .build();
        Handling handling = client.handle("orders", options, handler);
        openSession();
        return handling;
    }

    @Test
    void aMessageIsAckedWhenItsHandlerReturnsAndNackedWhenItThrows() {
        Handling handling =
                handle(
                        1,
                        message -> {
                            if (message.id().equals("m2")) {
                                throw new IllegalStateException("bad order");
                            }
                        });
        deliver(1);
        assertEquals(List.of(1L), settled().getAck().getLeaseIdsList());
        deliver(2);
        ConsumeSessionRequest nack = settled();
        assertTrue(nack.getNack().getError().contains("bad order"), nack.toString());
        deliver(3);
        assertEquals(List.of(3L), settled().getAck().getLeaseIdsList(), "the handler goes on");
        handling.close();
    }

    @Test
    void aClosedHandlingHasTheAnswerToItsLastAck() {
        Handling handling = handle(1, message -> {});
        deliver(1);
        ConsumeSessionRequest ack = session.next(any -> any.hasAck());
        assertFalse(handling.close(Duration.ofMillis(20)), "the broker has not answered");
        answer(ack);
        assertTrue(handling.close(Duration.ofSeconds(10)));
    }

    @Test
    void whatTheHandlerSettledItselfIsLeftAlone() {
        Handling handling = handle(1, message -> message.rejectAsync("no"));
        deliver(1);
        assertTrue(settled().getNack().getDeadLetter());
        handling.close();
        assertTrue(session.drain().stream().noneMatch(any -> any.hasAck() || any.hasNack()));
    }

    @Test
    void noMoreMessagesAreHandledAtOnceThanAsked() throws InterruptedException {
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch go = new CountDownLatch(1);
        Handling handling =
                handle(
                        2,
                        message -> {
                            most.accumulateAndGet(running.incrementAndGet(), Math::max);
                            go.await();
                            running.decrementAndGet();
                        });
        deliver(1, 2, 3, 4);
        until(() -> running.get() == 2);
        go.countDown();
        for (int acked = 0; acked < 4; ) {
            acked += settled().getAck().getLeaseIdsCount();
        }
        assertEquals(2, most.get());
        handling.close();
    }

    @Test
    void aLostLeaseInterruptsItsHandlerAndNobodyElse() throws InterruptedException {
        CompletableFuture<String> interrupted = new CompletableFuture<>();
        CountDownLatch started = new CountDownLatch(1);
        Handling handling =
                handle(
                        1,
                        message -> {
                            started.countDown();
                            if (message.id().equals("m1")) {
                                try {
                                    new CountDownLatch(1).await();
                                } catch (InterruptedException lost) {
                                    interrupted.complete(message.lostReason().orElse(""));
                                }
                            }
                        });
        deliver(1, 2);
        started.await();
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setRevoked(
                                ConsumeSessionResponse.Revoked.newBuilder()
                                        .addLeaseIds(1)
                                        .setReason("PURGE"))
                        .build());
        assertEquals("PURGE", get(interrupted));
        assertEquals(List.of(2L), settled().getAck().getLeaseIdsList());
        handling.close();
    }

    @Test
    void closingWaitsForTheHandlersThatRun() throws InterruptedException {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        Handling handling =
                handle(
                        1,
                        message -> {
                            started.countDown();
                            go.await();
                        });
        deliver(1);
        started.await();
        assertFalse(handling.close(Duration.ofMillis(20)));
        go.countDown();
        assertEquals(List.of(1L), settled().getAck().getLeaseIdsList());
        assertTrue(handling.close(Duration.ofSeconds(10)));
    }

    @Test
    void aQueueThatIsDeletedEndsTheHandlingWithWhatHappened() throws Exception {
        Handling handling = handleWithAllAtWork();
        session.fail(broker.refusal(Status.NOT_FOUND, "QUEUE_NOT_FOUND", "deleted"));
        assertThrows(QueueNotFoundException.class, () -> get(handling.done()));
        handling.close();
    }

    @Test
    void whatEndsTheHandlingIsLoggedOnce() throws Exception {
        try (LogLines log = new LogLines()) {
            Handling handling = handleWithAllAtWork();
            session.fail(broker.refusal(Status.NOT_FOUND, "QUEUE_NOT_FOUND", "deleted"));
            assertThrows(QueueNotFoundException.class, () -> get(handling.done()));
            assertEquals(
                    List.of("handlers of orders have ended, and take nothing more"),
                    log.warnings());
        }
    }

    @Test
    void closingTheClientWhileHandlersRunIsNoLossOfAConnection() throws InterruptedException {
        List<ConnectionEvent> events = new CopyOnWriteArrayList<>();
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        try (LogLines log = new LogLines()) {
            Handling handling =
                    handle(
                            quick().connectionListener(events::add),
                            1,
                            message -> {
                                started.countDown();
                                go.await();
                            });
            deliver(1, 2);
            started.await();
            client.close();
            go.countDown();
            until(handling.done()::isDone);
            assertEquals(List.of(), log.warnings());
            assertEquals(List.of(), events);
        }
    }

    @Test
    void aSubscriberGetsWhatItAsksForAndNoMore() throws InterruptedException {
        connect();
        Consumer consumer = client.consume("orders", ConsumeOptions.builder().prefetch(10).build());
        LinkedBlockingQueue<String> got = new LinkedBlockingQueue<>();
        CompletableFuture<Flow.Subscription> subscribed = new CompletableFuture<>();
        CompletableFuture<Void> completed = new CompletableFuture<>();
        consumer.publisher()
                .subscribe(
                        new Flow.Subscriber<>() {
                            @Override
                            public void onSubscribe(Flow.Subscription subscription) {
                                subscribed.complete(subscription);
                            }

                            @Override
                            public void onNext(Message message) {
                                got.add(message.id());
                            }

                            @Override
                            public void onError(Throwable failure) {
                                completed.completeExceptionally(failure);
                            }

                            @Override
                            public void onComplete() {
                                completed.complete(null);
                            }
                        });
        get(subscribed).request(2);
        openSession();
        deliver(1, 2, 3);
        assertEquals("m1", got.poll(10, TimeUnit.SECONDS));
        assertEquals("m2", got.poll(10, TimeUnit.SECONDS));
        get(subscribed).request(1);
        assertEquals("m3", got.poll(10, TimeUnit.SECONDS));
        get(subscribed).request(1);
        consumer.close();
        get(completed);
    }
}
