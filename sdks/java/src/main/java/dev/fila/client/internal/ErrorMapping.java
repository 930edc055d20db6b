package dev.fila.client.internal;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.fila.client.errors.AnswerLostException;
import dev.fila.client.errors.ChannelExistsException;
import dev.fila.client.errors.ChannelNotFoundException;
import dev.fila.client.errors.ClientClosedException;
import dev.fila.client.errors.ConfigKeyNotFoundException;
import dev.fila.client.errors.ConflictException;
import dev.fila.client.errors.DiskFloorException;
import dev.fila.client.errors.ErrorDetails;
import dev.fila.client.errors.ExistsException;
import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.HooksFullException;
import dev.fila.client.errors.InternalException;
import dev.fila.client.errors.InvalidException;
import dev.fila.client.errors.LeaseLostException;
import dev.fila.client.errors.LimitExceededException;
import dev.fila.client.errors.LogDamagedException;
import dev.fila.client.errors.MessageNotFoundException;
import dev.fila.client.errors.NotAllowedException;
import dev.fila.client.errors.NotFoundException;
import dev.fila.client.errors.NotOwnerException;
import dev.fila.client.errors.NotSupportedException;
import dev.fila.client.errors.OverloadedException;
import dev.fila.client.errors.QueueExistsException;
import dev.fila.client.errors.QueueFullException;
import dev.fila.client.errors.QueueNotFoundException;
import dev.fila.client.errors.SomeFailedException;
import dev.fila.client.errors.SourceQueueGoneException;
import dev.fila.client.errors.UnavailableException;
import dev.fila.v1.ItemStatus;
import io.grpc.Status;
import io.grpc.Status.Code;
import io.grpc.protobuf.StatusProto;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * From what the wire says to the exception that means it.
 *
 * <p>The broker sends a reason with every error: google.rpc.ErrorInfo for a call, ItemStatus for
 * one item of a batch.
 */
public final class ErrorMapping {
    private static final String DOMAIN = "fila";

    private record Kind(Code code, Function<ErrorDetails, FilaException> make) {}

    private static final Map<String, Kind> KIND_BY_REASON =
            Map.ofEntries(
                    Map.entry(
                            "QUEUE_NOT_FOUND",
                            new Kind(Code.NOT_FOUND, QueueNotFoundException::new)),
                    Map.entry(
                            "CHANNEL_NOT_FOUND",
                            new Kind(Code.NOT_FOUND, ChannelNotFoundException::new)),
                    Map.entry(
                            "MESSAGE_NOT_FOUND",
                            new Kind(Code.NOT_FOUND, MessageNotFoundException::new)),
                    Map.entry(
                            "CONFIG_KEY_NOT_FOUND",
                            new Kind(Code.NOT_FOUND, ConfigKeyNotFoundException::new)),
                    Map.entry("NOT_FOUND", new Kind(Code.NOT_FOUND, NotFoundException::new)),
                    Map.entry(
                            "QUEUE_EXISTS",
                            new Kind(Code.ALREADY_EXISTS, QueueExistsException::new)),
                    Map.entry(
                            "CHANNEL_EXISTS",
                            new Kind(Code.ALREADY_EXISTS, ChannelExistsException::new)),
                    Map.entry("EXISTS", new Kind(Code.ALREADY_EXISTS, ExistsException::new)),
                    Map.entry(
                            "INVALID_FIELD",
                            new Kind(Code.INVALID_ARGUMENT, InvalidException::new)),
                    Map.entry(
                            "LIMIT_EXCEEDED",
                            new Kind(Code.INVALID_ARGUMENT, LimitExceededException::new)),
                    Map.entry(
                            "CONFLICT", new Kind(Code.FAILED_PRECONDITION, ConflictException::new)),
                    Map.entry(
                            "LEASE_LOST",
                            new Kind(Code.FAILED_PRECONDITION, LeaseLostException::new)),
                    Map.entry(
                            "SOURCE_QUEUE_GONE",
                            new Kind(Code.FAILED_PRECONDITION, SourceQueueGoneException::new)),
                    Map.entry(
                            "OVERLOADED",
                            new Kind(Code.RESOURCE_EXHAUSTED, OverloadedException::new)),
                    Map.entry(
                            "QUEUE_FULL",
                            new Kind(Code.RESOURCE_EXHAUSTED, QueueFullException::new)),
                    Map.entry(
                            "HOOKS_FULL",
                            new Kind(Code.RESOURCE_EXHAUSTED, HooksFullException::new)),
                    Map.entry(
                            "DISK_FLOOR",
                            new Kind(Code.RESOURCE_EXHAUSTED, DiskFloorException::new)),
                    Map.entry(
                            "SHUTTING_DOWN", new Kind(Code.UNAVAILABLE, UnavailableException::new)),
                    Map.entry("NOT_OWNER", new Kind(Code.UNAVAILABLE, NotOwnerException::new)),
                    Map.entry(
                            "UNIMPLEMENTED",
                            new Kind(Code.UNIMPLEMENTED, NotSupportedException::new)),
                    Map.entry("LOG_DAMAGED", new Kind(Code.DATA_LOSS, LogDamagedException::new)),
                    Map.entry("INTERNAL", new Kind(Code.INTERNAL, InternalException::new)));

    private static final Set<Code> TRANSPORT_CODES =
            Set.of(
                    Code.UNAVAILABLE,
                    Code.DEADLINE_EXCEEDED,
                    Code.CANCELLED,
                    Code.UNKNOWN,
                    Code.INTERNAL);

    private ErrorMapping() {}

    /** The error that one item's status means; {@code known} is what the item was about. */
    public static FilaException ofItem(ItemStatus status, Map<String, String> known) {
        Code code = Status.fromCodeValue(status.getCode()).getCode();
        return of(
                new ErrorDetails(status.getMessage(), code, status.getReason(), known, null, null));
    }

    /** The error that a failed call means, its ErrorInfo and RetryInfo included. */
    public static FilaException ofCall(Throwable failure, Map<String, String> known) {
        Status status = Status.fromThrowable(failure);
        Map<String, String> told = new HashMap<>(known);
        String reason = "";
        Duration retryAfter = null;
        com.google.rpc.Status sent = StatusProto.fromThrowable(failure);
        if (sent != null) {
            for (Any detail : sent.getDetailsList()) {
                ErrorInfo info = unpacked(detail, ErrorInfo.class);
                if (info != null && info.getDomain().equals(DOMAIN)) {
                    reason = info.getReason();
                    told.putAll(info.getMetadataMap());
                }
                RetryInfo retry = unpacked(detail, RetryInfo.class);
                if (retry != null) {
                    var delay = retry.getRetryDelay();
                    retryAfter = Duration.ofSeconds(delay.getSeconds(), delay.getNanos());
                }
            }
        }
        String text = status.getDescription() == null ? "" : status.getDescription();
        return of(new ErrorDetails(text, status.getCode(), reason, told, retryAfter, failure));
    }

    /**
     * The same error as a new exception, thrown where it is called: its stack is the caller's, its
     * cause the first.
     */
    public static FilaException again(FilaException error) {
        return error instanceof SomeFailedException
                ? error
                : MAKE_BY_CLASS
                        .getOrDefault(error.getClass(), FilaException::new)
                        .apply(error.details().causedBy(error));
    }

    /** Whether the broker itself refused, so that nothing happened; else the transport failed. */
    public static boolean isBrokersWord(FilaException error) {
        return !error.reason().isEmpty();
    }

    /** Of a call: a failure of the transport becomes AnswerLostException. */
    public static FilaException answerLostUnlessSaid(FilaException error) {
        return isTransportFailure(error)
                ? new AnswerLostException(
                        error.details()
                                .withMessage(
                                        "the request may have arrived, but no answer came: "
                                                + error.getMessage()))
                : error;
    }

    /**
     * Of a stream: a failure of the transport becomes UnavailableException; others know what was
     * under way.
     */
    public static FilaException unavailableUnlessSaid(FilaException error) {
        return isTransportFailure(error)
                ? new UnavailableException(
                        error.details().withMessage("the stream broke: " + error.getMessage()))
                : error;
    }

    private static boolean isTransportFailure(FilaException error) {
        return TRANSPORT_CODES.contains(error.code()) && !isBrokersWord(error);
    }

    private static FilaException of(ErrorDetails details) {
        Kind kind = KIND_BY_REASON.get(details.reason());
        Function<ErrorDetails, FilaException> make =
                kind != null && kind.code() == details.code()
                        ? kind.make()
                        : byCode(details.code());
        boolean silent = details.message().isEmpty();
        return make.apply(
                silent
                        ? details.withMessage(
                                "the broker answered " + details.code() + " without a text")
                        : details);
    }

    private static Function<ErrorDetails, FilaException> byCode(Code code) {
        return switch (code) {
            case NOT_FOUND -> NotFoundException::new;
            case ALREADY_EXISTS -> ExistsException::new;
            case INVALID_ARGUMENT, OUT_OF_RANGE -> InvalidException::new;
            case FAILED_PRECONDITION, ABORTED -> ConflictException::new;
            case RESOURCE_EXHAUSTED -> OverloadedException::new;
            case UNAVAILABLE -> UnavailableException::new;
            case DEADLINE_EXCEEDED -> AnswerLostException::new;
            case UNIMPLEMENTED -> NotSupportedException::new;
            case UNAUTHENTICATED, PERMISSION_DENIED -> NotAllowedException::new;
            case INTERNAL, DATA_LOSS -> InternalException::new;
            default -> FilaException::new;
        };
    }

    private static <T extends com.google.protobuf.Message> @Nullable T unpacked(
            Any detail, Class<T> type) {
        try {
            return detail.is(type) ? detail.unpack(type) : null;
        } catch (InvalidProtocolBufferException damaged) {
            return null; // the status itself still says what happened
        }
    }

    private static final Map<Class<?>, Function<ErrorDetails, FilaException>> MAKE_BY_CLASS =
            makeByClass();

    private static Map<Class<?>, Function<ErrorDetails, FilaException>> makeByClass() {
        Map<Class<?>, Function<ErrorDetails, FilaException>> makes = new HashMap<>();
        ErrorDetails nothing = ErrorDetails.of(Code.UNKNOWN, "");
        for (Kind kind : KIND_BY_REASON.values()) {
            makes.put(kind.make().apply(nothing).getClass(), kind.make());
        }
        for (Code code : Code.values()) {
            makes.put(byCode(code).apply(nothing).getClass(), byCode(code));
        }
        makes.put(ClientClosedException.class, ClientClosedException::new);
        return Map.copyOf(makes);
    }
}
