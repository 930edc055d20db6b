package dev.fila.client.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.fila.client.*;
import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;

@Tag("broker")
class FirstStepsTest {
    @TempDir static Path folder;
    static BrokerProcess broker;

    @BeforeAll
    static void startBroker() {
        broker = BrokerProcess.start(folder);
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @Test
    void everythingThatWasEnqueuedIsConsumedAndAcked() throws Exception {
        try (FilaClient client = FilaClient.connect(broker.address())) {
            client.createQueue("orders");
            MessageId id =
                    client.enqueue("orders", Map.of("tenant", "acme"), "one coffee".getBytes());
            assertEquals(1, id.offset());
            long t = System.nanoTime();
            var ids =
                    client.enqueueMany(
                            "orders",
                            IntStream.range(0, 20000).mapToObj(i -> NewMessage.of("m" + i))
                                    ::iterator);
            System.out.println("enqueueMany 20000 in " + (System.nanoTime() - t) / 1000000 + " ms");
            int n = 0;
            t = System.nanoTime();
            try (Consumer consumer =
                    client.consume(
                            "orders",
                            ConsumeOptions.builder()
                                    .stopWhenIdle(Duration.ofMillis(500))
                                    .build())) {
                for (Message m : consumer) {
                    m.ackAsync();
                    n++;
                }
            }
            System.out.println(
                    "consumed " + n + " in " + (System.nanoTime() - t) / 1000000 + " ms");
            assertEquals(20001, n);
            assertEquals(
                    0,
                    client.getStats("orders").getDepth() + client.getStats("orders").getInFlight());
        }
    }
}
