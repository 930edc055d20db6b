"""Who may go next: the ring's flows, sub-queues, waiters for buckets, clocks of waiting. Begin at flows."""
