package dev.fila.client;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** What the client logs at WARNING and above while this is open. */
final class LogLines extends Handler implements AutoCloseable {
    private static final Logger LOGGER = Logger.getLogger("dev.fila.client");

    private final List<String> warnings = new CopyOnWriteArrayList<>();
    private final SimpleFormatter formatter = new SimpleFormatter();

    LogLines() {
        setLevel(Level.WARNING);
        LOGGER.addHandler(this);
    }

    List<String> warnings() {
        return List.copyOf(warnings);
    }

    @Override
    public void publish(LogRecord line) {
        if (isLoggable(line)) {
            warnings.add(formatter.formatMessage(line));
        }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
        LOGGER.removeHandler(this);
    }
}
