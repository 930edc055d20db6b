import dev.fila.client.FilaClient;
import dev.fila.client.MessageId;
import dev.fila.client.NewMessage;
import dev.fila.client.errors.SomeFailedException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

class Producing {
    public static void main(String[] args) {
        try (FilaClient client = FilaClient.connect("localhost:5555")) {
            client.enqueue(
                    "coffee",
                    NewMessage.builder().payload("soon").delay(Duration.ofMillis(500)).build());
            Instant tomorrow = Instant.now().plus(Duration.ofDays(1));
            client.enqueue(
                    "coffee", NewMessage.builder().payload("tomorrow").deliverAt(tomorrow).build());
            client.enqueue(
                    "coffee",
                    NewMessage.builder().payload("stale").ttl(Duration.ofMinutes(1)).build());
            client.enqueue(
                    "coffee", NewMessage.builder().payload("once").dedupKey("order-4711").build());

            // Concurrent calls travel together, so this costs little more than one.
            List<CompletableFuture<MessageId>> stored =
                    IntStream.range(0, 100)
                            .mapToObj(
                                    i -> client.enqueueAsync("coffee", NewMessage.of("order " + i)))
                            .toList();
            stored.forEach(CompletableFuture::join);

            // The fastest way: large frames, several of them under way. The messages are made as
            // they are sent.
            Iterable<NewMessage> many =
                    () ->
                            IntStream.range(0, 1000)
                                    .mapToObj(
                                            i ->
                                                    NewMessage.builder()
                                                            .payload("order " + i)
                                                            .header("tenant", "acme")
                                                            .build())
                                    .iterator();
            try {
                System.out.println(client.enqueueMany("coffee", many).size() + " stored");
            } catch (SomeFailedException failed) {
                System.out.println("refused: " + failed.failures());
            }
        }
    }
}
