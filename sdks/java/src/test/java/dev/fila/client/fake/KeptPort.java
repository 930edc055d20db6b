package dev.fila.client.fake;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;

/**
 * A port that nobody else is given while a broker there is down. It is bound, without listening: so
 * a connection to it is refused, and a server may take it.
 */
public final class KeptPort implements AutoCloseable {
    private final Socket held = new Socket();

    public KeptPort() {
        try {
            held.setReuseAddress(true);
            held.bind(new InetSocketAddress(0));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    public int number() {
        return held.getLocalPort();
    }

    @Override
    public void close() {
        try {
            held.close();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
