package fila

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// producer sends enqueues over one EnqueueStream: concurrent calls travel together.
//
//	Enqueue ------> gathering frame --+
//	                                  +--> writer --> in flight --> reader --> each caller's answer
//	EnqueueMany --> its slices -------+
//
// When a gathering frame leaves:
//
//	nothing is in flight      once those that can run have run, so a lone call does not wait
//	one frame is in flight    when that is answered, or when as many have gathered as it holds (32 at least)
//	more are in flight        when they are answered
//	in any case               when the frame is full, or after the linger
//
// So a busy producer's frames grow by themselves.
//
// When the stream breaks, the answers of what was in flight are lost. A message with a dedup key is sent
// again: the broker recognises it. Any other is not, for it may have been stored: its caller gets
// ErrAnswerLost and decides. What had not been sent stays here and goes over the next stream.
type producer struct {
	connection *connection
	settings   *settings
	wake       chan struct{}
	ended      chan struct{} // the run loop is over
	calls      sync.Pool     // of *enqueueCall that were answered: there is one for every message
	gathered   atomic.Int64  // messages of single calls, since the beginning

	mu           sync.Mutex
	gathering    *frame
	full         []*frame
	inFlight     flight
	delayed      map[*frame]*time.Timer
	sequence     uint64
	sizes        frameSizes
	waitingBytes int
	queueing     []chan struct{} // calls that wait for room, oldest first
	letIn        bool            // one of them has its turn, and has not added its bytes yet
	lingering    bool
	retries      int
	closed       error
	watching     bool
	cancelStream context.CancelCauseFunc
}

func newProducer(c *connection) *producer {
	p := &producer{
		connection: c,
		settings:   &c.settings,
		wake:       make(chan struct{}, 1),
		ended:      make(chan struct{}),
		inFlight:   flight{frames: make(map[uint64]*frame)},
		delayed:    make(map[*frame]*time.Timer),
	}
	go p.run()
	return p
}

func (p *producer) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// What the client calls.

// enqueue sends one message with whatever else is enqueued around now.
func (p *producer) enqueue(ctx context.Context, queue string, m *outgoing) (Receipt, error) {
	call, _ := p.calls.Get().(*enqueueCall)
	if call == nil {
		call = &enqueueCall{done: make(chan struct{}, 1)}
	}
	if err := p.gather(ctx, queue, m, call); err != nil {
		return Receipt{}, err
	}
	select {
	case <-call.done:
		answer, err := call.answer, call.err
		*call = enqueueCall{done: call.done}
		p.calls.Put(call)
		return answer, err
	case <-ctx.Done():
	}
	p.mu.Lock()
	call.isGone = true
	wasSent := call.isSent
	p.mu.Unlock()
	select {
	case <-call.done:
		return call.answer, call.err
	default:
	}
	if wasSent {
		return Receipt{}, stoppedAfter(ctx)
	}
	return Receipt{}, stoppedBefore(ctx)
}

func (p *producer) gather(ctx context.Context, queue string, m *outgoing, call *enqueueCall) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.letNextIn()
	if err := p.awaitRoom(ctx); err != nil {
		return err
	}
	size := m.bytes
	f := p.gathering
	if f != nil && len(f.body)+size > p.settings.frameBytesMax {
		p.full = append(p.full, f)
		f = nil
	}
	if f == nil {
		f = newFrame(queue, p.sizes, size, time.Now())
		p.gathering = f
		p.wakeUp() // the writer then knows of it, or of the moment it is due
	}
	before := len(f.body)
	f.add(m, queue, call, 0)
	p.gathered.Add(1)
	p.waitingBytes += len(f.body) - before
	if len(f.items) == max(secondFrameLeast, p.inFlight.messages) {
		p.wakeUp()
	}
	if p.isFull(f) {
		p.full = append(p.full, f)
		p.gathering = nil
		p.wakeUp()
	}
	return nil
}

// awaitRoom waits, with the lock held, while too many bytes wait to be sent. Calls go on in the order they
// came, one at a time: each adds its bytes before the next is let in.
func (p *producer) awaitRoom(ctx context.Context) error {
	if p.closed != nil || p.waitingBytes < p.settings.waitingBytesMax && len(p.queueing) == 0 {
		return p.closed
	}
	turn := make(chan struct{})
	p.queueing = append(p.queueing, turn)
	p.mu.Unlock()
	letIn := false
	select {
	case <-turn:
		letIn = true
	case <-ctx.Done():
	}
	p.mu.Lock()
	if letIn {
		p.letIn = false
	} else if i := slices.Index(p.queueing, turn); i >= 0 {
		p.queueing = slices.Delete(p.queueing, i, i+1)
	} else {
		p.letIn = false // its turn came at the same moment
	}
	if ctx.Err() != nil {
		p.letNextIn()
		return stoppedBefore(ctx)
	}
	return p.closed
}

// letNextIn gives the oldest call that waits for room its turn, if there is room.
func (p *producer) letNextIn() {
	if len(p.queueing) == 0 || p.letIn || p.closed == nil && p.waitingBytes >= p.settings.waitingBytesMax {
		return
	}
	p.letIn = true
	close(p.queueing[0])
	p.queueing = p.queueing[1:]
}

func (p *producer) isFull(f *frame) bool {
	return len(f.items) >= p.settings.frameMessagesMax || len(f.body) >= p.settings.frameBytesMax
}

// put gives a slice of an EnqueueMany to the writer.
func (p *producer) put(f *frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return p.closed
	}
	p.full = append(p.full, f)
	p.wakeUp()
	return nil
}

// abandon withdraws a slice that is not sent, and reports whether it was.
func (p *producer) abandon(s *enqueueSlice) (wasSent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.isGone = true
	return s.isSent
}

// close sends what waits and takes in what is answered, until ctx ends; what is left then fails.
func (p *producer) close(ctx context.Context) {
	ticker := time.NewTicker(closingPoll)
	defer ticker.Stop()
	for p.hasUnanswered() && ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	p.closed = errClosed()
	if p.cancelStream != nil {
		p.cancelStream(errClosed())
	}
	p.mu.Unlock()
	p.wakeUp()
	<-p.ended
}

// closingPoll is how often a closing producer looks whether everything is answered.
const closingPoll = 2 * time.Millisecond

func (p *producer) hasUnanswered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gathering != nil || len(p.full)+len(p.inFlight.frames)+len(p.delayed) > 0
}
