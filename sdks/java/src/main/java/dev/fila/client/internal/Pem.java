package dev.fila.client.internal;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Certificates and keys in PEM form. */
public final class Pem {
    private static final Pattern PKCS8 =
            Pattern.compile("-----BEGIN PRIVATE KEY-----([^-]+)-----END PRIVATE KEY-----");

    private Pem() {}

    /** The certificates in a text; none where it holds none. */
    public static List<Certificate> certificates(byte[] pem) {
        if (!new String(pem, StandardCharsets.US_ASCII).contains("-----BEGIN CERTIFICATE-----")) {
            return List.of();
        }
        try {
            CertificateFactory factory = CertificateFactory.getInstance("X.509");
            return new ArrayList<>(factory.generateCertificates(new ByteArrayInputStream(pem)));
        } catch (GeneralSecurityException none) {
            return List.of();
        }
    }

    /** The private key (PKCS#8) in a text. */
    public static Optional<PrivateKey> key(byte[] pem) {
        Matcher found = PKCS8.matcher(new String(pem, StandardCharsets.US_ASCII));
        if (!found.find()) {
            return Optional.empty();
        }
        PKCS8EncodedKeySpec encoded =
                new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(found.group(1)));
        for (String kind : List.of("EC", "RSA", "EdDSA")) {
            try {
                return Optional.of(KeyFactory.getInstance(kind).generatePrivate(encoded));
            } catch (GeneralSecurityException another) {
                continue;
            }
        }
        return Optional.empty();
    }

    /** Whether a private key is that of a certificate; true where that can't be told. */
    public static boolean belongTogether(Certificate certificate, PrivateKey key) {
        String algorithm = certificate.getPublicKey().getAlgorithm();
        if (!algorithm.equals(key.getAlgorithm())) {
            return false;
        }
        String name =
                switch (algorithm) {
                    case "EC" -> "SHA256withECDSA";
                    case "RSA" -> "SHA256withRSA";
                    default -> algorithm;
                };
        try {
            Signature signature = Signature.getInstance(name);
            signature.initSign(key);
            byte[] signed = signature.sign();
            signature.initVerify(certificate.getPublicKey());
            return signature.verify(signed);
        } catch (GeneralSecurityException unknown) {
            return true;
        }
    }
}
