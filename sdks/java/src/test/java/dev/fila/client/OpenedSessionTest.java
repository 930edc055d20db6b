package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.fila.client.fake.FakeStream;
import dev.fila.v1.ConsumeSessionRequest;
import dev.fila.v1.ConsumeSessionResponse;
import dev.fila.v1.MessageMetadata;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;

/** A consumer of a fake broker, whose session the test plays. */
abstract class OpenedSessionTest extends FakeBrokerTest {
    final ManualTimers timers = new ManualTimers();
    FakeStream<ConsumeSessionRequest, ConsumeSessionResponse> session;
    Consumer consumer;
    Messages loop;

    /** Begins a loop that waits for its first message, and opens its session. */
    CompletableFuture<Message> consume(ClientOptions.Builder options, ConsumeOptions consume) {
        connect(options);
        consumer = client.consume("orders", consume);
        loop = consumer.iterator();
        CompletableFuture<Message> first = async(() -> loop.next());
        session = broker.session();
        assertEquals("orders", session.next().getOpen().getQueue());
        open(session, opened -> opened);
        return first;
    }

    CompletableFuture<Message> consume() {
        return consume(quick(), ConsumeOptions.builder().prefetch(10).build());
    }

    ClientOptions.Builder manual() {
        return quick().timers(() -> timers).callTimeout(Duration.ofMillis(50));
    }

    static void open(
            FakeStream<ConsumeSessionRequest, ConsumeSessionResponse> session,
            UnaryOperator<ConsumeSessionResponse.Opened.Builder> change) {
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setOpened(
                                change.apply(
                                        ConsumeSessionResponse.Opened.newBuilder()
                                                .setConsumerId(7)
                                                .setVisibilityTimeoutMs(30_000)
                                                .setDisconnectGraceMs(5_000)
                                                .setMaxLeaseRenewalMs(600_000)))
                        .build());
    }

    static dev.fila.v1.Message message(long leaseId, boolean redelivered) {
        return dev.fila.v1.Message.newBuilder()
                .setId("m" + leaseId)
                .setMetadata(
                        MessageMetadata.newBuilder()
                                .setQueueId("orders")
                                .setLeaseId(leaseId)
                                .setRedelivered(redelivered))
                .build();
    }

    void deliver(long... leaseIds) {
        ConsumeSessionResponse.Delivery.Builder delivery =
                ConsumeSessionResponse.Delivery.newBuilder();
        for (long leaseId : leaseIds) {
            delivery.addMessages(message(leaseId, false));
        }
        session.send(ConsumeSessionResponse.newBuilder().setDelivery(delivery).build());
    }

    void settleAll(ConsumeSessionRequest request) {
        long sequence =
                request.hasAck() ? request.getAck().getSequence() : request.getNack().getSequence();
        session.send(
                ConsumeSessionResponse.newBuilder()
                        .setSettled(
                                ConsumeSessionResponse.Settled.newBuilder().setSequence(sequence))
                        .build());
    }
}
