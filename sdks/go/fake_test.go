//go:build go1.25

package fila

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// fakeBroker answers what a test tells it to, over an in-memory network that the test can cut.
type fakeBroker struct {
	filav1.UnimplementedFilaServiceServer
	filav1.UnimplementedFilaAdminServer
	filav1.UnimplementedFilaAuthServer

	network  *fakeNetwork
	enqueues chan *enqueueStream // each EnqueueStream that is opened
	sessions chan *fakeSession   // each ConsumeSession that is opened
	unary    func(ctx context.Context, method string, request any) (any, error)
}

// fakeNetwork listens in memory. Go's bubbles of fake time want connections without a kernel behind them.
type fakeNetwork struct {
	mu       sync.Mutex
	accepted chan net.Conn
	open     []net.Conn
	down     bool
	hole     bool
	closed   chan struct{}
}

func newFakeNetwork() *fakeNetwork {
	return &fakeNetwork{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *fakeNetwork) Accept() (net.Conn, error) {
	select {
	case conn := <-n.accepted:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *fakeNetwork) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.closed:
	default:
		close(n.closed)
	}
	return nil
}

func (n *fakeNetwork) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5555} }

func (n *fakeNetwork) dial(ctx context.Context, _ string) (net.Conn, error) {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	select {
	case n.accepted <- theirs:
	case <-n.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ours = &holeConn{Conn: ours, network: n, unblocked: make(chan struct{})}
	n.mu.Lock()
	n.open = append(n.open, ours)
	n.mu.Unlock()
	return ours, nil
}

// cut breaks every connection; down keeps new ones from being made.
func (n *fakeNetwork) cut(down bool) {
	n.mu.Lock()
	open := n.open
	n.open, n.down = nil, down
	n.mu.Unlock()
	for _, conn := range open {
		conn.Close()
	}
}

// swallow turns the network into a black hole: writes succeed, and nothing comes back.
func (n *fakeNetwork) swallow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hole = true
}

func (n *fakeNetwork) isHole() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hole
}

type holeConn struct {
	net.Conn
	network   *fakeNetwork
	once      sync.Once
	unblocked chan struct{}
}

func (c *holeConn) Write(b []byte) (int, error) {
	if c.network.isHole() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *holeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.network.isHole() {
		<-c.unblocked
		return 0, io.EOF
	}
	return n, err
}

func (c *holeConn) Close() error {
	c.once.Do(func() { close(c.unblocked) })
	return c.Conn.Close()
}

// startFake starts a broker and connects a client to it. Both end with the test.
func startFake(t *testing.T, opts ...Option) (*fakeBroker, *Client) {
	t.Helper()
	broker := &fakeBroker{
		network:  newFakeNetwork(),
		enqueues: make(chan *enqueueStream, 10),
		sessions: make(chan *fakeSession, 10),
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(broker.answer), grpc.MaxRecvMsgSize(messageBytesMax))
	filav1.RegisterFilaServiceServer(server, broker)
	filav1.RegisterFilaAdminServer(server, broker)
	filav1.RegisterFilaAuthServer(server, broker)
	go server.Serve(broker.network)
	opts = append([]Option{func(s *settings) { s.dial = broker.network.dial }, steady}, opts...)
	client, err := Connect("broker:5555", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		broker.network.cut(true)
		server.Stop()
	})
	return broker, client
}

// steady takes chance out of the waits between attempts.
func steady(s *settings) {
	s.backoff.Random = func() float64 { return 0.5 }
}

func (b *fakeBroker) answer(ctx context.Context, request any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	if b.unary == nil {
		return nil, status.Error(codes.Unimplemented, "the test has no answer to "+info.FullMethod)
	}
	return b.unary(ctx, info.FullMethod, request)
}

// enqueueStream is one EnqueueStream as the broker sees it.
type enqueueStream struct {
	requests chan *filav1.EnqueueStreamRequest
	stream   grpc.BidiStreamingServer[filav1.EnqueueStreamRequest, filav1.EnqueueStreamResponse]
	end      chan error
	metadata metadata.MD
}

func (b *fakeBroker) EnqueueStream(
	stream grpc.BidiStreamingServer[filav1.EnqueueStreamRequest, filav1.EnqueueStreamResponse],
) error {
	seen := &enqueueStream{requests: make(chan *filav1.EnqueueStreamRequest, 1000), stream: stream, end: make(chan error, 1)}
	seen.metadata, _ = metadata.FromIncomingContext(stream.Context())
	b.enqueues <- seen
	go func() {
		for {
			request, err := stream.Recv()
			if err != nil {
				close(seen.requests)
				return
			}
			seen.requests <- request
		}
	}()
	select {
	case err := <-seen.end:
		return err
	case <-stream.Context().Done():
		return nil
	}
}

// store answers a frame as stored, giving ids by their payloads.
func (s *enqueueStream) store(request *filav1.EnqueueStreamRequest) {
	answer := &filav1.EnqueueStreamResponse{Sequence: request.GetSequence()}
	for i, message := range request.GetBatch().GetMessages() {
		answer.Results = append(answer.Results, &filav1.EnqueueResult{
			MessageId: "id-" + string(message.GetPayload()), Offset: uint64(i + 1),
		})
	}
	_ = s.stream.Send(answer)
}

func (s *enqueueStream) refuse(request *filav1.EnqueueStreamRequest, refusal *filav1.ItemStatus) {
	answer := &filav1.EnqueueStreamResponse{Sequence: request.GetSequence()}
	for range request.GetBatch().GetMessages() {
		answer.Results = append(answer.Results, &filav1.EnqueueResult{Error: refusal})
	}
	_ = s.stream.Send(answer)
}

// storeAll answers everything, on every stream.
func (b *fakeBroker) storeAll(t *testing.T) {
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case stream := <-b.enqueues:
				go func() {
					for request := range stream.requests {
						stream.store(request)
					}
				}()
			case <-stop:
				return
			}
		}
	}()
}

func payloads(request *filav1.EnqueueStreamRequest) []string {
	var found []string
	for _, message := range request.GetBatch().GetMessages() {
		found = append(found, string(message.GetPayload()))
	}
	return found
}

// fakeSession is one ConsumeSession as the broker sees it. The test answers Open.
type fakeSession struct {
	open     *filav1.ConsumeSessionRequest_Open
	requests chan *filav1.ConsumeSessionRequest // all but Open, and Alive while autoAlive
	stream   grpc.BidiStreamingServer[filav1.ConsumeSessionRequest, filav1.ConsumeSessionResponse]
	end      chan error

	mu        sync.Mutex
	autoAlive bool
}

func (b *fakeBroker) ConsumeSession(
	stream grpc.BidiStreamingServer[filav1.ConsumeSessionRequest, filav1.ConsumeSessionResponse],
) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	seen := &fakeSession{
		open: first.GetOpen(), stream: stream, end: make(chan error, 1), autoAlive: true,
		requests: make(chan *filav1.ConsumeSessionRequest, 10_000),
	}
	b.sessions <- seen
	go seen.read()
	select {
	case err := <-seen.end:
		return err
	case <-stream.Context().Done():
		return nil
	}
}

func (s *fakeSession) read() {
	defer close(s.requests)
	for {
		request, err := s.stream.Recv()
		if err != nil {
			return
		}
		s.mu.Lock()
		auto := s.autoAlive
		s.mu.Unlock()
		if request.GetAlive() != nil && auto {
			s.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Alive_{
				Alive: &filav1.ConsumeSessionResponse_Alive{Sequence: request.GetAlive().GetSequence()}}})
			continue
		}
		s.requests <- request
		if request.GetClose() != nil {
			s.end <- nil
		}
	}
}

func (s *fakeSession) send(response *filav1.ConsumeSessionResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.stream.Send(response)
}

const testTimeout = 30 * time.Second

// accept answers Open as a broker does.
func (s *fakeSession) accept(lost ...uint64) *fakeSession {
	s.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Opened_{
		Opened: &filav1.ConsumeSessionResponse_Opened{
			ConsumerId: 7, VisibilityTimeoutMs: uint64(testTimeout.Milliseconds()), DisconnectGraceMs: 5000,
			MaxLeaseRenewalMs: 600_000, LostLeaseIds: lost,
		}}})
	return s
}

func (s *fakeSession) openAsEarlier() {
	s.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Opened_{
		Opened: &filav1.ConsumeSessionResponse_Opened{ConsumerId: 7}}})
}

// deliver sends messages whose lease ids are these, and whose ids and payloads are their names.
func (s *fakeSession) deliver(leases ...uint64) { s.deliverAs(&filav1.MessageMetadata{}, leases...) }

// deliverAs is deliver, of messages that were sent before: `marks` says so.
func (s *fakeSession) deliverAs(marks *filav1.MessageMetadata, leases ...uint64) {
	delivery := &filav1.ConsumeSessionResponse_Delivery{}
	for _, lease := range leases {
		name := "m" + string(rune('0'+lease))
		delivery.Messages = append(delivery.Messages, &filav1.Message{
			Id: name, Payload: []byte(name),
			Metadata: &filav1.MessageMetadata{
				QueueId: "q", Channel: "default", LeaseId: lease,
				Redelivered: marks.GetRedelivered(), CameBack: marks.GetCameBack(),
			},
		})
	}
	s.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Delivery_{Delivery: delivery}})
}

func (s *fakeSession) settle(settle *filav1.Settle, failures ...*filav1.ConsumeSessionResponse_Failure) {
	s.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Settled_{
		Settled: &filav1.ConsumeSessionResponse_Settled{Sequence: settle.GetSequence(), Failures: failures}}})
}

func (s *fakeSession) revoke(reason string, leases ...uint64) {
	s.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Revoked_{
		Revoked: &filav1.ConsumeSessionResponse_Revoked{LeaseIds: leases, Reason: reason}}})
}

// settleAll answers every ack and nack.
func (s *fakeSession) settleAll() {
	for request := range s.requests {
		if settle := request.GetAck(); settle != nil {
			s.settle(settle)
		} else if settle := request.GetNack(); settle != nil {
			s.settle(settle)
		}
	}
}

// next returns the next frame that is no window: windows come when the prefetch control thinks so.
func (s *fakeSession) next() *filav1.ConsumeSessionRequest {
	for request := range s.requests {
		if request.GetWindow() == nil {
			return request
		}
	}
	return nil
}

// refusal is a gRPC status as the broker makes it.
func refusal(code codes.Code, reason, text string, told map[string]string, retryAfter time.Duration) error {
	s := status.New(code, text)
	s, err := s.WithDetails(&errdetails.ErrorInfo{Domain: "fila", Reason: reason, Metadata: told})
	if err == nil && retryAfter > 0 {
		s, err = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
	}
	if err != nil {
		panic(err)
	}
	return s.Err()
}
