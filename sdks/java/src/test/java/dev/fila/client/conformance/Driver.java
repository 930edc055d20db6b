package dev.fila.client.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.fila.client.ClientOptions;
import dev.fila.client.ConsumeOptions;
import dev.fila.client.FilaClient;
import dev.fila.client.LeaseOptions;
import dev.fila.client.LimitedException;
import dev.fila.client.Message;
import dev.fila.client.NewMessage;
import dev.fila.client.Prefetch;
import dev.fila.client.TlsOptions;
import dev.fila.client.errors.CallInterruptedException;
import dev.fila.client.errors.FilaException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The conformance driver of this SDK: it translates between the runner's line protocol and the
 * SDK's calls, and does nothing else. The protocol is told in sdks/conformance/PROTOCOL.md.
 */
public final class Driver {
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private final Map<String, FilaClient> clients = new ConcurrentHashMap<>();
    private final Map<String, List<String>> events = new ConcurrentHashMap<>();
    private final Map<String, Taking> loops = new ConcurrentHashMap<>();
    private final Map<Long, Message> messages = new ConcurrentHashMap<>();
    private final Map<Long, Future<?>> running = new ConcurrentHashMap<>();
    private final AtomicLong handles = new AtomicLong();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final PrintStream out;

    private Driver(PrintStream out) {
        this.out = out;
    }

    /** Serves the line protocol until the input ends. */
    public static void main(String[] arguments) throws IOException {
        Driver driver = new Driver(new PrintStream(System.out, false, StandardCharsets.UTF_8));
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        JsonObject ready = new JsonObject();
        ready.addProperty("ready", true);
        ready.addProperty("language", "java");
        driver.write(ready);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            driver.begin(JsonParser.parseString(line).getAsJsonObject());
        }
        driver.end();
    }

    private void begin(JsonObject line) {
        long id = line.get("id").getAsLong();
        String op = line.get("op").getAsString();
        Request request = new Request(line);
        switch (op) {
            case "cancel" -> {
                write(id, "ok", new JsonObject());
                Future<?> other = running.get(request.needNumber("request"));
                if (other != null) {
                    other.cancel(true);
                }
            }
            // Begun here, since their order counts.
            case "enqueue" -> answerLater(id, request, this::enqueue);
            case "ack", "nack", "reject", "release", "limited" ->
                    answerLater(id, request, any -> settle(op, request));
            default -> {
                FutureTask<Void> task = new FutureTask<>(() -> answerNow(id, op, request), null);
                running.put(id, task);
                threads.execute(task);
            }
        }
    }

    private interface Begun {
        CompletableFuture<JsonObject> begin(Request request);
    }

    private void answerLater(long id, Request request, Begun begun) {
        try {
            CompletableFuture<JsonObject> future = begun.begin(request);
            running.put(id, future);
            request.checkAllSeen();
            future.whenComplete(
                    (ok, failure) -> {
                        running.remove(id);
                        if (failure == null) {
                            write(id, "ok", ok);
                        } else {
                            fail(
                                    id,
                                    failure instanceof CompletionException
                                            ? failure.getCause()
                                            : failure);
                        }
                    });
        } catch (RuntimeException refused) {
            fail(id, refused);
        }
    }

    private void answerNow(long id, String op, Request request) {
        try {
            JsonObject ok = run(op, request);
            request.checkAllSeen();
            write(id, "ok", ok);
        } catch (RuntimeException failure) {
            fail(id, failure);
        } finally {
            running.remove(id);
        }
    }

    private void fail(long id, Throwable failure) {
        if (failure instanceof CancellationException
                || failure instanceof CallInterruptedException) {
            JsonObject line = new JsonObject();
            line.addProperty("id", id);
            line.addProperty("cancelled", true);
            write(line);
        } else if (failure instanceof Request.Unsupported unknown) {
            JsonObject line = new JsonObject();
            line.addProperty("id", id);
            line.addProperty("unsupported", unknown.getMessage());
            write(line);
        } else {
            write(id, "error", Answers.error(failure));
        }
    }

    private void write(long id, String name, JsonObject answer) {
        JsonObject line = new JsonObject();
        line.addProperty("id", id);
        line.add(name, answer);
        write(line);
    }

    private synchronized void write(JsonObject line) {
        out.println(line);
        out.flush();
    }

    // Operations.

    private FilaClient client(Request request) {
        return clients.get(request.needText("client"));
    }

    private Message message(Request request) {
        return messages.get(request.needNumber("handle"));
    }

    private CompletableFuture<JsonObject> enqueue(Request request) {
        return client(request)
                .enqueueAsync(request.needText("queue"), request.newMessage())
                .thenApply(stored -> Answers.stored(stored.value(), stored.offset()));
    }

    private CompletableFuture<JsonObject> settle(String op, Request request) {
        Message message = message(request);
        String error = request.text("error").orElse("");
        CompletableFuture<Void> settled =
                switch (op) {
                    case "ack" -> message.ackAsync();
                    case "release" -> message.releaseAsync();
                    case "reject" -> message.rejectAsync(error);
                    case "limited" ->
                            message.limitedAsync(
                                    new LimitedException(
                                            error,
                                            request.millis("retry_after_ms").orElse(null),
                                            request.text("throttle_key").orElse("")));
                    default -> nack(message, error, request);
                };
        return settled.thenApply(done -> new JsonObject());
    }

    private static CompletableFuture<Void> nack(Message message, String error, Request request) {
        if (request.flag("dead_letter").orElse(false)) {
            return message.rejectAsync(error);
        }
        return request.millis("delay_ms")
                .map(delay -> message.nackAsync(error, delay))
                .orElseGet(() -> message.nackAsync(error));
    }

    private JsonObject run(String op, Request request) {
        return switch (op) {
            case "connect" -> connect(request);
            case "close" -> {
                client(request).closeAndRelease();
                yield new JsonObject();
            }
            case "enqueue_many" -> enqueueMany(request);
            case "consume" -> consume(request);
            case "receive" -> receive(request);
            case "receive_batch" -> {
                Taking loop = loops.get(request.needText("consumer"));
                List<Message> batch = loop.nextBatch(request.millis("timeout_ms").orElse(PATIENCE));
                yield handedOut(batch, batch.isEmpty() && loop.hasEnded());
            }
            case "leave" -> {
                loops.get(request.needText("consumer")).leave();
                yield new JsonObject();
            }
            case "lease" -> lease(request);
            case "await_lost" -> awaitLost(request);
            case "span_of" -> Answers.span(message(request), request.flag("parent").orElse(false));
            case "connection_events" ->
                    Answers.object("events", events.get(request.needText("client")));
            case "extend" ->
                    Answers.object(
                            "lease_expires_at_ms",
                            message(request)
                                    .extend(Duration.ofMillis(request.needNumber("extend_ms")))
                                    .toEpochMilli());
            case "ack_by_id", "nack_by_id", "extend_by_id" -> settleById(op, request);
            case "ack_many", "nack_many" -> settleMany(op, request);
            default -> {
                JsonObject answer = AdminOperations.run(op, client(request), request);
                if (answer == null) {
                    throw new Request.Unsupported("unknown op " + op);
                }
                yield answer;
            }
        };
    }

    private JsonObject connect(Request request) {
        String name = request.needText("client");
        List<String> told = events.computeIfAbsent(name, any -> new CopyOnWriteArrayList<>());
        ClientOptions.Builder options =
                ClientOptions.builder()
                        .connectionListener(
                                event ->
                                        told.add(
                                                event.kind()
                                                        .name()
                                                        .toLowerCase(java.util.Locale.ROOT)));
        request.object("options").ifPresent(given -> read(given, options));
        clients.put(name, FilaClient.connect(request.needText("target"), options.build()));
        return new JsonObject();
    }

    private static void read(Request given, ClientOptions.Builder options) {
        given.seconds("connect_timeout_s").ifPresent(options::connectTimeout);
        given.seconds("call_timeout_s").ifPresent(options::callTimeout);
        given.seconds("retry_for_s").ifPresent(options::retryFor);
        given.seconds("reconnect_for_s").ifPresent(options::reconnectFor);
        given.seconds("wait_when_overloaded_s").ifPresent(options::waitWhenOverloaded);
        given.flag("batching").ifPresent(options::batching);
        given.real("linger_ms")
                .ifPresent(ms -> options.linger(Duration.ofNanos(Math.round(ms * 1e6))));
        given.integer("frame_messages_max").ifPresent(options::frameMessagesMax);
        given.integer("frame_bytes_max").ifPresent(options::frameBytesMax);
        given.integer("frames_in_flight_max").ifPresent(options::framesInFlightMax);
        given.number("waiting_bytes_max").ifPresent(options::waitingBytesMax);
        given.text("prefetch").ifPresent(word -> options.prefetch(prefetch(word)));
        given.text("api_key").ifPresent(options::apiKey);
        given.text("name").ifPresent(options::name);
        if (given.has("ca_file") || given.has("cert_file") || given.has("server_name")) {
            options.tls(tls(given));
        }
        given.checkAllSeen();
    }

    private static TlsOptions tls(Request given) {
        TlsOptions.Builder tls = TlsOptions.builder();
        given.text("ca_file").ifPresent(file -> tls.authorities(Path.of(file)));
        given.text("cert_file")
                .ifPresent(
                        file ->
                                tls.clientCertificate(
                                        Path.of(file), Path.of(given.needText("key_file"))));
        given.text("server_name").ifPresent(tls::serverName);
        return tls.build();
    }

    private static Prefetch prefetch(String word) {
        return word.equals("auto") ? Prefetch.auto() : Prefetch.of(Integer.parseInt(word));
    }

    private JsonObject enqueueMany(Request request) {
        List<NewMessage> all =
                request.objects("messages").stream().map(Request::newMessage).toList();
        JsonArray results = new JsonArray();
        client(request)
                .enqueueMany(request.needText("queue"), all)
                .forEach(id -> results.add(Answers.stored(id.value(), id.offset())));
        return Answers.object("results", results);
    }

    private JsonObject consume(Request request) {
        ConsumeOptions.Builder options = ConsumeOptions.builder();
        request.text("channel").ifPresent(options::channel);
        request.text("prefetch").ifPresent(word -> options.prefetch(prefetch(word)));
        request.seconds("stop_when_idle_s").ifPresent(options::stopWhenIdle);
        request.text("name").ifPresent(options::name);
        request.millis("max_lease_renewal_ms").ifPresent(options::maxLeaseRenewal);
        loops.put(
                request.needText("consumer"),
                new Taking(client(request).consume(request.needText("queue"), options.build())));
        return new JsonObject();
    }

    private JsonObject receive(Request request) {
        Taking loop = loops.get(request.needText("consumer"));
        int count = request.integer("count").orElse(1);
        long deadline = System.nanoTime() + request.millis("timeout_ms").orElse(PATIENCE).toNanos();
        List<Message> taken = new CopyOnWriteArrayList<>();
        while (taken.size() < count) {
            var next = loop.next(Duration.ofNanos(Math.max(0, deadline - System.nanoTime())));
            if (next.isEmpty()) {
                return handedOut(taken, loop.hasEnded());
            }
            taken.add(next.get());
        }
        return handedOut(taken, false);
    }

    private JsonObject handedOut(List<Message> taken, boolean ended) {
        JsonObject answer = Answers.object("messages", taken.stream().map(this::handOut).toList());
        answer.addProperty("ended", ended);
        return answer;
    }

    private JsonObject handOut(Message message) {
        long handle = handles.incrementAndGet();
        messages.put(handle, message);
        JsonObject answer = Answers.message(message);
        answer.addProperty("handle", handle);
        return answer;
    }

    private JsonObject lease(Request request) {
        LeaseOptions.Builder options = LeaseOptions.builder();
        request.text("channel").ifPresent(options::channel);
        request.millis("wait_ms").ifPresent(options::waitFor);
        List<Message> pulled =
                client(request)
                        .lease(
                                request.needText("queue"),
                                request.integer("max_messages").orElse(1),
                                options.build());
        return Answers.object("messages", pulled.stream().map(this::handOut).toList());
    }

    private JsonObject awaitLost(Request request) {
        JsonObject answer = new JsonObject();
        try {
            String reason =
                    message(request)
                            .lost()
                            .get(request.needNumber("timeout_ms"), TimeUnit.MILLISECONDS);
            answer.addProperty("lost", true);
            answer.addProperty("reason", reason);
        } catch (TimeoutException late) {
            answer.addProperty("lost", false);
        } catch (Exception broken) {
            throw new CompletionException(broken);
        }
        return answer;
    }

    private JsonObject settleById(String op, Request request) {
        FilaClient client = client(request);
        String queue = request.needText("queue");
        String channel = request.channel();
        String id = request.needText("message_id");
        switch (op) {
            case "ack_by_id" -> client.ack(queue, channel, id);
            case "nack_by_id" -> {
                String error = request.text("error").orElse("");
                if (request.flag("dead_letter").orElse(false)) {
                    client.reject(queue, channel, id, error);
                } else {
                    client.nack(queue, channel, id, error, request.millis("delay_ms").orElse(null));
                }
            }
            default -> {
                Duration longer = Duration.ofMillis(request.needNumber("extend_ms"));
                return Answers.object(
                        "lease_expires_at_ms",
                        client.extend(queue, channel, id, longer).toEpochMilli());
            }
        }
        return new JsonObject();
    }

    private JsonObject settleMany(String op, Request request) {
        List<Message> some = request.numberList("handles").stream().map(messages::get).toList();
        String error = request.text("error").orElse("");
        FilaClient client = client(request);
        if (op.equals("ack_many")) {
            client.ackMany(some);
        } else {
            request.millis("delay_ms")
                    .ifPresentOrElse(
                            delay -> client.nackMany(some, error, delay),
                            () -> client.nackMany(some, error));
        }
        return new JsonObject();
    }

    private void end() {
        loops.values().forEach(Taking::leave);
        for (FilaClient client : clients.values()) {
            try {
                client.close();
            } catch (FilaException late) {
                System.err.println("closing: " + late);
            }
        }
        threads.shutdownNow();
    }
}
