//go:build go1.25

package fila

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// Tests run in bubbles of fake time. A bubble also fails when a goroutine is left behind, so each of them
// shows that Close leaves none.

type outcome struct {
	id  string
	err error
}

// enqueueLater starts an Enqueue and returns where its outcome will be.
func enqueueLater(ctx context.Context, c *Client, queue, payload string, opts ...EnqueueOption) chan outcome {
	done := make(chan outcome, 1)
	go func() {
		id, err := c.Enqueue(ctx, queue, nil, []byte(payload), opts...)
		done <- outcome{id, err}
	}()
	synctest.Wait()
	return done
}

func TestALoneEnqueueIsSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		began := time.Now()
		done := enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		stream.store(<-stream.requests)
		if got := <-done; got.err != nil || got.id != "id-a" {
			t.Errorf("got %+v", got)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a lone call waited %v", waited)
		}
	})
}

func TestCallsGatherWhileAFrameIsUnansweredAndLeaveWithItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		first := enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		frame := <-stream.requests
		second := enqueueLater(t.Context(), client, "q", "b")
		third := enqueueLater(t.Context(), client, "other", "c")
		if len(stream.requests) != 0 {
			t.Fatal("a call left although a frame is unanswered")
		}
		stream.store(frame)
		frame = <-stream.requests
		if got := payloads(frame); !slices.Equal(got, []string{"b", "c"}) {
			t.Fatalf("the second frame holds %v", got)
		}
		if frame.GetBatch().GetQueue() != "q" || frame.GetBatch().GetMessages()[1].GetQueue() != "other" {
			t.Errorf("queues went wrong: %v", frame)
		}
		stream.store(frame)
		for _, done := range []chan outcome{first, second, third} {
			if got := <-done; got.err != nil {
				t.Error(got.err)
			}
		}
	})
}

func TestAGatheringFrameLeavesAfterTheLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithLinger(3*time.Millisecond))
		enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		unanswered := <-stream.requests
		began := time.Now()
		done := enqueueLater(t.Context(), client, "q", "b")
		frame := <-stream.requests
		if waited := time.Since(began); waited != 3*time.Millisecond {
			t.Errorf("left after %v", waited)
		}
		stream.store(frame) // out of order
		if got := <-done; got.id != "id-b" {
			t.Errorf("got %+v", got)
		}
		stream.store(unanswered)
	})
}

func TestASecondFrameLeavesWhenItHoldsAsMuchAsTheFirstAndAThirdWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		enqueueLater(t.Context(), client, "q", "first")
		stream := <-broker.enqueues
		<-stream.requests
		for range secondFrameLeast - 1 {
			enqueueLater(t.Context(), client, "q", "a")
		}
		if len(stream.requests) != 0 {
			t.Fatal("a small frame did not wait for the first one's answer")
		}
		enqueueLater(t.Context(), client, "q", "a")
		if got := len((<-stream.requests).GetBatch().GetMessages()); got != secondFrameLeast {
			t.Errorf("the second frame holds %d messages", got)
		}
		for range 2 * secondFrameLeast {
			enqueueLater(t.Context(), client, "q", "b")
		}
		if len(stream.requests) != 0 {
			t.Error("a third frame left although two are unanswered")
		}
		broker.network.cut(true)
	})
}

func TestAFullFrameLeavesAtOnceAndNoMoreThanAllowedAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithFrame(2, 1<<20), WithFramesInFlight(2), WithLinger(5*time.Millisecond))
		enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		first := <-stream.requests
		for _, payload := range []string{"b", "c", "d", "e"} {
			enqueueLater(t.Context(), client, "q", payload)
		}
		if got := payloads(<-stream.requests); !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("the full frame holds %v", got)
		}
		time.Sleep(time.Second)
		if len(stream.requests) != 0 {
			t.Error("a third frame is under way")
		}
		stream.store(first)
		if got := payloads(<-stream.requests); !slices.Equal(got, []string{"d", "e"}) {
			t.Errorf("the next frame holds %v", got)
		}
		broker.network.cut(true)
	})
}

func TestAFrameIsFullAtItsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithFrame(100, 50))
		enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		<-stream.requests
		for range 3 {
			enqueueLater(t.Context(), client, "q", "twenty bytes payload")
		}
		if got := len((<-stream.requests).GetBatch().GetMessages()); got != 2 {
			t.Errorf("%d messages of 20 bytes in a frame of 50", got)
		}
		broker.network.cut(true)
	})
}

func TestCallsWaitWhileTooManyBytesWaitToBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithWaitingBytes(100), WithFramesInFlight(1))
		enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		first := <-stream.requests
		var calls sync.WaitGroup
		for range 10_000 {
			calls.Go(func() {
				if _, err := client.Enqueue(t.Context(), "q", nil, []byte("twenty bytes payload")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		client.producer.mu.Lock()
		waiting := client.producer.waitingBytes
		client.producer.mu.Unlock()
		if waiting < 100 || waiting > 150 {
			t.Errorf("%d bytes wait", waiting)
		}
		stream.store(first)
		go func() {
			for request := range stream.requests {
				stream.store(request)
			}
		}()
		calls.Wait()
	})
}

func TestEnqueueManyAnswersInOrderAndTellsWhatWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithFrame(2, 1<<20))
		go func() {
			stream := <-broker.enqueues
			for request := range stream.requests {
				if payloads(request)[0] == "2" {
					stream.refuse(request, &filav1.ItemStatus{Code: 8, Reason: "QUEUE_FULL", Message: "full"})
				} else {
					stream.store(request)
				}
			}
		}()
		var messages []NewMessage
		for i := range 7 {
			messages = append(messages, NewMessage{Payload: fmt.Append(nil, i)})
		}
		receipts, err := client.EnqueueMany(t.Context(), "q", messages)
		var some *SomeFailedError
		if !errors.As(err, &some) || len(some.Unwrap()) != 2 || !errors.Is(err, ErrQueueFull) || !errors.Is(err, ErrOverloaded) {
			t.Fatalf("got %v", err)
		}
		for i, receipt := range receipts {
			refused := i == 2 || i == 3
			if refused != (some.Results[i] != nil) || !refused && receipt.ID != fmt.Sprintf("id-%d", i) {
				t.Errorf("%d: %+v, %v", i, receipt, some.Results[i])
			}
		}
	})
}

func TestEnqueueSeqReadsOnlyAsFastAsTheBrokerTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithFrame(10, 1<<20), WithFramesInFlight(2))
		read := 0
		go client.EnqueueSeq(t.Context(), "q", func(yield func(NewMessage) bool) {
			for range 1000 {
				read++
				if !yield(NewMessage{}) {
					return
				}
			}
		})
		<-broker.enqueues
		synctest.Wait()
		if read != 30 {
			t.Errorf("%d messages were read with two frames of ten unanswered", read)
		}
		broker.network.cut(true)
	})
}

func TestACallCancelledBeforeItWasSentIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithFramesInFlight(1))
		enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		first := <-stream.requests
		ctx, cancel := context.WithCancel(t.Context())
		done := enqueueLater(ctx, client, "q", "b")
		kept := enqueueLater(t.Context(), client, "q", "c")
		cancel()
		got := <-done
		if !errors.Is(got.err, context.Canceled) || errors.Is(got.err, ErrAnswerLost) {
			t.Errorf("got %v", got.err)
		}
		stream.store(first)
		second := <-stream.requests
		if got := payloads(second); !slices.Equal(got, []string{"c"}) {
			t.Errorf("sent %v", got)
		}
		stream.store(second)
		<-kept
	})
}

func TestACallCancelledAfterItWasSentMayOrMayNotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := enqueueLater(ctx, client, "q", "a")
		stream := <-broker.enqueues
		request := <-stream.requests
		got := <-done
		if !errors.Is(got.err, context.DeadlineExceeded) || !errors.Is(got.err, ErrAnswerLost) {
			t.Errorf("got %v", got.err)
		}
		stream.store(request)
	})
}

func TestOnlyAMessageWithADedupKeyIsSentAgainWhenItsAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		plain := enqueueLater(t.Context(), client, "q", "plain")
		stream := <-broker.enqueues
		<-stream.requests
		keyed := enqueueLater(t.Context(), client, "q", "keyed", DedupKey("k"))
		<-stream.requests // after the linger
		waiting := enqueueLater(t.Context(), client, "q", "unsent")
		broker.network.cut(false)
		if got := <-plain; !errors.Is(got.err, ErrAnswerLost) || !errors.Is(got.err, ErrUnavailable) {
			t.Errorf("got %v", got.err)
		}
		stream = <-broker.enqueues
		again := <-stream.requests
		if got := payloads(again); got[0] != "keyed" || again.GetBatch().GetMessages()[0].GetOptions().GetDedupKey() != "k" {
			t.Errorf("sent again: %v", again)
		}
		stream.store(again)
		for len(waiting) == 0 {
			stream.store(<-stream.requests)
			synctest.Wait()
		}
		if got := <-keyed; got.id != "id-keyed" {
			t.Errorf("got %+v", got)
		}
		if got := <-waiting; got.id != "id-unsent" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWhatIsSentAgainKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithFrame(1, 1<<20), WithFramesInFlight(2))
		var done []chan outcome
		for _, payload := range []string{"a", "b", "c"} {
			done = append(done, enqueueLater(t.Context(), client, "q", payload, DedupKey(payload)))
		}
		stream := <-broker.enqueues
		<-stream.requests
		<-stream.requests
		broker.network.cut(false)
		stream = <-broker.enqueues
		var order []string
		for range 3 {
			request := <-stream.requests
			order = append(order, payloads(request)...)
			stream.store(request)
		}
		if !slices.Equal(order, []string{"a", "b", "c"}) {
			t.Errorf("sent again as %v", order)
		}
		for _, one := range done {
			<-one
		}
	})
}

func TestAnOverloadedBrokerIsWaitedOutIfAskedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := &filav1.ItemStatus{Code: 8, Reason: "QUEUE_FULL", Message: "full"}
		broker, client := startFake(t, WithWaitWhenOverloaded(time.Minute))
		done := enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		for range 3 {
			stream.refuse(<-stream.requests, full)
		}
		stream.store(<-stream.requests)
		if got := <-done; got.id != "id-a" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAnOverloadedBrokerIsReportedAtOnceByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		done := enqueueLater(t.Context(), client, "q", "a")
		stream := <-broker.enqueues
		stream.refuse(<-stream.requests, &filav1.ItemStatus{Code: 8, Reason: "DISK_FLOOR", Message: "the disk is nearly full"})
		if got := <-done; !errors.Is(got.err, ErrDiskFloor) || !errors.Is(got.err, ErrOverloaded) {
			t.Errorf("got %v", got.err)
		}
	})
}

func TestABrokerThatDoesNotAnswerIsGivenUpAfterTheCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := startFake(t, WithCallTimeout(10*time.Second))
		began := time.Now()
		_, err := client.Enqueue(t.Context(), "q", nil, []byte("a"))
		if !errors.Is(err, ErrAnswerLost) || time.Since(began) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestAnUnreachableBrokerIsTriedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithRetryFor(20*time.Second))
		broker.network.cut(true)
		synctest.Wait()
		began := time.Now()
		_, err := client.Enqueue(t.Context(), "q", nil, []byte("a"))
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrAnswerLost) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited < 19*time.Second || waited > 21*time.Second {
			t.Errorf("gave up after %v", waited)
		}
	})
}

func TestCloseSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		var done []chan outcome
		for i := range 20 {
			done = append(done, enqueueLater(t.Context(), client, "q", fmt.Sprint(i)))
		}
		go func() {
			stream := <-broker.enqueues
			for request := range stream.requests {
				time.Sleep(time.Second)
				stream.store(request)
			}
		}()
		client.Close()
		for i, one := range done {
			if got := <-one; got.id != fmt.Sprintf("id-%d", i) {
				t.Errorf("%d: %+v", i, got)
			}
		}
		if _, err := client.Enqueue(t.Context(), "q", nil, nil); !errors.Is(err, ErrClientClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestWhatCannotBeSentIsRefusedWithTheFieldsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := startFake(t)
		for field, call := range map[string]func() error{
			"queue": func() error { _, err := client.Enqueue(t.Context(), "\xff", nil, nil); return err },
			"headers": func() error {
				_, err := client.Enqueue(t.Context(), "q", map[string]string{"k": "\xff"}, nil)
				return err
			},
			"dedup_key": func() error { _, err := client.Enqueue(t.Context(), "q", nil, nil, DedupKey("\xff")); return err },
			"delay_ms":  func() error { _, err := client.Enqueue(t.Context(), "q", nil, nil, Delay(-1)); return err },
		} {
			err := call()
			var failure *Error
			if !errors.Is(err, ErrInvalid) || !errors.As(err, &failure) || failure.Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
	})
}
