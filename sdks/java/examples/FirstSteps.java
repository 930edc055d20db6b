import dev.fila.client.Consumer;
import dev.fila.client.FilaClient;
import dev.fila.client.Message;
import dev.fila.client.MessageId;
import dev.fila.client.QueueSettings;
import java.util.Map;

class FirstSteps {
    public static void main(String[] args) {
        try (FilaClient client = FilaClient.connect("localhost:5555")) {
            client.createQueue(
                    "coffee", QueueSettings.builder().fairnessKeyHeader("tenant").build());

            MessageId id =
                    client.enqueue("coffee", Map.of("tenant", "acme"), "one coffee".getBytes());
            System.out.println("stored at offset " + id.offset());

            try (Consumer consumer = client.consume("coffee")) {
                for (Message message : consumer) {
                    System.out.println(
                            message.headers().get("tenant") + " wants " + message.payloadText());
                    message.ack();
                    break; // a worker would go on for ever
                }
            }
        }
    }
}
