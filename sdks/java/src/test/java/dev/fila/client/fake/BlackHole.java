package dev.fila.client.fake;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * A way to a broker that can be made to swallow everything without a word, as a network does that
 * is cut.
 */
public final class BlackHole implements AutoCloseable {
    private final ServerSocket listener;
    private final String target;
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private volatile boolean swallows;

    public BlackHole(String target) {
        this.target = target;
        try {
            listener = new ServerSocket(0);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
        start(this::accept);
    }

    public String address() {
        return "localhost:" + listener.getLocalPort();
    }

    /** From now on nothing passes, on connections old and new. */
    public void swallow() {
        swallows = true;
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listener.accept();
                String[] hostPort = target.split(":");
                Socket broker = new Socket(hostPort[0], Integer.parseInt(hostPort[1]));
                sockets.add(client);
                sockets.add(broker);
                start(() -> copy(client, broker));
                start(() -> copy(broker, client));
            }
        } catch (IOException closed) {
            // The test is over.
        }
    }

    private void copy(Socket from, Socket to) {
        try (InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream()) {
            byte[] buffer = new byte[16 << 10];
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                if (!swallows) {
                    out.write(buffer, 0, count);
                    out.flush();
                }
            }
        } catch (IOException closed) {
            // One side went away.
        }
    }

    private static void start(Runnable run) {
        Thread thread = new Thread(run);
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() {
        try {
            listener.close();
            for (Socket socket : sockets) {
                socket.close();
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
