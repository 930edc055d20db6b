import dev.fila.client.FilaClient;
import dev.fila.client.QueueSettings;
import dev.fila.client.RetrySettings;
import java.time.Duration;
import java.util.Map;

class Operating {
    public static void main(String[] args) {
        try (FilaClient client = FilaClient.connect("localhost:5555")) {
            client.createQueue(
                    "emails",
                    QueueSettings.builder()
                            .fairnessKeyHeader("tenant")
                            .weights(Map.of("acme", 3))
                            .throttleKeyHeaders("provider")
                            .retry(RetrySettings.builder().base(Duration.ofSeconds(1)).build())
                            .maxAttempts(5)
                            .build());
            client.updateQueue(
                    "emails",
                    QueueSettings.builder().maxAttempts(8).build()); // this and nothing else
            client.setConfig("throttle.provider:smtp", "100,10"); // 100 a second, bursts of 10

            var stats = client.getStats("emails");
            System.out.println(
                    stats.getDepth() + " pending, " + stats.getInFlight() + " in flight");
            client.listQueues()
                    .forEach(queue -> System.out.println(queue.getName() + " " + queue.getDepth()));
            client.peek("emails.dlq").forEach(letter -> System.out.println(letter.deadLetter()));
            client.deleteQueue("emails");
        }
    }
}
