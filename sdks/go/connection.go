package fila

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

const (
	// Above the broker's largest payload (64 MiB) with its headers, so that no delivery is unreadable.
	messageBytesMax = 80 << 20
	// A window of more than the frames in flight, so that a stream never waits for the transport's own pace.
	flowWindowBytes = 8 << 20
	// After so long without a word a broker is asked whether it is there.
	defaultKeepalive = 30 * time.Second
	// A waiter for the connection looks at least so often at the end of its patience.
	lookTime = 100 * time.Millisecond
	// Who gives up has looked for so long just before: an attempt began in it, gRPC waiting at most 2.4 s between
	// two, and had a second.
	fairTime = 3500 * time.Millisecond
)

// connection is the only part that talks to gRPC's channel.
type connection struct {
	settings settings
	target   string
	wrong    diagnosis
	stood    atomic.Bool // the connection has stood once
	route    *route
	channel  *grpc.ClientConn
	service  filav1.FilaServiceClient
	admin    filav1.FilaAdminClient
	auth     filav1.FilaAuthClient

	// alive ends when the client is closed; streams live by it, never by one call's context.
	alive  context.Context
	end    context.CancelFunc
	closed atomic.Bool
}

func newConnection(addr string, s settings) (*connection, error) {
	hosts, secure, err := parseAddresses(addr)
	if err != nil {
		return nil, err
	}
	if secure {
		WithTLS()(&s)
	}
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	transport, serverName := insecure.NewCredentials(), ""
	if config != nil {
		transport, serverName = credentials.NewTLS(config), config.ServerName
	}
	if len(hosts) > 1 && s.keepaliveTime == defaultKeepalive {
		// A node of a group that hangs is left for another; gRPC pings no sooner.
		s.keepaliveTime, s.keepaliveTimeout = 10*time.Second, 3*time.Second
	}
	route := newRoute(hosts, serverName)
	dialing := []grpc.DialOption{
		grpc.WithResolvers(route.resolver),
		grpc.WithTransportCredentials(transport),
		grpc.WithUserAgent("fila-go/" + Version),
		grpc.WithDisableRetry(), // this package decides what may be repeated
		grpc.WithDisableServiceConfig(),
		grpc.WithInitialWindowSize(flowWindowBytes),
		grpc.WithInitialConnWindowSize(flowWindowBytes),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(messageBytesMax), grpc.MaxCallSendMsgSize(math.MaxInt32),
		),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: s.keepaliveTime, Timeout: s.keepaliveTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{
			// While attempts to connect fail, gRPC alone decides when the next one begins.
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if s.dial != nil {
		dialing = append(dialing, grpc.WithContextDialer(s.dial))
	}
	if s.apiKey != "" {
		dialing = append(dialing, grpc.WithPerRPCCredentials(bearer(s.apiKey)))
	}
	channel, err := grpc.NewClient(route.resolver.Scheme()+":///"+hosts[0], dialing...)
	if err != nil {
		return nil, invalidField("addr", "%s cannot be connected to: %v", addr, err).causedBy(err)
	}
	alive, end := context.WithCancel(context.Background())
	return &connection{
		settings: s,
		target:   strings.Join(hosts, ", "),
		wrong:    diagnosis{hosts: hosts, tls: config, dial: s.dial},
		route:    route,
		channel:  channel,
		service:  filav1.NewFilaServiceClient(channel),
		admin:    filav1.NewFilaAdminClient(channel),
		auth:     filav1.NewFilaAuthClient(channel),
		alive:    alive,
		end:      end,
	}, nil
}

func (c *connection) close() error {
	c.closed.Store(true)
	c.end()
	return c.channel.Close()
}

// A patience is how long a connection is waited for, and since when. Negative: for ever.
type patience struct {
	since time.Time
	time  time.Duration
}

func patienceFromNow(d time.Duration) patience { return patience{time.Now(), d} }

// ready returns when the connection stands. It fails with ErrUnavailable when patience is over, and with the
// context's error.
//
// It gives up on what it saw in the last fairTime, or in all of a shorter patience. A look counts lookTime at
// most: a process that stood still for longer saw nothing meanwhile, and looks on after its time. With no
// patience at all, the last attempt counts, and one that is under way is waited for.
func (c *connection) ready(ctx context.Context, p patience) error {
	fair, seen := fairTime, time.Duration(0)
	if p.time > 0 {
		fair = min(fair, p.time)
	}
	lastLooks := p.since.Add(p.time - fair)
	for {
		if c.closed.Load() {
			return errClosed()
		}
		state, now := c.channel.GetState(), time.Now()
		var failure error
		switch state {
		case connectivity.Ready:
			c.stood.Store(true)
			return nil
		case connectivity.Idle:
			c.channel.Connect()
		case connectivity.TransientFailure:
			if c.route.widen() {
				continue
			}
			if err := c.findOutWhy(); err != nil {
				return err
			}
			failure = c.lastFailure(ctx)
		}
		last := p.time >= 0 && !now.Before(lastLooks)
		if last && (seen >= fair || p.time == 0 && state == connectivity.TransientFailure) {
			return c.unreachable(failure)
		}
		until := time.Time{}
		switch {
		case last:
			until = now.Add(min(lookTime, fair-seen))
		case state == connectivity.Idle:
			// A connection that stood for a moment and broke leaves Idle, as before it: nobody sees a change,
			// and nobody connects but who asks again.
			until = now.Add(lookTime)
		case p.time >= 0:
			until = lastLooks
		}
		if err := c.waitForChange(ctx, state, until); err != nil {
			return err
		}
		if last {
			seen += min(lookTime, time.Since(now))
		}
	}
}

// readySoon is ready, with an attempt to connect at least every so often.
func (c *connection) readySoon(ctx context.Context, p patience, every time.Duration) error {
	if every <= 0 || c.channel.GetState() == connectivity.Ready {
		return c.ready(ctx, p)
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.channel.ResetConnectBackoff()
			case <-done:
				return
			}
		}
	}()
	return c.ready(ctx, p)
}

// findOutWhy fails with ErrUnavailable where the settings are wrong and never were right; where they have been, the
// sentence that names it is logged.
func (c *connection) findOutWhy() error {
	sentence, isNew := c.wrong.why()
	switch {
	case sentence == "":
		return nil
	case !c.stood.Load():
		return newError(ErrUnavailable, "%s", sentence)
	case isNew:
		slog.Warn(sentence)
	}
	return nil
}

// tell gives the program an event, or logs it where the program does not ask for events.
func (c *connection) tell(event ConnectionEvent) {
	switch {
	case c.settings.onConnection != nil:
		c.settings.onConnection(event)
	case event.Kind == ConnectionBack:
		slog.Warn("a consumer of Fila has its stream back", "queue", event.Queue, "channel", event.Channel,
			"outage", event.Outage, "leases_lost", event.LeasesLost)
	default:
		slog.Warn("a consumer of Fila lost its stream, reopening it", "queue", event.Queue, "channel", event.Channel,
			"error", event.Err)
	}
}

// waitForChange returns when the connection is in that state no more, and at the latest then (the zero time:
// never). It fails when the client was closed, and with the context's error.
func (c *connection) waitForChange(ctx context.Context, state connectivity.State, until time.Time) error {
	var waiting context.Context
	var stop context.CancelFunc
	if until.IsZero() {
		waiting, stop = context.WithCancel(ctx)
	} else {
		waiting, stop = context.WithDeadline(ctx, until)
	}
	defer stop()
	defer context.AfterFunc(c.alive, stop)()
	switch {
	case c.channel.WaitForStateChange(waiting, state):
		return nil
	case c.closed.Load():
		return errClosed()
	case ctx.Err() != nil:
		return stoppedBefore(ctx)
	}
	return nil
}

// lastFailure is why the last attempt to connect failed: gRPC tells it to calls alone.
func (c *connection) lastFailure(ctx context.Context) error {
	if c.channel.GetState() != connectivity.TransientFailure {
		return nil
	}
	// Bounded, since a call waits while the next attempt is under way.
	asking, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	desc := &grpc.StreamDesc{ClientStreams: true}
	_, err := c.channel.NewStream(asking, desc, filav1.FilaService_Enqueue_FullMethodName)
	return err
}

func (c *connection) unreachable(failure error) *Error {
	detail := ""
	if failure != nil {
		detail = " (" + status.Convert(failure).Message() + ")"
	}
	return newError(ErrUnavailable, "no Fila broker answers at %s. Start fila-server there, or connect elsewhere%s",
		c.target, detail).causedBy(failure)
}

// bearer sends the API key with every call.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. The broker decides whether it takes a
// key over plaintext: on loopback, or behind a proxy that speaks TLS, it may.
func (b bearer) RequireTransportSecurity() bool { return false }
