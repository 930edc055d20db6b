package dev.fila.client;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * What a client has delivered and who settles it: its consumers, and what was pulled, by queue and
 * channel.
 */
final class Deliveries {
    private record Place(String queue, String channel) {}

    private record Pulled(Settler settler, PulledLeases leases) {}

    /** A delivery by its message's id; lease 0 when this client does not know it. */
    record Delivery(Settler settler, long leaseId) {}

    private final Connection connection;
    private final Map<Place, List<Session>> sessions = new HashMap<>();
    private final Map<Place, Pulled> pulled = new HashMap<>();

    /** All that may have something under way, also those whose consumer is over. */
    private final Set<Settler> settlers = Collections.newSetFromMap(new WeakHashMap<>());

    Deliveries(Connection connection) {
        this.connection = connection;
    }

    Session newSession(String queue, ConsumeOptions options) {
        Place place = new Place(queue, options.channel().orElse("default"));
        Session[] made = new Session[1];
        Session session = new Session(connection, queue, options, () -> outlive(place, made[0]));
        made[0] = session;
        synchronized (this) {
            settlers.add(session.settler());
            sessions.computeIfAbsent(place, any -> new ArrayList<>()).add(session);
        }
        return session;
    }

    /** Keeps the leases of a consumer that is over: its messages may still be acked by id. */
    private void outlive(Place place, Session session) {
        List<Message> inHand = session.inHand();
        synchronized (this) {
            sessions.getOrDefault(place, new ArrayList<>()).remove(session);
        }
        if (!inHand.isEmpty()) {
            at(place).leases().remember(inHand);
        }
    }

    List<Message> pulled(String queue, String channel, List<dev.fila.v1.Message> wire) {
        Pulled at = at(new Place(queue, channel));
        // Nothing pulled waits in the client, so nobody needs to know here when the lease ends.
        long held = connection.timers.now() + Long.MAX_VALUE / 4;
        List<Message> messages =
                wire.stream().map(message -> new Message(message, at.settler(), held)).toList();
        at.leases().remember(messages);
        return messages;
    }

    Delivery find(String queue, String channel, String messageId) {
        Place place = new Place(queue, channel);
        List<Session> here;
        synchronized (this) {
            here = List.copyOf(sessions.getOrDefault(place, List.of()));
        }
        for (Session session : here) {
            long leaseId = session.leaseOf(messageId);
            if (leaseId != 0) {
                return new Delivery(session.settler(), leaseId);
            }
        }
        Pulled at = at(place);
        return new Delivery(at.settler(), at.leases().leaseOf(messageId));
    }

    private synchronized Pulled at(Place place) {
        return pulled.computeIfAbsent(
                place,
                any -> {
                    PulledLeases leases = new PulledLeases();
                    String channel = place.channel().equals("default") ? "" : place.channel();
                    Settler settler = new Settler(connection, place.queue(), channel, leases);
                    settlers.add(settler);
                    return new Pulled(settler, leases);
                });
    }

    /**
     * Waits for what is being settled, then gives back what consumers hold; what the program has in
     * hand only with {@code release}.
     */
    void close(boolean release) {
        List<Settler> allSettlers;
        List<Session> allSessions = new ArrayList<>();
        synchronized (this) {
            allSettlers = List.copyOf(settlers);
            sessions.values().forEach(allSessions::addAll);
        }
        allSettlers.forEach(Settler::close);
        allSessions.forEach(session -> session.close(release));
    }
}
