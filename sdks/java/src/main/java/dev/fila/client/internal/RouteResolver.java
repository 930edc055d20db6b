package dev.fila.client.internal;

import io.grpc.Attributes;
import io.grpc.EquivalentAddressGroup;
import io.grpc.NameResolver;
import io.grpc.NameResolverProvider;
import io.grpc.NameResolverRegistry;
import io.grpc.ProxiedSocketAddress;
import io.grpc.ProxyDetector;
import io.grpc.Status;
import io.grpc.StatusOr;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * Tells one gRPC channel where its {@link Route} leads. Names are looked up anew each time that
 * gRPC asks.
 */
final class RouteResolver extends NameResolver {
    static final String SCHEME = "fila";

    private static final int DEFAULT_PORT = 5555;

    private final Route route;
    private final ProxyDetector proxies;
    private final Executor executor;
    private @Nullable Listener2 listener;

    private RouteResolver(Route route, Args args) {
        this.route = route;
        proxies = args.getProxyDetector();
        executor = args.getOffloadExecutor() == null ? Runnable::run : args.getOffloadExecutor();
    }

    static NameResolverRegistry registryOf(Route route) {
        NameResolverRegistry registry = new NameResolverRegistry();
        registry.register(new Provider(route));
        return registry;
    }

    @Override
    public String getServiceAuthority() {
        return route.addresses().get(0);
    }

    @Override
    public void start(Listener2 newListener) {
        listener = newListener;
        route.onMove(this::refresh);
        refresh();
    }

    @Override
    public void refresh() {
        executor.execute(this::resolve);
    }

    @Override
    public void shutdown() {
        route.onMove(() -> {});
    }

    /** One at a time, so that the last word is where the route led last. */
    private synchronized void resolve() {
        List<EquivalentAddressGroup> groups = new ArrayList<>();
        List<String> hostPorts = route.addresses();
        Status failure =
                Status.UNAVAILABLE.withDescription("none of " + hostPorts + " has an address");
        for (String hostPort : hostPorts) {
            try {
                groups.add(
                        new EquivalentAddressGroup(addressesOf(hostPort), attributesOf(hostPort)));
            } catch (IOException unknown) {
                failure = failure.withCause(unknown);
            }
        }
        Listener2 told = listener;
        if (told != null) {
            told.onResult(
                    ResolutionResult.newBuilder()
                            .setAddressesOrError(
                                    groups.isEmpty()
                                            ? StatusOr.fromStatus(failure)
                                            : StatusOr.fromValue(groups))
                            .build());
        }
    }

    private List<SocketAddress> addressesOf(String hostPort) throws IOException {
        URI address = URI.create("fila://" + hostPort);
        int port = address.getPort() < 0 ? DEFAULT_PORT : address.getPort();
        ProxiedSocketAddress proxied =
                proxies.proxyFor(InetSocketAddress.createUnresolved(address.getHost(), port));
        if (proxied != null) {
            return List.of(proxied);
        }
        List<SocketAddress> found = new ArrayList<>();
        for (InetAddress host : InetAddress.getAllByName(address.getHost())) {
            found.add(new InetSocketAddress(host, port));
        }
        return found;
    }

    private static Attributes attributesOf(String hostPort) {
        // With TLS each broker's certificate is made out to its own name.
        return Attributes.newBuilder()
                .set(EquivalentAddressGroup.ATTR_AUTHORITY_OVERRIDE, hostPort)
                .build();
    }

    private static final class Provider extends NameResolverProvider {
        private final Route route;

        Provider(Route route) {
            this.route = route;
        }

        @Override
        protected boolean isAvailable() {
            return true;
        }

        @Override
        protected int priority() {
            return 5;
        }

        @Override
        public String getDefaultScheme() {
            return SCHEME;
        }

        @Override
        public NameResolver newNameResolver(URI target, Args args) {
            return new RouteResolver(route, args);
        }
    }
}
