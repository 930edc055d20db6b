import com.google.protobuf.ByteString;
import dev.fila.client.Consumer;
import dev.fila.client.FilaClient;
import dev.fila.client.Message;
import dev.fila.client.NewMessage;
import dev.fila.v1.EnqueueRequest;
import dev.fila.v1.FilaServiceGrpc;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/** The load of fila_bench/sdk_load.py through the Java SDK: 1 KB messages, each enqueue and each ack awaited. */
class Load {
    static final byte[] PAYLOAD = new byte[1024];
    static final List<Map<String, String>> HEADERS =
            IntStream.range(0, 10).mapToObj(n -> Map.of("tenant", "k%07d".formatted(n))).toList();

    static volatile boolean over;
    static final LongAdder acked = new LongAdder();

    public static void main(String[] args) throws Exception {
        String address = args[0], queue = args[1];
        int callers = Integer.parseInt(args[3]);
        double warmUp = Double.parseDouble(args[4]), seconds = Double.parseDouble(args[5]);
        long messages = Long.parseLong(args[6]);
        System.out.println(
                switch (args[2]) {
                    case "awaited" -> awaited(address, queue, callers, warmUp, seconds, messages);
                    case "one" -> one(address, queue, warmUp, seconds);
                    default -> stub(address, queue, warmUp, seconds);
                });
        System.exit(0);
    }

    /** Measures for some seconds, or until so many messages are acked, the first tenth of them as the warm-up. */
    static String awaited(
            String address, String queue, int callers, double warmUp, double seconds, long messages) throws Exception {
        try (FilaClient client = FilaClient.connect(address);
                Consumer consumer = client.consume(queue)) {
            for (int i = 0; i < callers; i++) {
                start(() -> produce(client, queue));
                start(() -> consume(consumer));
            }
            until(warmUp, messages / 10);
            long heapFirst = liveHeap(), began = System.nanoTime(), cpu = cpuNanos(), first = acked.sum();
            until(seconds, messages);
            double elapsed = (System.nanoTime() - began) / 1e9, used = (cpuNanos() - cpu) / 1e9;
            long last = acked.sum();
            over = true;
            return String.format(
                    Locale.ROOT,
                    "{\"acked\": %d, \"acked_per_s\": %f, \"seconds\": %f, \"cpu_s\": %f, \"heap_first\": %d, \"heap_last\": %d}",
                    last, (last - first) / elapsed, elapsed, used, heapFirst, liveHeap());
        }
    }

    static void start(Runnable loop) {
        Runnable guarded =
                () -> {
                    try {
                        loop.run();
                    } catch (RuntimeException failure) {
                        if (!over) {
                            failure.printStackTrace();
                            System.exit(1);
                        }
                    }
                };
        try {
            // Virtual threads where the JVM has them; they are newer than Java 17.
            Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, guarded);
        } catch (ReflectiveOperationException none) {
            Thread thread = new Thread(guarded);
            thread.setDaemon(true);
            thread.start();
        }
    }

    static void produce(FilaClient client, String queue) {
        for (int sequence = 0; !over; sequence++) {
            client.enqueue(queue, HEADERS.get(sequence % 10), PAYLOAD);
        }
    }

    static void consume(Consumer consumer) {
        for (Message message : consumer) {
            message.ack();
            acked.increment();
        }
    }

    static void until(double seconds, long messages) throws InterruptedException {
        if (messages == 0) {
            Thread.sleep((long) (seconds * 1000));
        }
        while (acked.sum() < messages) {
            Thread.sleep(10);
        }
    }

    static long liveHeap() {
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    static String one(String address, String queue, double warmUp, double seconds) {
        try (FilaClient client = FilaClient.connect(address)) {
            return oneAtATime(n -> client.enqueue(queue, HEADERS.get(n % 10), PAYLOAD), warmUp, seconds);
        }
    }

    static String stub(String address, String queue, double warmUp, double seconds) {
        ManagedChannel channel = ManagedChannelBuilder.forTarget(address).usePlaintext().build();
        FilaServiceGrpc.FilaServiceBlockingStub stub = FilaServiceGrpc.newBlockingStub(channel);
        return oneAtATime(
                n -> stub.enqueue(EnqueueRequest.newBuilder()
                        .setQueue(queue)
                        .putAllHeaders(HEADERS.get(n % 10))
                        .setPayload(ByteString.copyFrom(PAYLOAD))
                        .build()),
                warmUp,
                seconds);
    }

    static String oneAtATime(IntConsumer send, double warmUp, double seconds) {
        List<Long> took = new ArrayList<>();
        long measured = System.nanoTime() + (long) (warmUp * 1e9), end = measured + (long) (seconds * 1e9);
        for (int sequence = 0; ; sequence++) {
            long now = System.nanoTime();
            if (now > end) {
                break;
            }
            send.accept(sequence);
            if (now > measured) {
                took.add((System.nanoTime() - now) / 1000);
            }
        }
        took.sort(null);
        return "{\"p50_us\": " + took.get(took.size() / 2) + "}";
    }
}
