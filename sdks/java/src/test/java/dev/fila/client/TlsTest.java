package dev.fila.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.fila.client.errors.UnavailableException;
import dev.fila.client.fake.FakeBroker;
import io.grpc.TlsServerCredentials;
import io.grpc.TlsServerCredentials.ClientAuth;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
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
    void aBrokerThatTalksTlsCannotBeReachedWithout() {
        ClientOptions plain = ClientOptions.builder().connectTimeout(Duration.ofSeconds(1)).build();
        assertThrows(UnavailableException.class, () -> FilaClient.connect(broker.address(), plain));
    }
}
