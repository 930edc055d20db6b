"""Small structures that know nothing of messages: bytes, maps, heaps, timers, buckets, the fair ring."""
