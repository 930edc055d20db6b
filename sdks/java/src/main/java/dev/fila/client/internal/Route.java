package dev.fila.client.internal;

import io.grpc.NameResolverRegistry;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where a client's channel leads: to the addresses that were given, of which gRPC keeps the first
 * that answers; or to one alone, once a node of a group said that it stands by. Where nobody
 * answers there, it leads to all again.
 */
public final class Route {
    private final List<String> given;
    private List<String> current;

    /** Of the addresses given, where no owner is named. */
    private int next;

    private @Nullable Runnable moved;

    /** Leads to these addresses, {@code host:port} each. */
    public Route(Addresses addresses) {
        given = addresses.hostPorts();
        current = given;
    }

    /** The target as gRPC's channels take it; only {@link #registry} knows what it means. */
    public String channelTarget() {
        return RouteResolver.SCHEME + ":///" + given.get(0);
    }

    /** Resolves the target of one channel: for that one alone. */
    public NameResolverRegistry registry() {
        return RouteResolver.registryOf(this);
    }

    /** Leads to the owner, or to the next of the addresses where it is not known. */
    public void leave(String owner) {
        if (!owner.isEmpty()) {
            lead(List.of(owner));
        } else if (given.size() > 1) {
            lead(List.of(nextGiven()));
        } else {
            widen(); // it may know more in a moment
        }
    }

    /** Leads to all addresses again, and returns whether it led to one alone. */
    public boolean widen() {
        return lead(given);
    }

    private synchronized String nextGiven() {
        next = (next + 1) % given.size();
        return given.get(next);
    }

    private boolean lead(List<String> to) {
        Runnable told;
        synchronized (this) {
            if (current.equals(to)) {
                return false;
            }
            current = to;
            told = moved;
        }
        if (told != null) {
            told.run();
        }
        return true;
    }

    synchronized List<String> addresses() {
        return current;
    }

    synchronized void onMove(Runnable resolve) {
        moved = resolve;
    }
}
