"""The small words that structs of state.pxd carry: what a message,
a timer, a consumer, a flow is just now."""


cdef enum SlotState:
    DONE = 0            # acked, dropped, dead, or never this channel's
    READY = 1
    DELAYED = 2
    LEASED = 3
    DECIDING = 4        # failed; its policy is being asked, or its bytes are on their way to the DLQ
    UNPLACED = 5        # recovery and seek: pending, in no fifo yet
    RETURNED = 6        # recovery only: the same, with a recorded place

cdef enum TimerKind:
    TIMER_LEASE = 1
    TIMER_DELAY = 2
    TIMER_EXPIRY = 3
    TIMER_BUCKET = 4
    TIMER_PULL = 5
    TIMER_HOUSEKEEPING = 7
    TIMER_SESSION = 8   # a consumer that was silent, or away, long enough
    TIMER_KEY_RATE = 9  # a token of a key's rate, while somebody waits for it

cdef enum ConsumerKind:
    STREAM = 1          # Consume
    SESSION_STREAM = 2  # ConsumeSession
    PULL = 3            # one Lease call

cdef enum Parked:       # why a flow with a backlog is not on the ring
    NOT_PARKED = 0
    PARKED_THROTTLED = 1
    PARKED_PAUSED = 2   # from here on: whatever its buckets say
    PARKED_CAPPED = 3
    PARKED_RATE_LIMITED = 4
    PARKED_IN_ORDER = 5 # an earlier message of the key is leased, or waits for its retry

cdef enum OwnWord:      # KeyExtras.own: what an operator said of a key, a number or none
    OWN_CAP = 1
    OWN_RATE = 2
    OWN_COMMITTED = 4

cdef enum SlotMark:     # Slot.marks: bits, and above them how often it came back uncounted, up to 31
    RECORDED = 1        # a STATES record exists
    RECORDED_RETURN = 2 # and says no more than that it came back
    BEGUN_ONCE = 4      # it came back uncounted, and somebody had begun it
    RETURNED_ONCE = 8
    RETURNS_FROM_BIT = 3

cdef enum Gone:         # a channel that nobody can name any more, until what it held is taken apart
    SOUGHT = 1          # another one has its name, consumers and birth: it started anew
    DELETED = 2

cdef enum Fate:         # what becomes of the leases of a consumer that leaves
    RETURN_ALL = 1      # it let go of them
    RETURN_UNBEGUN = 2  # and keeps the others until these end
    FAIL_BEGUN = 3      # it is gone
    FAIL_OLDEST = 4     # so is this one, which never said what it had begun
