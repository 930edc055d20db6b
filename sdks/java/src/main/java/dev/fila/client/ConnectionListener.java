package dev.fila.client;

/** Is told what becomes of the streams of a client's consumers. */
@FunctionalInterface
public interface ConnectionListener {
    /** Something happened to a consumer's stream. Events come one at a time, in order. */
    void onEvent(ConnectionEvent event);
}
