package dev.fila.client;

import dev.fila.client.internal.Pem;
import io.grpc.ChannelCredentials;
import io.grpc.TlsChannelCredentials;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;

/**
 * How the broker is recognised, and how this client is. With nothing said, the broker's certificate
 * must be signed by one of the authorities that the JVM trusts, and be made out to the name in the
 * address.
 *
 * <p>The authorities and the client's certificate that a program does not name are those in the
 * files that the environment's {@code FILA_CA_FILE}, {@code FILA_CERT_FILE} and {@code
 * FILA_KEY_FILE} name.
 */
public final class TlsOptions {
    private final byte @Nullable [] authorities;
    private final byte @Nullable [] certificate;
    private final byte @Nullable [] key;
    private final @Nullable String serverName;
    private final String authoritiesName;
    private final String certificateName;
    private final String keyName;

    private TlsOptions(Builder builder) {
        authoritiesName = builder.authoritiesName;
        certificateName = builder.certificateName;
        keyName = builder.keyName;
        authorities = builder.authorities;
        certificate = builder.certificate;
        key = builder.key;
        serverName = builder.serverName;
    }

    /** The JVM's authorities, the address's name, no certificate of our own. */
    public static TlsOptions defaults() {
        return builder().build();
    }

    /** Begins with the defaults. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * The name that the broker's certificate must be made out to, where it is not the address's.
     */
    public Optional<String> serverName() {
        return Optional.ofNullable(serverName);
    }

    /** With what the environment names, where these options name nothing. */
    TlsOptions withEnvironment(Map<String, String> environment) {
        Builder all = builder();
        String ca = environment.getOrDefault("FILA_CA_FILE", "");
        String cert = environment.getOrDefault("FILA_CERT_FILE", "");
        String keyFile = environment.getOrDefault("FILA_KEY_FILE", "");
        if (authorities != null) {
            all.authorities(authorities);
            all.authoritiesName = authoritiesName;
        } else if (!ca.isEmpty()) {
            all.authorities(Path.of(ca));
        }
        if (certificate != null && key != null) {
            all.clientCertificate(certificate, key);
            all.certificateName = certificateName;
            all.keyName = keyName;
        } else if (!cert.isEmpty() && !keyFile.isEmpty()) {
            all.clientCertificate(Path.of(cert), Path.of(keyFile));
        }
        all.serverName = serverName;
        return all.build();
    }

    boolean hasClientCertificate() {
        return certificate != null;
    }

    /** Throws IllegalArgumentException, naming what is not what it should be. */
    private void check() {
        if (authorities != null && Pem.certificates(authorities).isEmpty()) {
            throw new IllegalArgumentException(
                    authoritiesName + " holds no certificate in PEM form");
        }
        if (certificate != null && key != null) {
            List<Certificate> mine = Pem.certificates(certificate);
            Optional<PrivateKey> mineKey = Pem.key(key);
            if (mine.isEmpty() || mineKey.isEmpty()) {
                String wrong = mine.isEmpty() ? certificateName : keyName;
                String what = mine.isEmpty() ? "certificate in PEM form" : "private key in PKCS#8";
                throw new IllegalArgumentException(wrong + " holds no " + what);
            } else if (!Pem.belongTogether(mine.get(0), mineKey.get())) {
                throw new IllegalArgumentException(
                        "the key in "
                                + keyName
                                + " is not that of the certificate in "
                                + certificateName);
            }
        }
    }

    /** The same for the JDK's own TLS. */
    SSLContext context() throws GeneralSecurityException, IOException {
        TrustManager @Nullable [] trusted = null;
        KeyManager @Nullable [] mine = null;
        if (authorities != null) {
            KeyStore store = emptyStore();
            for (Certificate authority : Pem.certificates(authorities)) {
                store.setCertificateEntry("authority " + store.size(), authority);
            }
            TrustManagerFactory factory =
                    TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            trusted = factory.getTrustManagers();
        }
        if (certificate != null && key != null) {
            KeyStore store = emptyStore();
            Certificate[] chain = Pem.certificates(certificate).toArray(Certificate[]::new);
            store.setKeyEntry("client", Pem.key(key).orElseThrow(), new char[0], chain);
            KeyManagerFactory factory =
                    KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            factory.init(store, new char[0]);
            mine = factory.getKeyManagers();
        }
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(mine, trusted, null);
        return context;
    }

    private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    ChannelCredentials credentials() {
        check();
        TlsChannelCredentials.Builder tls = TlsChannelCredentials.newBuilder();
        try {
            if (authorities != null) {
                tls.trustManager(new ByteArrayInputStream(authorities));
            }
            if (certificate != null && key != null) {
                tls.keyManager(
                        new ByteArrayInputStream(certificate), new ByteArrayInputStream(key));
            }
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return tls.build();
    }

    /** Collects what TLS needs. Files are read when they are named. */
    public static final class Builder {
        private byte @Nullable [] authorities;
        private byte @Nullable [] certificate;
        private byte @Nullable [] key;
        private @Nullable String serverName;
        private String authoritiesName = "what is given as authorities";
        private String certificateName = "what is given as client certificate";
        private String keyName = "what is given as its key";

        private Builder() {}

        /** The authorities that may have signed the broker's certificate, as PEM. */
        public Builder authorities(byte[] pem) {
            authorities = pem.clone();
            return this;
        }

        /** The authorities that may have signed the broker's certificate: a PEM file. */
        public Builder authorities(Path file) {
            authoritiesName = file.toString();
            return authorities(contents(file));
        }

        /**
         * This client's certificate, with what leads from it to its authority, and its private key
         * (PKCS#8); PEM.
         */
        public Builder clientCertificate(byte[] certificatePem, byte[] keyPem) {
            certificate = certificatePem.clone();
            key = keyPem.clone();
            return this;
        }

        /** The same from two PEM files. */
        public Builder clientCertificate(Path certificateFile, Path keyFile) {
            certificateName = certificateFile.toString();
            keyName = keyFile.toString();
            return clientCertificate(contents(certificateFile), contents(keyFile));
        }

        /**
         * The name that the broker's certificate must be made out to, where it is not the
         * address's.
         */
        public Builder serverName(String name) {
            serverName = name;
            return this;
        }

        /** The options as they stand now. */
        public TlsOptions build() {
            return new TlsOptions(this);
        }

        private static byte[] contents(Path file) {
            try {
                return Files.readAllBytes(file);
            } catch (IOException unreadable) {
                throw new UncheckedIOException("cannot read " + file, unreadable);
            }
        }
    }
}
