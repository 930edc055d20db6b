package dev.fila.client;

import org.jspecify.annotations.Nullable;

/** One place of the program that takes messages, as its session knows it. */
final class Loop {
    /** One measurement of how long messages take. */
    static final class Sample {
        final long beganAt;
        final int count;
        int unsettled;
        boolean isAskedAgain;

        Sample(long beganAt, int count) {
            this.beganAt = beganAt;
            this.count = count;
            this.unsettled = count;
        }
    }

    final long number;

    /** Of what it works on, if that is measured. */
    @Nullable Sample sample;

    /** How many messages that it took are in hand. */
    int inHand;

    /** Of the last message that it had in hand. */
    long lastLease;

    /** When the settlement of that was answered; null before. */
    @Nullable Long answeredAt;

    Loop(long number) {
        this.number = number;
    }
}
