package fila

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// begunDelay is how long the word that a message was handed out may wait: most are settled before, and a
// settlement says it too.
const begunDelay = 5 * time.Millisecond

// sessionWriter writes a session's frames, from one goroutine a stream, and what is due by the clock: begun
// messages, signs of life, and the ticks of the prefetch control.
type sessionWriter struct {
	holding *holding
	wake    chan struct{}

	mu       sync.Mutex
	stream   grpc.ClientStream
	outbox   []*filav1.ConsumeSessionRequest
	extends  []uint64 // sequences of extend frames that are unanswered, oldest first
	closing  bool     // Close is written, or about to be
	old      bool     // the broker knows nothing of begun messages, windows and signs of life
	timeout  time.Duration
	aliveDue time.Time
	sequence uint64               // of the newest sign of life
	sentAt   map[uint64]time.Time // of those that are unanswered
	answered uint64
	told     chan struct{} // closed and made anew with each answer to a sign of life
}

func newSessionWriter(h *holding) *sessionWriter {
	return &sessionWriter{
		holding: h, wake: make(chan struct{}, 1), sentAt: make(map[uint64]time.Time), told: make(chan struct{}),
	}
}

func (w *sessionWriter) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// attach begins to write on a stream, and says anew what a resumed session has begun.
func (w *sessionWriter) attach(stream grpc.ClientStream, cancel context.CancelFunc, timeout time.Duration) {
	begun := w.holding.declareAnew()
	w.mu.Lock()
	w.stream, w.timeout = stream, timeout
	w.outbox, w.extends = nil, nil
	clear(w.sentAt)
	w.aliveDue = time.Now().Add(timeout / alivePerTimeout)
	if len(begun) > 0 {
		w.postBegun(begun)
		w.postAlive()
	}
	w.mu.Unlock()
	go w.run(stream, cancel)
}

// detach says that the stream is over.
func (w *sessionWriter) detach() {
	w.holding.handOutUntil(time.Time{})
	w.mu.Lock()
	w.stream = nil
	w.outbox, w.extends = nil, nil
	w.mu.Unlock()
	w.wakeUp()
}

func (w *sessionWriter) post(request *filav1.ConsumeSessionRequest) {
	isNew := request.GetBegun() != nil || request.GetWindow() != nil || request.GetAlive() != nil
	if w.stream == nil || w.old && isNew {
		return
	}
	w.outbox = append(w.outbox, request)
}

func (w *sessionWriter) forOldBroker(old bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.old = old
}

// run writes until the stream is replaced or broken.
func (w *sessionWriter) run(stream grpc.ClientStream, cancel context.CancelFunc) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		frames, next, current := w.collect(stream)
		if !current {
			return
		}
		for _, frame := range frames {
			if stream.SendMsg(frame) != nil {
				cancel() // the reader learns why
				return
			}
			if frame.GetClose() != nil {
				_ = stream.CloseSend()
				return
			}
		}
		if len(frames) > 0 {
			continue
		}
		timer.Reset(time.Until(next))
		select {
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// collect returns what is to be written now, and when to look again.
func (w *sessionWriter) collect(
	stream grpc.ClientStream,
) (frames []*filav1.ConsumeSessionRequest, next time.Time, current bool) {
	// Its decisions come back to tellWindow, so before this lock is taken.
	begun, next := w.holding.due(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream != stream {
		return nil, next, false
	}
	if len(begun) > 0 {
		w.postBegun(begun)
	}
	if !time.Now().Before(w.aliveDue) {
		w.postAlive()
	}
	if w.aliveDue.Before(next) {
		next = w.aliveDue
	}
	frames, w.outbox = w.outbox, nil
	return frames, next, true
}

// Signs of life.

func (w *sessionWriter) postAlive() {
	now := time.Now()
	w.sequence++
	w.sentAt[w.sequence] = now
	w.aliveDue = now.Add(w.timeout / alivePerTimeout)
	w.post(&filav1.ConsumeSessionRequest{Request: &filav1.ConsumeSessionRequest_Alive_{
		Alive: &filav1.ConsumeSessionRequest_Alive{
			Sequence: w.sequence, HandlingTimeUs: uint64(w.holding.medianUs()),
		}}})
}

// heardSequence takes in the answer to a sign of life: messages may be handed out until a visibility timeout
// after it was sent.
func (w *sessionWriter) heardSequence(sequence uint64) {
	w.mu.Lock()
	sent, known := w.sentAt[sequence]
	delete(w.sentAt, sequence)
	until := sent.Add(w.timeout)
	w.mu.Unlock()
	if known {
		w.heard(sequence, until)
	}
}

func (w *sessionWriter) heard(sequence uint64, until time.Time) {
	w.holding.handOutUntil(until)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = max(w.answered, sequence)
	close(w.told)
	w.told = make(chan struct{})
}

// Begun messages.

func (w *sessionWriter) postBegun(leases []uint64) {
	for len(leases) > 0 {
		part := leases[:min(len(leases), frameLeasesMax)]
		leases = leases[len(part):]
		w.post(&filav1.ConsumeSessionRequest{Request: &filav1.ConsumeSessionRequest_Begun_{
			Begun: &filav1.ConsumeSessionRequest_Begun{LeaseIds: part}}})
	}
}

// declare says that these are begun, and returns when the broker has heard it. When the stream breaks before,
// that is after the resume, which says it anew.
func (w *sessionWriter) declare(leases []uint64, ended <-chan struct{}) {
	w.mu.Lock()
	if w.old {
		w.mu.Unlock()
		return
	}
	w.postBegun(leases)
	if w.stream != nil {
		w.postAlive()
	}
	awaited := w.sequence
	if w.stream == nil {
		awaited++ // the resume's
	}
	w.mu.Unlock()
	w.wakeUp()
	for {
		w.mu.Lock()
		done, told := w.answered >= awaited, w.told
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-told:
		case <-ended:
			return
		}
	}
}

// Windows, settlements, leaving.

// tellWindow is called with the holding's lock held, or without.
func (w *sessionWriter) tellWindow(size int, giveBack []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return
	}
	for {
		part := giveBack[:min(len(giveBack), frameLeasesMax)]
		giveBack = giveBack[len(part):]
		w.post(&filav1.ConsumeSessionRequest{Request: &filav1.ConsumeSessionRequest_Window_{
			Window: &filav1.ConsumeSessionRequest_Window{Size: uint32(size), GiveBack: part}}})
		if len(giveBack) == 0 {
			break
		}
	}
	w.wakeUp()
}

// send writes a frame of settlements; when the stream is gone, its end sends the frame another way.
func (w *sessionWriter) send(f *settleFrame) {
	request := &filav1.ConsumeSessionRequest{}
	if f.verdict.kind == extended {
		request.Request = &filav1.ConsumeSessionRequest_Extend_{
			Extend: &filav1.ConsumeSessionRequest_Extend{LeaseIds: f.leases, ExtendMs: f.verdict.extendMs}}
	} else {
		settle := &filav1.Settle{
			Sequence: f.sequence, LeaseIds: f.leases, Error: f.verdict.reason, DelayMs: f.verdict.delay(),
			DeadLetter: f.verdict.kind == rejected, Release: f.verdict.kind == released,
			Feedback: f.verdict.feedback(),
		}
		if f.verdict.kind == acked {
			request.Request = &filav1.ConsumeSessionRequest_Ack{Ack: settle}
		} else {
			request.Request = &filav1.ConsumeSessionRequest_Nack{Nack: settle}
		}
	}
	w.mu.Lock()
	if f.verdict.kind == extended {
		w.extends = append(w.extends, f.sequence)
	}
	w.post(request)
	w.mu.Unlock()
	w.wakeUp()
}

// oldestExtend is the frame that an Extended answers: they come in the order of the frames.
func (w *sessionWriter) oldestExtend() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.extends) == 0 {
		return 0
	}
	sequence := w.extends[0]
	w.extends = w.extends[1:]
	return sequence
}

// sendClose ends the stream, once; it reports whether there is one.
func (w *sessionWriter) sendClose(release bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream == nil {
		return false
	}
	if !w.closing {
		w.closing = true
		w.post(&filav1.ConsumeSessionRequest{Request: &filav1.ConsumeSessionRequest_Close_{
			Close: &filav1.ConsumeSessionRequest_Close{Release: release}}})
	}
	w.wakeUp()
	return true
}

func (w *sessionWriter) closeSent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closing
}
