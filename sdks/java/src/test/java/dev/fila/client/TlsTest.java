package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.fila.client.errors.UnavailableException;
import dev.fila.client.fake.FakeBroker;
import io.grpc.TlsServerCredentials;
import io.grpc.TlsServerCredentials.ClientAuth;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A broker whose certificate is made out to fila.test, and which asks its clients for theirs. */
class TlsTest {
    private static final Path FILES = Path.of("src/test/resources/tls");

    private FakeBroker broker;

    @BeforeEach
    void startBroker() throws IOException {
        broker =
                new FakeBroker(
                        TlsServerCredentials.newBuilder()
                                .keyManager(
                                        FILES.resolve("server.pem").toFile(),
                                        FILES.resolve("server.key").toFile())
                                .trustManager(FILES.resolve("ca.pem").toFile())
                                .clientAuth(ClientAuth.REQUIRE)
                                .build());
    }

    @AfterEach
    void stopBroker() {
        broker.close();
    }

    private static TlsOptions.Builder tls() {
        return TlsOptions.builder()
                .authorities(FILES.resolve("ca.pem"))
                .clientCertificate(FILES.resolve("client.pem"), FILES.resolve("client.key"))
                .serverName("fila.test");
    }

    private String ask(TlsOptions tls) {
        ClientOptions options =
                ClientOptions.builder().connectTimeout(Duration.ofSeconds(1)).tls(tls).build();
        try (FilaClient client = FilaClient.connect("https://" + broker.address(), options)) {
            return client.getConfig("anything");
        }
    }

    @Test
    void aBrokerAndAClientThatKnowEachOtherTalk() {
        assertEquals("", ask(tls().build()));
    }

    @Test
    void aBrokerWithAnotherNameIsNotTrusted() {
        assertThrows(UnavailableException.class, () -> ask(tls().serverName("other.test").build()));
    }

    @Test
    void aBrokerOfAnotherAuthorityIsNotTrusted() {
        TlsOptions others = TlsOptions.builder().serverName("fila.test").build();
        assertThrows(UnavailableException.class, () -> ask(others));
    }

    @Test
    void aClientWithoutACertificateIsNotLetIn() {
        TlsOptions nameless =
                TlsOptions.builder()
                        .authorities(FILES.resolve("ca.pem"))
                        .serverName("fila.test")
                        .build();
        assertThrows(dev.fila.client.errors.FilaException.class, () -> ask(nameless));
    }

    @Test
    void aWrongSettingIsNamed() {
        UnavailableException otherName =
                assertThrows(
                        UnavailableException.class,
                        () -> ask(tls().serverName("other.test").build()));
        assertTrue(otherName.getMessage().contains("it is not made out to other.test"));
        UnavailableException plain =
                assertThrows(
                        UnavailableException.class, () -> FilaClient.connect(broker.address()));
        assertTrue(plain.getMessage().contains("write https:// instead of http://"));
        TlsOptions none = TlsOptions.builder().authorities(FILES.resolve("server.key")).build();
        IllegalArgumentException noCertificate =
                assertThrows(IllegalArgumentException.class, () -> ask(none));
        assertTrue(noCertificate.getMessage().contains("holds no certificate in PEM form"));
    }

    @Test
    void theEnvironmentNamesFilesWhereTheProgramNamesNone() {
        Map<String, String> environment =
                Map.of("FILA_CA_FILE", FILES.resolve("server.key").toString());

        TlsOptions found = TlsOptions.defaults().withEnvironment(environment);
        TlsOptions given = tls().build().withEnvironment(environment);

        assertThrows(IllegalArgumentException.class, found::credentials);
        assertNotNull(given.credentials());
    }

    @Test
    void anotherOfFilasPortsIsNamed() throws IOException {
        try (ServerSocket redis = new ServerSocket(0)) {
            Thread answering =
                    new Thread(
                            () -> {
                                while (!redis.isClosed()) {
                                    try (Socket socket = redis.accept()) {
                                        socket.getInputStream().read(new byte[64]);
                                        socket.getOutputStream().write("-ERR\r\n".getBytes());
                                    } catch (IOException closed) {
                                        return;
                                    }
                                }
                            });
            answering.setDaemon(true);
            answering.start();
            String place = "127.0.0.1:" + redis.getLocalPort();
            assertTrue(
                    new Diagnosis(List.of(place), null)
                            .sentence()
                            .contains("speaks the Redis protocol"));
        }
    }

    @Test
    void aBrokerThatTalksTlsCannotBeReachedWithout() {
        ClientOptions plain = ClientOptions.builder().connectTimeout(Duration.ofSeconds(1)).build();
        assertThrows(UnavailableException.class, () -> FilaClient.connect(broker.address(), plain));
    }
}
