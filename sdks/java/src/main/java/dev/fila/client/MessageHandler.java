package dev.fila.client;

/** Works on messages, one at a time for each place of a {@link Handling}. */
@FunctionalInterface
public interface MessageHandler {
    /**
     * Works on a message. When this returns and the message is not settled, it is acked; when it
     * throws, it is nacked with what was thrown as the error, and a {@link LimitedException} tells
     * of a provider instead. While it runs, its thread is interrupted if the message's lease is
     * lost: from then on the work is somebody else's.
     *
     * @throws Exception when the message could not be worked on
     */
    void handle(Message message) throws Exception;
}
