package dev.fila.client;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.cert.CertificateException;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import java.util.List;
import java.util.Locale;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import org.jspecify.annotations.Nullable;

/**
 * Why does nobody answer there? Asks the port itself when gRPC's attempts fail. A connection is
 * opened and greeted as gRPC greets, by TLS where the client speaks it. Only what waiting cannot
 * mend is told: a broker that is not started yet, or stops, says nothing of this kind.
 */
final class Diagnosis {
    /** How long one look at a port may take. */
    private static final int LOOK_MS = 400;

    private static final byte[] GREETING =
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
                    .getBytes(StandardCharsets.US_ASCII);

    private static final int SETTINGS_FRAME = 4;

    private final List<String> places;
    private final @Nullable TlsOptions tls;

    /** For {@code host:port} each; without TLS options they are spoken to in plain. */
    Diagnosis(List<String> places, @Nullable TlsOptions tls) {
        this.places = List.copyOf(places);
        this.tls = tls;
    }

    /**
     * The sentence that says what is wrong with the client's settings; empty where none is found
     * wrong for one of the places.
     */
    String sentence() {
        String sentence = "";
        for (String place : places) {
            sentence = ask(place);
            if (sentence.isEmpty()) {
                break;
            }
        }
        return sentence;
    }

    private String ask(String place) {
        try {
            return tls == null ? askInPlain(place) : askByTls(place, tls);
        } catch (IOException | GeneralSecurityException nothingFound) {
            return "";
        }
    }

    private static Socket open(String place) throws IOException {
        URI address = URI.create("tcp://" + place);
        String host = address.getHost().replaceAll("[\\[\\]]", "");
        Socket socket = new Socket();
        socket.setSoTimeout(LOOK_MS);
        socket.connect(new InetSocketAddress(host, address.getPort()), LOOK_MS);
        return socket;
    }

    private static byte[] greeted(Socket socket) throws IOException {
        socket.getOutputStream().write(GREETING);
        socket.getOutputStream().flush();
        byte[] answer = new byte[64];
        int length = socket.getInputStream().read(answer);
        return java.util.Arrays.copyOf(answer, Math.max(0, length));
    }

    // By TLS.

    private String askByTls(String place, TlsOptions options)
            throws IOException, GeneralSecurityException {
        String host = URI.create("tcp://" + place).getHost().replaceAll("[\\[\\]]", "");
        String name = options.serverName().orElse(host);
        try (Socket plain = open(place);
                SSLSocket secure =
                        (SSLSocket)
                                options.context()
                                        .getSocketFactory()
                                        .createSocket(plain, name, plain.getPort(), true)) {
            SSLParameters parameters = secure.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            parameters.setApplicationProtocols(new String[] {"h2"});
            secure.setSSLParameters(parameters);
            secure.startHandshake();
            // A broker that wants another certificate of us says so only here, and closes: a client
            // that writes then loses what it said.
            secure.getInputStream().read();
            return "";
        } catch (SocketTimeoutException silent) {
            return "";
        } catch (SSLException failure) {
            String rejection = rejection(failure, name);
            if (!rejection.isEmpty()) {
                return "the certificate of " + place + " is not accepted: " + rejection;
            }
            String alert = String.valueOf(failure.getMessage()).toLowerCase(Locale.ROOT);
            int at = alert.indexOf("fatal alert: ");
            String said = at < 0 ? "" : ofAlert(place, alert.substring(at + 13), options);
            return said.isEmpty() ? askInPlain(place) : said;
        } catch (IOException broken) {
            return askInPlain(place);
        }
    }

    /** Why a certificate is not accepted, in the words of all SDKs. */
    private static String rejection(Throwable failure, String name) {
        boolean isOfCertificate = false;
        for (Throwable why = failure; why != null; why = why.getCause()) {
            String text = String.valueOf(why.getMessage());
            if (why instanceof CertificateExpiredException) {
                return "it has expired";
            } else if (why instanceof CertificateNotYetValidException) {
                return "it is not valid yet";
            } else if (text.contains("unable to find valid certification path")
                    || text.contains("trustAnchors")) {
                return "no authority that this client trusts has signed it";
            } else if (text.startsWith("No subject alternative")
                    || text.startsWith("No name matching")) {
                return "it is not made out to " + name;
            }
            isOfCertificate |= why instanceof CertificateException;
        }
        return isOfCertificate ? String.valueOf(failure.getMessage()) : "";
    }

    /** What an alert says of the certificate that the client showed, or did not show. */
    private static String ofAlert(String place, String alert, TlsOptions options) {
        boolean isMissing =
                alert.contains("certificate_required") || alert.contains("handshake_failure");
        if (isMissing && !options.hasClientCertificate()) {
            return "the broker at "
                    + place
                    + " asks for a client certificate: give one, with its key";
        }
        String refused = "the broker at " + place + " does not accept the client certificate: ";
        // JSSE keeps back a certificate that none of the authorities has signed which the broker
        // names.
        if (isMissing || alert.contains("unknown_ca")) {
            return refused + "no authority that the broker trusts has signed it";
        }
        return alert.contains("certificate") ? refused + alert.replace('_', ' ') : "";
    }

    // In plain.

    private String askInPlain(String place) throws IOException {
        byte[] answer;
        try (Socket socket = open(place)) {
            answer = greetedInPlain(socket);
        }
        String text = new String(answer, StandardCharsets.ISO_8859_1);
        if (text.startsWith("-") || text.startsWith("+") || text.startsWith("$")) {
            return place
                    + " speaks the Redis protocol; the client wants the gRPC port, 5555 unless"
                    + " changed";
        } else if (text.startsWith("HTTP/1")) {
            return place
                    + " is a web server, such as the metrics page; the gRPC port is 5555 unless"
                    + " changed";
        } else if (answer.length > SETTINGS_FRAME && answer[3] == SETTINGS_FRAME) {
            return tls == null
                    ? ""
                    : "the broker at "
                            + place
                            + " speaks without TLS: write http:// instead of https://";
        }
        boolean speaksTls = tls == null && (text.startsWith("\u0015\u0003") || shakesHands(place));
        return speaksTls ? place + " speaks TLS: write https:// instead of http://" : "";
    }

    /** What comes back; nothing where it says nothing, or breaks off. */
    private static byte[] greetedInPlain(Socket socket) {
        try {
            return greeted(socket);
        } catch (IOException nothing) {
            return new byte[0];
        }
    }

    /** Whether it takes a greeting of TLS: one that we reject is one. */
    private static boolean shakesHands(String place) {
        try (Socket plain = open(place);
                SSLSocket secure =
                        (SSLSocket)
                                TlsOptions.defaults()
                                        .context()
                                        .getSocketFactory()
                                        .createSocket(plain, "fila", plain.getPort(), true)) {
            secure.startHandshake();
            return true;
        } catch (IOException | GeneralSecurityException failure) {
            return !rejection(failure, "fila").isEmpty();
        }
    }
}
