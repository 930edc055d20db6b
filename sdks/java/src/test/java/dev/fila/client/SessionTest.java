package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.client.errors.CallInterruptedException;
import dev.fila.client.errors.ClientClosedException;
import dev.fila.client.errors.LeaseLostException;
import dev.fila.client.errors.QueueNotFoundException;
import dev.fila.client.errors.SomeFailedException;
import dev.fila.v1.ConsumeSessionRequest;
import dev.fila.v1.ConsumeSessionResponse;
import dev.fila.v1.ItemStatus;
import io.grpc.Status;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class SessionTest extends OpenedSessionTest {
    private static final Duration SOON = Duration.ofSeconds(10);

    @Test
    void aSessionTracksWhatIsBegunUnderTheConsumersName() {
        connect(quick().name("worker-1"));
        consumer =
                client.consume(
                        "orders",
                        ConsumeOptions.builder()
                                .channel("audit")
                                .maxLeaseRenewal(Duration.ofMinutes(1))
                                .build());
        var waiting = async(() -> consumer.iterator().hasNext());
        session = broker.session();
        ConsumeSessionRequest.Open open = session.next().getOpen();
        assertTrue(open.getTracksBegun());
        assertEquals("worker-1", open.getName());
        assertEquals("audit", open.getChannel());
        assertEquals(60_000, open.getMaxLeaseRenewalMs());
        assertEquals(2, open.getMaxInFlight(), "one in hand and one to follow");
        assertFalse(open.hasResume());
        consumer.close();
        assertFalse(get(waiting));
    }

    @Test
    void aMessageInHandIsDeclaredWithinMilliseconds() {
        var first = consume();
        deliver(1);
        get(first);
        assertEquals(
                List.of(1L),
                session.next(ConsumeSessionRequest::hasBegun).getBegun().getLeaseIdsList());
    }

    @Test
    void aMessageThatIsSettledAtOnceNeedsNoDeclaring() {
        var first = consume(manual(), ConsumeOptions.builder().prefetch(10).build());
        deliver(1);
        var acked = get(first).ackAsync();
        settleAll(session.next(ConsumeSessionRequest::hasAck));
        get(acked);
        timers.advance(Duration.ofMillis(20));
        assertTrue(session.drain().stream().noneMatch(ConsumeSessionRequest::hasBegun));
    }

    @Test
    void aRedeliveredMessageIsDeclaredBeforeTheProgramSeesIt() {
        // No time passes: only the hand-out itself can have declared it.
        var first = consume(manual(), ConsumeOptions.builder().prefetch(10).build());
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setDelivery(
                                ConsumeSessionResponse.Delivery.newBuilder()
                                        .addMessages(message(1, true)))
                        .build());
        assertTrue(get(first).isRedelivered());
        assertEquals(
                List.of(1L),
                session.next(ConsumeSessionRequest::hasBegun).getBegun().getLeaseIdsList());
    }

    @Test
    void aMessageThatCameBackUnbegunIsDeclaredBeforeTheProgramSeesItToo() {
        var first = consume(manual(), ConsumeOptions.builder().prefetch(10).build());
        var cameBack = message(1, false).toBuilder();
        cameBack.getMetadataBuilder().setCameBack(true);
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setDelivery(
                                ConsumeSessionResponse.Delivery.newBuilder().addMessages(cameBack))
                        .build());
        assertTrue(get(first).cameBack());
        assertEquals(
                List.of(1L),
                session.next(ConsumeSessionRequest::hasBegun).getBegun().getLeaseIdsList());
    }

    @Test
    void whatASlowProgramCannotReachSoonGoesBack() {
        var first = consume(manual(), ConsumeOptions.defaults());
        deliver(1, 2);
        get(first);
        timers.advance(Duration.ofMillis(100));
        ConsumeSessionRequest.Window window =
                session.next(ConsumeSessionRequest::hasWindow).getWindow();
        assertEquals(List.of(2L), window.getGiveBackList());
        assertEquals(1, window.getSize());
    }

    @Test
    void acksLeaveAtOnceAndOnlyTheRefusedFail() {
        var first = consume();
        deliver(1, 2);
        Message one = get(first);
        Message two = get(async(() -> loop.next()));
        var acked =
                async(
                        () -> {
                            client.ackMany(List.of(one, two));
                            return true;
                        });
        ConsumeSessionRequest ack = session.next(ConsumeSessionRequest::hasAck);
        assertEquals(List.of(1L, 2L), ack.getAck().getLeaseIdsList());
        ItemStatus lost =
                ItemStatus.newBuilder()
                        .setCode(Status.Code.FAILED_PRECONDITION.value())
                        .setReason("LEASE_LOST")
                        .setMessage("over")
                        .build();
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setSettled(
                                ConsumeSessionResponse.Settled.newBuilder()
                                        .setSequence(ack.getAck().getSequence())
                                        .addFailures(
                                                ConsumeSessionResponse.Failure.newBuilder()
                                                        .setLeaseId(2)
                                                        .setStatus(lost)))
                        .build());
        SomeFailedException some = assertThrows(SomeFailedException.class, () -> get(acked));
        assertTrue(some.failures().get(1) instanceof LeaseLostException);
        assertTrue(some.results().get(0).isOk());
    }

    @Test
    void eachWayToSettleSaysWhatItMeans() {
        var first = consume();
        deliver(1, 2, 3);
        get(first).nackAsync("later", Duration.ofSeconds(2));
        ConsumeSessionRequest later = session.next(ConsumeSessionRequest::hasNack);
        assertEquals("later", later.getNack().getError());
        assertEquals(2_000, later.getNack().getDelayMs());
        settleAll(later);
        get(async(() -> loop.next())).rejectAsync("never");
        ConsumeSessionRequest reject = session.next(ConsumeSessionRequest::hasNack);
        assertTrue(reject.getNack().getDeadLetter());
        settleAll(reject);
        get(async(() -> loop.next())).releaseAsync();
        ConsumeSessionRequest release = session.next(ConsumeSessionRequest::hasNack);
        assertTrue(release.getNack().getRelease());
        assertFalse(release.getNack().hasDelayMs());
        settleAll(release);
    }

    @Test
    void aRevokedMessageIsToldToWhoHasItAndDroppedFromTheBuffer() {
        var first = consume();
        deliver(1, 2, 3);
        Message one = get(first);
        var lost = one.lost();
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setRevoked(
                                ConsumeSessionResponse.Revoked.newBuilder()
                                        .addLeaseIds(1)
                                        .addLeaseIds(2)
                                        .setReason("SEEK"))
                        .build());
        assertEquals("SEEK", get(lost));
        assertTrue(one.isLost());
        assertEquals(3, get(async(() -> loop.next())).leaseId());
    }

    @Test
    void whatWasLostWithTheConnectionIsTold() {
        var first = consume();
        deliver(1);
        var lost = get(first).lost();
        broker.kill();
        broker.restart();
        session = broker.session();
        session.next();
        open(session, opened -> opened.addLostLeaseIds(1));
        assertEquals("LEASE_LOST", get(lost));
    }

    @Test
    void nothingIsHandedOutWhileTheBrokerIsNotHeard() {
        var first = consume(manual(), ConsumeOptions.builder().prefetch(10).build());
        deliver(1, 2);
        get(first);
        timers.advance(Duration.ofSeconds(31));
        var second = async(() -> loop.next());
        List<ConsumeSessionRequest> alive = new CopyOnWriteArrayList<>();
        alive.add(session.next(ConsumeSessionRequest::hasAlive));
        assertFalse(second.isDone());
        // An answer to a frame of long ago says nothing; one to a new frame does.
        answerAlive(alive.get(0));
        assertFalse(second.isDone());
        CompletableFuture.runAsync(
                () -> {
                    while (!second.isDone()) {
                        answerAlive(session.next(ConsumeSessionRequest::hasAlive));
                    }
                });
        assertEquals(2, get(second).leaseId());
    }

    private void answerAlive(ConsumeSessionRequest asked) {
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setAlive(
                                ConsumeSessionResponse.Alive.newBuilder()
                                        .setSequence(asked.getAlive().getSequence()))
                        .build());
    }

    @Test
    void leavingGivesBackWhatWaitsAndClosesOnceTheRestIsSettled() {
        var first = consume();
        deliver(1, 2, 3);
        Message one = get(first);
        consumer.close();
        ConsumeSessionRequest.Window window =
                session.next(ConsumeSessionRequest::hasWindow).getWindow();
        assertEquals(0, window.getSize());
        assertEquals(Set.of(2L, 3L), Set.copyOf(window.getGiveBackList()));
        var acked = one.ackAsync();
        settleAll(session.next(ConsumeSessionRequest::hasAck));
        get(acked);
        session.next(ConsumeSessionRequest::hasClose);
        assertThrows(ClientClosedException.class, () -> consumer.iterator().hasNext());
    }

    @Test
    void aMessageCanBeAckedByItsIdAndAfterItsConsumerIsOver() {
        var first = consume();
        deliver(1);
        get(first);
        session.fail(Status.INVALID_ARGUMENT.asRuntimeException());
        List<Long> leases = new CopyOnWriteArrayList<>();
        var whole = broker.ackBatch;
        broker.ackBatch =
                request -> {
                    request.getItemsList().forEach(item -> leases.add(item.getLeaseId()));
                    return whole.apply(request);
                };
        client.ack("orders", "m1");
        assertEquals(List.of(1L), leases);
    }

    @Test
    void aSecondAckIsRefused() {
        var first = consume();
        deliver(1);
        Message one = get(first);
        var acked = one.ackAsync();
        settleAll(session.next(ConsumeSessionRequest::hasAck));
        get(acked);
        var again = one.ackAsync();
        ConsumeSessionRequest ack = session.next(ConsumeSessionRequest::hasAck);
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setSettled(
                                ConsumeSessionResponse.Settled.newBuilder()
                                        .setSequence(ack.getAck().getSequence())
                                        .addFailures(
                                                ConsumeSessionResponse.Failure.newBuilder()
                                                        .setLeaseId(1)
                                                        .setStatus(
                                                                ItemStatus.newBuilder()
                                                                        .setCode(
                                                                                Status.Code
                                                                                        .FAILED_PRECONDITION
                                                                                        .value())
                                                                        .setReason("LEASE_LOST"))))
                        .build());
        assertEquals("m1", assertThrows(LeaseLostException.class, () -> get(again)).messageId());
    }

    @Test
    void aQueueThatIsDeletedEndsTheLoopWithWhatHappened() {
        var first = consume();
        session.fail(broker.refusal(Status.NOT_FOUND, "QUEUE_NOT_FOUND", "no queue orders"));
        assertEquals(
                "orders", assertThrows(QueueNotFoundException.class, () -> get(first)).queue());
    }

    @Test
    void aThreadThatWaitsForAMessageCanBeInterrupted() throws InterruptedException {
        connect();
        consumer = client.consume("orders");
        CompletableFuture<Throwable> thrown = new CompletableFuture<>();
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                consumer.iterator().hasNext();
                            } catch (CallInterruptedException interrupted) {
                                thrown.complete(interrupted);
                            }
                        });
        thread.start();
        session = broker.session();
        thread.interrupt();
        get(thrown);
        thread.join(SOON.toMillis());
        assertFalse(thread.isAlive());
    }

    @Test
    void aSlowThreadDoesNotHoldUpAnother() {
        var slow = consume();
        deliver(1, 2, 3);
        get(slow);
        Messages other = consumer.iterator();
        assertEquals(2, get(async(other::next)).leaseId());
        assertEquals(3, get(async(other::next)).leaseId());
    }

    @Test
    void closingTheClientEndsLoopsThatWait() {
        var waiting = consume(quick(), ConsumeOptions.builder().prefetch(10).build());
        var ended =
                waiting.handle(
                        (message, failure) -> failure instanceof java.util.NoSuchElementException);
        var closed =
                async(
                        () -> {
                            client.close();
                            return true;
                        });
        get(closed);
        assertTrue(get(ended));
    }

    @Test
    void whatLeavingSaidReachesTheBrokerWhenTheClientClosesAtOnce() {
        BusyConnection busy = consumeOnABusyConnection(1, 2, 3);
        Thread closing =
                busy.whileBusy(
                        () -> {
                            consumer.close();
                            client.close();
                        });
        ConsumeSessionRequest.Window window =
                session.next(ConsumeSessionRequest::hasWindow).getWindow();
        assertEquals(Set.of(2L, 3L), Set.copyOf(window.getGiveBackList()));
        session.next(ConsumeSessionRequest::hasClose);
        ended(closing);
    }

    @Test
    void aClientThatClosesGivesBackWhatWaitedAndKeepsWhatIsInHand() {
        BusyConnection busy = consumeOnABusyConnection(1, 2, 3);
        assertEquals(2, loop.next().leaseId());
        Thread closing = busy.whileBusy(client::close);
        ConsumeSessionRequest.Window window =
                session.next(ConsumeSessionRequest::hasWindow).getWindow();
        assertEquals(List.of(3L), window.getGiveBackList());
        ended(closing);
        assertTrue(session.drain().stream().noneMatch(ConsumeSessionRequest::hasClose));
    }

    /** A consumer whose first message's ack is being answered on a connection that is busy then. */
    private BusyConnection consumeOnABusyConnection(long... leaseIds) {
        BusyConnection busy = new BusyConnection();
        var first =
                consume(
                        quick().executor(busy),
                        ConsumeOptions.builder().prefetch(leaseIds.length).build());
        deliver(leaseIds);
        Message one = get(first);
        busy.arm();
        var acked = one.ackAsync();
        settleAll(session.next(ConsumeSessionRequest::hasAck));
        busy.awaitBusy();
        assertFalse(acked.isDone());
        return busy;
    }

    private static void ended(Thread thread) {
        until(() -> !thread.isAlive());
    }

    /**
     * The program's executor, which holds up the connection's own thread while it is armed: what is
     * said meanwhile waits to be written.
     */
    private static final class BusyConnection implements Executor {
        private final CountDownLatch isBusy = new CountDownLatch(1);
        private final CountDownLatch goesOn = new CountDownLatch(1);
        private volatile boolean armed;

        void arm() {
            armed = true;
        }

        @Override
        public void execute(Runnable task) {
            if (armed) {
                armed = false;
                isBusy.countDown();
                await(goesOn);
            }
            task.run();
        }

        void awaitBusy() {
            await(isBusy);
        }

        /** Lets the connection go on once the run, on a thread of its own, waits for it. */
        Thread whileBusy(Runnable run) {
            Thread thread = new Thread(run);
            thread.setDaemon(true);
            thread.start();
            until(() -> thread.getState() == Thread.State.TIMED_WAITING);
            goesOn.countDown();
            return thread;
        }

        private static void await(CountDownLatch latch) {
            try {
                assertTrue(latch.await(SOON.toMillis(), TimeUnit.MILLISECONDS));
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }
}
