package dev.fila.client.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The programs of the README, run as they are printed but for the address, as a new user would. */
@Tag("broker")
class ExamplesTest {
    private static final Path EXAMPLES = Path.of("examples");
    private static final long RUN_S_MAX = 120;

    @TempDir static Path folder;
    private static BrokerProcess broker;

    @BeforeAll
    static void startBroker() {
        broker = BrokerProcess.start(folder);
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @Test
    void theReadmePrintsTheProgramsThatAreTested() throws IOException {
        String readme = Files.readString(Path.of("README.md"));
        try (Stream<Path> programs = Files.list(EXAMPLES)) {
            for (Path program : programs.toList()) {
                assertTrue(
                        readme.contains(Files.readString(program)),
                        () -> "README.md does not print " + program);
            }
        }
    }

    /** In one order: a program finds the queue that the one before it made. */
    @Test
    void everyProgramPrintsWhatItSays() throws Exception {
        assertEquals("stored at offset 1\nacme wants one coffee\n", run("FirstSteps"));
        assertEquals("1000 stored\n", run("Producing"));
        assertEquals("acked the rest\n", run("Working"));
        assertEquals("the reply: 42\n", run("RequestReply"));
        assertTrue(run("Operating").startsWith("0 pending, 0 in flight\n"));
    }

    private static String run(String program) throws IOException, InterruptedException {
        Path source = folder.resolve(program + ".java");
        String text = Files.readString(EXAMPLES.resolve(program + ".java"));
        Files.writeString(source, text.replace("localhost:5555", broker.address()));
        Process process =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-cp",
                                System.getProperty("java.class.path"),
                                source.toString())
                        .redirectError(folder.resolve(program + ".err").toFile())
                        .start();
        String output = new String(process.getInputStream().readAllBytes());
        assertTrue(process.waitFor(RUN_S_MAX, TimeUnit.SECONDS), "it did not end");
        assertEquals(0, process.exitValue(), Files.readString(folder.resolve(program + ".err")));
        return output;
    }
}
