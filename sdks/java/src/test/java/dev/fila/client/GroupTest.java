package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.client.errors.NotOwnerException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.client.fake.FakeBroker;
import dev.fila.client.fake.FakeStream;
import dev.fila.v1.EnqueueResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Nodes of a group: {@code broker} stands by where a test says nothing else. */
class GroupTest extends FakeBrokerTest {
    private final FakeBroker owner = new FakeBroker();
    private final List<String> asked = new CopyOnWriteArrayList<>();

    @AfterEach
    void stopTheOwner() {
        owner.close();
    }

    private void refuses(FakeBroker node, String name, String owner) {
        node.enqueue =
                request -> {
                    asked.add(name);
                    throw node.notOwner(owner);
                };
    }

    private void serves(FakeBroker node, String name) {
        node.enqueue =
                request -> {
                    asked.add(name);
                    return EnqueueResponse.newBuilder().setMessageId("id-" + name).build();
                };
    }

    private void connectTo(ClientOptions.Builder options, FakeBroker... nodes) {
        client =
                FilaClient.connect(
                        String.join(",", List.of(nodes).stream().map(FakeBroker::address).toList()),
                        options.batching(false).build());
    }

    /** A client may come once more before it is on its way to the owner. */
    private void refusesEach(Supplier<? extends FakeStream<?, ?>> opened) {
        async(
                () -> {
                    while (true) {
                        FakeStream<?, ?> stream = opened.get();
                        stream.next();
                        stream.fail(broker.notOwner(owner.address()));
                    }
                });
    }

    private String enqueue() {
        return client.enqueue("orders", new byte[0]).value();
    }

    @Test
    void aCallThatAStandbyRefusesIsMadeAtTheOwnerThatItNames() {
        refuses(broker, "standby", owner.address());
        serves(owner, "owner");
        connectTo(quick(), broker);
        // It may not be repeated: that nothing has happened is the standby's word.
        assertEquals("id-owner", enqueue());
        assertEquals("id-owner", enqueue());
        assertEquals(List.of("owner", "owner"), asked.stream().filter("owner"::equals).toList());
        assertEquals("standby", asked.get(0));
        assertEquals("owner", asked.get(asked.size() - 1));
    }

    @Test
    void aStandbyThatKnowsNoOwnerIsLeftForTheNextAddress() {
        refuses(broker, "standby", "");
        serves(owner, "owner");
        connectTo(quick(), broker, owner);
        assertEquals("id-owner", enqueue());
    }

    @Test
    void whereTheOwnerIsGoneTheClientComesBackToItsAddresses() {
        refuses(broker, "standby", owner.address());
        serves(owner, "owner");
        connectTo(quick(), broker);
        assertEquals("id-owner", enqueue());
        serves(broker, "new owner");
        owner.kill();
        NewMessage repeatable = NewMessage.builder().payload("a").dedupKey("once").build();
        assertEquals("id-new owner", client.enqueue("orders", repeatable).value());
    }

    @Test
    void twoStandbysThatNameEachOtherAreAskedUntilPatienceEnds() {
        refuses(broker, "one", owner.address());
        refuses(owner, "two", broker.address());
        connectTo(quick().retryFor(Duration.ofMillis(300)), broker);
        assertThrows(UnavailableException.class, this::enqueue);
        assertTrue(asked.containsAll(List.of("one", "two")), asked.toString());
    }

    @Test
    void whenPatienceEndsTheErrorNamesTheOwner() {
        refuses(broker, "standby", broker.address());
        connectTo(quick().retryFor(Duration.ofMillis(300)), broker);
        NotOwnerException refused = assertThrows(NotOwnerException.class, this::enqueue);
        assertEquals(broker.address(), refused.owner());
    }

    @Test
    void whatIsInFlightToAStandbyIsSentToTheOwner() {
        connect();
        refusesEach(broker::producer);
        var stored = client.enqueueAsync("orders", NewMessage.of("a")); // without a dedup key
        var stream = owner.producer();
        stream.send(stored(stream.next(), 3));
        assertEquals(3, get(stored).offset());
    }

    @Test
    void aConsumerThatComesToAStandbyConsumesAtTheOwner() {
        connect();
        refusesEach(broker::session);
        var messages = client.consume("orders", ConsumeOptions.defaults()).iterator();
        var first = async(messages::next);
        var session = owner.session();
        session.next();
        OpenedSessionTest.open(session, opened -> opened);
        session.send(
                dev.fila.v1.ConsumeSessionResponse.newBuilder()
                        .setDelivery(
                                dev.fila.v1.ConsumeSessionResponse.Delivery.newBuilder()
                                        .addMessages(OpenedSessionTest.message(1, false)))
                        .build());
        assertEquals(1, get(first).leaseId());
    }
}
