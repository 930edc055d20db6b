package dev.fila.client.internal;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.ArrayList;
import java.util.List;

/**
 * Where the broker may be reached.
 *
 * @param hostPorts {@code host:port} each, in the order they are tried
 * @param isSecure whether an address asked for TLS
 */
public record Addresses(List<String> hostPorts, boolean isSecure) {
    /**
     * Reads {@code host:port} with or without {@code http://} or {@code https://}; at least one.
     * One text may have several with commas between them.
     */
    public static Addresses parse(List<String> targets) {
        if (targets.isEmpty()) {
            throw new IllegalArgumentException("an address is missing, such as localhost:5555");
        }
        List<String> hostPorts = new ArrayList<>();
        int secure = 0;
        for (String target : String.join(",", targets).split(",", -1)) {
            URI address = read(target.strip());
            hostPorts.add(address.getRawAuthority());
            secure += address.getScheme().equals("https") ? 1 : 0;
        }
        if (secure > 0 && secure < hostPorts.size()) {
            throw new IllegalArgumentException(
                    "addresses with and without https:// can't be mixed: " + targets);
        }
        return new Addresses(List.copyOf(hostPorts), secure > 0);
    }

    @Override
    public String toString() {
        return String.join(", ", hostPorts);
    }

    private static URI read(String target) {
        String wrong =
                "an address must look like localhost:5555 or http://localhost:5555, got " + target;
        try {
            URI address = new URI(target.contains("://") ? target : "http://" + target);
            boolean isPlain =
                    address.getRawAuthority() != null
                            && (address.getRawPath().isEmpty() || address.getRawPath().equals("/"))
                            && address.getRawQuery() == null;
            if (!isPlain || !List.of("http", "https").contains(address.getScheme())) {
                throw new IllegalArgumentException(wrong);
            }
            return address;
        } catch (URISyntaxException unreadable) {
            throw new IllegalArgumentException(wrong, unreadable);
        }
    }
}
