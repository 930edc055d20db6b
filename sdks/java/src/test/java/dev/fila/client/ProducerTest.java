package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.client.errors.AnswerLostException;
import dev.fila.client.errors.CallInterruptedException;
import dev.fila.client.errors.ClientClosedException;
import dev.fila.client.errors.InternalException;
import dev.fila.client.errors.QueueFullException;
import dev.fila.client.errors.QueueNotFoundException;
import dev.fila.client.errors.SomeFailedException;
import dev.fila.client.fake.FakeStream;
import dev.fila.v1.EnqueueResult;
import dev.fila.v1.EnqueueStreamRequest;
import dev.fila.v1.EnqueueStreamResponse;
import dev.fila.v1.ItemStatus;
import io.grpc.Status;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ProducerTest extends FakeBrokerTest {
    private final ManualTimers timers = new ManualTimers();
    private FakeStream<EnqueueStreamRequest, EnqueueStreamResponse> stream;

    /**
     * Time passes when the test says so; closing does not wait long for what was left unanswered.
     */
    private ClientOptions.Builder manual() {
        return quick().timers(() -> timers).callTimeout(Duration.ofMillis(50));
    }

    /** Connects, and leaves one frame unanswered, behind which others gather. */
    private EnqueueStreamRequest holdBack(ClientOptions.Builder options) {
        connect(options);
        client.enqueueAsync("orders", NewMessage.of("first"));
        stream = broker.producer();
        return stream.next();
    }

    private static List<String> payloads(EnqueueStreamRequest frame) {
        return frame.getBatch().getMessagesList().stream()
                .map(message -> message.getPayload().toStringUtf8())
                .toList();
    }

    private static EnqueueStreamResponse refused(
            EnqueueStreamRequest frame, int code, String reason) {
        ItemStatus status =
                ItemStatus.newBuilder().setCode(code).setReason(reason).setMessage("no").build();
        EnqueueStreamResponse.Builder response =
                EnqueueStreamResponse.newBuilder().setSequence(frame.getSequence());
        frame.getBatch()
                .getMessagesList()
                .forEach(
                        message ->
                                response.addResults(EnqueueResult.newBuilder().setError(status)));
        return response.build();
    }

    @Test
    void aLoneCallLeavesAtOnceAndReturnsWhereTheMessageWent() {
        connect(manual());
        var stored = async(() -> client.enqueue("orders", NewMessage.of("one")));
        stream = broker.producer();
        EnqueueStreamRequest frame = stream.next();
        assertEquals("orders", frame.getBatch().getQueue());
        stream.send(stored(frame, 7));
        assertEquals(new MessageId("id-7", 7), get(stored));
    }

    @Test
    void callsGatherBehindAnUnansweredFrameAndLeaveTogetherWhenItIsAnswered() {
        EnqueueStreamRequest first = holdBack(manual());
        for (String text : List.of("a", "b", "c")) {
            client.enqueueAsync("orders", NewMessage.of(text));
        }
        assertTrue(stream.drain().isEmpty());
        stream.send(stored(first, 1));
        assertEquals(List.of("a", "b", "c"), payloads(stream.next()));
    }

    @Test
    void aGatheringFrameLeavesAfterTheLinger() {
        holdBack(manual().linger(Duration.ofMillis(3)));
        client.enqueueAsync("orders", NewMessage.of("waits"));
        timers.advance(Duration.ofMillis(2));
        assertTrue(stream.drain().isEmpty());
        timers.advance(Duration.ofMillis(1));
        assertEquals(List.of("waits"), payloads(stream.next()));
    }

    @Test
    void aSecondFrameLeavesOnceItHoldsAsMuchAsTheFirstAndAThirdWaits() {
        EnqueueStreamRequest first = holdBack(manual());
        int least = FramesInFlight.SECOND_FRAME_LEAST;
        more(least - 1);
        assertTrue(stream.drain().isEmpty());
        more(1);
        assertEquals(least, stream.next().getBatch().getMessagesCount());
        more(2 * least);
        assertTrue(stream.drain().isEmpty());
        stream.send(stored(first, 1));
        assertEquals(2 * least, stream.next().getBatch().getMessagesCount());
    }

    private void more(int count) {
        IntStream.range(0, count).forEach(i -> client.enqueueAsync("orders", NewMessage.of("m")));
    }

    @Test
    void aFullFrameLeavesAtOnce() {
        holdBack(manual().frameMessagesMax(2));
        IntStream.range(0, 3).forEach(i -> client.enqueueAsync("orders", NewMessage.of("m" + i)));
        assertEquals(List.of("m0", "m1"), payloads(stream.next()));
        assertTrue(stream.drain().isEmpty());
    }

    @Test
    void noMoreFramesAreUnansweredThanAllowed() {
        EnqueueStreamRequest first = holdBack(manual().frameMessagesMax(1).framesInFlightMax(2));
        IntStream.range(0, 3).forEach(i -> client.enqueueAsync("orders", NewMessage.of("m" + i)));
        assertEquals(List.of("m0"), payloads(stream.next()));
        assertTrue(stream.drain().isEmpty());
        stream.send(stored(first, 1));
        assertEquals(List.of("m1"), payloads(stream.next()));
    }

    @Test
    void messagesForSeveralQueuesShareAFrame() {
        EnqueueStreamRequest first = holdBack(manual());
        client.enqueueAsync("orders", NewMessage.of("a"));
        client.enqueueAsync("letters", NewMessage.of("b"));
        stream.send(stored(first, 1));
        EnqueueStreamRequest frame = stream.next();
        assertEquals("orders", frame.getBatch().getQueue());
        assertEquals("", frame.getBatch().getMessages(0).getQueue());
        assertEquals("letters", frame.getBatch().getMessages(1).getQueue());
    }

    @Test
    void aDurationThatTheWireCannotHoldIsRefusedWithItsBound() {
        Duration endless = Duration.ofSeconds(Long.MAX_VALUE);
        var refused =
                assertThrows(
                        IllegalArgumentException.class, () -> NewMessage.builder().delay(endless));
        assertEquals(
                "delay must be at most PT2562047788015H12M55.807S, got " + endless,
                refused.getMessage());
    }

    @Test
    void aRefusedMessageDoesNotFailItsNeighbours() {
        EnqueueStreamRequest first = holdBack(quick());
        var bad = client.enqueueAsync("nope", NewMessage.of("bad"));
        var good = client.enqueueAsync("orders", NewMessage.of("good"));
        stream.send(stored(first, 1));
        EnqueueStreamRequest frame = stream.next();
        stream.send(
                EnqueueStreamResponse.newBuilder()
                        .setSequence(frame.getSequence())
                        .addResults(
                                refused(frame, Status.Code.NOT_FOUND.value(), "QUEUE_NOT_FOUND")
                                        .getResults(0))
                        .addResults(stored(frame, 2).getResults(1))
                        .build());
        assertEquals("nope", assertThrows(QueueNotFoundException.class, () -> get(bad)).queue());
        assertEquals(3, get(good).offset());
    }

    @Test
    void anEnqueueWhoseAnswerWasLostIsNotRepeated() {
        connect();
        var lost = client.enqueueAsync("orders", NewMessage.of("perhaps"));
        stream = broker.producer();
        stream.next();
        broker.kill();
        assertThrows(AnswerLostException.class, () -> get(lost));
        broker.restart();
        client.enqueueAsync("orders", NewMessage.of("next"));
        stream = broker.producer();
        EnqueueStreamRequest next = stream.next();
        assertEquals(List.of("next"), payloads(next));
        stream.send(stored(next, 1));
    }

    @Test
    void anEnqueueWithADedupKeyIsRepeatedWithItsKey() {
        connect();
        var repeated =
                client.enqueueAsync(
                        "orders", NewMessage.builder().payload("once").dedupKey("order-1").build());
        broker.producer().next();
        broker.kill();
        broker.restart();
        stream = broker.producer();
        EnqueueStreamRequest again = stream.next();
        assertEquals("order-1", again.getBatch().getMessages(0).getOptions().getDedupKey());
        stream.send(stored(again, 1));
        assertEquals(1, get(repeated).offset());
    }

    @Test
    void whatWasNotSentGoesOverTheNextStream() {
        EnqueueStreamRequest first =
                holdBack(quick().linger(Duration.ofMillis(5)).framesInFlightMax(1));
        var waiting = client.enqueueAsync("orders", NewMessage.of("unsent"));
        assertEquals(1, first.getSequence());
        broker.kill();
        broker.restart();
        stream = broker.producer();
        EnqueueStreamRequest frame = stream.next();
        assertEquals(List.of("unsent"), payloads(frame));
        stream.send(stored(frame, 5));
        assertEquals(5, get(waiting).offset());
    }

    @Test
    void overloadIsThrownAtOnceUnlessItIsToBeWaitedOut() {
        EnqueueStreamRequest first = holdBack(quick().waitWhenOverloaded(Duration.ZERO));
        var full = client.enqueueAsync("orders", NewMessage.of("x"));
        stream.send(stored(first, 1));
        stream.send(refused(stream.next(), Status.Code.RESOURCE_EXHAUSTED.value(), "QUEUE_FULL"));
        assertEquals("orders", assertThrows(QueueFullException.class, () -> get(full)).queue());
    }

    @Test
    void overloadIsWaitedOutForAsLongAsWasAsked() {
        EnqueueStreamRequest first = holdBack(quick().waitWhenOverloaded(Duration.ofSeconds(5)));
        var patient = client.enqueueAsync("orders", NewMessage.of("x"));
        stream.send(stored(first, 1));
        stream.send(refused(stream.next(), Status.Code.RESOURCE_EXHAUSTED.value(), "QUEUE_FULL"));
        stream.send(stored(stream.next(), 2));
        assertEquals(2, get(patient).offset());
    }

    @Test
    void whatWaitsIsBoundedAndTheNextCallWaitsForRoom() {
        EnqueueStreamRequest first = holdBack(manual().waitingBytesMax(100).framesInFlightMax(1));
        client.enqueueAsync("orders", NewMessage.of("x".repeat(200)));
        var blocked = async(() -> client.enqueueAsync("orders", NewMessage.of("later")));
        assertFalse(blocked.isDone());
        stream.send(stored(first, 1));
        stream.next();
        get(blocked);
    }

    @Test
    void aThreadThatWaitsForRoomCanBeInterrupted() throws InterruptedException {
        holdBack(manual().waitingBytesMax(1).framesInFlightMax(1));
        client.enqueueAsync("orders", NewMessage.of("fills it"));
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                client.enqueue("orders", NewMessage.of("no room"));
                            } catch (CallInterruptedException interrupted) {
                                thrown.set(
                                        Thread.currentThread().isInterrupted()
                                                ? interrupted
                                                : null);
                            }
                        });
        thread.start();
        thread.interrupt();
        thread.join(10_000);
        assertTrue(thrown.get() instanceof CallInterruptedException);
    }

    @Test
    void tenThousandConcurrentEnqueuesAreAllAnsweredAndInOrder() {
        connect(quick().waitingBytesMax(64 << 10));
        List<CompletableFuture<MessageId>> all = new ArrayList<>();
        var answering =
                async(
                        () -> {
                            stream = broker.producer();
                            List<String> seen = new ArrayList<>();
                            while (seen.size() < 10_000) {
                                EnqueueStreamRequest frame = stream.next();
                                stream.send(stored(frame, seen.size() + 1));
                                seen.addAll(payloads(frame));
                            }
                            return seen;
                        });
        IntStream.range(0, 10_000)
                .forEach(i -> all.add(client.enqueueAsync("orders", NewMessage.of("m" + i))));
        assertEquals(IntStream.range(0, 10_000).mapToObj(i -> "m" + i).toList(), get(answering));
        for (int i = 0; i < all.size(); i++) {
            assertEquals(i + 1, get(all.get(i)).offset());
        }
    }

    @Test
    void aContinuationThatThrowsOrBlocksHarmsNobodyElse() {
        EnqueueStreamRequest first = holdBack(quick());
        CompletableFuture<Void> never = new CompletableFuture<>();
        client.enqueueAsync("orders", NewMessage.of("blocks")).thenRun(never::join);
        stream.send(stored(first, 1));
        stream.send(stored(stream.next(), 2));
        var thrower =
                client.enqueueAsync("orders", NewMessage.of("throws"))
                        .thenRun(
                                () -> {
                                    throw new IllegalStateException("a mistake of the program");
                                });
        stream.send(stored(stream.next(), 3));
        assertThrows(IllegalStateException.class, () -> get(thrower));
        var after = async(() -> client.enqueue("orders", NewMessage.of("goes on")));
        stream.send(stored(stream.next(), 4));
        assertEquals(4, get(after).offset());
        never.complete(null);
    }

    @Test
    void anAnswerOfTheWrongSizeIsAnErrorForEachOfItsMessages() {
        connect();
        var odd = client.enqueueAsync("orders", NewMessage.of("x"));
        stream = broker.producer();
        stream.send(
                EnqueueStreamResponse.newBuilder()
                        .setSequence(stream.next().getSequence())
                        .build());
        assertThrows(InternalException.class, () -> get(odd));
    }

    @Test
    void aBrokerThatDoesNotAnswerIsGivenUpAfterTheCallTimeout() {
        connect(quick().callTimeout(Duration.ofMillis(200)).retryFor(Duration.ofMillis(100)));
        var silent = client.enqueueAsync("orders", NewMessage.of("x"));
        broker.producer().next();
        assertThrows(AnswerLostException.class, () -> get(silent));
    }

    @Test
    void closingWaitsForWhatIsUnderWay() {
        EnqueueStreamRequest first = holdBack(quick());
        var second = client.enqueueAsync("orders", NewMessage.of("second"));
        var closed =
                async(
                        () -> {
                            client.close();
                            return true;
                        });
        stream.send(stored(first, 1));
        stream.send(stored(stream.next(), 2));
        assertEquals(2, get(second).offset());
        get(closed);
        assertThrows(
                ClientClosedException.class, () -> client.enqueue("orders", NewMessage.of("late")));
    }

    @Test
    void enqueueManyFillsFramesAndTellsWhatBecameOfEach() {
        connect(quick().frameMessagesMax(2));
        var all =
                async(
                        () ->
                                client.enqueueMany(
                                        "orders",
                                        List.of(
                                                NewMessage.of("a"),
                                                NewMessage.of("b"),
                                                NewMessage.of("c"))));
        stream = broker.producer();
        EnqueueStreamRequest first = stream.next();
        EnqueueStreamRequest second = stream.next();
        assertEquals(List.of("a", "b"), payloads(first));
        stream.send(stored(first, 1));
        stream.send(refused(second, Status.Code.INVALID_ARGUMENT.value(), "LIMIT_EXCEEDED"));
        SomeFailedException some = assertThrows(SomeFailedException.class, () -> get(all));
        assertEquals(List.of(2), List.copyOf(some.failures().keySet()));
        assertEquals("id-2", some.results().get(1).messageId());
        assertEquals("LIMIT_EXCEEDED", some.reason());
    }

    @Test
    void withoutBatchingEachEnqueueIsACallOfItsOwn() {
        connect(quick().batching(false));
        assertEquals("id-1", client.enqueue("orders", new byte[] {1}).value());
    }

    @Test
    void aHugePayloadIsACallOfItsOwnSoThatItCannotEndTheStreamOfTheOthers() {
        EnqueueStreamRequest first = holdBack(quick());
        NewMessage huge = NewMessage.of(new byte[(8 << 20) + 1]);
        assertEquals("id-1", client.enqueue("orders", huge).value());
        assertEquals("id-1", client.enqueueMany("orders", List.of(huge)).get(0).value());
        assertTrue(stream.drain().isEmpty());
        stream.send(stored(first, 1));
    }
}
