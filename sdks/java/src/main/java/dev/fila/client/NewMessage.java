package dev.fila.client;

import com.google.protobuf.ByteString;
import dev.fila.v1.EnqueueMessage;
import dev.fila.v1.EnqueueOptions;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A message to enqueue: a payload, headers, and wishes. Immutable. */
public final class NewMessage {
    private final EnqueueMessage wire;

    private NewMessage(EnqueueMessage wire) {
        this.wire = wire;
    }

    /** A message of these bytes; they are copied. */
    public static NewMessage of(byte[] payload) {
        return builder().payload(payload).build();
    }

    /** A message of these bytes with headers. */
    public static NewMessage of(Map<String, String> headers, byte[] payload) {
        return builder().headers(headers).payload(payload).build();
    }

    /** A message of this text in UTF-8. */
    public static NewMessage of(String payload) {
        return builder().payload(payload).build();
    }

    /** An empty message without headers, to be filled. */
    public static Builder builder() {
        return new Builder();
    }

    /** The message without a queue of its own. */
    EnqueueMessage wire() {
        return wire;
    }

    /**
     * Whether sending it twice stores it once. One that replaces others could replace a newer one.
     */
    static boolean mayRepeat(EnqueueMessage message) {
        EnqueueOptions options = message.getOptions();
        return !options.getDedupKey().isEmpty()
                && options.getOnDuplicate() != EnqueueOptions.OnDuplicate.ON_DUPLICATE_REPLACE;
    }

    /** Collects what a message is made of. */
    public static final class Builder {
        private final EnqueueMessage.Builder message = EnqueueMessage.newBuilder();
        private EnqueueOptions.@Nullable Builder options;

        private Builder() {}

        /** The payload; copied. */
        public Builder payload(byte[] payload) {
            message.setPayload(ByteString.copyFrom(payload));
            return this;
        }

        /** The payload: this text in UTF-8. */
        public Builder payload(String text) {
            return payload(text.getBytes(StandardCharsets.UTF_8));
        }

        /** One more header. */
        public Builder header(String key, String value) {
            message.putHeaders(encodable("a header's key", key), encodable("header " + key, value));
            return this;
        }

        /** More headers. */
        public Builder headers(Map<String, String> headers) {
            headers.forEach(this::header);
            return this;
        }

        /** Not ready before so long from now. Not together with {@link #deliverAt}. */
        public Builder delay(Duration delay) {
            options().setDelayMs(Arguments.millis("delay", delay));
            return this;
        }

        /** Not ready before this moment. */
        public Builder deliverAt(Instant moment) {
            options().setDeliverAt(Arguments.timestamp(moment));
            return this;
        }

        /** Dropped when nobody has leased it so long after it was accepted. */
        public Builder ttl(Duration ttl) {
            options().setTtlMs(Arguments.millis("ttl", ttl));
            return this;
        }

        /** A second enqueue with this key within the queue's window answers the first one's id. */
        public Builder dedupKey(String key) {
            options().setDedupKey(encodable("dedupKey", key));
            return this;
        }

        /**
         * The latest wins: an earlier message with this {@link #dedupKey} that is not delivered yet
         * gives way to this one. If it is leased, this one waits until that lease ends.
         */
        public Builder replace() {
            options().setOnDuplicate(EnqueueOptions.OnDuplicate.ON_DUPLICATE_REPLACE);
            return this;
        }

        /**
         * With {@link #replace}: the delay ends at the latest so long after the first of them was
         * accepted.
         */
        public Builder maxWait(Duration maxWait) {
            options().setMaxWaitMs(Arguments.millis("maxWait", maxWait));
            return this;
        }

        /**
         * Its fairness key, where the queue has {@code allowProducerRouting}; else its headers and
         * the queue decide.
         */
        public Builder fairnessKey(String key) {
            options().setFairnessKey(encodable("fairnessKey", key));
            return this;
        }

        /** The weight of that key, 1 to 1000, in the same way. */
        public Builder weight(int weight) {
            options().setWeight(weight);
            return this;
        }

        /** What a delivery costs its key, 0.001 to 1,000,000, in the same way. */
        public Builder cost(double cost) {
            options().setCost(cost);
            return this;
        }

        /**
         * 0 to 3 among the messages of its fairness key, where 3 goes first and 1 is usual; else
         * the queue decides.
         */
        public Builder priority(int priority) {
            options().setPriority(priority);
            return this;
        }

        /** The message as it stands now. */
        public NewMessage build() {
            if (options != null) {
                message.setOptions(options);
            }
            return new NewMessage(message.build());
        }

        private EnqueueOptions.Builder options() {
            if (options == null) {
                options = EnqueueOptions.newBuilder();
            }
            return options;
        }

        /** Half a surrogate pair would be sent as a question mark, in silence. */
        private static String encodable(String name, String text) {
            Objects.requireNonNull(text, name);
            for (int i = 0; i < text.length(); i++) {
                if (Character.isSurrogate(text.charAt(i))) {
                    if (!Character.isHighSurrogate(text.charAt(i))
                            || ++i == text.length()
                            || !Character.isLowSurrogate(text.charAt(i))) {
                        throw new IllegalArgumentException(name + " can't be written as UTF-8");
                    }
                }
            }
            return text;
        }
    }
}
