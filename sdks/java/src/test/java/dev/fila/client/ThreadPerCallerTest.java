package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.fila.v1.EnqueueStreamRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/**
 * A thread for each caller. They are virtual where the JVM has them, which are found by name, for
 * they are newer than Java 17; on an older one they are platform threads, and fewer.
 */
class ThreadPerCallerTest extends FakeBrokerTest {
    private int callers = 200;

    @Test
    void callersOnThreadsOfTheirOwnShareOneClient() {
        connect();
        ExecutorService threads = threadPerTask();
        var answering = async(this::answerAll);
        List<Future<MessageId>> stored = new ArrayList<>();
        for (int i = 0; i < callers; i++) {
            String text = "m" + i;
            stored.add(threads.submit(() -> client.enqueue("orders", NewMessage.of(text))));
        }
        stored.forEach(FakeBrokerTest::get);
        assertEquals(callers, get(answering));
        threads.shutdown();
    }

    private ExecutorService threadPerTask() {
        try {
            var virtual = Executors.class.getMethod("newVirtualThreadPerTaskExecutor");
            callers = 5_000;
            return (ExecutorService) virtual.invoke(null);
        } catch (ReflectiveOperationException olderThanVirtualThreads) {
            return Executors.newCachedThreadPool();
        }
    }

    private int answerAll() {
        var stream = broker.producer();
        int count = 0;
        while (count < callers) {
            EnqueueStreamRequest frame = stream.next();
            stream.send(stored(frame, count + 1));
            count += frame.getBatch().getMessagesCount();
        }
        return count;
    }
}
