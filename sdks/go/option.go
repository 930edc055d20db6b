package fila

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"time"
)

// An Option is a setting of [Connect].
type Option func(*settings)

type settings struct {
	connectTimeout     time.Duration
	callTimeout        time.Duration
	retryFor           time.Duration
	reconnectFor       time.Duration // negative: for ever
	waitWhenOverloaded time.Duration
	batching           bool
	linger             time.Duration
	frameMessagesMax   int
	frameBytesMax      int
	framesInFlightMax  int
	waitingBytesMax    int
	prefetch           int
	adaptive           bool // instead of a prefetch of one size
	bufferTime         time.Duration
	keepaliveTime      time.Duration
	keepaliveTimeout   time.Duration
	backoff            Backoff
	onConnection       func(ConnectionEvent)
	apiKey             string
	dial               func(context.Context, string) (net.Conn, error) // for tests
	tls                *tls.Config
	tlsFiles           tlsFiles
}

func defaultSettings() settings {
	return settings{
		connectTimeout:    10 * time.Second,
		callTimeout:       30 * time.Second,
		retryFor:          30 * time.Second,
		reconnectFor:      -1,
		batching:          true,
		linger:            5 * time.Millisecond,
		frameMessagesMax:  200,
		frameBytesMax:     1 << 20,
		framesInFlightMax: 4,
		waitingBytesMax:   64 << 20,
		prefetch:          1,
		adaptive:          true,
		bufferTime:        50 * time.Millisecond,
		keepaliveTime:     defaultKeepalive,
		keepaliveTimeout:  10 * time.Second,
		backoff:           Backoff{Base: 50 * time.Millisecond, Cap: 5 * time.Second},
		apiKey:            os.Getenv("FILA_API_KEY"),
	}
}

// WithConnectTimeout bounds how long [Connect] waits for the broker to answer; 10 s unless set.
func WithConnectTimeout(d time.Duration) Option { return func(s *settings) { s.connectTimeout = d } }

// WithCallTimeout bounds how long one call, or one frame of enqueues, may go unanswered before it counts as
// lost; 30 s unless set. A context's deadline that comes sooner wins.
func WithCallTimeout(d time.Duration) Option { return func(s *settings) { s.callTimeout = d } }

// WithRetryFor says how long an unreachable broker is tried again before a call fails with ErrUnavailable;
// 30 s unless set, 0 for not at all.
func WithRetryFor(d time.Duration) Option { return func(s *settings) { s.retryFor = d } }

// WithReconnectFor says how long a consumer tries to get its stream back; for ever unless set.
func WithReconnectFor(d time.Duration) Option { return func(s *settings) { s.reconnectFor = d } }

// WithWaitWhenOverloaded says how long a call that is refused with ErrOverloaded is tried again, at the pace
// the broker suggests. 0, the default, returns the error at once, so that the caller feels the pressure.
func WithWaitWhenOverloaded(d time.Duration) Option {
	return func(s *settings) { s.waitWhenOverloaded = d }
}

// WithoutBatching makes each Enqueue a call of its own.
func WithoutBatching() Option { return func(s *settings) { s.batching = false } }

// WithLinger bounds how long an Enqueue may wait for company while an earlier frame is unanswered: at most
// 5 ms, the default. With nothing unanswered it is sent at once.
func WithLinger(d time.Duration) Option { return func(s *settings) { s.linger = d } }

// WithFrame says when a frame of enqueues is full: at so many messages (200 unless set, at most 10,000), or
// at so many bytes of headers and payloads (1 MiB unless set, at most 8 MiB).
func WithFrame(messagesMax, bytesMax int) Option {
	return func(s *settings) { s.frameMessagesMax, s.frameBytesMax = messagesMax, bytesMax }
}

// WithFramesInFlight bounds the unanswered frames of enqueues; 4 unless set. More hide the broker's pace
// instead of following it.
func WithFramesInFlight(n int) Option { return func(s *settings) { s.framesInFlightMax = n } }

// WithWaitingBytes bounds the bytes of enqueues not yet sent; beyond it Enqueue waits. 64 MiB unless set.
func WithWaitingBytes(n int) Option { return func(s *settings) { s.waitingBytesMax = n } }

// WithPrefetch fixes how many messages a consumer holds at once, those in the program's hands included,
// unless Consume says otherwise. Unset, it follows how fast the program works.
func WithPrefetch(n int) Option { return func(s *settings) { s.prefetch, s.adaptive = n, false } }

// WithBufferTime bounds how much work adaptive prefetch lets lie in a consumer's buffer; 50 ms unless set.
func WithBufferTime(d time.Duration) Option { return func(s *settings) { s.bufferTime = d } }

// WithKeepalive says after how much silence the connection is probed, and how long the probe may go
// unanswered before the connection counts as broken; 30 s and 10 s unless set. gRPC takes no less than 10 s
// for the first.
func WithKeepalive(after, timeout time.Duration) Option {
	return func(s *settings) { s.keepaliveTime, s.keepaliveTimeout = after, timeout }
}

// WithBackoff replaces the waits between attempts: from 50 ms doubling to 5 s.
func WithBackoff(b Backoff) Option { return func(s *settings) { s.backoff = b } }

// WithAPIKey sends the key with every call, as `authorization: Bearer`. Unset, the environment's
// FILA_API_KEY is used, if there is one.
func WithAPIKey(key string) Option { return func(s *settings) { s.apiKey = key } }

func (s *settings) validate() error {
	atLeast := []struct {
		name         string
		value, least int64
	}{
		{"WithConnectTimeout", int64(s.connectTimeout), 1},
		{"WithCallTimeout", int64(s.callTimeout), 1},
		{"WithRetryFor", int64(s.retryFor), 0},
		{"WithWaitWhenOverloaded", int64(s.waitWhenOverloaded), 0},
		{"WithLinger", int64(s.linger), 0},
		{"WithFrame: messagesMax", int64(s.frameMessagesMax), 1},
		{"WithFrame: bytesMax", int64(s.frameBytesMax), 1},
		{"WithFramesInFlight", int64(s.framesInFlightMax), 1},
		{"WithWaitingBytes", int64(s.waitingBytesMax), 1},
		{"WithPrefetch", int64(s.prefetch), 1},
		{"WithBufferTime", int64(s.bufferTime), 1},
		{"WithKeepalive: after", int64(s.keepaliveTime), 1},
		{"WithKeepalive: timeout", int64(s.keepaliveTimeout), 1},
		{"WithBackoff: Base", int64(s.backoff.Base), 1},
		{"WithBackoff: Cap", int64(s.backoff.Cap), int64(s.backoff.Base)},
	}
	for _, bound := range atLeast {
		if bound.value < bound.least {
			return invalidField(bound.name, "%s must be at least %d, got %d", bound.name, bound.least, bound.value)
		}
	}
	atMost := []struct {
		name        string
		value, most int64
		unit        string
	}{
		{"WithLinger", int64(s.linger), int64(5 * time.Millisecond), "5 ms"},
		{"WithFrame: messagesMax", int64(s.frameMessagesMax), 10_000, "10,000"},
		{"WithFrame: bytesMax", int64(s.frameBytesMax), 8 << 20, "8 MiB"},
	}
	for _, bound := range atMost {
		if bound.value > bound.most {
			return invalidField(bound.name, "%s must be at most %s, got %d", bound.name, bound.unit, bound.value)
		}
	}
	return nil
}
