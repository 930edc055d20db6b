//go:build go1.25

package fila

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

func TestABrokenStreamIsResumedWithWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var events []ConnectionEventKind
		var leasesLost int
		broker, client := startFake(t, WithConnectionEvents(func(event ConnectionEvent) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, event.Kind)
			leasesLost = event.LeasesLost
		}))
		stream, session := consume(t, broker, client, Prefetch(10))
		session.deliver(1, 2, 3)
		inHand := receive(t, stream)
		kept := receive(t, stream)
		broker.network.cut(false)
		session = <-broker.sessions
		resume := session.open.GetResume()
		leases := slices.Sorted(slices.Values(resume.GetLeaseIds()))
		if resume.GetConsumerId() != 7 || !slices.Equal(leases, []uint64{1, 2, 3}) {
			t.Errorf("resumed with %v", resume)
		}
		session.accept(1, 99) // of 99 the consumer knows nothing any more: it was settled, say
		<-inHand.Context().Done()
		if !errors.Is(context.Cause(inHand.Context()), ErrLeaseLost) {
			t.Error("a lease that did not survive is not told")
		}
		if begun := session.next().GetBegun(); !slices.Equal(begun.GetLeaseIds(), []uint64{2}) {
			t.Errorf("declared anew: %v", begun)
		}
		go session.settleAll()
		if err := kept.Ack(t.Context()); err != nil {
			t.Error(err)
		}
		if m := receive(t, stream); m.ID != "m3" {
			t.Errorf("then came %v", m.ID)
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(events, []ConnectionEventKind{ConnectionLost, ConnectionBack}) {
			t.Errorf("told %v", events)
		}
		if leasesLost != 1 {
			t.Errorf("%d leases lost, but the consumer held one of those", leasesLost)
		}
	})
}

func TestWhereTheProgramAsksForNoEventsAnOutageIsLogged(t *testing.T) {
	var lines bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&lines, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		consume(t, broker, client, Prefetch(10))
		broker.network.cut(false)
		session := <-broker.sessions
		session.accept(1)
		synctest.Wait()
	})
	for _, said := range []string{
		`level=WARN msg="a consumer of Fila lost its stream, reopening it" queue=`,
		`level=WARN msg="a consumer of Fila has its stream back" queue=`,
	} {
		if !strings.Contains(lines.String(), said) {
			t.Errorf("logged %q, without %q", lines.String(), said)
		}
	}
}

func TestNothingIsHandedOutWhileTheStreamIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client, Prefetch(10))
		session.deliver(1)
		synctest.Wait()
		broker.network.cut(true)
		synctest.Wait()
		got := make(chan *Message, 1)
		go func() { got <- receive(t, stream) }()
		synctest.Wait()
		if len(got) != 0 {
			t.Error("handed out what may be somebody else's by now")
		}
		broker.network.cut(false)
		(<-broker.sessions).accept()
		<-got
	})
}

func TestWhoHoldsLeasesComesBackWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1)
		receive(t, stream)
		broker.network.cut(true)
		time.Sleep(4 * time.Second) // of 5: by now the ordinary backoff would wait for longer
		broker.network.cut(false)
		began := time.Now()
		(<-broker.sessions).accept()
		if waited := time.Since(began); waited > 700*time.Millisecond {
			t.Errorf("came back after %v", waited)
		}
	})
}

func TestAConsumerGivesUpWhenToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithReconnectFor(10*time.Second))
		stream, _ := consume(t, broker, client)
		broker.network.cut(true)
		began := time.Now()
		_, err := stream.Recv()
		if waited := time.Since(began); !errors.Is(err, ErrUnavailable) || waited < 5*time.Second || waited > 11*time.Second {
			t.Errorf("after %v: %v", waited, err)
		}
	})
}

func TestSettlementsThatABrokenStreamLeftUnansweredAreRepeatedByCalls(t *testing.T) {
	for _, reason := range []string{"MESSAGE_NOT_FOUND", "LEASE_LOST"} {
		t.Run(reason, func(t *testing.T) { repeatAnAckThatDidItsWork(t, reason) })
	}
}

func repeatAnAckThatDidItsWork(t *testing.T, reason string) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		calls := make(chan any, 10)
		resumedFirst := make(chan struct{})
		gone := settledByCall(calls, reason)
		broker.unary = func(ctx context.Context, method string, request any) (any, error) {
			<-resumedFirst
			return gone(ctx, method, request)
		}
		stream, session := consume(t, broker, client)
		session.deliver(1)
		m := receive(t, stream)
		failed := make(chan error, 1)
		go func() { failed <- m.Ack(t.Context()) }()
		for session.next().GetAck() == nil {
		}
		broker.network.cut(false)
		resumed := <-broker.sessions
		if !slices.Equal(resumed.open.GetResume().GetLeaseIds(), []uint64{1}) {
			t.Errorf("resumed with %v: what is being settled belongs to it", resumed.open.GetResume())
		}
		resumed.accept()
		close(resumedFirst)
		// The first ack did its work: the message is gone.
		if err := <-failed; err != nil {
			t.Errorf("a repeated ack: %v", err)
		}
	})
}

func TestABrokerOfAnEarlierVersionIsServedWithAFixedWindowUntilItIsUpgraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		sessions := make(chan *fakeSession, 1)
		go func() {
			// It answers Opened with no more than a number.
			(<-broker.sessions).openAsEarlier()
			second := <-broker.sessions
			second.openAsEarlier()
			sessions <- second
		}()
		stream, err := client.Consume(t.Context(), "q")
		if err != nil {
			t.Fatal(err)
		}
		session := <-sessions
		if session.open.GetMaxInFlight() != oldBrokerWindow {
			t.Errorf("opened with a window of %d", session.open.GetMaxInFlight())
		}
		session.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Delivery_{
			Delivery: &filav1.ConsumeSessionResponse_Delivery{Messages: []*filav1.Message{{
				Id: "m1", Metadata: &filav1.MessageMetadata{LeaseId: 1, Redelivered: true},
				Timestamps: &filav1.MessageTimestamps{
					LeasedAt: timestamppb.New(time.Unix(0, 0)), LeaseExpiresAt: timestamppb.New(time.Unix(30, 0)),
				},
			}}}}})
		receive(t, stream)
		time.Sleep(time.Minute)
		if len(session.requests) != 0 {
			t.Errorf("was sent %v, which it does not know", <-session.requests)
		}
		broker.network.cut(false)
		session = (<-broker.sessions).accept()
		if begun := session.next().GetBegun(); len(begun.GetLeaseIds()) != 1 {
			t.Errorf("the upgraded broker was told %v", begun)
		}
	})
}

func TestAResumeNamesNoMoreLeasesThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		resumed := make(chan struct{})
		settled := settledByCall(make(chan any, 10), "")
		broker.unary = func(ctx context.Context, method string, request any) (any, error) {
			<-resumed
			return settled(ctx, method, request)
		}
		stream, session := consume(t, broker, client, Prefetch(frameLeasesMax))
		leases := make([]uint64, frameLeasesMax)
		for i := range leases {
			leases[i] = uint64(i + 1)
		}
		session.deliver(leases...)
		acking := receive(t, stream)
		go func() { _ = acking.Ack(context.Background()) }()
		for session.next().GetAck() == nil {
		}
		session.deliver(frameLeasesMax + 1) // the ack made room for it
		synctest.Wait()
		broker.network.cut(false)
		named := (<-broker.sessions).open.GetResume().GetLeaseIds()
		close(resumed)
		if len(named) != frameLeasesMax || slices.Contains(named, acking.LeaseID) {
			t.Errorf("%d leases are named, that of the ack among them: %v", len(named), slices.Contains(named, acking.LeaseID))
		}
	})
}
