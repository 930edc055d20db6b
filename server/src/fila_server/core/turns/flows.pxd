"""One channel's ready messages: flows on the ring, their sub-queues, the lines in front of buckets.

    a slot becomes READY ──► its flow's fifo, or the sub-queue of its set of throttle keys
    a flow's turn comes  ──► flow_next: the lowest position among what may go
                               a sub-queue whose bucket is empty steps into that bucket's line
                               nothing may go: the flow is parked and costs nothing
    a token arrives      ──► bucket_wake: as many sub-queues leave the line as there are tokens
"""

from fila_server.core.state.state cimport Channel, Core, Flow, Key, Slot, Subqueue, ThrottleKey, ThrottleSet

cdef Flow* flow_find(Key* key, Channel* channel) noexcept nogil
cdef Flow* flow_of(Core* core, Key* key, Channel* channel) noexcept nogil
cdef void flow_free(Core* core, Flow* flow) noexcept nogil

cdef Subqueue* subqueue_of(Core* core, Flow* flow, ThrottleSet* set) noexcept nogil
cdef void subqueue_free(Core* core, Subqueue* sub) noexcept nogil
cdef void subqueue_rank(Subqueue* sub) noexcept nogil                            # its first message changed

cdef Slot* flow_next(Core* core, Flow* flow) noexcept nogil
# a token from each of its buckets
cdef void slot_pay(Core* core, Slot* slot) noexcept nogil
cdef void slot_refund(Core* core, Slot* slot) noexcept nogil

# after weight, pause, cap or rate changed
cdef void flow_reconsider(Core* core, Flow* flow) noexcept nogil
cdef void key_reconsider(Core* core, Key* key) noexcept nogil                    # the same, in every channel
cdef void bucket_wake(Core* core, ThrottleKey* bucket) noexcept nogil
# nobody has room: its claims on tokens end
cdef void channel_full(Core* core, Channel* channel) noexcept nogil
cdef void bucket_set(Core* core, ThrottleKey* bucket) noexcept nogil             # its configuration changed
cdef void channel_activate(Core* core, Channel* channel) noexcept nogil
cdef void channel_deactivate(Core* core, Channel* channel) noexcept nogil
