package dev.fila.client.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.MessageOrBuilder;
import com.google.protobuf.Timestamp;
import dev.fila.client.DeadLetter;
import dev.fila.client.Message;
import dev.fila.client.StoredMessage;
import dev.fila.client.Traces;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.ItemResult;
import dev.fila.client.errors.OverloadedException;
import dev.fila.client.errors.SomeFailedException;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import java.time.Duration;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** What the SDK answers, as the protocol writes it. */
final class Answers {
    private static final Map<String, List<String>> CARRIED_BY_KIND =
            Map.ofEntries(
                    Map.entry("NotFound", List.of("queue")),
                    Map.entry("QueueNotFound", List.of("queue")),
                    Map.entry("ChannelNotFound", List.of("queue", "channel")),
                    Map.entry("MessageNotFound", List.of("queue", "message_id")),
                    Map.entry("ConfigKeyNotFound", List.of("config_key")),
                    Map.entry("Exists", List.of("queue")),
                    Map.entry("QueueExists", List.of("queue")),
                    Map.entry("ChannelExists", List.of("queue", "channel")),
                    Map.entry("Invalid", List.of("field")),
                    Map.entry("LimitExceeded", List.of("field")),
                    Map.entry("LeaseLost", List.of("message_id")),
                    Map.entry("SourceQueueGone", List.of("queue")),
                    Map.entry("QueueFull", List.of("queue")),
                    Map.entry("HooksFull", List.of("queue")));

    private Answers() {}

    /** What a span begins with that works on a message: its parent, and its links. */
    static JsonObject span(StoredMessage message, boolean parent) {
        SpanBuilder builder =
                SdkTracerProvider.builder().build().get("conformance").spanBuilder("process");
        SpanData span =
                ((ReadableSpan) Traces.traced(builder, message, parent).startSpan()).toSpanData();
        JsonObject answer = object("parent", name(span.getParentSpanContext()));
        answer.add(
                "links",
                json(span.getLinks().stream().map(link -> name(link.getSpanContext())).toList()));
        return answer;
    }

    private static String name(SpanContext span) {
        return span.isValid() ? span.getTraceId() + "-" + span.getSpanId() : "";
    }

    static JsonObject object(String name, Object value) {
        JsonObject object = new JsonObject();
        object.add(name, json(value));
        return object;
    }

    /**
     * A wire message by the proto's field names: moments in milliseconds, enums without their
     * prefix.
     */
    static JsonElement json(Object value) {
        if (value instanceof JsonElement element) {
            return element;
        } else if (value instanceof MessageOrBuilder message) {
            return wire(message);
        } else if (value instanceof Map<?, ?> map) {
            JsonObject object = new JsonObject();
            map.forEach((name, member) -> object.add(name.toString(), json(member)));
            return object;
        } else if (value instanceof Collection<?> items) {
            JsonArray array = new JsonArray();
            items.forEach(item -> array.add(json(item)));
            return array;
        } else if (value instanceof ByteString bytes) {
            return new JsonPrimitive(Base64.getEncoder().encodeToString(bytes.toByteArray()));
        } else if (value instanceof Number number) {
            return new JsonPrimitive(number);
        } else if (value instanceof Boolean flag) {
            return new JsonPrimitive(flag);
        }
        return value == null ? JsonNull.INSTANCE : new JsonPrimitive(value.toString());
    }

    static JsonObject wire(MessageOrBuilder message) {
        JsonObject object = new JsonObject();
        for (FieldDescriptor field : message.getDescriptorForType().getFields()) {
            Object value = message.getField(field);
            if (value instanceof Timestamp time) {
                if (message.hasField(field)) {
                    object.addProperty(
                            field.getName() + "_ms",
                            time.getSeconds() * 1000 + time.getNanos() / 1_000_000);
                }
            } else if (isMoments(field)) {
                object.add(field.getName() + "_ms", moments((Collection<?>) value));
            } else if (field.isMapField()) {
                object.add(field.getName(), entries((Collection<?>) value));
            } else if (field.getJavaType() == FieldDescriptor.JavaType.ENUM) {
                String prefix =
                        field.getEnumType().getName().replaceAll("([a-z])([A-Z])", "$1_$2") + "_";
                object.addProperty(
                        field.getName(), value.toString().substring(prefix.length()).toLowerCase());
            } else {
                object.add(field.getName(), json(value));
            }
        }
        return object;
    }

    private static boolean isMoments(FieldDescriptor field) {
        return field.isRepeated()
                && field.getJavaType() == FieldDescriptor.JavaType.MESSAGE
                && field.getMessageType().equals(Timestamp.getDescriptor());
    }

    private static JsonArray moments(Collection<?> moments) {
        JsonArray array = new JsonArray();
        for (Object moment : moments) {
            Timestamp time = (Timestamp) moment;
            array.add(time.getSeconds() * 1000 + time.getNanos() / 1_000_000);
        }
        return array;
    }

    private static JsonObject entries(Collection<?> entries) {
        JsonObject object = new JsonObject();
        for (Object entry : entries) {
            MessageOrBuilder pair = (MessageOrBuilder) entry;
            var fields = pair.getDescriptorForType().getFields();
            object.add(pair.getField(fields.get(0)).toString(), json(pair.getField(fields.get(1))));
        }
        return object;
    }

    static JsonObject message(StoredMessage message) {
        JsonObject answer = new JsonObject();
        answer.addProperty("id", message.id());
        answer.addProperty("queue", message.queue());
        answer.addProperty("channel", message.channel());
        answer.addProperty("offset", message.offset());
        answer.add("headers", json(message.headers()));
        answer.addProperty("payload", Base64.getEncoder().encodeToString(message.payload()));
        answer.addProperty("fairness_key", message.fairnessKey());
        answer.addProperty("weight", message.weight());
        answer.addProperty("cost", message.cost());
        answer.addProperty("priority", message.priority());
        answer.add("throttle_keys", json(message.throttleKeys()));
        answer.addProperty("attempt_count", message.attemptCount());
        answer.addProperty("enqueued_at_ms", message.enqueuedAt().toEpochMilli());
        answer.addProperty("appended_at_ms", message.appendedAt().toEpochMilli());
        answer.add(
                "due_at_ms",
                message.dueAt()
                        .<JsonElement>map(due -> new JsonPrimitive(due.toEpochMilli()))
                        .orElse(JsonNull.INSTANCE));
        answer.add(
                "dead_letter",
                message.deadLetter().map(Answers::deadLetter).orElse(JsonNull.INSTANCE));
        if (message instanceof Message delivery) {
            answer.addProperty("lease_id", delivery.leaseId());
            answer.addProperty("redelivered", delivery.isRedelivered());
            answer.addProperty("came_back", delivery.cameBack());
            answer.addProperty("leased_at_ms", delivery.leasedAt().toEpochMilli());
            answer.addProperty("lease_expires_at_ms", delivery.leaseExpiresAt().toEpochMilli());
        }
        return answer;
    }

    private static JsonElement deadLetter(DeadLetter letter) {
        JsonObject answer = new JsonObject();
        answer.addProperty("source_queue", letter.sourceQueue());
        answer.addProperty("source_channel", letter.sourceChannel());
        answer.addProperty("reason", letter.reason());
        answer.addProperty("last_error", letter.lastError());
        answer.addProperty("attempts", letter.attempts());
        answer.addProperty("at_ms", letter.at().toEpochMilli());
        return answer;
    }

    static JsonObject stored(String messageId, long offset) {
        JsonObject answer = new JsonObject();
        answer.addProperty("message_id", messageId);
        answer.addProperty("offset", offset);
        return answer;
    }

    static JsonObject error(Throwable error) {
        JsonObject answer = new JsonObject();
        boolean isArgument =
                error instanceof IllegalArgumentException || error instanceof NullPointerException;
        if (!(error instanceof FilaException failure)) {
            answer.addProperty("kind", isArgument ? "Argument" : "Unexpected");
            answer.addProperty("code", "");
            answer.addProperty("reason", "");
            answer.addProperty("message", isArgument ? error.getMessage() : error.toString());
            return answer;
        }
        String kind = kind(failure);
        answer.addProperty("kind", kind);
        answer.addProperty("code", failure.code().name());
        answer.addProperty("reason", failure.reason());
        answer.addProperty("message", failure.getMessage());
        for (String name : CARRIED_BY_KIND.getOrDefault(kind, List.of())) {
            answer.addProperty(name, failure.details().fields().getOrDefault(name, ""));
        }
        if (failure instanceof dev.fila.client.errors.LeaseLostException lost) {
            answer.addProperty("lease_id", lost.leaseId());
        }
        if (failure instanceof OverloadedException overloaded) {
            answer.add(
                    "retry_after_s",
                    json(overloaded.retryAfter().map(Answers::seconds).orElse(null)));
        }
        if (failure instanceof SomeFailedException some) {
            answer.add("results", json(some.results().stream().map(Answers::result).toList()));
        }
        return answer;
    }

    private static double seconds(Duration time) {
        return time.toNanos() / 1e9;
    }

    private static JsonObject result(ItemResult result) {
        return result.isOk()
                ? object("ok", stored(result.messageId(), result.offset()))
                : object("error", error(result.error()));
    }

    private static String kind(FilaException error) {
        String name = error.getClass().getSimpleName().replaceAll("Exception$", "");
        return switch (name) {
            case "Fila" -> "FilaError";
            case "Internal" -> "InternalError";
            default -> name;
        };
    }
}
