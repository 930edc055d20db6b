package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.v1.ConsumeSessionRequest;
import dev.fila.v1.ConsumeSessionResponse;
import dev.fila.v1.ItemStatus;
import dev.fila.v1.SettleBatchResponse;
import io.grpc.Status;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class ResumeTest extends OpenedSessionTest {
    @Test
    void aBrokenStreamIsResumedWithWhatIsHeldAndWhatIsBeingSettled() {
        List<ConnectionEvent> events = new CopyOnWriteArrayList<>();
        var first =
                consume(
                        quick().connectionListener(events::add),
                        ConsumeOptions.builder().prefetch(10).build());
        deliver(1, 2, 3);
        get(first);
        get(async(() -> loop.next())).ackAsync();
        session.next(ConsumeSessionRequest::hasAck);
        broker.kill();
        broker.restart();
        session = broker.session();
        ConsumeSessionRequest.Resume resume = session.next().getOpen().getResume();
        assertEquals(7, resume.getConsumerId());
        assertTrue(resume.getLeaseIdsList().containsAll(List.of(1L, 3L)));
        open(session, opened -> opened.setConsumerId(8));
        assertEquals(
                List.of(1L),
                session.next(ConsumeSessionRequest::hasBegun).getBegun().getLeaseIdsList());
        assertEquals(3, get(async(() -> loop.next())).leaseId());
        until(() -> events.size() == 2);
        assertEquals(ConnectionEvent.Kind.LOST, events.get(0).kind());
        assertEquals(ConnectionEvent.Kind.BACK, events.get(1).kind());
    }

    @Test
    void whatIsBackTellsHowManyMessagesLostTheirLeasesAndNotHowManyTheBrokerNames() {
        List<ConnectionEvent> events = new CopyOnWriteArrayList<>();
        var first =
                consume(
                        quick().connectionListener(events::add),
                        ConsumeOptions.builder().prefetch(10).build());
        deliver(1, 2, 3);
        get(first);
        get(async(() -> loop.next())).ackAsync();
        session.next(ConsumeSessionRequest::hasAck);
        session.fail(broker.refusal(Status.UNAVAILABLE, "SHUTTING_DOWN", "stopping"));
        session = broker.session();
        session.next();
        // 1 is in hand and 3 in the buffer; 2 is being settled, and 99 was settled long ago.
        open(session, opened -> opened.addAllLostLeaseIds(List.of(1L, 2L, 3L, 99L)));
        until(() -> events.size() == 2);
        assertEquals(2, events.get(1).leasesLost());
    }

    @Test
    void aResumeNamesNoMoreLeasesThanItMayAndThoseOfUnansweredAcksLast() {
        var first = consume(quick(), ConsumeOptions.builder().prefetch(10_000).build());
        deliver(LongStream.rangeClosed(1, 10_000).toArray());
        get(first).ackAsync();
        session.next(ConsumeSessionRequest::hasAck);
        deliver(10_001); // the ack made room for it
        assertEquals(2, get(async(() -> loop.next())).leaseId());
        // Until the resume is written the ack must not be answered by a call.
        CountDownLatch resumed = new CountDownLatch(1);
        broker.ackBatch =
                request -> {
                    try {
                        resumed.await();
                    } catch (InterruptedException over) {
                        Thread.currentThread().interrupt();
                    }
                    return refusedAs(ItemStatus.getDefaultInstance());
                };
        session.fail(broker.refusal(Status.UNAVAILABLE, "SHUTTING_DOWN", "stopping"));
        session = broker.session();
        List<Long> named = session.next().getOpen().getResume().getLeaseIdsList();
        resumed.countDown();
        assertEquals(10_000, named.size());
        assertFalse(named.contains(1L));
    }

    @Test
    void aBrokerThatKnowsNoWindowsIsAskedAgainForOneOf256() {
        connect(quick());
        consumer = client.consume("orders");
        loop = consumer.iterator();
        var first = async(() -> loop.next());
        session = broker.session();
        session.next();
        open(session, opened -> opened.setVisibilityTimeoutMs(0));
        session.next(ConsumeSessionRequest::hasClose);
        session = broker.session();
        assertEquals(256, session.next().getOpen().getMaxInFlight());
        open(session, opened -> opened.setVisibilityTimeoutMs(0));
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setDelivery(
                                ConsumeSessionResponse.Delivery.newBuilder()
                                        .addMessages(message(1, true)))
                        .build());
        Message one = get(first);
        var acked = one.ackAsync();
        // Nothing was said of what such a broker does not know.
        ConsumeSessionRequest said = session.next();
        assertTrue(said.hasAck());
        settleAll(said);
        get(acked);
    }

    @Test
    void anAckWhoseAnswerWasLostSucceedsWhenItsMessageIsGone() {
        repeatAnAck(Status.Code.NOT_FOUND, "MESSAGE_NOT_FOUND");
    }

    @Test
    void anAckWhoseAnswerWasLostSucceedsWhenItsLeaseIsOver() {
        repeatAnAck(Status.Code.FAILED_PRECONDITION, "LEASE_LOST");
    }

    private void repeatAnAck(Status.Code code, String reason) {
        var first = consume();
        deliver(1);
        var acked = get(first).ackAsync();
        session.next(ConsumeSessionRequest::hasAck);
        ItemStatus gone =
                ItemStatus.newBuilder()
                        .setCode(code.value())
                        .setReason(reason)
                        .setMessage("gone")
                        .build();
        broker.ackBatch = request -> refusedAs(gone);
        session.fail(broker.refusal(Status.UNAVAILABLE, "SHUTTING_DOWN", "stopping"));
        get(acked);
    }

    private static SettleBatchResponse refusedAs(ItemStatus status) {
        return SettleBatchResponse.newBuilder().addResults(status).build();
    }
}
