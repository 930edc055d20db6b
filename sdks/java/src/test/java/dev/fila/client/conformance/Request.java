package dev.fila.client.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.fila.client.NewMessage;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * One line of the runner's, or an object within it. Remembers what was looked at, so that nothing
 * is passed over.
 */
final class Request {
    /** An op or an argument that this driver does not know. */
    static final class Unsupported extends RuntimeException {
        private static final long serialVersionUID = 1;

        Unsupported(String what) {
            super(what);
        }
    }

    private final JsonObject line;
    private final Set<String> seen = new HashSet<>(Set.of("id", "op"));

    Request(JsonObject line) {
        this.line = line;
    }

    private Optional<JsonElement> find(String name) {
        seen.add(name);
        JsonElement value = line.get(name);
        return value == null || value.isJsonNull() ? Optional.empty() : Optional.of(value);
    }

    boolean has(String name) {
        return find(name).isPresent();
    }

    Optional<String> text(String name) {
        return find(name).map(JsonElement::getAsString);
    }

    String needText(String name) {
        return text(name).orElseThrow(() -> new Unsupported(name + " is missing"));
    }

    /** The channel, null where none is named. */
    String channel() {
        return text("channel").orElse(null);
    }

    Optional<Long> number(String name) {
        return find(name).map(JsonElement::getAsLong);
    }

    long needNumber(String name) {
        return number(name).orElseThrow(() -> new Unsupported(name + " is missing"));
    }

    Optional<Integer> integer(String name) {
        return number(name).map(Math::toIntExact);
    }

    Optional<Double> real(String name) {
        return find(name).map(JsonElement::getAsDouble);
    }

    Optional<Boolean> flag(String name) {
        return find(name).map(JsonElement::getAsBoolean);
    }

    Optional<Duration> millis(String name) {
        return number(name).map(Duration::ofMillis);
    }

    Optional<Duration> seconds(String name) {
        return real(name).map(seconds -> Duration.ofNanos(Math.round(seconds * 1e9)));
    }

    Optional<Instant> moment(String name) {
        return number(name).map(Instant::ofEpochMilli);
    }

    Optional<JsonElement> any(String name) {
        return find(name);
    }

    Optional<Request> object(String name) {
        return find(name).map(value -> new Request(value.getAsJsonObject()));
    }

    Set<String> names() {
        return line.keySet();
    }

    Map<String, String> texts(String name) {
        Map<String, String> texts = new HashMap<>();
        find(name)
                .ifPresent(
                        value ->
                                value.getAsJsonObject()
                                        .entrySet()
                                        .forEach(
                                                entry ->
                                                        texts.put(
                                                                entry.getKey(),
                                                                entry.getValue().getAsString())));
        return texts;
    }

    List<String> textList(String name) {
        JsonArray array = find(name).map(JsonElement::getAsJsonArray).orElse(new JsonArray());
        return array.asList().stream().map(JsonElement::getAsString).toList();
    }

    List<Long> numberList(String name) {
        JsonArray array = find(name).map(JsonElement::getAsJsonArray).orElse(new JsonArray());
        return array.asList().stream().map(JsonElement::getAsLong).toList();
    }

    List<Request> objects(String name) {
        JsonArray array = find(name).map(JsonElement::getAsJsonArray).orElse(new JsonArray());
        return array.asList().stream().map(value -> new Request(value.getAsJsonObject())).toList();
    }

    /** The message that this describes. */
    NewMessage newMessage() {
        NewMessage.Builder message = NewMessage.builder().headers(texts("headers"));
        message.payload(Base64.getDecoder().decode(text("payload").orElse("")));
        millis("delay_ms").ifPresent(message::delay);
        moment("deliver_at_ms").ifPresent(message::deliverAt);
        millis("ttl_ms").ifPresent(message::ttl);
        text("dedup_key").ifPresent(message::dedupKey);
        millis("max_wait_ms").ifPresent(message::maxWait);
        if (flag("replace").orElse(false)) {
            message.replace();
        }
        text("fairness_key").ifPresent(message::fairnessKey);
        number("weight").ifPresent(weight -> message.weight(weight.intValue()));
        real("cost").ifPresent(message::cost);
        number("priority").ifPresent(priority -> message.priority(priority.intValue()));
        return message.build();
    }

    /** Refuses what nobody has looked at. */
    void checkAllSeen() {
        Set<String> unseen = new HashSet<>(line.keySet());
        unseen.removeAll(seen);
        if (!unseen.isEmpty()) {
            throw new Unsupported("unknown arguments " + unseen);
        }
    }
}
