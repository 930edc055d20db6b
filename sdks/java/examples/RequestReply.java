import dev.fila.client.Consumer;
import dev.fila.client.FilaClient;
import dev.fila.client.Message;
import java.util.Map;
import java.util.UUID;

class RequestReply {
    public static void main(String[] args) {
        try (FilaClient client = FilaClient.connect("localhost:5555")) {
            client.createQueue("requests");
            Thread service = new Thread(() -> answerOne(client));
            service.start();

            String replyQueue = "replies-" + UUID.randomUUID();
            client.createQueue(replyQueue);
            client.enqueue("requests", Map.of("reply_to", replyQueue), "what is 6 x 7?".getBytes());
            try (Consumer consumer = client.consume(replyQueue)) {
                Message reply = consumer.iterator().next();
                System.out.println("the reply: " + reply.payloadText());
                client.ack(replyQueue, reply.id());
            }
            client.deleteQueue(replyQueue);
        }
    }

    static void answerOne(FilaClient client) {
        try (Consumer consumer = client.consume("requests")) {
            Message request = consumer.iterator().next();
            client.enqueue(request.headers().get("reply_to"), "42".getBytes());
            request.ack();
        }
    }
}
