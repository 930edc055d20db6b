package dev.fila.client.internal;

import io.grpc.Attributes;
import io.grpc.EquivalentAddressGroup;
import io.grpc.NameResolver;
import io.grpc.NameResolverProvider;
import io.grpc.NameResolverRegistry;
import io.grpc.Status;
import io.grpc.StatusOr;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * Lets one gRPC channel have several addresses: they are tried in order, and the first that answers
 * is kept.
 */
final class AddressListResolver extends NameResolver {
    static final String SCHEME = "fila";

    private static final int DEFAULT_PORT = 5555;

    private final String list;
    private final Executor executor;
    private @Nullable Listener2 listener;

    private AddressListResolver(String list, Args args) {
        this.list = list;
        this.executor =
                args.getOffloadExecutor() == null ? Runnable::run : args.getOffloadExecutor();
    }

    static void register() {
        Registration.ONCE.run();
    }

    @Override
    public String getServiceAuthority() {
        return list.split(",", 2)[0];
    }

    @Override
    public void start(Listener2 newListener) {
        listener = newListener;
        refresh();
    }

    @Override
    public void refresh() {
        executor.execute(this::resolve);
    }

    @Override
    public void shutdown() {}

    private void resolve() {
        List<EquivalentAddressGroup> groups = new ArrayList<>();
        Status failure = Status.UNAVAILABLE.withDescription("none of " + list + " has an address");
        for (String hostPort : list.split(",")) {
            try {
                groups.add(
                        new EquivalentAddressGroup(addressesOf(hostPort), attributesOf(hostPort)));
            } catch (UnknownHostException unknown) {
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

    private static List<SocketAddress> addressesOf(String hostPort) throws UnknownHostException {
        URI address = URI.create("fila://" + hostPort);
        int port = address.getPort() < 0 ? DEFAULT_PORT : address.getPort();
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

    private enum Registration {
        ONCE;

        Registration() {
            NameResolverRegistry.getDefaultRegistry().register(new Provider());
        }

        void run() {}
    }

    private static final class Provider extends NameResolverProvider {
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
        public @Nullable NameResolver newNameResolver(URI target, Args args) {
            return target.getScheme().equals(SCHEME)
                    ? new AddressListResolver(target.getRawPath().substring(1), args)
                    : null;
        }
    }
}
