package dev.fila.client.errors;

import io.grpc.Status;
import java.io.Serializable;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * What an error carries: its text, the codes, and what the request was about.
 *
 * @param message a sentence for people: what happened, which field or bound, what to do next
 * @param code the gRPC status code
 * @param reason the broker's reason, empty when it was not the broker that refused
 * @param fields what the request was about, by names of the wire: {@code queue}, {@code channel},
 *     {@code message_id}, {@code lease_id}, {@code field}, {@code config_key}
 * @param retryAfter how long the broker suggests to wait, null when it said nothing
 * @param cause what brought it about, null when there is nothing more to say
 */
public record ErrorDetails(
        String message,
        Status.Code code,
        String reason,
        Map<String, String> fields,
        @Nullable Duration retryAfter,
        @Nullable Throwable cause)
        implements Serializable {
    private static final long serialVersionUID = 1;

    /** Copies the fields. */
    public ErrorDetails {
        fields = Map.copyOf(fields);
    }

    /** An error that this client found, not the broker. */
    public static ErrorDetails of(Status.Code code, String message) {
        return new ErrorDetails(message, code, "", Map.of(), null, null);
    }

    /** The same with a cause. */
    public ErrorDetails causedBy(@Nullable Throwable newCause) {
        return new ErrorDetails(message, code, reason, fields, retryAfter, newCause);
    }

    /** The same with another text. */
    public ErrorDetails withMessage(String newMessage) {
        return new ErrorDetails(newMessage, code, reason, fields, retryAfter, cause);
    }

    /** The same with another status code. */
    public ErrorDetails withCode(Status.Code newCode) {
        return new ErrorDetails(message, newCode, reason, fields, retryAfter, cause);
    }

    /** How long the broker suggests to wait. */
    public Optional<Duration> retryAfterIfKnown() {
        return Optional.ofNullable(retryAfter);
    }

    String field(String name) {
        return fields.getOrDefault(name, "");
    }
}
