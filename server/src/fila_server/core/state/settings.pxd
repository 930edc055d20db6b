"""A queue's settings, parsed: what policy.pyx makes of a QueueConfig and every stage reads."""

from libc.stdint cimport uint32_t, uint64_t, uint8_t

from fila_server.core.structures.buffer cimport Slice
from fila_server.core.structures.maps cimport Text, TextMap

cdef struct WeightRow:
    Text     text                   # first
    uint32_t weight

cdef struct Policy:                 # a queue's settings, parsed
    uint64_t visibility_ms
    uint32_t max_attempts           # 0 = no cap
    uint8_t  durable                # fsync before the answer
    uint8_t  has_on_enqueue, has_on_failure
    uint8_t  ttl_to_dlq
    uint8_t  retry_fixed
    uint8_t  paused                 # nothing is delivered
    uint8_t  in_order               # of a key one message at a time, a failed one in its old place
    uint8_t  producers_route        # they may say a message's fairness key, weight and cost
    uint64_t max_depth
    uint64_t max_bytes
    Slice    fairness_key_header    # slices of Queue.config
    Slice    weight_header
    Slice    cost_header
    Slice    priority_header
    Slice    throttle_headers[16]
    uint32_t throttle_header_count
    Slice    key_limit              # with a fairness key behind it the name of a limit; empty = none
    TextMap  weights                # of WeightRow
    uint64_t retry_base_ms
    uint64_t retry_cap_ms
    double   retry_jitter
    uint64_t soft_period_ms
    uint64_t soft_bytes
    uint64_t hard_period_ms
    uint64_t hard_bytes
    uint64_t dedup_window_ms
    uint64_t grace_ms               # how long a broken session may be resumed
    double   default_rate, default_burst    # of keys without an operator's word; a rate of 0 = none
    double   default_committed      # the same; 0 = none
    uint32_t default_cap            # the same; 0 = none
    uint64_t idle_ms                # the queue is deleted after so long without use; 0 = never
