package dev.fila.client.internal;

import java.util.HashMap;
import java.util.Map;

/**
 * Which leases this client holds, so that an ack by message id can name the delivery it means.
 *
 * <p>Bounded without keeping an order: two generations of a map. What is not settled by the time a
 * whole further generation was delivered is forgotten; acking it by id then settles whatever lease
 * is current, as for a client that remembers nothing. Not safe for several threads: its owner's
 * lock guards it.
 */
public final class LeaseMemory {
    private static final int LEASES_PER_GENERATION_MAX = 32_768;

    private final int perGenerationMax;
    private Map<String, Long> newer = new HashMap<>();
    private Map<String, Long> older = new HashMap<>();

    /** Remembers between one and two times 32,768 leases: some 10 MB at worst. */
    public LeaseMemory() {
        this(LEASES_PER_GENERATION_MAX);
    }

    LeaseMemory(int perGenerationMax) {
        this.perGenerationMax = perGenerationMax;
    }

    /** How many leases are remembered. */
    public int size() {
        return newer.size() + older.size();
    }

    /** Keeps the lease of a delivery; the newest of a message wins. */
    public void remember(String messageId, long leaseId) {
        if (newer.size() >= perGenerationMax) {
            older = newer;
            newer = new HashMap<>();
        }
        newer.put(messageId, leaseId);
    }

    /** The lease under which the message was last delivered here; 0 when it is not known. */
    public long get(String messageId) {
        Long leaseId = newer.get(messageId);
        if (leaseId == null) {
            leaseId = older.get(messageId);
        }
        return leaseId == null ? 0 : leaseId;
    }

    /** Drops a lease that is being settled. A newer delivery of the same message stays. */
    public void forget(String messageId, long leaseId) {
        if (!newer.remove(messageId, leaseId)) {
            older.remove(messageId, leaseId);
        }
    }

    /** Moves what the other remembers here. */
    public void takeAll(LeaseMemory other) {
        other.older.forEach(this::remember);
        other.newer.forEach(this::remember);
        other.older.clear();
        other.newer.clear();
    }
}
