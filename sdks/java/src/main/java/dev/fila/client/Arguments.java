package dev.fila.client;

import java.time.Duration;
import java.time.Instant;

/** Arguments that are out of range, told by their name where they were given. */
final class Arguments {
    private static final Duration MILLIS_MOST = Duration.ofMillis(Long.MAX_VALUE);

    private Arguments() {}

    static Duration positive(String name, Duration value) {
        if (value.isNegative() || value.isZero()) {
            throw new IllegalArgumentException(name + " must be more than zero, got " + value);
        }
        return value;
    }

    static Duration notNegative(String name, Duration value) {
        if (value.isNegative()) {
            throw new IllegalArgumentException(name + " must not be negative, got " + value);
        }
        return value;
    }

    static Duration atMost(String name, Duration value, Duration most) {
        if (value.compareTo(most) > 0) {
            throw new IllegalArgumentException(
                    name + " must be at most " + most + ", got " + value);
        }
        return value;
    }

    static int inRange(String name, int value, int least, int most) {
        return (int) inRange(name, (long) value, least, most);
    }

    static long inRange(String name, long value, long least, long most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(
                    name + " must be from " + least + " to " + most + ", got " + value);
        }
        return value;
    }

    /**
     * Milliseconds for the wire; a fraction is rounded up, so that a short wish does not become
     * none.
     */
    static long millis(String name, Duration value) {
        atMost(name, notNegative(name, value), MILLIS_MOST);
        long whole = value.toMillis();
        return value.compareTo(Duration.ofMillis(whole)) > 0 ? whole + 1 : whole;
    }

    static com.google.protobuf.Timestamp timestamp(Instant moment) {
        return com.google.protobuf.Timestamp.newBuilder()
                .setSeconds(moment.getEpochSecond())
                .setNanos(moment.getNano())
                .build();
    }

    static Instant instant(com.google.protobuf.Timestamp timestamp) {
        return Instant.ofEpochSecond(timestamp.getSeconds(), timestamp.getNanos());
    }
}
