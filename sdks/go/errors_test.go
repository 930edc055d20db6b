//go:build go1.25

package fila

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

func TestEveryReasonHasAKindWhoseCodeFits(t *testing.T) {
	for reason, kind := range kindByReason {
		got := errorFromStatus(kind.code, "text", reason, subject{})
		if got.Kind != kind {
			t.Errorf("%s became %s", reason, got.Kind)
		}
		if got := errorFromStatus(codes.Aborted, "text", reason, subject{}); got.Kind != ErrConflict {
			t.Errorf("%s with a code that does not fit became %s: the code decides", reason, got.Kind)
		}
	}
	if got := errorFromStatus(codes.NotFound, "text", "FROM_A_NEWER_BROKER", subject{}); got.Kind != ErrNotFound {
		t.Errorf("an unknown reason became %s", got.Kind)
	}
}

func TestErrorsAreOfTheirKindsAndItsParents(t *testing.T) {
	err := error(newError(ErrQueueFull, "full"))
	for _, kind := range []*Kind{ErrQueueFull, ErrOverloaded} {
		if !errors.Is(err, kind) {
			t.Errorf("not %s", kind)
		}
	}
	for _, kind := range []*Kind{ErrDiskFloor, ErrUnavailable, ErrNotFound} {
		if errors.Is(err, kind) {
			t.Errorf("is %s", kind)
		}
	}
}

func TestACallsErrorCarriesWhatTheBrokerTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		broker.unary = func(context.Context, string, any) (any, error) {
			return nil, refusal(codes.ResourceExhausted, "QUEUE_FULL", "queue q is full", map[string]string{"queue": "q"}, 250*time.Millisecond)
		}
		_, err := client.GetStats(t.Context(), "other")
		var failure *Error
		if !errors.As(err, &failure) || failure.Queue != "q" || failure.RetryAfter != 250*time.Millisecond ||
			failure.Reason != "QUEUE_FULL" || failure.Code != codes.ResourceExhausted || failure.Error() != "fila: queue q is full" {
			t.Errorf("got %+v", failure)
		}
	})
}

func TestReadsAreRepeatedWhenTheirAnswerIsLostAndPurgesAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		attempts := 0
		broker.unary = func(ctx context.Context, _ string, _ any) (any, error) {
			attempts++
			if attempts%2 == 1 {
				go broker.network.cut(false)
				<-ctx.Done()
			}
			return &filav1.GetConfigResponse{Value: "v"}, nil
		}
		if value, err := client.GetConfig(t.Context(), "k"); err != nil || value != "v" || attempts != 2 {
			t.Errorf("a read: %q, %v after %d attempts", value, err, attempts)
		}
		if _, err := client.Purge(t.Context(), "q"); !errors.Is(err, ErrAnswerLost) || attempts != 3 {
			t.Errorf("a purge: %v after %d attempts", err, attempts)
		}
	})
}

func TestAnOverloadedCallWaitsAsLongAsTheBrokerSuggests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t, WithWaitWhenOverloaded(time.Minute), WithoutBatching())
		broker.unary = func(context.Context, string, any) (any, error) {
			if time.Now().Second()%10 < 5 {
				return nil, refusal(codes.ResourceExhausted, "OVERLOADED", "wait", nil, 5*time.Second)
			}
			return &filav1.EnqueueResponse{MessageId: "x"}, nil
		}
		began := time.Now()
		id, err := client.Enqueue(t.Context(), "q", nil, nil)
		if waited := time.Since(began); err != nil || id != "x" || waited < 5*time.Second || waited > 6*time.Second {
			t.Errorf("%q, %v after %v", id, err, waited)
		}
	})
}

func TestACallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		broker.unary = func(ctx context.Context, _ string, _ any) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.GetQueue(ctx, "q"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrAnswerLost) {
			t.Errorf("got %v", err)
		}
	})
}
