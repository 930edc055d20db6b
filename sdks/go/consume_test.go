//go:build go1.25

package fila

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// consume opens a consumer whose session the broker accepts.
func consume(t *testing.T, broker *fakeBroker, client *Client, opts ...ConsumeOption) (*Stream, *fakeSession) {
	t.Helper()
	accepted := make(chan *fakeSession, 1)
	go func() { accepted <- (<-broker.sessions).accept() }()
	stream, err := client.Consume(t.Context(), "q", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return stream, <-accepted
}

func receive(t *testing.T, stream *Stream) *Message {
	t.Helper()
	m, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestASessionSaysWhatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		_, session := consume(t, broker, client, Channel("audit"), ConsumerName("me"), MaxLeaseRenewal(time.Minute))
		open := session.open
		if open.GetQueue() != "q" || open.GetChannel() != "audit" || open.GetName() != "me" || !open.GetTracksBegun() ||
			open.GetMaxLeaseRenewalMs() != 60_000 || open.GetMaxInFlight() != 2 || open.GetResume() != nil {
			t.Errorf("opened with %v", open)
		}
	})
}

func TestAMessageIsReadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		go session.settleAll()
		session.deliver(1)
		m := receive(t, stream)
		if m.ID != "m1" || string(m.Payload) != "m1" || m.LeaseID != 1 || m.Queue != "q" || m.Channel != "default" {
			t.Errorf("got %+v", m)
		}
		if err := m.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAMessageThatIsSettledSoonIsNotDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1)
		m := receive(t, stream)
		go m.Ack(t.Context())
		ack := session.next().GetAck()
		if !slices.Equal(ack.GetLeaseIds(), []uint64{1}) {
			t.Fatalf("got %v", ack)
		}
		session.settle(ack)
		time.Sleep(time.Second)
		if len(session.requests) > 0 {
			if request := session.next(); request.GetBegun() != nil {
				t.Errorf("declared %v", request)
			}
		}
	})
}

func TestAMessageThatIsWorkedOnIsDeclaredAfterFiveMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1, 2)
		receive(t, stream)
		began := time.Now()
		begun := session.next().GetBegun()
		if !slices.Equal(begun.GetLeaseIds(), []uint64{1}) || time.Since(began) != 5*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), begun)
		}
	})
}

func TestAMessageThatWasSentBeforeIsDeclaredBeforeTheProgramSeesIt(t *testing.T) {
	for name, marks := range map[string]*filav1.MessageMetadata{
		"begun before": {Redelivered: true}, "came back unbegun": {CameBack: true},
	} {
		t.Run(name, func(t *testing.T) { declaredFirst(t, marks) })
	}
}

func declaredFirst(t *testing.T, marks *filav1.MessageMetadata) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.mu.Lock()
		session.autoAlive = false
		session.mu.Unlock()
		session.deliverAs(marks, 1)
		got := make(chan *Message, 1)
		go func() { got <- receive(t, stream) }()
		if begun := session.next().GetBegun(); !slices.Equal(begun.GetLeaseIds(), []uint64{1}) {
			t.Fatalf("the first frame is %v", begun)
		}
		alive := session.next().GetAlive()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("the program sees it before the broker has heard")
		}
		session.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Alive_{
			Alive: &filav1.ConsumeSessionResponse_Alive{Sequence: alive.GetSequence()}}})
		if m := <-got; m.ID != "m1" || m.Redelivered != marks.Redelivered || m.CameBack != marks.CameBack {
			t.Errorf("got %+v", m)
		}
	})
}

func TestARedeliveredMessageThatIsLostMeanwhileIsNotHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.mu.Lock()
		session.autoAlive = false
		session.mu.Unlock()
		session.deliverAs(&filav1.MessageMetadata{Redelivered: true}, 1)
		got := make(chan *Message, 1)
		go func() { got <- receive(t, stream) }()
		session.next()
		alive := session.next().GetAlive()
		session.revoke("LEASE_LOST", 1)
		session.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Alive_{
			Alive: &filav1.ConsumeSessionResponse_Alive{Sequence: alive.GetSequence()}}})
		session.deliver(2)
		if m := <-got; m.ID != "m2" {
			t.Errorf("got %v", m.ID)
		}
	})
}

func TestALostLeaseEndsTheMessagesContextAndDropsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1, 2, 3)
		m := receive(t, stream)
		session.revoke("SEEK", 1, 2)
		<-m.Context().Done()
		var lost *Error
		if cause := context.Cause(m.Context()); !errors.Is(cause, ErrLeaseLost) || !errors.As(cause, &lost) || lost.Reason != "SEEK" {
			t.Errorf("ended by %v", cause)
		}
		if next := receive(t, stream); next.ID != "m3" {
			t.Errorf("handed out %v, whose lease is lost", next.ID)
		}
	})
}

func TestAMessagesContextEndsWhenItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		go session.settleAll()
		session.deliver(1)
		m := receive(t, stream)
		ctx := m.Context()
		if ctx.Err() != nil {
			t.Fatal("over before it was settled")
		}
		m.Ack(t.Context())
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), ErrLeaseLost) {
			t.Error("settled is not lost")
		}
	})
}

func TestNothingIsHandedOutOnceTheBrokerHasBeenSilentForAVisibilityTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.mu.Lock()
		session.autoAlive = false
		session.mu.Unlock()
		session.deliver(1)
		synctest.Wait()
		time.Sleep(testTimeout + time.Millisecond)
		got := make(chan *Message, 1)
		go func() { got <- receive(t, stream) }()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("a message was handed out that is, or will be, somebody else's")
		}
		var newest uint64
		for len(session.requests) > 0 {
			if alive := (<-session.requests).GetAlive(); alive != nil {
				newest = alive.GetSequence()
			}
		}
		session.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Alive_{
			Alive: &filav1.ConsumeSessionResponse_Alive{Sequence: newest}}})
		if m := <-got; m.ID != "m1" {
			t.Errorf("got %v", m.ID)
		}
	})
}

func TestCloseGivesTheBufferBackAndWaitsForWhatIsInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client, Prefetch(10))
		session.deliver(1, 2, 3)
		m := receive(t, stream)
		stream.Close()
		window := (<-session.requests).GetWindow()
		if window.GetSize() != 0 || !slices.Equal(window.GetGiveBack(), []uint64{2, 3}) {
			t.Errorf("left with %v", window)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("after Close: %v", err)
		}
		session.deliver(4) // was on its way
		if window := (<-session.requests).GetWindow(); !slices.Equal(window.GetGiveBack(), []uint64{4}) {
			t.Errorf("kept a message that came after Close: %v", window)
		}
		go func() { m.Ack(t.Context()) }()
		for {
			request := session.next()
			if request.GetAck() != nil {
				session.settle(request.GetAck())
				break
			}
		}
		if request := session.next(); request.GetClose() == nil {
			t.Errorf("expected Close, got %v", request)
		}
		<-stream.session.ended
	})
}

func TestAConsumerThatKeepsItsMessagesIsClosedAfterAVisibilityTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1)
		receive(t, stream)
		began := time.Now()
		stream.Close()
		for {
			request := session.next()
			if last := request.GetClose(); last != nil {
				if last.GetRelease() || time.Since(began) != testTimeout {
					t.Errorf("after %v: %v", time.Since(began), last)
				}
				return
			}
		}
	})
}

func TestClosingTheClientReleasesWhatIsInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1)
		m := receive(t, stream)
		closed := make(chan struct{})
		go func() {
			client.Close()
			close(closed)
		}()
		var last *filav1.ConsumeSessionRequest_Close
		for last == nil {
			last = session.next().GetClose()
		}
		<-closed
		if !last.GetRelease() {
			t.Error("closed without release")
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("Recv after Close: %v", err)
		}
		if err := m.Ack(t.Context()); !errors.Is(err, ErrClientClosed) {
			t.Errorf("Ack after Close: %v", err)
		}
	})
}

func TestTheEndOfItsContextLeavesTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		accepted := make(chan *fakeSession, 1)
		go func() { accepted <- (<-broker.sessions).accept() }()
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.Consume(ctx, "q")
		if err != nil {
			t.Fatal(err)
		}
		session := <-accepted
		failed := make(chan error, 1)
		go func() { _, err := stream.Recv(); failed <- err }()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		for session.next().GetClose() == nil {
		}
	})
}

func TestLeavingALoopClosesItsStreamAlsoByAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		accepted := make(chan *fakeSession, 1)
		go func() {
			session := (<-broker.sessions).accept()
			session.deliver(1, 2)
			accepted <- session
		}()
		func() {
			defer func() { recover() }()
			for range client.Messages(t.Context(), "q") {
				panic("the program's own mistake")
			}
		}()
		session := <-accepted
		for {
			if window := (<-session.requests).GetWindow(); slices.Equal(window.GetGiveBack(), []uint64{2}) {
				break
			}
		}
	})
}

func TestALoopStopsWhenIdleIfAskedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		go func() {
			session := (<-broker.sessions).accept()
			session.deliver(1)
			session.settleAll()
		}()
		began, count := time.Now(), 0
		for m, err := range client.Messages(t.Context(), "q", StopWhenIdle(2*time.Second)) {
			if err != nil {
				t.Fatal(err)
			}
			count++
			m.Ack(t.Context())
		}
		if count != 1 || time.Since(began) != 2*time.Second {
			t.Errorf("%d messages, stopped after %v", count, time.Since(began))
		}
	})
}

func TestTimeWithoutABrokerIsNotIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, _ := consume(t, broker, client, StopWhenIdle(2*time.Second))
		broker.network.cut(false)
		session := <-broker.sessions
		began := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			session.accept()
		}()
		if m, err := stream.Recv(); !errors.Is(err, io.EOF) || time.Since(began) != 7*time.Second {
			t.Errorf("%v, %v after %v", m, err, time.Since(began))
		}
	})
}

func TestWhatOtherReceiversGotKeepsOneFromBeingIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client, StopWhenIdle(2*time.Second))
		began, ended := time.Now(), make(chan time.Duration, 2)
		for range 2 {
			go func() {
				_, err := stream.Recv()
				for err == nil {
					_, err = stream.Recv()
				}
				ended <- time.Since(began)
			}()
		}
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond)
		session.deliver(1)
		for range 2 {
			if after := <-ended; after != 3500*time.Millisecond {
				t.Errorf("one stopped after %v", after)
			}
		}
	})
}

func TestEachMessageGoesToOneOfSeveralReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		got := make(chan string, 10)
		for range 3 {
			go func() {
				if m, err := stream.Recv(); err == nil {
					got <- m.ID
				}
			}()
		}
		synctest.Wait()
		began := time.Now()
		session.deliver(1, 2, 3)
		ids := []string{<-got, <-got, <-got}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the last of them waited %v", waited)
		}
		slices.Sort(ids)
		if !slices.Equal(ids, []string{"m1", "m2", "m3"}) {
			t.Errorf("got %v", ids)
		}
		// Three that wait at once are three workers: three in hand and one to follow.
		var window uint32
		for len(session.requests) > 0 {
			if told := (<-session.requests).GetWindow(); told != nil {
				window = told.GetSize()
			}
		}
		if window != 4 {
			t.Errorf("the window is %d", window)
		}
	})
}

func TestBatchesHandOutWhatHasArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		go func() {
			session := (<-broker.sessions).accept()
			session.deliver(1, 2, 3)
			session.settleAll()
		}()
		for batch, err := range client.Batches(t.Context(), "q", 100) {
			if err != nil || len(batch) != 3 {
				t.Fatalf("got %d messages, %v", len(batch), err)
			}
			if err := client.AckMany(t.Context(), batch); err != nil {
				t.Error(err)
			}
			break
		}
	})
}

func TestAnErrorOfTheBrokerEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		go func() {
			(<-broker.sessions).end <- refusal(codes.NotFound, "QUEUE_NOT_FOUND", "there is no queue q", nil, 0)
		}()
		var failure *Error
		_, err := client.Consume(t.Context(), "q")
		if !errors.Is(err, ErrQueueNotFound) || !errors.As(err, &failure) || failure.Queue != "q" {
			t.Errorf("Consume: %v", err)
		}
		stream, session := consume(t, broker, client)
		session.end <- refusal(codes.NotFound, "QUEUE_NOT_FOUND", "queue q was deleted", nil, 0)
		if _, err := stream.Recv(); !errors.Is(err, ErrQueueNotFound) {
			t.Errorf("Recv: %v", err)
		}
	})
}
