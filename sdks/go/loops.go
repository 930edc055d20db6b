package fila

import (
	"sync/atomic"

	"github.com/fila-mq/fila/sdks/go/internal/prefetch"
)

// loop is one worker: it takes messages, works, and asks for more.
type loop struct {
	number int
	size   int
	sample *sample
	woken  chan struct{}
	inHand atomic.Int32 // messages it took that are not settled
	// Of the last message that it had in hand, its lease, and when its settlement was answered, or notYet.
	lastLease uint64
	answered  int64
}

// notYet is when an answer came that has not come.
const notYet = -1

// sample is the time from taking messages until all are settled and the loop has asked for more.
type sample struct {
	loop      *loop
	began     int64
	count     int
	unsettled int
	asked     bool
}

func (h *holding) beginSample(l *loop, now int64, taken []*Message) {
	if h.sampled && now-h.lastSample < prefetch.SampleEveryUs {
		return
	}
	h.sampled, h.lastSample = true, now
	l.sample = &sample{loop: l, began: now, count: len(taken), unsettled: len(taken)}
	for _, m := range taken {
		m.taking = l.sample
	}
}

// asks notes that a loop wants more, which may be what its sample waits for.
func (h *holding) asks(l *loop, now int64) {
	s := l.sample
	if s == nil {
		return
	}
	s.asked = true
	l.sample = nil
	if s.unsettled > 0 {
		return
	}
	after := int64(-1)
	if l.inHand.Load() == 0 {
		after = 0
		if l.answered != notYet {
			after = now - l.answered
		}
	}
	h.handled(s, now, l.number, after)
}

func (h *holding) handled(s *sample, now int64, asking int, after int64) {
	h.follow(h.control.Handled(now, (now-s.began)/int64(s.count), asking, after))
	h.median.Store(h.control.MedianUs())
}

// done notes that a message is in hand no longer.
func (h *holding) done(m *Message, cause error) {
	now := h.now()
	l := m.taker
	delete(h.inHand, m.ID)
	m.lease.end(cause)
	h.follow(h.control.Settled(now, l.number, 1))
	if l.inHand.Add(-1) == 0 {
		l.lastLease = m.LeaseID
		h.unanswered[m.LeaseID] = l
		if cause != errSettled { // lost: no answer will come
			h.answeredLocked(m.LeaseID, now)
		}
	}
	if s := m.taking; s != nil {
		m.taking = nil
		s.unsettled--
		if s.unsettled == 0 && s.asked {
			h.handled(s, now, -1, -1)
		}
	}
}

// answered says that the broker has answered the settlement of these leases. It reports whether that may change
// when the prefetch control wants to be asked.
func (h *holding) answered(leases []uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.unanswered) == 0 {
		return false
	}
	now := h.now()
	for _, lease := range leases {
		h.answeredLocked(lease, now)
	}
	return h.buffer.len() > 0
}

func (h *holding) answeredLocked(lease uint64, now int64) {
	if l := h.unanswered[lease]; l != nil {
		delete(h.unanswered, lease)
		l.answered = now
		h.control.Answered(now, l.number)
	}
}
