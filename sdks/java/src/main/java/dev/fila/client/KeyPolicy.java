package dev.fila.client;

import dev.fila.v1.SetKeyPolicyRequest;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** What to change about a fairness key; what is not asked for stays. Immutable. */
public final class KeyPolicy {
    private final @Nullable Integer weight;
    private final @Nullable Boolean paused;
    private final @Nullable Integer maxInFlight;
    private final @Nullable Double ratePerSecond;
    private final @Nullable Double burst;
    private final boolean capByDefault;
    private final boolean rateByDefault;
    private final @Nullable Double committedPerSecond;
    private final boolean committedByDefault;
    private final String comment;

    private KeyPolicy(Builder builder) {
        weight = builder.weight;
        paused = builder.paused;
        maxInFlight = builder.maxInFlight;
        ratePerSecond = builder.ratePerSecond;
        burst = builder.burst;
        capByDefault = builder.capByDefault;
        rateByDefault = builder.rateByDefault;
        committedPerSecond = builder.committedPerSecond;
        committedByDefault = builder.committedByDefault;
        comment = builder.comment;
    }

    /** With nothing asked for. */
    public static KeyPolicy defaults() {
        return builder().build();
    }

    /** Begins with nothing asked for. */
    public static Builder builder() {
        return new Builder();
    }

    /** 1 to 1000; wins over every other weight. 0 takes the operator's weight away again. */
    public Optional<Integer> weight() {
        return Optional.ofNullable(weight);
    }

    /** Deliver nothing of this key until it is resumed. */
    public Optional<Boolean> paused() {
        return Optional.ofNullable(paused);
    }

    /**
     * Most messages of this key leased at once in a channel; 0 for no cap, also where the queue has
     * a default.
     */
    public Optional<Integer> maxInFlight() {
        return Optional.ofNullable(maxInFlight);
    }

    /**
     * Most messages of this key delivered a second, over all channels; 0 for no rate, also where
     * the queue has a default.
     */
    public Optional<Double> ratePerSecond() {
        return Optional.ofNullable(ratePerSecond);
    }

    /**
     * How many may be delivered at once after a pause, at least 1; 0 for one second's worth. Needs
     * a rate.
     */
    public Optional<Double> burst() {
        return Optional.ofNullable(burst);
    }

    /** Take the operator's cap back: the queue's default holds for the key again. */
    public boolean capByDefault() {
        return capByDefault;
    }

    /** Take the operator's rate and burst back: the queue's default holds for the key again. */
    public boolean rateByDefault() {
        return rateByDefault;
    }

    /**
     * Messages of this key that go, a second, before those of keys that are not within theirs, over
     * all channels; 0 for none, also where the queue has a default.
     */
    public Optional<Double> committedPerSecond() {
        return Optional.ofNullable(committedPerSecond);
    }

    /** Take the operator's committed rate back: the queue's default holds for the key again. */
    public boolean committedByDefault() {
        return committedByDefault;
    }

    /**
     * Why, in at most 1,024 bytes; kept in the audit, and with the pause where the key is paused.
     * Empty by default.
     */
    public String comment() {
        return comment;
    }

    SetKeyPolicyRequest.Builder request(String fairnessKey) {
        SetKeyPolicyRequest.Builder request =
                SetKeyPolicyRequest.newBuilder().setFairnessKey(fairnessKey);
        weight().ifPresent(request::setWeight);
        paused().ifPresent(request::setPaused);
        maxInFlight().ifPresent(request::setMaxInFlight);
        ratePerSecond().ifPresent(request::setRatePerSecond);
        burst().ifPresent(request::setBurst);
        committedPerSecond().ifPresent(request::setCommittedPerSecond);
        request.setCapByDefault(capByDefault).setRateByDefault(rateByDefault);
        request.setCommittedByDefault(committedByDefault).setComment(comment);
        return request;
    }

    /** Collects what is asked for; each is explained at the accessor of the same name. */
    public static final class Builder {
        private @Nullable Integer weight;
        private @Nullable Boolean paused;
        private @Nullable Integer maxInFlight;
        private @Nullable Double ratePerSecond;
        private @Nullable Double burst;
        private boolean capByDefault;
        private boolean rateByDefault;
        private @Nullable Double committedPerSecond;
        private boolean committedByDefault;
        private String comment = "";

        private Builder() {}

        /** Sets {@link KeyPolicy#weight()}. */
        public Builder weight(int value) {
            weight = Arguments.inRange("weight", value, 0, Integer.MAX_VALUE);
            return this;
        }

        /** Sets {@link KeyPolicy#paused()}. */
        public Builder paused(boolean value) {
            paused = value;
            return this;
        }

        /** Sets {@link KeyPolicy#maxInFlight()}. */
        public Builder maxInFlight(int value) {
            maxInFlight = Arguments.inRange("maxInFlight", value, 0, Integer.MAX_VALUE);
            return this;
        }

        /** Sets {@link KeyPolicy#ratePerSecond()}. */
        public Builder ratePerSecond(double value) {
            ratePerSecond = value;
            return this;
        }

        /** Sets {@link KeyPolicy#burst()}. */
        public Builder burst(double value) {
            burst = value;
            return this;
        }

        /** Sets {@link KeyPolicy#capByDefault()}. */
        public Builder capByDefault(boolean value) {
            capByDefault = value;
            return this;
        }

        /** Sets {@link KeyPolicy#rateByDefault()}. */
        public Builder rateByDefault(boolean value) {
            rateByDefault = value;
            return this;
        }

        /** Sets {@link KeyPolicy#committedPerSecond()}. */
        public Builder committedPerSecond(double value) {
            committedPerSecond = value;
            return this;
        }

        /** Sets {@link KeyPolicy#committedByDefault()}. */
        public Builder committedByDefault(boolean value) {
            committedByDefault = value;
            return this;
        }

        /** Sets {@link KeyPolicy#comment()}. */
        public Builder comment(String value) {
            comment = value;
            return this;
        }

        /** What was asked for up to now. */
        public KeyPolicy build() {
            return new KeyPolicy(this);
        }
    }
}
