package dev.fila.client;

import io.grpc.ChannelCredentials;
import io.grpc.TlsChannelCredentials;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * How the broker is recognised, and how this client is. With nothing said, the broker's certificate
 * must be signed by one of the authorities that the JVM trusts, and be made out to the name in the
 * address.
 */
public final class TlsOptions {
    private final byte @Nullable [] authorities;
    private final byte @Nullable [] certificate;
    private final byte @Nullable [] key;
    private final @Nullable String serverName;

    private TlsOptions(Builder builder) {
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

    ChannelCredentials credentials() {
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

        private Builder() {}

        /** The authorities that may have signed the broker's certificate, as PEM. */
        public Builder authorities(byte[] pem) {
            authorities = pem.clone();
            return this;
        }

        /** The authorities that may have signed the broker's certificate: a PEM file. */
        public Builder authorities(Path file) {
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
