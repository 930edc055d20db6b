package fila

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fila-mq/fila/sdks/go/internal/prefetch"
)

// holding is what a consumer's session holds: unbegun messages in its buffer, and those in the program's
// hands. It tells the prefetch control what happens to them, and the session what that decides.
type holding struct {
	control prefetch.Control
	start   time.Time
	// tell sends a window and gives leases back; called with the lock held.
	tell func(window int, giveBack []uint64)

	mu     sync.Mutex
	buffer messageQueue
	inHand map[string]*Message // by message id
	// pending are messages handed out of which the broker was not told yet that they are begun.
	pending      []*Message
	pendingSince time.Time
	// Loops that settled all they had in hand, by the last lease of it, until that is answered or they take another.
	unanswered map[uint64]*loop
	loops      int
	waiting    []*loop // oldest first
	sampled    bool
	median     atomic.Int64 // how long the program takes for a message, in microseconds
	lastSample int64
	// Nothing is handed out from this moment on, unless the broker is heard again. Zero: the stream is down.
	until time.Time
	// The last delivery, or when the broker was heard again, if that is later.
	quietSince time.Time
	over       error // why nothing more is handed out; nil while the session lives
}

func newHolding(control prefetch.Control) *holding {
	return &holding{
		control: control, start: time.Now(), inHand: make(map[string]*Message), unanswered: make(map[uint64]*loop),
	}
}

func (h *holding) now() int64 { return time.Since(h.start).Microseconds() }

func (h *holding) follow(decision *prefetch.Decision) {
	if decision == nil {
		return
	}
	var leases []uint64
	for range decision.GiveBack {
		if m := h.buffer.popNewest(); m != nil {
			leases = append(leases, m.LeaseID)
		}
	}
	h.tell(decision.Window, leases)
}

// Loops.

func (h *holding) join(size int) *loop {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joinLocked(size)
}

func (h *holding) joinLocked(size int) *loop {
	h.loops++
	l := &loop{number: h.loops, size: size, woken: make(chan struct{}, 1), answered: notYet}
	h.follow(h.control.Joined(h.now(), l.number, size))
	return l
}

func (h *holding) part(l *loop) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.unanswered, l.lastLease)
	h.follow(h.control.Left(h.now(), l.number))
}

// take hands out up to max messages. Without any it returns the reason, or nil when the loop shall wait until
// it is woken. firstPending tells that a declaration has just begun to wait.
func (h *holding) take(l *loop, max int) (taken []*Message, firstPending bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wasPending := len(h.pending) > 0
	taken, err = h.takeLocked(l, max)
	return taken, !wasPending && len(h.pending) > 0, err
}

func (h *holding) takeLocked(l *loop, max int) ([]*Message, error) {
	moment := time.Now()
	now := moment.Sub(h.start).Microseconds()
	h.asks(l, now)
	if h.over != nil {
		return nil, h.over
	}
	var taken []*Message
	if moment.Before(h.until) {
		taken = h.dropExpired(h.buffer.pop(max), moment)
	}
	if taken == nil {
		h.follow(h.control.Idle(now, l.number))
		h.waiting = append(h.waiting, l)
		return nil, nil
	}
	h.control.Began(now, l.number, len(taken))
	h.beginSample(l, now, taken)
	l.inHand.Add(int32(len(taken)))
	delete(h.unanswered, l.lastLease)
	l.answered = notYet
	for _, m := range taken {
		m.taker = l
		h.inHand[m.ID] = m
		if !m.mustDeclare() {
			if h.pending == nil {
				h.pendingSince = moment
			}
			h.pending = append(h.pending, m)
		}
	}
	return taken, nil
}

// dropExpired leaves out messages whose lease ended while they waited.
func (h *holding) dropExpired(taken []*Message, now time.Time) []*Message {
	running := taken[:0]
	for _, m := range taken {
		if now.Before(m.heldUntil) {
			running = append(running, m)
		}
	}
	if dropped := len(taken) - len(running); dropped > 0 {
		h.control.Dropped(dropped)
	}
	if len(running) == 0 {
		return nil
	}
	return running
}

// forget takes a loop from those that wait, when it gives up waiting. It passes on a wake-up that it got.
func (h *holding) forget(l *loop) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, waiting := range h.waiting {
		if waiting == l {
			h.waiting = append(h.waiting[:i], h.waiting[i+1:]...)
			return
		}
	}
	select {
	case <-l.woken:
		h.wake(1)
	default:
	}
}

func (h *holding) wake(count int) {
	count = min(count, len(h.waiting))
	for _, l := range h.waiting[:count] {
		select {
		case l.woken <- struct{}{}:
		default:
		}
	}
	h.waiting = h.waiting[count:]
}

func (h *holding) wakeAll() { h.wake(len(h.waiting)) }

// What happens to messages.

func (h *holding) deliver(messages []Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range messages {
		h.buffer.push(&messages[i])
	}
	h.quietSince = time.Now()
	h.follow(h.control.Delivered(h.now(), len(messages)))
	h.wake(len(messages))
}

// settling is called when the program has done with a delivery.
func (h *holding) settling(messageID string, leaseID uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.inHand[messageID]; m != nil && m.LeaseID == leaseID {
		h.done(m, errSettled)
	}
}

func (h *holding) settlingAll(messages []*Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range messages {
		if h.inHand[m.ID] == m {
			h.done(m, errSettled)
		}
	}
}

// lose drops leases that the broker has ended, and tells those who work on them. It returns how many of them
// were held: of a lease that was settled before, or is being settled, the program loses nothing.
func (h *holding) lose(leases []uint64, reason string) int {
	if len(leases) == 0 {
		return 0
	}
	gone := make(map[uint64]bool, len(leases))
	for _, lease := range leases {
		gone[lease] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.buffer.remove(gone)
	if held > 0 {
		h.control.Dropped(held)
	}
	for _, m := range h.inHand {
		if gone[m.LeaseID] {
			held++
			lost := newError(ErrLeaseLost, "the lease of message %s is lost: %s", m.ID, reason)
			lost.Reason, lost.MessageID, lost.LeaseID = reason, m.ID, m.LeaseID
			lost.Queue, lost.Channel = m.Queue, m.Channel
			h.done(m, lost)
		}
	}
	return held
}

// isHeld reports whether the message is still the program's.
func (h *holding) isHeld(m *Message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inHand[m.ID] == m
}

// leaseOf returns the lease of a message in hand; 0 when it is not.
func (h *holding) leaseOf(messageID string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.inHand[messageID]; m != nil {
		return m.LeaseID
	}
	return 0
}

// leases are all that the session holds, unbegun or in hand.
func (h *holding) leases() []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	leases := h.buffer.leases()
	for _, m := range h.inHand {
		leases = append(leases, m.LeaseID)
	}
	return leases
}

// takeDeclarations returns the leases that were handed out and are still in hand, once each.
func (h *holding) takeDeclarations() []uint64 {
	pending := h.pending
	h.pending = nil
	var leases []uint64
	for _, m := range pending {
		if h.inHand[m.ID] == m {
			leases = append(leases, m.LeaseID)
		}
	}
	return leases
}

// What the session asks.

func (h *holding) window() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.control.Window()
}

// medianUs needs no lock: the writer asks under its own, which comes after this one.
func (h *holding) medianUs() int64 { return h.median.Load() }

func (h *holding) inHandCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.inHand)
}

func (h *holding) isEmpty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.inHand) == 0 && h.buffer.len() == 0
}

// handOutUntil says until when the buffer may be handed out.
func (h *holding) handOutUntil(moment time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := time.Now(); !now.Before(h.until) {
		h.quietSince = now
	}
	h.until = moment
	h.wake(h.buffer.len())
}

// quietFor is for how long messages could have come since then, and none did.
func (h *holding) quietFor(since time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if !now.Before(h.until) {
		return 0
	}
	if h.quietSince.After(since) {
		since = h.quietSince
	}
	return now.Sub(since)
}

// due returns the leases to declare now, ticks the prefetch control, and says when to look again.
func (h *holding) due(now time.Time) (begun []uint64, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next = now.Add(time.Hour)
	if len(h.pending) > 0 {
		if at := h.pendingSince.Add(begunDelay); at.After(now) {
			next = at
		} else {
			begun = h.takeDeclarations()
		}
	}
	at, ok := h.control.CheckAt()
	if ok && h.now() >= at {
		h.follow(h.control.Tick(h.now()))
		at, ok = h.control.CheckAt()
	}
	if check := h.start.Add(time.Duration(at) * time.Microsecond); ok && check.Before(next) {
		next = check
	}
	return begun, next
}

// declareAnew returns all that is in hand, for a resumed session to say so.
func (h *holding) declareAnew() []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pending = nil
	var leases []uint64
	for _, m := range h.inHand {
		leases = append(leases, m.LeaseID)
	}
	return leases
}

// useWindow changes to a window of one size, for a broker that cannot change it while the stream is open.
func (h *holding) useWindow(size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.control = prefetch.NewFixed(size)
}

// stop hands out nothing more.
func (h *holding) stop(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over == nil {
		h.over = why
	}
	h.wakeAll()
}

// clearBuffer empties the buffer and returns what was in it.
func (h *holding) clearBuffer() []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	leases := h.buffer.clear()
	h.control.Dropped(len(leases))
	return leases
}

// finish is called when the session is over. What is in hand keeps the rest of its lease, of which nobody
// tells the program any more.
func (h *holding) finish(why error) {
	h.stop(why)
	h.clearBuffer()
}

// inHandLeases are the leases of the messages in the program's hands, by message id.
func (h *holding) inHandLeases() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	leases := make(map[string]uint64, len(h.inHand))
	for id, m := range h.inHand {
		leases[id] = m.LeaseID
	}
	return leases
}
