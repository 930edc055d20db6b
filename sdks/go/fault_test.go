//go:build go1.25

package fila

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

func TestNobodyAtTheAddressIsAnErrorThatSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newFakeNetwork()
		network.down = true
		began := time.Now()
		_, err := Connect("broker:1234", WithConnectTimeout(3*time.Second), func(s *settings) { s.dial = network.dial })
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "Start fila-server") ||
			!strings.Contains(err.Error(), "broker:1234") {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("gave up after %v", waited)
		}
	})
}

func TestAConnectionIsLookedForOnceMoreWhenPatienceEndedWhileTheProcessStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		broker.network.cut(true)
		synctest.Wait()
		time.AfterFunc(time.Second, func() { broker.network.cut(false) })

		over := patience{since: time.Now().Add(-time.Minute), time: 30 * time.Second}
		if err := client.connection.ready(t.Context(), over); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutPatienceTheLastAttemptCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		broker.network.cut(true)
		synctest.Wait()
		began := time.Now()
		for range 2 {
			if err := client.connection.ready(t.Context(), patienceFromNow(0)); !errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("gave up after %v", waited)
		}
		broker.network.cut(false)
	})
}

func TestAddressesAreReadAndBadOnesRefused(t *testing.T) {
	for given, want := range map[string]string{
		"localhost:5555": "localhost:5555", "localhost": "localhost:5555", "http://h:1/": "h:1", "https://h": "h:5555 tls",
		"a:1, b:2": "a:1 b:2", "[::1]:7": "[::1]:7", "::1": "[::1]:5555",
	} {
		hosts, secure, err := parseAddresses(given)
		got := strings.Join(hosts, " ")
		if secure {
			got += " tls"
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	for _, bad := range []string{"", "ftp://h:1", "http://h:1/path", "a,,b", "h h"} {
		if _, _, err := parseAddresses(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTheSecondAddressIsUsedWhenTheFirstIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newFakeNetwork()
		server := grpc.NewServer()
		go server.Serve(network)
		client, err := Connect("first:1,second:2", func(s *settings) {
			s.dial = func(ctx context.Context, addr string) (net.Conn, error) {
				if addr == "first:1" {
					return nil, errors.New("connection refused")
				}
				return network.dial(ctx, addr)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
		server.Stop()
	})
}

func TestABlackHoleIsNoticedByKeepalive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithKeepalive(10*time.Second, 5*time.Second), WithReconnectFor(0), WithCallTimeout(time.Hour))
		stream, session := consume(t, broker, client)
		session.deliver(1)
		receive(t, stream)
		broker.network.swallow()
		began := time.Now()
		_, err := stream.Recv()
		if waited := time.Since(began); !errors.Is(err, ErrUnavailable) || waited > 16*time.Second {
			t.Errorf("after %v: %v", waited, err)
		}
		broker.network.cut(true)
	})
}

func TestASlowConsumerDoesNotHoldUpAFastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		_, slowSession := consume(t, broker, client, Prefetch(10))
		fast, fastSession := consume(t, broker, client, Prefetch(10))
		slowSession.deliver(1, 2, 3) // never taken
		go fastSession.settleAll()
		for lease := range uint64(5) {
			fastSession.deliver(lease + 1)
			if err := receive(t, fast).Ack(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestNoGoroutineIsLeftWhenCloseReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		broker.storeAll(t)
		stream, session := consume(t, broker, client)
		go session.settleAll()
		session.deliver(1)
		if err := receive(t, stream).Ack(t.Context()); err != nil {
			t.Error(err)
		}
		if got := <-enqueueLater(t.Context(), client, "q", "a"); got.err != nil {
			t.Error(got.err)
		}
		client.Close()
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for _, ours := range []string{"(*producer)", "(*session)", "(*sessionWriter)", "(*settler)", "(*connection)"} {
			if bytes.Contains(stacks, []byte("sdks/go."+ours)) {
				t.Errorf("a goroutine of %s is left", ours)
			}
		}
	})
}

func TestUseAfterCloseIsAnErrorEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := startFake(t)
		if err := errors.Join(client.Close(), client.Close()); err != nil {
			t.Error(err)
		}
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"Enqueue":     func() error { _, err := client.Enqueue(ctx, "q", nil, nil); return err },
			"EnqueueMany": func() error { _, err := client.EnqueueMany(ctx, "q", []NewMessage{{}}); return err },
			"Consume":     func() error { _, err := client.Consume(ctx, "q"); return err },
			"Lease":       func() error { _, err := client.Lease(ctx, "q", 1); return err },
			"Ack":         func() error { return client.Ack(ctx, "q", "id") },
			"CreateQueue": func() error { return client.CreateQueue(ctx, "q") },
			"Messages": func() error {
				for _, err := range client.Messages(ctx, "q") {
					return err
				}
				return nil
			},
			"ReadLog": func() error {
				for _, err := range client.ReadLog(ctx, "q") {
					return err
				}
				return nil
			},
		} {
			if err := call(); !errors.Is(err, ErrClientClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestTheAPIKeyTravelsWithEveryCall(t *testing.T) {
	t.Setenv("FILA_API_KEY", "from-the-environment")
	for want, opts := range map[string][]Option{
		"Bearer from-the-environment": nil, "Bearer given": {WithAPIKey("given")},
	} {
		synctest.Test(t, func(t *testing.T) {
			broker, client := startFake(t, opts...)
			broker.unary = func(ctx context.Context, _ string, _ any) (any, error) {
				got, _ := metadata.FromIncomingContext(ctx)
				return &filav1.GetConfigResponse{Value: strings.Join(got.Get("authorization"), " ")}, nil
			}
			if got, err := client.GetConfig(t.Context(), "k"); got != want {
				t.Errorf("a call sent %q, %v", got, err)
			}
			done := enqueueLater(t.Context(), client, "q", "a")
			stream := <-broker.enqueues
			if got := strings.Join(stream.metadata.Get("authorization"), " "); got != want {
				t.Errorf("the stream sent %q", got)
			}
			stream.store(<-stream.requests)
			<-done
		})
	}
}

func TestARefusedKeyIsNotAllowedAndIsNotTriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		go func() {
			for stream := range broker.enqueues {
				stream.end <- refusal(codes.Unauthenticated, "", "no such key", nil, 0)
			}
		}()
		defer func() { synctest.Wait(); close(broker.enqueues) }()
		if _, err := client.Enqueue(t.Context(), "q", nil, nil); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("got %v", err)
		}
		client.Close()
	})
}

func TestOptionsOutOfRangeAreRefusedByName(t *testing.T) {
	for name, opt := range map[string]Option{
		"WithLinger": WithLinger(6 * time.Millisecond), "WithFrame": WithFrame(0, 1), "WithFramesInFlight": WithFramesInFlight(0),
		"WithWaitingBytes": WithWaitingBytes(0), "WithPrefetch": WithPrefetch(0), "WithConnectTimeout": WithConnectTimeout(0),
		"WithBackoff": WithBackoff(Backoff{Base: 2, Cap: 1}), "WithCA": WithCA("/no/such/file"),
		"WithClientCertificate": WithClientCertificate("/no/such", "/file"),
	} {
		if _, err := Connect("localhost:1", opt); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnOversizedMessageTravelsAloneSoThatItFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		tooLarge := refusal(codes.InvalidArgument, "LIMIT_EXCEEDED", "request: at most 16777216 bytes", nil, 0)
		alone := 0
		broker.unary = func(context.Context, string, any) (any, error) {
			alone++
			return nil, tooLarge
		}
		broker.storeAll(t)
		huge := make([]byte, sharedBytesMax+1)
		small := enqueueLater(t.Context(), client, "q", "small")
		if _, err := client.Enqueue(t.Context(), "q", nil, huge); !errors.Is(err, ErrLimitExceeded) || !errors.Is(err, ErrInvalid) {
			t.Errorf("got %v", err)
		}
		if got := <-small; got.err != nil {
			t.Errorf("its neighbour: %v", got.err)
		}
		receipts, err := client.EnqueueMany(t.Context(), "q", []NewMessage{{Payload: []byte("a")}, {Payload: huge}, {Payload: []byte("b")}})
		var some *SomeFailedError
		if !errors.As(err, &some) || !errors.Is(some.Results[1], ErrLimitExceeded) || receipts[0].ID != "id-a" || receipts[2].ID != "id-b" {
			t.Errorf("of many: %v, %v", receipts, err)
		}
		if alone != 2 {
			t.Errorf("%d calls of their own", alone)
		}
	})
}
