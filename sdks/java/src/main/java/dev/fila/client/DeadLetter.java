package dev.fila.client;

import java.time.Instant;

/**
 * Why a message is in a dead-letter queue.
 *
 * @param sourceQueue the queue it failed in; a redrive sends it back there
 * @param sourceChannel the channel it failed in
 * @param reason {@code max_attempts}, {@code on_failure}, {@code ttl}, {@code rejected} or {@code
 *     skipped}
 * @param lastError the last nack's error, or that its lease expired
 * @param attempts how often a delivery of it was begun and failed
 * @param at when it was given up
 */
public record DeadLetter(
        String sourceQueue,
        String sourceChannel,
        String reason,
        String lastError,
        int attempts,
        Instant at) {
    static DeadLetter of(dev.fila.v1.DeadLetter letter) {
        return new DeadLetter(
                letter.getSourceQueue(),
                letter.getSourceChannel(),
                letter.getReason(),
                letter.getLastError(),
                letter.getAttempts(),
                Arguments.instant(letter.getAt()));
    }
}
