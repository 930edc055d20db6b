"""Deficit round robin with skipped rounds: the list, the heap of deferred flows, and the arithmetic.

The shape is drawn in ring.pxd, the promise proved in
docs/fairness.md, the slow twin is reference.ReferenceRing.
"""

from libc.stdlib cimport calloc, free, realloc

cdef enum:
    DEFERRED_CAPACITY_MIN = 64

# A jump goes over up to a million million rounds at once. Long before the count could overflow, everything is
# moved back towards round 0 together.
cdef int64_t ROUND_MAX = <int64_t>1 << 60


cdef void ring_init(Ring* ring, int64_t quantum) noexcept nogil:
    ring.marker.next = &ring.marker
    ring.marker.prev = &ring.marker
    ring.marker.place = ON_RING
    ring.head = &ring.marker
    ring.granted = NULL
    ring.deferred = NULL
    ring.deferred_count = 0
    ring.deferred_capacity = 0
    ring.ring_count = 0
    ring.round = 0
    ring.quantum = quantum if quantum > 0 else 1
    ring.seq = 0
    ring.walked = 0


cdef void ring_free(Ring* ring) noexcept nogil:
    free(ring.deferred)
    ring_init(ring, ring.quantum)


cdef inline int64_t _grant(Ring* ring, Turn* turn) noexcept nogil:
    return ring.quantum * turn.weight


# ---- the heap of those deferred
# ---------------------------------------------------------------------------------------

cdef inline bint _before(const Deferral* a, const Deferral* b) noexcept nogil:
    if a.due_round != b.due_round:
        return a.due_round < b.due_round
    return a.seq < b.seq


cdef inline void _set(Ring* ring, uint32_t at, Deferral deferral) noexcept nogil:
    ring.deferred[at] = deferral
    deferral.turn.deferred_at = at


cdef void _sift_up(Ring* ring, uint32_t at) noexcept nogil:
    cdef Deferral moving = ring.deferred[at]
    cdef uint32_t parent
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(&moving, &ring.deferred[parent]):
            break
        _set(ring, at, ring.deferred[parent])
        at = parent
    _set(ring, at, moving)


cdef void _sift_down(Ring* ring, uint32_t at) noexcept nogil:
    cdef Deferral moving = ring.deferred[at]
    cdef uint32_t child
    while True:
        child = 2 * at + 1
        if child >= ring.deferred_count:
            break
        if child + 1 < ring.deferred_count and _before(&ring.deferred[child + 1], &ring.deferred[child]):
            child += 1
        if not _before(&ring.deferred[child], &moving):
            break
        _set(ring, at, ring.deferred[child])
        at = child
    _set(ring, at, moving)


cdef bint _deferred_resize(Ring* ring, uint32_t capacity) noexcept nogil:
    cdef Deferral* grown = <Deferral*>realloc(ring.deferred, capacity * sizeof(Deferral))
    if grown == NULL:
        return False
    ring.deferred = grown
    ring.deferred_capacity = capacity
    return True


cdef bint _deferred_push(Ring* ring, Turn* turn, int64_t due_round) noexcept nogil:
    """Of a turn that is off the list: where its neighbours stood, its place in the heap is written."""
    cdef Deferral* last
    if ring.deferred_count == ring.deferred_capacity:
        if not _deferred_resize(ring, max(<uint32_t>DEFERRED_CAPACITY_MIN, 2 * ring.deferred_capacity)):
            return False
    ring.seq += 1
    last = &ring.deferred[ring.deferred_count]
    last.due_round = due_round
    last.seq = ring.seq
    last.turn = turn
    turn.since_round = ring.round
    turn.place = DEFERRED
    ring.deferred_count += 1
    _sift_up(ring, ring.deferred_count - 1)
    return True


cdef void _deferred_remove(Ring* ring, Turn* turn) noexcept nogil:
    cdef uint32_t at = turn.deferred_at
    ring.deferred_count -= 1
    if at < ring.deferred_count:
        ring.deferred[at] = ring.deferred[ring.deferred_count]
        _sift_up(ring, at)                       # the one that fills the gap may belong either way
        _sift_down(ring, at)
    if ring.deferred_capacity > DEFERRED_CAPACITY_MIN and 4 * ring.deferred_count < ring.deferred_capacity:
        _deferred_resize(ring, ring.deferred_capacity >> 1)   # when even that fails, the large one stays
    turn.place = IDLE


cdef void _rebase(Ring* ring) noexcept nogil:
    cdef uint32_t i
    for i in range(ring.deferred_count):
        ring.deferred[i].due_round -= ring.round
        ring.deferred[i].turn.since_round -= ring.round
    ring.round = 0


# ---- the list
# -----------------------------------------------------------------------------------------------

cdef void _link_at_tail(Ring* ring, Turn* turn) noexcept nogil:
    turn.prev = ring.head.prev
    turn.next = ring.head
    turn.prev.next = turn
    turn.next.prev = turn
    turn.place = ON_RING
    ring.ring_count += 1


cdef void _unlink(Ring* ring, Turn* turn) noexcept nogil:
    if ring.head == turn:
        ring.head = turn.next
    if ring.granted == turn:
        ring.granted = NULL
    turn.prev.next = turn.next
    turn.next.prev = turn.prev
    turn.place = IDLE
    ring.ring_count -= 1


cdef void _take_off(Ring* ring, Turn* turn, int64_t round) noexcept nogil:
    """Leave the list or the heap, with every grant up to and including that of `round`."""
    if turn.place == ON_RING:
        _unlink(ring, turn)
    elif turn.place == DEFERRED:
        turn.deficit += (round - turn.since_round) * _grant(ring, turn)
        _deferred_remove(ring, turn)


cdef void _to_tail(Ring* ring, Turn* turn) noexcept nogil:
    """End a turn. The list is a circle: the head going to the tail is the head moving on by one."""
    if ring.granted == turn:
        ring.granted = NULL
    if ring.head == turn:
        ring.head = turn.next
    else:
        _unlink(ring, turn)
        _link_at_tail(ring, turn)


cdef void _next_round(Ring* ring) noexcept nogil:
    """The marker is at the head: count the round, let in who is due, put the marker behind them."""
    cdef Turn* turn
    ring.walked += 1
    if ring.ring_count == 0:
        if ring.round > ROUND_MAX:
            _rebase(ring)
        ring.round = ring.deferred[0].due_round   # nobody could send in the rounds between
    else:
        ring.round += 1
    while ring.deferred_count > 0 and ring.deferred[0].due_round <= ring.round:
        turn = ring.deferred[0].turn
        # The grant of this round is not among those credited: ring_turn adds it, as to everybody.
        _take_off(ring, turn, ring.round - 1)
        _link_at_tail(ring, turn)
    ring.head = ring.marker.next


# ---- coming and going
# ---------------------------------------------------------------------------------------

cdef void ring_join(Ring* ring, Turn* turn) noexcept nogil:
    """Become backlogged. The tail is behind the marker, so a flow
    that leaves and joins gets no second grant."""
    if turn.place != IDLE:
        return
    if turn.weight == 0:
        turn.weight = 1                          # a zeroed struct; with a grant of 0 it would be served never
    turn.deficit = 0
    turn.carried = False
    _link_at_tail(ring, turn)


cdef void ring_leave(Ring* ring, Turn* turn) noexcept nogil:
    """Become idle. The deficit is forfeited: credit is not for the idle."""
    _take_off(ring, turn, ring.round)
    turn.deficit = 0
    turn.carried = False


cdef void ring_park(Ring* ring, Turn* turn) noexcept nogil:
    """Leave because nothing may be sent now. More than one grant kept would be a burst on its return."""
    _take_off(ring, turn, ring.round)
    turn.deficit = min(turn.deficit, _grant(ring, turn))


cdef void ring_rejoin(Ring* ring, Turn* turn) noexcept nogil:
    if turn.place != IDLE:
        return
    if turn.weight == 0:
        turn.weight = 1
    turn.carried = turn.deficit > 0
    _link_at_tail(ring, turn)


cdef void ring_again(Ring* ring, Turn* turn) noexcept nogil:
    """What a deferred flow saves for may be gone: what it is owed is
    written down, and its next turn works it out."""
    if turn.place == DEFERRED:
        _take_off(ring, turn, ring.round)
        _link_at_tail(ring, turn)


# ---- a pick
# -------------------------------------------------------------------------------------------------

cdef Turn* ring_turn(Ring* ring) noexcept nogil:
    """Return the flow whose turn it is, its grant added once, or NULL when nobody is backlogged."""
    if ring.head == &ring.marker:
        if ring.ring_count == 0 and ring.deferred_count == 0:
            ring.round = 0                       # nobody remembers a round
            return NULL
        _next_round(ring)
    if ring.granted != ring.head:
        ring.granted = ring.head
        ring.head.deficit += _grant(ring, ring.head)
    return ring.head


cdef bint ring_afford(Ring* ring, Turn* turn, int64_t cost) noexcept nogil:
    """May the flow at turn send this message now? If not, its turn is over and it is put where it can pay."""
    cdef int64_t grant, grants_needed
    if turn.deficit >= cost:
        return True
    grant = _grant(ring, turn)
    grants_needed = (cost - turn.deficit + grant - 1) / grant
    turn.carried = False
    _to_tail(ring, turn)
    if grants_needed > 1:
        _unlink(ring, turn)
        if not _deferred_push(ring, turn, ring.round + grants_needed):
            _link_at_tail(ring, turn)            # no memory: walking the rounds is slower, and as fair
    return False


cdef void ring_charge(Ring* ring, Turn* turn, int64_t cost) noexcept nogil:
    turn.deficit = max(<int64_t>0, turn.deficit - cost)


cdef void ring_yield(Ring* ring, Turn* turn) noexcept nogil:
    """Pass the turn on. The grant goes back, but a flow keeps what
    it had saved before, or up to one grant."""
    cdef int64_t grant = _grant(ring, turn)
    if turn.place != ON_RING:
        return
    if ring.granted == turn:
        turn.deficit = max(turn.deficit - grant, min(turn.deficit, grant))
        turn.carried = 0 < turn.deficit <= grant
    _to_tail(ring, turn)


# ---- corrections
# --------------------------------------------------------------------------------------------

cdef void ring_refund(Ring* ring, Turn* turn, int64_t cost) noexcept nogil:
    """Give back what a delivery cost that came to nothing, up to one grant.

    Uncapped, a consumer that returns 250 messages at once would let them all go again in one turn, before
    anybody else's. For the same reason the flow's turn is over: one that gets back what it has just sent
    would keep it for ever, as long as somebody takes its messages and returns them. An idle flow gets
    nothing: ring_join forfeits it.
    """
    cdef int64_t grant = _grant(ring, turn)
    if turn.place == DEFERRED:
        ring_again(ring, turn)                   # it may be able to pay sooner now
    cdef int64_t before = turn.deficit
    turn.deficit = max(before, min(before + cost, grant))
    if ring.granted == turn:
        ring_yield(ring, turn)
    elif turn.deficit > before:
        turn.carried = turn.deficit <= grant     # of what is kept a lower weight leaves one grant


cdef void ring_reweigh(Ring* ring, Turn* turn, uint32_t weight) noexcept nogil:
    """Change the weight. Grants stay as they were earned, but for the
    one being spent and the one kept unspent."""
    if weight == 0:
        weight = 1
    if weight == turn.weight:
        return
    ring_again(ring, turn)                       # it is owed grants at the old weight,
                                                 # and waits at the new one
    cdef int64_t grant_before = _grant(ring, turn)
    turn.weight = weight
    cdef int64_t grant = _grant(ring, turn)
    if turn.place == IDLE:
        turn.deficit = min(turn.deficit, grant)
        return
    if grant >= grant_before:
        # It counts from the next grant on: if it were added here, a weight going up and down would earn
        # without end.
        return
    if ring.granted == turn:
        # Of the running grant no more may be spent than the new weight gives.
        turn.deficit -= max(<int64_t>0, min(turn.deficit, grant_before) - grant)
    if turn.carried:
        # Nor may more be kept than one grant, now that a grant is less: it would be a burst.
        turn.deficit = min(turn.deficit, 2 * grant if ring.granted == turn else grant)


# ---- for tests and benchmarks
# -------------------------------------------------------------------------------

cdef class FairRing:
    """A ring of flows numbered from 0, each with weight 1 until told otherwise."""

    cdef Ring ring
    cdef Turn* turns
    cdef uint32_t flow_count

    def __cinit__(self, int64_t quantum, uint32_t flow_count, int64_t first_round=0):
        ring_init(&self.ring, quantum)
        self.ring.round = first_round
        self.flow_count = flow_count
        self.turns = <Turn*>calloc(max(flow_count, 1), sizeof(Turn))
        if self.turns == NULL:
            raise MemoryError()
        cdef uint32_t flow
        for flow in range(flow_count):
            self.turns[flow].weight = 1

    def __dealloc__(self):
        ring_free(&self.ring)
        free(self.turns)

    cdef Turn* _turn(self, uint32_t flow) except NULL:
        if flow >= self.flow_count:
            raise IndexError(f"flow {flow} of {self.flow_count}")
        return &self.turns[flow]

    def join(self, uint32_t flow):
        ring_join(&self.ring, self._turn(flow))

    def leave(self, uint32_t flow):
        ring_leave(&self.ring, self._turn(flow))

    def park(self, uint32_t flow):
        ring_park(&self.ring, self._turn(flow))

    def rejoin(self, uint32_t flow):
        ring_rejoin(&self.ring, self._turn(flow))

    def turn(self):
        cdef Turn* turn = ring_turn(&self.ring)
        return None if turn == NULL else <int64_t>(turn - self.turns)

    def afford(self, uint32_t flow, int64_t cost):
        return ring_afford(&self.ring, self._turn(flow), cost)

    def charge(self, uint32_t flow, int64_t cost):
        ring_charge(&self.ring, self._turn(flow), cost)

    def refund(self, uint32_t flow, int64_t cost):
        ring_refund(&self.ring, self._turn(flow), cost)

    def reweigh(self, uint32_t flow, uint32_t weight):
        ring_reweigh(&self.ring, self._turn(flow), weight)

    def again(self, uint32_t flow):
        ring_again(&self.ring, self._turn(flow))

    def pass_on(self, uint32_t flow):
        ring_yield(&self.ring, self._turn(flow))

    def place(self, uint32_t flow):
        return self._turn(flow).place

    def deficit(self, uint32_t flow):
        return self._turn(flow).deficit

    @property
    def round(self):
        return self.ring.round

    @property
    def counts(self):
        """Flows on the list, and flows deferred to a later round."""
        return self.ring.ring_count, self.ring.deferred_count

    def spin(self, int64_t sends, int64_t cost_step, int64_t cost_count):
        """Send `sends` messages of flows in turn, in one call; costs go round cost_step * (1..cost_count)."""
        cdef Turn* turn
        cdef int64_t sent = 0
        cdef int64_t cost
        with nogil:
            while sent < sends:
                turn = ring_turn(&self.ring)
                if turn == NULL:
                    break
                cost = cost_step * (1 + (turn - self.turns) % cost_count)
                if ring_afford(&self.ring, turn, cost):
                    ring_charge(&self.ring, turn, cost)
                    sent += 1
        return sent
