package dev.fila.client;

/**
 * Where an enqueued message went.
 *
 * @param value the message's id, a UUIDv7; its text is this
 * @param offset its position in the queue's log, from 1
 */
public record MessageId(String value, long offset) {
    @Override
    public String toString() {
        return value;
    }
}
