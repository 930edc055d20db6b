package fila

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/fila-mq/fila/sdks/go/internal/prefetch"
	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

const (
	windowMax = prefetch.WindowMax
	// closeTimeout is how long a closing session waits for the broker to end the stream.
	closeTimeout = 2 * time.Second
	// A session that holds leases waits at most this part of the broker's grace between two tries to come back.
	triesPerGrace = 8
	// With a broker that is older than windows, and does not judge silence.
	oldBrokerWindow  = 256
	oldBrokerTimeout = 24 * time.Hour
	// The broker is told of its consumer's life this often within a visibility timeout.
	alivePerTimeout = 3
)

type sessionPlan struct {
	queue, channel string
	name           string
	prefetch       int
	adaptive       bool // instead of a prefetch of one size
	renewal        *time.Duration
	workers        int
	stopWhenIdle   time.Duration
}

// session is one consumer's stream, kept alive: deliveries come down it, settlements go up, and it is resumed
// when it breaks.
//
//	connecting --> open --> leaving ----------------> over
//	    ^            |         the buffer goes back at once; the stream is closed as soon as
//	    +-- backoff -+         nothing that was handed out is unsettled
//
// What it holds is in holding.go, what it writes in sessionwriter.go, how much it asks for in
// internal/prefetch.
type session struct {
	connection *connection
	plan       sessionPlan
	settler    *settler
	holding    *holding
	writer     *sessionWriter
	ctx        context.Context
	cancel     context.CancelFunc
	opened     chan struct{} // closed when the stream stands for the first time
	ended      chan struct{} // closed when the session is over

	mu         sync.Mutex
	failure    error // why it ended by itself
	leaving    bool
	open       bool
	consumerID uint64
	grace      time.Duration
	timeout    time.Duration // the visibility timeout
	renewal    time.Duration
	lostAt     time.Time
	texts      *recurring
	leaveTimer *time.Timer
	onEnd      func(*session)
}

func newSession(c *connection, plan sessionPlan, onEnd func(*session)) *session {
	control := prefetch.NewFixed(plan.prefetch)
	if plan.adaptive {
		control = prefetch.NewAdaptive(c.settings.bufferTime.Microseconds())
	}
	ctx, cancel := context.WithCancel(c.alive)
	s := &session{
		connection: c, plan: plan, ctx: ctx, cancel: cancel, holding: newHolding(control),
		opened: make(chan struct{}), ended: make(chan struct{}), texts: newRecurring(), onEnd: onEnd,
	}
	s.writer = newSessionWriter(s.holding)
	s.holding.tell = s.writer.tellWindow
	s.settler = newSettler(c, plan.queue, plan.channel, s.holding.settling)
	s.settler.settlingAll = s.holding.settlingAll
	s.settler.leasesAnswered = func(leases []uint64) {
		if s.holding.answered(leases) {
			s.writer.wakeUp()
		}
	}
	return s
}

// Life.

func (s *session) run() {
	defer s.end()
	attempt, outageBegan := 0, time.Now()
	for {
		p := s.patience(outageBegan)
		err := s.connection.readySoon(s.ctx, p, s.pace())
		if err == nil {
			err = s.followStream()
		}
		wasOpen := s.loseStream(err)
		s.connection.follow(err)
		if err == nil || s.ctx.Err() != nil || (s.isLeaving() && s.holding.isEmpty()) {
			return
		}
		if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrOverloaded) {
			s.fail(err)
			return
		}
		if wasOpen {
			attempt, outageBegan = 0, time.Now()
			p = s.patience(outageBegan)
		}
		wait := s.connection.settings.backoff.wait(attempt)
		if pace := s.pace(); pace > 0 {
			wait = min(wait, pace)
		}
		if p.time >= 0 && time.Since(p.since)+wait > p.time {
			s.fail(err)
			return
		}
		attempt++
		if sleep(s.ctx, wait) != nil {
			return
		}
	}
}

// patience is when a session that cannot connect fails: the first time as a call does, later as configured.
func (s *session) patience(outageBegan time.Time) patience {
	p := patience{outageBegan, s.connection.settings.reconnectFor}
	select {
	case <-s.opened:
	default:
		if p.time < 0 || p.time > s.connection.settings.retryFor {
			p.time = s.connection.settings.retryFor
		}
	}
	return p
}

// pace is how long to wait between two tries at most: who holds leases must be back within the broker's
// grace. 0 for as long as it takes.
func (s *session) pace() time.Duration {
	s.mu.Lock()
	grace := s.grace
	s.mu.Unlock()
	if s.holding.isEmpty() {
		return 0
	}
	return grace / triesPerGrace
}

func (s *session) isLeaving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

func (s *session) fail(err error) {
	s.mu.Lock()
	s.failure = err
	s.mu.Unlock()
}

// end is the last thing a session does.
func (s *session) end() {
	s.mu.Lock()
	failure, leaving := s.failure, s.leaving
	if s.leaveTimer != nil {
		s.leaveTimer.Stop()
	}
	s.mu.Unlock()
	if failure == nil && !leaving {
		failure = newError(ErrClientClosed, "the client was closed while this consumer was in use")
		s.fail(failure)
	}
	if failure == nil {
		failure = io.EOF
	}
	s.holding.finish(failure)
	s.settler.useCalls()
	s.cancel()
	if s.onEnd != nil {
		s.onEnd(s)
	}
	close(s.ended)
}

// followStream opens a stream and takes in what comes. It returns nil when the stream ended because we left.
func (s *session) followStream() error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	about := subject{queue: s.plan.queue, channel: channelOrDefault(s.plan.channel)}
	stream, err := s.connection.channel.NewStream(ctx, &filav1.FilaService_ServiceDesc.Streams[2],
		filav1.FilaService_ConsumeSession_FullMethodName, grpc.ForceCodecV2(streamCodec{}))
	if err != nil {
		return errorFromRPC(err, about).broken()
	}
	sentAt := time.Now()
	unanswered := time.AfterFunc(s.connection.settings.callTimeout, cancel)
	defer unanswered.Stop()
	// What SendMsg says of a stream that is over, RecvMsg says with the reason.
	_ = stream.SendMsg(s.openRequest())
	for first := true; ; first = false {
		var frame []byte
		err := stream.RecvMsg(&frame)
		unanswered.Stop()
		if err == nil && first {
			err = s.takeOpened(frame, sentAt, stream, cancel)
		} else if err == nil {
			err = s.takeIn(frame)
		}
		switch {
		case err == nil:
		case err == error(errReopen):
			return err
		case s.writer.closeSent():
			return nil
		case errors.Is(err, io.EOF):
			return newError(ErrUnavailable, "the broker ended the consumer's stream")
		case errors.Is(err, errMalformed):
			return newError(ErrUnavailable, "the consumer's stream broke: %v", err)
		default:
			return errorFromRPC(err, about).broken()
		}
	}
}

func (s *session) openRequest() *filav1.ConsumeSessionRequest {
	open := &filav1.ConsumeSessionRequest_Open{
		Queue: s.plan.queue, Channel: s.plan.channel, TracksBegun: true, Name: s.plan.name,
		MaxInFlight: uint32(s.holding.window()),
	}
	if s.plan.renewal != nil {
		renewal := milliseconds(*s.plan.renewal)
		open.MaxLeaseRenewalMs = &renewal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		open.MaxInFlight = uint32(max(1, s.holding.inHandCount())) // 0 would mean the default
	}
	if s.consumerID != 0 {
		open.Resume = &filav1.ConsumeSessionRequest_Resume{
			ConsumerId: s.consumerID,
			LeaseIds:   s.leasesHeld(),
		}
	}
	return &filav1.ConsumeSessionRequest{Request: &filav1.ConsumeSessionRequest_Open_{Open: open}}
}

// leasesHeld are all that the broker must not return on a resume; what is being settled, too, as it may not
// know of that. At most as many as a resume may name, the buffer and what is in hand first: of what is being
// settled and not named the broker has settled nearly all already, and delivers the rest again.
func (s *session) leasesHeld() []uint64 {
	held := append(s.holding.leases(), s.settler.unansweredLeases()...)
	return held[:min(len(held), frameLeasesMax)]
}

// errReopen ends a stream so that another one is opened with other settings.
var errReopen = newError(ErrUnavailable, "the session is opened anew, for a broker of an earlier version")

// takeOpened begins by the broker's word.
func (s *session) takeOpened(
	frame []byte, sentAt time.Time, stream grpc.ClientStream, cancel context.CancelFunc,
) error {
	var response filav1.ConsumeSessionResponse
	if proto.Unmarshal(frame, &response) != nil || response.GetOpened() == nil {
		return errMalformed
	}
	opened := response.GetOpened()
	old := opened.GetVisibilityTimeoutMs() == 0
	s.writer.forOldBroker(old) // asked anew each time: the broker may have been upgraded
	if old {
		opened.VisibilityTimeoutMs = uint64(oldBrokerTimeout.Milliseconds())
		if s.plan.adaptive {
			s.plan.adaptive = false
			s.holding.useWindow(oldBrokerWindow)
			return errReopen
		}
	}
	s.mu.Lock()
	s.open = true
	s.consumerID = opened.GetConsumerId()
	s.timeout = time.Duration(opened.GetVisibilityTimeoutMs()) * time.Millisecond
	s.grace = time.Duration(opened.GetDisconnectGraceMs()) * time.Millisecond
	s.renewal = time.Duration(opened.GetMaxLeaseRenewalMs()) * time.Millisecond
	leaving, timeout, lostAt := s.leaving, s.timeout, s.lostAt
	s.lostAt = time.Time{}
	s.mu.Unlock()

	leasesLost := s.holding.lose(opened.GetLostLeaseIds(), "LEASE_LOST")
	s.settler.useSession(s.writer)
	s.writer.attach(stream, cancel, timeout)
	s.writer.heard(0, sentAt.Add(timeout))
	select {
	case <-s.opened:
	default:
		close(s.opened)
	}
	if !lostAt.IsZero() {
		s.connection.tell(ConnectionEvent{
			Kind: ConnectionBack, Queue: s.plan.queue, Channel: s.plan.channel,
			Outage: time.Since(lostAt), LeasesLost: leasesLost,
		})
	}
	if leaving {
		s.giveBackBuffer()
		s.closeWhenSettled()
	}
	return nil
}

// loseStream notes that there is no stream, and reports whether there was one.
func (s *session) loseStream(failure error) bool {
	s.writer.detach()
	s.settler.useCalls()
	s.mu.Lock()
	wasOpen, leaving := s.open, s.leaving
	s.open = false
	if wasOpen && failure != nil && !leaving {
		s.lostAt = time.Now()
	}
	s.mu.Unlock()
	if !wasOpen || failure == nil || leaving {
		return wasOpen
	}
	event := ConnectionEvent{Kind: ConnectionLost, Queue: s.plan.queue, Channel: s.plan.channel, Err: failure}
	var said *Error
	if errors.As(failure, &said) && (said.Reason == "SHUTTING_DOWN" || said.Is(ErrNotOwner)) {
		event.Kind = ConnectionDraining
	}
	s.connection.tell(event)
	return true
}

// What comes down.

func (s *session) takeIn(frame []byte) error {
	// A delivery is the one frame that is worth reading by hand.
	if f := (fields{rest: frame}); f.next() && f.number == 2 {
		return s.deliver(f.bytes)
	}
	var response filav1.ConsumeSessionResponse
	if proto.Unmarshal(frame, &response) != nil {
		return errMalformed
	}
	switch response := response.GetResponse().(type) {
	case *filav1.ConsumeSessionResponse_Settled_:
		s.settler.settledBySession(response.Settled.GetSequence(), response.Settled.GetFailures(), time.Time{})
		s.closeWhenSettled()
	case *filav1.ConsumeSessionResponse_Extended_:
		sequence := s.writer.oldestExtend()
		until := response.Extended.GetLeaseExpiresAt().AsTime()
		s.settler.settledBySession(sequence, response.Extended.GetFailures(), until)
	case *filav1.ConsumeSessionResponse_Alive_:
		s.writer.heardSequence(response.Alive.GetSequence())
	case *filav1.ConsumeSessionResponse_Revoked_:
		s.holding.lose(response.Revoked.GetLeaseIds(), response.Revoked.GetReason())
		s.closeWhenSettled()
	}
	return nil
}

func (s *session) deliver(delivery []byte) error {
	messages, err := decodeDelivery(delivery, s.texts)
	if err != nil || len(messages) == 0 {
		return err
	}
	s.mu.Lock()
	leaving, lease := s.leaving, s.renewal
	s.mu.Unlock()
	if leaving {
		leases := make([]uint64, len(messages))
		for i := range messages {
			leases[i] = messages[i].LeaseID
		}
		s.writer.tellWindow(0, leases)
		return nil
	}
	if lease == 0 {
		// The broker's clock tells how long the lease is; ours, from when it runs.
		lease = messages[0].LeaseExpiresAt.Sub(messages[0].LeasedAt)
	}
	until := time.Now().Add(lease)
	for i := range messages {
		messages[i].settler, messages[i].heldUntil = s.settler, until
	}
	s.holding.deliver(messages)
	s.writer.wakeUp() // what is due may have changed
	return nil
}
