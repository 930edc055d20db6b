package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// echoBroker stores nothing: what is enqueued is delivered at once, and settled when it is acked.
type echoBroker struct {
	filav1.UnimplementedFilaServiceServer
	filav1.UnimplementedFilaAdminServer
	queue chan *filav1.EnqueueMessage
	lease atomic.Uint64
}

func (b *echoBroker) CreateQueue(_ context.Context, _ *filav1.CreateQueueRequest) (*filav1.CreateQueueResponse, error) {
	return &filav1.CreateQueueResponse{}, nil
}

func (b *echoBroker) Enqueue(_ context.Context, request *filav1.EnqueueRequest) (*filav1.EnqueueResponse, error) {
	b.queue <- &filav1.EnqueueMessage{Headers: request.GetHeaders(), Payload: request.GetPayload()}
	return &filav1.EnqueueResponse{MessageId: "m"}, nil
}

func (b *echoBroker) EnqueueStream(
	stream grpc.BidiStreamingServer[filav1.EnqueueStreamRequest, filav1.EnqueueStreamResponse],
) error {
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		response := &filav1.EnqueueStreamResponse{Sequence: request.GetSequence()}
		for _, message := range request.GetBatch().GetMessages() {
			select {
			case b.queue <- message:
			case <-stream.Context().Done():
				return nil
			}
			response.Results = append(response.Results, &filav1.EnqueueResult{MessageId: "m"})
		}
		if stream.Send(response) != nil {
			return nil
		}
	}
}

func (b *echoBroker) ConsumeSession(
	stream grpc.BidiStreamingServer[filav1.ConsumeSessionRequest, filav1.ConsumeSessionResponse],
) error {
	_ = stream.Send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Opened_{
		Opened: &filav1.ConsumeSessionResponse_Opened{ConsumerId: 1, VisibilityTimeoutMs: 30_000, MaxLeaseRenewalMs: 600_000}}})
	acks := make(chan *filav1.Settle)
	go func() {
		defer close(acks)
		for {
			request, err := stream.Recv()
			if err != nil {
				return
			}
			if request.GetAck() != nil {
				acks <- request.GetAck()
			}
		}
	}()
	for {
		response := &filav1.ConsumeSessionResponse{}
		select {
		case ack, open := <-acks:
			if !open {
				return nil
			}
			response.Response = &filav1.ConsumeSessionResponse_Settled_{
				Settled: &filav1.ConsumeSessionResponse_Settled{Sequence: ack.GetSequence()}}
		case message := <-b.queue:
			response.Response = &filav1.ConsumeSessionResponse_Delivery_{
				Delivery: &filav1.ConsumeSessionResponse_Delivery{Messages: []*filav1.Message{{
					Id:      rand.Text(),
					Payload: message.GetPayload(), Metadata: &filav1.MessageMetadata{LeaseId: b.lease.Add(1)}}}}}
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

func startEchoBroker(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	broker := &echoBroker{queue: make(chan *filav1.EnqueueMessage, 100)}
	filav1.RegisterFilaServiceServer(server, broker)
	filav1.RegisterFilaAdminServer(server, broker)
	go server.Serve(listener) //nolint:errcheck // Stop ends it
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func TestEachClientProducesConsumesAndAcks(t *testing.T) {
	for _, name := range clientNames() {
		for _, rate := range []float64{0, 2000} {
			plan, _, err := parsePlan([]string{"-client", name, "-addr", startEchoBroker(t), "-batch", "5",
				"-payload", "32", "-warm-up", "20ms", "-duration", "100ms"}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			plan.Rate = rate
			parts, err := runFleet(t.Context(), plan)
			if err != nil {
				t.Fatalf("%s at %g/s: %v", name, rate, err)
			}
			report := newReport(plan, parts)
			if report.ProducedPerS == 0 || report.ConsumedPerS == 0 || report.AckedPerS == 0 ||
				report.Enqueue == nil || report.Delivery == nil {
				t.Errorf("%s at %g/s measured nothing: %+v", name, rate, report)
			}
		}
	}
}

func TestTheKeyInTheEnvironmentGoesWithEveryCall(t *testing.T) {
	t.Setenv("FILA_API_KEY", "fila_a_b")
	var calls, without atomic.Int64
	look := func(ctx context.Context) {
		calls.Add(1)
		sent, _ := metadata.FromIncomingContext(ctx)
		if !slices.Equal(sent.Get("authorization"), []string{"Bearer fila_a_b"}) {
			without.Add(1)
		}
	}
	addr := startEchoBroker(t,
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			look(ctx)
			return next(ctx, request)
		}),
		grpc.StreamInterceptor(func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			look(stream.Context())
			return next(server, stream)
		}))
	plan, _, err := parsePlan([]string{"-addr", addr, "-warm-up", "20ms", "-duration", "100ms"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runFleet(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if calls.Load() < 3 || without.Load() > 0 {
		t.Errorf("%d of %d calls had not the key", without.Load(), calls.Load())
	}
}

// TestMain lets this binary be the worker process that runFleet starts.
func TestMain(m *testing.M) {
	if _, worker := os.LookupEnv(workerVariable); worker {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestSeveralProcessesAreSummed(t *testing.T) {
	plan, _, err := parsePlan([]string{"-addr", startEchoBroker(t), "-processes", "2",
		"-warm-up", "20ms", "-duration", "100ms"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := runFleet(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	report := newReport(plan, parts)
	count := parts[0].Last.Produced + parts[1].Last.Produced
	if len(parts) != 2 || parts[0].Last.Produced == 0 || parts[1].Last.Produced == 0 {
		t.Fatalf("two processes measured %+v", parts)
	}
	if report.Enqueue.Count == 0 || report.Enqueue.Count > count {
		t.Errorf("%d latencies of %d messages", report.Enqueue.Count, count)
	}
}

func TestABrokerThatIsNotThereIsAnErrorAndNoHang(t *testing.T) {
	plan, _, err := parsePlan([]string{"-addr", "127.0.0.1:1", "-duration", "1s"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runFleet(t.Context(), plan); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

func TestWhatAServerUsesIsReadFromTheMachine(t *testing.T) {
	const tick = 2 * 0.01 // user and system time, each rounded
	before := cpuSeconds()
	for until := before + 0.2; before < until; before = cpuSeconds() {
		// Enough that ticks can be told from none.
	}
	used, err := serverCPUSeconds(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if after := cpuSeconds(); used < before-tick || used > after+tick {
		t.Errorf("this process used %g s, which was between %g and %g", used, before, after)
	}

	plan, _, err := parsePlan([]string{"-addr", startEchoBroker(t), "-server-pid", strconv.Itoa(1 << 30)}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	plan.WarmUp = 0
	if _, err := runFleet(t.Context(), plan); err == nil || !strings.Contains(err.Error(), "-server-pid") {
		t.Errorf("a process that is not there: got %v", err)
	}
}

func TestBadFlagsAreRefused(t *testing.T) {
	for _, arguments := range [][]string{
		{"-batch", "0"}, {"-batch", "10001"}, {"-producers", "0", "-consumers", "0"}, {"-rate", "-1"},
		{"-distribution", "normal"}, {"-distribution", "zipf", "-zipf-exponent", "1"}, {"-client", "curl"},
		{"-duration", "0s"}, {"-server-pid", "-1"}, {"-nonsense"}, {"stray"},
	} {
		if _, _, err := parsePlan(arguments, io.Discard); err == nil {
			t.Errorf("%v was accepted", arguments)
		}
	}
}

func TestReportReadsBackAsJSONAndAsText(t *testing.T) {
	tally := newTally()
	tally.enqueue.record(0, int64(3*time.Millisecond), 5)
	report := newReport(testPlan(), []Measured{{
		Seconds: 2, First: Counts{Acked: 10}, Last: Counts{Acked: 30},
		Enqueue: tally.enqueue.export(), Delivery: tally.delivery.export(),
	}})
	if report.AckedPerS != 10 || report.Enqueue.Count != 5 || report.Delivery != nil {
		t.Errorf("got %+v", report)
	}
	if p50 := report.Enqueue.P50; p50 < 2990 || p50 > 3010 {
		t.Errorf("p50 of five times 3 ms is %d us", p50)
	}
	var asJSON, asText bytes.Buffer
	if err := errors.Join(report.writeJSON(&asJSON), report.writeText(&asText)); err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(asJSON.Bytes(), &again); err != nil || *again.Enqueue != *report.Enqueue {
		t.Errorf("read back %+v, %v", again, err)
	}
	if !strings.Contains(asText.String(), "acked") {
		t.Error(asText.String())
	}
}
