package fila

import (
	"io"
	"time"
)

// Handing out.

// receive returns up to max messages for a loop, waiting for the first; nil with io.EOF when the session was
// left, or when nothing came for as long as idle allows (0: any time). What came for other loops counts, and
// time in which the broker is not heard does not: an outage is not an empty queue.
func (s *session) receive(l *loop, max int, idle time.Duration) ([]*Message, error) {
	var timer *time.Timer
	var idleOver <-chan time.Time
	asked := time.Now()
	if idle > 0 {
		timer = time.NewTimer(idle)
		defer timer.Stop()
		idleOver = timer.C
	}
	for {
		taken, firstPending, err := s.holding.take(l, max)
		if err != nil {
			return nil, err
		}
		if taken != nil {
			if firstPending {
				s.writer.wakeUp() // it declares them in time
			}
			if taken = s.declare(taken); len(taken) > 0 {
				return taken, nil
			}
			continue
		}
		select {
		case <-l.woken:
		case <-idleOver:
			if left := idle - s.holding.quietFor(asked); left > 0 {
				timer.Reset(left)
				continue
			}
			s.holding.forget(l)
			return nil, io.EOF
		}
	}
}

// declare makes sure that the broker knows of each message that was sent before that it is begun, before the
// program sees it. Otherwise a message that kills its worker in its first milliseconds would never be declared, keep
// its place, and go on killing for ever. It returns what is still ours then.
func (s *session) declare(taken []*Message) []*Message {
	var leases []uint64
	for _, m := range taken {
		if m.mustDeclare() {
			leases = append(leases, m.LeaseID)
		}
	}
	if leases == nil {
		return taken
	}
	s.writer.declare(leases, s.ended)
	held := taken[:0]
	for _, m := range taken {
		if s.holding.isHeld(m) {
			held = append(held, m)
		}
	}
	return held
}

// Leaving.

// leave takes nothing more, and gives the buffer back. The stream closes once all that was handed out is
// settled; at the latest a visibility timeout from now, after which what is in hand has the rest of its lease.
func (s *session) leave(why error) {
	s.mu.Lock()
	if s.leaving {
		s.mu.Unlock()
		return
	}
	s.leaving = true
	open := s.open
	if s.timeout > 0 {
		s.leaveTimer = time.AfterFunc(s.timeout, func() { s.closeNow(false) })
	}
	s.mu.Unlock()
	s.holding.stop(why)
	if open {
		s.giveBackBuffer()
		s.closeWhenSettled()
		return
	}
	s.holding.clearBuffer() // a resume does not name it, which gives it back
	if s.holding.isEmpty() {
		s.cancel()
	}
}

func (s *session) giveBackBuffer() { s.writer.tellWindow(0, s.holding.clearBuffer()) }

func (s *session) closeWhenSettled() {
	if s.isLeaving() && s.holding.isEmpty() && !s.settler.hasUnanswered() {
		s.closeNow(true)
	}
}

// closeNow ends the stream; release gives back, uncounted, what is still in hand.
func (s *session) closeNow(release bool) {
	if !s.writer.sendClose(release) {
		s.cancel()
		return
	}
	time.AfterFunc(closeTimeout, s.cancel)
}

// close leaves at once, giving back every lease, also of messages in the program's hands.
func (s *session) close() {
	s.leave(io.EOF)
	s.closeNow(true)
	<-s.ended
}
