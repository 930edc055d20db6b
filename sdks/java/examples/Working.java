import dev.fila.client.ConsumeOptions;
import dev.fila.client.Consumer;
import dev.fila.client.FilaClient;
import dev.fila.client.HandlerOptions;
import dev.fila.client.Handling;
import dev.fila.client.Message;
import dev.fila.client.errors.LeaseLostException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;

class Working {
    public static void main(String[] args) throws InterruptedException {
        ConsumeOptions untilIdle =
                ConsumeOptions.builder().stopWhenIdle(Duration.ofMillis(500)).build();
        try (FilaClient client = FilaClient.connect("localhost:5555")) {
            // A handler: acked when it returns, nacked when it throws. Sixteen messages at a time.
            CountDownLatch ten = new CountDownLatch(10);
            try (Handling work =
                    client.handle(
                            "coffee", HandlerOptions.concurrency(16), message -> ten.countDown())) {
                ten.await();
            }

            // A loop, which settles by itself.
            try (Consumer consumer = client.consume("coffee", untilIdle)) {
                Message message = consumer.iterator().next();
                try {
                    settle(message);
                } catch (LeaseLostException late) {
                    System.out.println(message.id() + " took too long: it is somebody else's");
                }
            }

            // The fastest way: all that has arrived, acked together.
            int acked = 0;
            try (Consumer consumer = client.consume("coffee", untilIdle)) {
                for (List<Message> batch : consumer.batches()) {
                    client.ackMany(batch);
                    acked += batch.size();
                }
            }
            System.out.println("acked " + (acked > 0 ? "the rest" : "nothing"));

            // Pull instead of stream, at your own pace.
            client.lease("coffee", 10).forEach(Message::ack);
        }
    }

    static void settle(Message message) {
        if (message.attemptCount() > 3) {
            message.nack("tried often enough", Duration.ofMinutes(1));
        } else if (message.payloadText().equals("not json")) {
            message.reject("cannot be read"); // a dead letter, now
        } else {
            message.ack();
        }
    }
}
