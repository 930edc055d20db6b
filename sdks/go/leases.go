package fila

// leaseMemory knows which leases this client holds, so that Ack(queue, id) can name the delivery it means. It
// is bounded without keeping an order: two generations of a map. What is not settled by the time a whole
// further generation was delivered is forgotten; acking it by id then settles whatever lease is current, as
// for a client that remembers nothing.
type leaseMemory struct {
	newer, older  map[string]uint64
	generationMax int
}

// Twice this many leases are remembered for each queue and channel: some 10 MB at worst.
const leasesPerGenerationMax = 32_768

func newLeaseMemory() leaseMemory {
	return leaseMemory{newer: map[string]uint64{}, generationMax: leasesPerGenerationMax}
}

func (l *leaseMemory) remember(messageID string, leaseID uint64) {
	if len(l.newer) >= l.generationMax {
		l.older, l.newer = l.newer, map[string]uint64{}
	}
	l.newer[messageID] = leaseID
}

// get returns the lease under which the message was last delivered here; 0 when that is not known.
func (l *leaseMemory) get(messageID string) uint64 {
	if lease, ok := l.newer[messageID]; ok {
		return lease
	}
	return l.older[messageID]
}

// forget drops a lease that is being settled. A newer delivery of the same message stays.
func (l *leaseMemory) forget(messageID string, leaseID uint64) {
	for _, generation := range []map[string]uint64{l.newer, l.older} {
		if lease, ok := generation[messageID]; ok && lease == leaseID {
			delete(generation, messageID)
			return
		}
	}
}
