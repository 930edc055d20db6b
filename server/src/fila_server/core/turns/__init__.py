"""Who may go next: the ring's flows, sub-queues, lines in front of buckets, clocks of waiting. Door: flows."""
