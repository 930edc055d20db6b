//go:build go1.25

package fila

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// settledByCall answers settlements by unary calls; with a reason, all are refused with it.
func settledByCall(calls chan any, reason string) func(context.Context, string, any) (any, error) {
	code := codes.NotFound
	if reason == "LEASE_LOST" {
		code = codes.FailedPrecondition
	}
	return func(_ context.Context, _ string, request any) (any, error) {
		calls <- request
		var items []*filav1.SettleItem
		switch request := request.(type) {
		case *filav1.AckBatchRequest:
			items = request.GetItems()
		case *filav1.NackBatchRequest:
			items = request.GetItems()
		case *filav1.LeaseRequest:
			return &filav1.LeaseResponse{Messages: []*filav1.Message{
				{Id: "a", Metadata: &filav1.MessageMetadata{LeaseId: 11}},
				{Id: "b", Metadata: &filav1.MessageMetadata{LeaseId: 12}},
			}}, nil
		case *filav1.ExtendLeaseRequest:
			return &filav1.ExtendLeaseResponse{LeaseExpiresAt: timestamppb.New(time.Unix(99, 0))}, nil
		}
		answer := &filav1.SettleBatchResponse{}
		for range items {
			status := &filav1.ItemStatus{}
			if reason != "" {
				status = &filav1.ItemStatus{Code: int32(code), Reason: reason, Message: "refused"}
			}
			answer.Results = append(answer.Results, status)
		}
		return answer, nil
	}
}

func TestAcksOfManyGoroutinesTravelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client, Prefetch(10))
		session.deliver(1, 2, 3, 4, 5)
		results := make(chan error, 5)
		for range 5 {
			m := receive(t, stream)
			go func() { results <- m.Ack(t.Context()) }()
		}
		synctest.Wait()
		frames, leases := 0, 0
		for len(session.requests) > 0 {
			if ack := session.next().GetAck(); ack != nil {
				frames++
				leases += len(ack.GetLeaseIds())
				session.settle(ack)
			}
			synctest.Wait()
		}
		for range 5 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if leases != 5 || frames > 4 {
			t.Errorf("%d leases in %d frames", leases, frames)
		}
	})
}

func TestEachVerdictSaysWhatItMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client, Prefetch(10))
		session.deliver(1, 2, 3, 4)
		go receive(t, stream).Nack(t.Context(), "no", Delay(3*time.Second))
		if nack := session.next().GetNack(); nack.GetError() != "no" || nack.GetDelayMs() != 3000 || nack.GetDeadLetter() || nack.GetRelease() {
			t.Errorf("nack: %v", nack)
		}
		go receive(t, stream).Nack(t.Context(), "no")
		if nack := session.next().GetNack(); nack.DelayMs != nil {
			t.Errorf("nack without delay: %v", nack)
		}
		go receive(t, stream).Reject(t.Context(), "never")
		if nack := session.next().GetNack(); nack.GetError() != "never" || !nack.GetDeadLetter() {
			t.Errorf("reject: %v", nack)
		}
		go receive(t, stream).Release(t.Context())
		if nack := session.next().GetNack(); !nack.GetRelease() || nack.GetError() != "" {
			t.Errorf("release: %v", nack)
		}
		broker.network.cut(true)
		client.connection.end()
	})
}

func TestARefusalOfAProviderTravelsWithItsNack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client, Prefetch(10))
		session.deliver(1, 2, 3)
		go receive(t, stream).Limited(t.Context(), Limited{RetryAfter: time.Hour, Limit: "openai", Reason: "429"})
		nack := session.next().GetNack()
		if f := nack.GetFeedback(); len(f) != 1 || f[0].GetLimit() != "openai" || f[0].GetRetryAfterMs() != 300_000 || nack.GetDelayMs() != 300_000 || nack.GetError() != "429" {
			t.Errorf("limited: %v", nack)
		}
		go receive(t, stream).Limited(t.Context(), Limited{})
		nack = session.next().GetNack()
		if f := nack.GetFeedback(); len(f) != 1 || f[0].GetRetryAfterMs() != 0 || nack.DelayMs != nil {
			t.Errorf("limited without a time: %v", nack)
		}
		if err := receive(t, stream).Limited(t.Context(), Limited{RetryAfter: -1}); !errors.Is(err, ErrInvalid) {
			t.Errorf("a negative time: %v", err)
		}
		broker.network.cut(true)
		client.connection.end()
	})
}

func TestExtendAnswersWhenTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1)
		m := receive(t, stream)
		go func() {
			for {
				request := session.next()
				if extend := request.GetExtend(); extend != nil {
					if extend.GetExtendMs() != 60_000 {
						t.Errorf("got %v", extend)
					}
					break
				}
			}
			session.send(&filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Extended_{
				Extended: &filav1.ConsumeSessionResponse_Extended{LeaseIds: []uint64{1}, LeaseExpiresAt: timestamppb.New(time.Unix(77, 0))}}})
		}()
		until, err := m.Extend(t.Context(), time.Minute)
		if err != nil || until.Unix() != 77 {
			t.Errorf("got %v, %v", until, err)
		}
	})
}

func TestARefusedSettlementTellsWhichAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client, Prefetch(10))
		session.deliver(1, 2)
		messages := []*Message{receive(t, stream), receive(t, stream)}
		go func() {
			for {
				if ack := session.next().GetAck(); ack != nil {
					session.settle(ack, &filav1.ConsumeSessionResponse_Failure{LeaseId: 2,
						Status: &filav1.ItemStatus{Code: 9, Reason: "LEASE_LOST", Message: "lost"}})
					return
				}
			}
		}()
		err := client.AckMany(t.Context(), messages)
		var some *SomeFailedError
		var failure *Error
		if !errors.As(err, &some) || some.Results[0] != nil || !errors.Is(err, ErrLeaseLost) || !errors.As(err, &failure) ||
			failure.MessageID != "m2" || failure.LeaseID != 2 {
			t.Errorf("got %v", err)
		}
	})
}

func TestAnAckByIDNamesTheLeaseItWasDeliveredUnder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		calls := make(chan any, 10)
		broker.unary = settledByCall(calls, "")
		pulled, err := client.Lease(t.Context(), "q", 10, Wait(time.Second))
		if err != nil || len(pulled) != 2 {
			t.Fatal(pulled, err)
		}
		if request := (<-calls).(*filav1.LeaseRequest); request.GetMaxMessages() != 10 || request.GetWaitMs() != 1000 {
			t.Errorf("got %v", request)
		}
		if err := client.Ack(t.Context(), "q", "a"); err != nil {
			t.Fatal(err)
		}
		if got := (<-calls).(*filav1.AckBatchRequest).GetItems()[0]; got.GetLeaseId() != 11 {
			t.Errorf("got %v", got)
		}
		if err := client.Ack(t.Context(), "q", "stranger"); err != nil {
			t.Fatal(err)
		}
		if got := (<-calls).(*filav1.AckBatchRequest).GetItems()[0]; got.GetLeaseId() != 0 {
			t.Errorf("got %v", got)
		}
		until, err := pulled[1].Extend(t.Context(), time.Minute)
		if err != nil || until.Unix() != 99 {
			t.Errorf("extend: %v, %v", until, err)
		}
		stream, session := consume(t, broker, client)
		session.deliver(5)
		receive(t, stream)
		go client.Ack(t.Context(), "q", "m5")
		for {
			if ack := session.next().GetAck(); ack != nil {
				if !slices.Equal(ack.GetLeaseIds(), []uint64{5}) {
					t.Errorf("got %v", ack)
				}
				session.settle(ack)
				return
			}
		}
	})
}

func TestASecondAckIsRefusedAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		broker.unary = settledByCall(make(chan any, 10), "MESSAGE_NOT_FOUND")
		pulled, err := client.Lease(t.Context(), "q", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := pulled[0].Ack(t.Context()); !errors.Is(err, ErrMessageNotFound) || !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

func TestWaitingForASettlementEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1)
		m := receive(t, stream)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := m.Ack(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrAnswerLost) {
			t.Errorf("got %v", err)
		}
		go session.settleAll()
	})
}

func TestNothingIsSettledWithAContextThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		stream, session := consume(t, broker, client)
		session.deliver(1)
		m := receive(t, stream)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, extending := m.Extend(ended, time.Hour)
		for name, err := range map[string]error{
			"Ack":     m.Ack(ended),
			"AckMany": client.AckMany(ended, []*Message{m}),
			"by id":   client.Ack(ended, "q", m.ID),
			"Extend":  extending,
		} {
			if !errors.Is(err, context.Canceled) || errors.Is(err, ErrAnswerLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if m.Context().Err() != nil {
			t.Error("its context ended, as if it were settled")
		}
		go session.settleAll()
		if err := m.Ack(t.Context()); err != nil {
			t.Errorf("it is in hand still, and could not be acked: %v", err)
		}
	})
}

func TestALoopThatItsContextEndsSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			(<-broker.sessions).accept()
			synctest.Wait()
			cancel()
		}()
		for _, err := range client.Messages(ctx, "q") {
			if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "sent") {
				t.Errorf("the loop ended with %v", err)
			}
		}
	})
}

func TestLeaseMemoryForgetsGenerationsNotNewerDeliveries(t *testing.T) {
	memory := newLeaseMemory()
	memory.generationMax = 2
	for lease, id := range []string{"a", "b", "c", "d", "e"} {
		memory.remember(id, uint64(lease+1))
	}
	if memory.get("a") != 0 || memory.get("c") != 3 || memory.get("e") != 5 {
		t.Errorf("remembers %v and %v", memory.older, memory.newer)
	}
	memory.remember("c", 9)
	memory.forget("c", 3)
	if memory.get("c") != 9 {
		t.Error("a newer delivery was forgotten")
	}
}
