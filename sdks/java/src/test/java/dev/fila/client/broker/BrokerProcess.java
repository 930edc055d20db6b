package dev.fila.client.broker;

import dev.fila.client.fake.KeptPort;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** A real broker in a process of its own, which a test may stop, kill and start again. */
public final class BrokerProcess implements AutoCloseable {
    private static final Duration START_MAX = Duration.ofSeconds(60);
    private static final Duration STOP_MAX = Duration.ofSeconds(15);

    private final Path folder;
    private final KeptPort port = new KeptPort();
    private int starts;
    private Process process;

    private BrokerProcess(Path folder) {
        this.folder = folder;
    }

    /**
     * Starts {@code fila-server}, named by the system property {@code fila.server}, with its data
     * in the folder.
     */
    public static BrokerProcess start(Path folder) {
        BrokerProcess broker = new BrokerProcess(folder);
        broker.start();
        return broker;
    }

    /** {@code host:port}, the same after a restart. */
    public String address() {
        return "127.0.0.1:" + port.number();
    }

    /** Starts it again after it was stopped or killed. */
    public void start() {
        Path log = folder.resolve("server-" + ++starts + ".log");
        ProcessBuilder builder = new ProcessBuilder(System.getProperty("fila.server"));
        builder.environment().keySet().removeIf(name -> name.startsWith("FILA_"));
        builder.environment().put("FILA_SERVER__LISTEN_ADDR", address());
        builder.environment().put("FILA_REDIS__ENABLED", "false");
        builder.environment().put("FILA_METRICS__LISTEN_ADDR", "");
        builder.environment().put("FILA_DATA_DIR", folder.resolve("data").toString());
        builder.directory(folder.toFile());
        builder.redirectOutput(ProcessBuilder.Redirect.DISCARD).redirectError(log.toFile());
        try {
            process = builder.start();
            long deadline = System.nanoTime() + START_MAX.toNanos();
            while (!Files.readString(log).contains("server.started")) {
                if (!process.isAlive() || System.nanoTime() > deadline) {
                    throw new IllegalStateException(
                            "the broker did not start:\n" + Files.readString(log));
                }
                TimeUnit.MILLISECONDS.sleep(20);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /** {@code kill -9}. */
    public void kill() {
        process.destroyForcibly();
        await();
    }

    @Override
    public void close() {
        process.destroy();
        await();
        port.close();
    }

    private void await() {
        try {
            if (!process.waitFor(STOP_MAX.toSeconds(), TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
