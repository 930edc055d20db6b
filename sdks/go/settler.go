package fila

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

const (
	// The broker's bound on one frame.
	frameLeasesMax = 10_000
	// Unanswered frames; what is settled meanwhile gathers in the next ones.
	settleFramesInFlightMax = 4
	// As many, once fewLeases or more are unanswered. The broker fills the room that a frame makes with one
	// delivery, and that is settled by one frame again: so the pieces of a window that circulate never grow by
	// themselves. With more frames in flight they are as many more and smaller, and each costs both sides a frame.
	largeSettleFramesInFlightMax = 2
	fewLeases                    = 64
	// How long closing waits for settlements that are still unanswered.
	flushTimeout = 5 * time.Second
)

// settler settles the deliveries of one consumer, or those pulled from one queue and channel.
//
//	Ack, Nack, Extend --> open frames ----> pump --> transport --> answer --> the waiting callers
//	                      one a verdict     a few frames unanswered; the rest gather
//
// The transport is the consumer's own session while that stands, and unary calls otherwise: so a message can
// be settled whatever became of the stream it came by. A frame whose answer was lost is sent again, which is
// safe: it names leases, and a lease is settled once.
type settler struct {
	connection *connection
	queue      string
	channel    string
	calls      *settleCalls
	// settling is told of each delivery that the program has done with, before it is sent.
	settling func(messageID string, leaseID uint64)
	// settlingAll is the same for many; nil where settling is all there is.
	settlingAll func([]*Message)
	// leasesAnswered is told of the leases of each frame that is answered, before its callers are; nil where nobody asks.
	leasesAnswered func([]uint64)
	singles        sync.Pool    // of *settleCall for one item that were answered: there is one for every message
	gathered       atomic.Int64 // deliveries to settle, since the beginning

	mu        sync.Mutex
	transport settleTransport
	open      []*settleFrame // one a verdict, oldest first
	repeat    []*settleFrame
	inFlight  map[uint64]*settleFrame
	sequence  uint64
	pumping   bool
	room      chan struct{}
	closed    error
}

// settleTransport is a way to the broker. send starts a frame on it; the answer reaches the settler's answered
// or refused.
type settleTransport interface{ send(*settleFrame) }

// settleFrame is leases that are settled alike and together.
type settleFrame struct {
	sequence uint64
	verdict  verdict
	ids      []string
	leases   []uint64
	callers  []settlePlace
	repeated bool // it was sent before and the answer was lost
}

// settlePlace is where the outcome of one item goes.
type settlePlace struct {
	call  *settleCall
	index int
}

// settleCall is one caller that waits, for one item or for many.
type settleCall struct {
	done      chan struct{} // of one place
	remaining atomic.Int32
	results   []error
	expiresAt time.Time
}

func newSettleCall(items int) *settleCall {
	call := &settleCall{done: make(chan struct{}, 1), results: make([]error, items)}
	call.remaining.Store(int32(items))
	return call
}

func (c *settleCall) resolve(index int, result error) {
	c.results[index] = result
	if c.remaining.Add(-1) == 0 {
		c.done <- struct{}{}
	}
}

// wait returns whether everything was answered; if not, results must not be touched.
func (c *settleCall) wait(ctx context.Context) bool {
	select {
	case <-c.done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func newSettler(c *connection, queue, channel string, settling func(string, uint64)) *settler {
	s := &settler{
		connection: c,
		queue:      queue,
		channel:    channel,
		settling:   settling,
		inFlight:   make(map[uint64]*settleFrame),
		room:       make(chan struct{}, 1),
	}
	s.calls = &settleCalls{settler: s}
	s.transport = s.calls
	return s
}

// What messages and clients call.

func (s *settler) settle(
	ctx context.Context, v verdict, messageID string, leaseID uint64,
) (time.Time, error) {
	if ctx.Err() != nil {
		return time.Time{}, stoppedBefore(ctx)
	}
	call, _ := s.singles.Get().(*settleCall)
	if call == nil {
		call = newSettleCall(1)
	}
	call.remaining.Store(1)
	s.put(v, messageID, leaseID, settlePlace{call, 0})
	if !call.wait(ctx) {
		return time.Time{}, stoppedAfter(ctx)
	}
	expiresAt, err := call.expiresAt, call.results[0]
	call.results[0], call.expiresAt = nil, time.Time{}
	s.singles.Put(call)
	return expiresAt, err
}

// put adds a delivery to the frame of its verdict.
func (s *settler) put(v verdict, messageID string, leaseID uint64, to settlePlace) {
	if v.kind != extended && s.settling != nil {
		s.settling(messageID, leaseID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putLocked(v, messageID, leaseID, to)
}

// putAll is put for many messages of this settler, whose places are those from first on.
func (s *settler) putAll(v verdict, messages []*Message, call *settleCall, first int) {
	if s.settlingAll != nil {
		s.settlingAll(messages)
	} else {
		for _, m := range messages {
			s.settling(m.ID, m.LeaseID)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range messages {
		s.putLocked(v, m.ID, m.LeaseID, settlePlace{call, first + i})
	}
}

func (s *settler) putLocked(v verdict, messageID string, leaseID uint64, to settlePlace) {
	if s.closed != nil {
		to.call.resolve(to.index, s.closed)
		return
	}
	s.gathered.Add(1)
	f := s.frameFor(v)
	f.ids = append(f.ids, messageID)
	f.leases = append(f.leases, leaseID)
	f.callers = append(f.callers, to)
	if !s.pumping {
		s.pumping = true
		go s.pump()
	}
}

func (s *settler) frameFor(v verdict) *settleFrame {
	for i, f := range s.open {
		if f.verdict == v {
			if len(f.leases) < frameLeasesMax {
				return f
			}
			s.open = append(s.open[:i], s.open[i+1:]...)
			s.repeat = append(s.repeat, f)
			break
		}
	}
	s.sequence++
	f := &settleFrame{sequence: s.sequence, verdict: v}
	s.open = append(s.open, f)
	return f
}

// On the way.

// pump sends frames until there is nothing left to send.
func (s *settler) pump() {
	for {
		awaitCompany(&s.gathered)
		f, transport := s.nextFrame()
		if f == nil {
			if transport == nil {
				return
			}
			<-s.room
			continue
		}
		transport.send(f)
	}
}

// nextFrame returns no transport when there is nothing to send, and a transport without a frame when it has
// to wait.
func (s *settler) nextFrame() (*settleFrame, settleTransport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.repeat)+len(s.open) == 0 {
		s.pumping = false
		return nil, nil
	}
	if s.isFull() {
		return nil, s.transport
	}
	from := &s.open
	if len(s.repeat) > 0 {
		from = &s.repeat
	}
	f := (*from)[0]
	*from = (*from)[1:]
	s.inFlight[f.sequence] = f
	return f, s.transport
}

// isFull says that what is settled now has to gather.
func (s *settler) isFull() bool {
	if len(s.inFlight) < largeSettleFramesInFlightMax {
		return false
	}
	leases := 0
	for _, f := range s.inFlight {
		leases += len(f.leases)
	}
	return leases >= fewLeases || len(s.inFlight) >= settleFramesInFlightMax
}

func (s *settler) makeRoom() {
	select {
	case s.room <- struct{}{}:
	default:
	}
}

// take removes a frame that is answered.
func (s *settler) take(sequence uint64) *settleFrame {
	s.mu.Lock()
	f := s.inFlight[sequence]
	delete(s.inFlight, sequence)
	s.makeRoom()
	s.mu.Unlock()
	if f != nil && f.verdict.kind != extended && s.leasesAnswered != nil {
		s.leasesAnswered(f.leases)
	}
	return f
}

// answered says that a frame is durable, but for failures, by index in the frame.
func (s *settler) answered(sequence uint64, failures map[int]error, expiresAt time.Time) {
	f := s.take(sequence)
	if f == nil {
		return
	}
	for i, to := range f.callers {
		if !expiresAt.IsZero() {
			to.call.expiresAt = expiresAt
		}
		to.call.resolve(to.index, failures[i])
	}
}

// refused says that a frame could not be settled at all.
func (s *settler) refused(sequence uint64, failure error) {
	if f := s.take(sequence); f != nil {
		f.fail(failure)
	}
}

func (f *settleFrame) fail(failure error) {
	for _, to := range f.callers {
		to.call.resolve(to.index, failure)
	}
}

// settledBySession is a session's word for answered: it names leases, not positions.
func (s *settler) settledBySession(
	sequence uint64, failed []*filav1.ConsumeSessionResponse_Failure, expiresAt time.Time,
) {
	var failures map[int]error
	if len(failed) > 0 {
		s.mu.Lock()
		f := s.inFlight[sequence]
		s.mu.Unlock()
		if f == nil {
			return
		}
		indexByLease := make(map[uint64]int, len(f.leases))
		for i, lease := range f.leases {
			indexByLease[lease] = i
		}
		failures = make(map[int]error, len(failed))
		for _, one := range failed {
			if i, ok := indexByLease[one.GetLeaseId()]; ok {
				failures[i] = s.failureOf(f, i, one.GetStatus())
			}
		}
	}
	s.answered(sequence, failures, expiresAt)
}

// failureOf is the error that an item's status means; nil where it means nothing to worry about.
func (s *settler) failureOf(f *settleFrame, index int, status *filav1.ItemStatus) error {
	if status.GetCode() == 0 {
		return nil
	}
	about := subject{queue: s.queue, channel: channelOrDefault(s.channel), messageID: f.ids[index], leaseID: f.leases[index]}
	failure := errorFromStatus(codes.Code(status.GetCode()), status.GetMessage(), status.GetReason(), about)
	if f.repeated && f.verdict.kind == acked && (failure.Is(ErrLeaseLost) || failure.Is(ErrMessageNotFound)) {
		// The ack whose answer was lost did its work. Or its lease had ended: then the message comes again, as it
		// may at any time. To call it refused would make the program undo work of which nobody else knows.
		return nil
	}
	return failure
}

// Where to.

func (s *settler) hasUnanswered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)+len(s.repeat)+len(s.inFlight) > 0
}

// unansweredLeases are those the broker may not know to be settled.
func (s *settler) unansweredLeases() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var leases []uint64
	for _, f := range append(append([]*settleFrame(nil), s.open...), s.repeat...) {
		leases = append(leases, f.leases...)
	}
	for _, f := range s.inFlight {
		leases = append(leases, f.leases...)
	}
	return leases
}

// useSession makes frames go over a session from now on.
func (s *settler) useSession(transport settleTransport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transport = transport
}

// useCalls says that the session is over: what it left unanswered is sent again, by calls, and so is all that
// follows.
func (s *settler) useCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transport == settleTransport(s.calls) {
		return
	}
	s.transport = s.calls
	for _, f := range s.inFlight {
		f.repeated = true
		s.repeat = append(s.repeat, f)
	}
	clear(s.inFlight)
	s.makeRoom()
	if len(s.repeat) > 0 && !s.pumping {
		s.pumping = true
		go s.pump()
	}
}

// close waits a while for what is unanswered, then fails the rest and refuses what comes.
func (s *settler) close(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, flushTimeout)
	defer stop()
	for s.hasUnanswered() && sleep(ctx, closingPoll) == nil {
	}
	s.mu.Lock()
	s.closed = newError(ErrClientClosed, "the client was closed; the message comes back when its lease ends")
	frames := append(s.open, s.repeat...)
	for _, f := range s.inFlight {
		frames = append(frames, f)
	}
	s.open, s.repeat = nil, nil
	clear(s.inFlight)
	for _, f := range frames {
		f.fail(s.closed)
	}
	s.makeRoom()
	s.mu.Unlock()
}
