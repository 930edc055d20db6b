package dev.fila.client;

import dev.fila.client.internal.LeaseMemory;
import java.util.List;

/**
 * The leases of what was pulled from one queue and channel, and of what outlived its consumer
 * there.
 */
final class PulledLeases implements Settler.HeldLeases {
    private final LeaseMemory memory = new LeaseMemory();

    @Override
    public synchronized long leaseOf(String messageId) {
        return memory.get(messageId);
    }

    @Override
    public synchronized void forget(String messageId, long leaseId) {
        memory.forget(messageId, leaseId);
    }

    synchronized void remember(List<Message> messages) {
        messages.forEach(message -> memory.remember(message.id(), message.leaseId()));
    }
}
