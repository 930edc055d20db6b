package dev.fila.client;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.Executor;

/**
 * Tells the program's listener what happens to its consumers' streams: one event at a time, in
 * order.
 */
final class ConnectionEvents {
    private static final System.Logger LOG = System.getLogger("dev.fila.client");

    private final ConnectionListener listener;
    private final Executor executor;
    private final Queue<ConnectionEvent> untold = new ArrayDeque<>();
    private boolean telling;

    ConnectionEvents(ConnectionListener listener, Executor executor) {
        this.listener = listener;
        this.executor = executor;
    }

    void tell(ConnectionEvent event) {
        synchronized (this) {
            untold.add(event);
            if (telling) {
                return;
            }
            telling = true;
        }
        executor.execute(this::tellAll);
    }

    private void tellAll() {
        while (true) {
            ConnectionEvent event;
            synchronized (this) {
                event = untold.poll();
                if (event == null) {
                    telling = false;
                    return;
                }
            }
            try {
                listener.onEvent(event);
            } catch (RuntimeException mistake) {
                LOG.log(System.Logger.Level.ERROR, "the connection listener threw", mistake);
            }
        }
    }
}
