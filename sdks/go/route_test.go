//go:build go1.25

package fila

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// A fakeGroup is brokers by the hosts at which they are reached.
type fakeGroup map[string]*fakeBroker

func (g fakeGroup) dial(ctx context.Context, addr string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(addr)
	return g[host].network.dial(ctx, addr)
}

// startGroup starts nodes of these names, and connects a client to addr. They end with the test.
func startGroup(t *testing.T, addr string, names ...string) (fakeGroup, *Client) {
	t.Helper()
	group := fakeGroup{}
	for _, name := range names {
		node := &fakeBroker{
			network:  newFakeNetwork(),
			enqueues: make(chan *enqueueStream, 10),
			sessions: make(chan *fakeSession, 10),
		}
		server := grpc.NewServer(grpc.UnaryInterceptor(node.answer))
		filav1.RegisterFilaServiceServer(server, node)
		filav1.RegisterFilaAdminServer(server, node)
		go server.Serve(node.network)
		group[name] = node
		t.Cleanup(func() {
			node.network.cut(true)
			server.Stop()
		})
	}
	client, err := Connect(addr, func(s *settings) { s.dial = group.dial }, steady)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return group, client
}

func notOwner(owner string) error {
	told := map[string]string{}
	if owner != "" {
		told["owner"] = owner
	}
	return refusal(codes.Unavailable, "NOT_OWNER", "this node stands by", told, 0)
}

// answersAs makes a node note who was asked, and answer calls with this error, or as having happened.
func (g fakeGroup) answersAs(name string, asked *[]string, err error) {
	g[name].unary = func(context.Context, string, any) (any, error) {
		*asked = append(*asked, name)
		return &filav1.PurgeQueueResponse{Purged: 3}, err
	}
}

func TestACallThatAStandbyRefusesIsMadeAtTheOwnerThatItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		group, client := startGroup(t, "standby:1", "standby", "owner")
		group.answersAs("standby", &asked, notOwner("owner:1"))
		group.answersAs("owner", &asked, nil)
		for range 2 {
			// It may not be repeated: that nothing has happened is the standby's word.
			if _, err := client.Purge(t.Context(), "q"); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"standby", "owner", "owner"}; !slices.Equal(asked, want) {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestAStandbyThatKnowsNoOwnerIsLeftForTheNextAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		group, client := startGroup(t, "one:1,two:1,three:1", "one", "two", "three")
		group.answersAs("one", &asked, notOwner(""))
		group.answersAs("two", &asked, notOwner(""))
		group.answersAs("three", &asked, nil)
		if _, err := client.Purge(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		if want := []string{"one", "two", "three"}; !slices.Equal(asked, want) {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestWhereTheOwnerIsGoneTheClientComesBackToItsAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		group, client := startGroup(t, "standby:1", "standby", "owner")
		group.answersAs("standby", &asked, notOwner("owner:1"))
		group.answersAs("owner", &asked, nil)
		if _, err := client.Purge(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		group.answersAs("standby", &asked, nil)
		group["owner"].network.cut(true)
		synctest.Wait()
		if _, err := client.Purge(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		if want := []string{"standby", "owner", "standby"}; !slices.Equal(asked, want) {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestTwoStandbysThatNameEachOtherAreAskedUntilPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		group, client := startGroup(t, "one:1", "one", "two")
		group.answersAs("one", &asked, notOwner("two:1"))
		group.answersAs("two", &asked, notOwner("one:1"))
		_, err := client.Purge(t.Context(), "q")
		var refused *Error
		if !errors.As(err, &refused) || refused.Kind != ErrNotOwner || refused.Owner == "" {
			t.Errorf("got %v", err)
		}
		if len(asked) < 4 || len(asked) > 30 {
			t.Errorf("asked %d times", len(asked))
		}
	})
}

func TestWhatIsInFlightToAStandbyIsSentToTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group, client := startGroup(t, "standby:1,owner:1", "standby", "owner")
		done := enqueueLater(t.Context(), client, "q", "a") // without a dedup key
		refused := <-group["standby"].enqueues
		<-refused.requests
		refused.end <- notOwner("owner:1")
		stream := <-group["owner"].enqueues
		stream.store(<-stream.requests)
		if got := <-done; got.err != nil || got.id != "id-a" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAConsumerThatComesToAStandbyConsumesAtTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group, client := startGroup(t, "standby:1", "standby", "owner")
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		got := make(chan string, 1)
		go func() {
			stream, err := client.Consume(ctx, "q")
			if err != nil {
				got <- err.Error()
				return
			}
			defer stream.Close()
			message, err := stream.Recv()
			if err != nil {
				got <- err.Error()
				return
			}
			got <- string(message.Payload)
		}()
		(<-group["standby"].sessions).end <- notOwner("owner:1")
		(<-group["owner"].sessions).accept().deliver(1)
		if payload := <-got; payload != "m1" {
			t.Errorf("got %q", payload)
		}
	})
}

func TestAStreamThatEndsBecauseItsNodeHandsOverIsDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan ConnectionEventKind, 8)
		group, client := startGroup(t, "standby:1", "standby", "owner")
		client.connection.settings.onConnection = func(event ConnectionEvent) { events <- event.Kind }
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		go func() {
			if stream, err := client.Consume(ctx, "q"); err == nil {
				<-ctx.Done()
				stream.Close()
			}
		}()
		session := (<-group["standby"].sessions).accept()
		session.end <- notOwner("owner:1")
		(<-group["owner"].sessions).accept()
		if kind := <-events; kind != ConnectionDraining {
			t.Errorf("got %q", kind)
		}
		stop()
	})
}
