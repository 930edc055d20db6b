package fila

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
)

// What is tried again:
//
//	the broker could not be reached               yes, for retryFor: nothing was sent
//	the broker said UNAVAILABLE, it is stopping   yes, for retryFor: it did nothing
//	a node of a group said that another serves    yes, for retryFor, there
//	the connection broke, the answer is missing   only what is repeatable
//	the broker said it is overloaded              for waitWhenOverloaded, at the pace it suggests
//	anything else                                 no
//
// To know that nothing was sent, a call starts only on a connection that stands.
//
// Repeatable is a promise about meaning, not about transport: reading twice is harmless, and setting the
// same value twice leaves the same state. Enqueueing twice makes two messages, purging twice may drop what
// came in between, and deleting twice may delete what somebody made anew.
const (
	repeatable = true
	once       = false
)

// A callPlan is how one call is made.
type callPlan struct {
	about      subject
	repeatable bool
	timeout    time.Duration // of each attempt; 0 for the client's
}

// call makes a unary call under these rules.
func call[Request, Answer any](
	ctx context.Context, c *connection, plan callPlan, request *Request,
	method func(context.Context, *Request, ...grpc.CallOption) (*Answer, error),
) (*Answer, error) {
	var answer *Answer
	err := c.retried(ctx, plan.repeatable, func(sending context.Context) error {
		timeout := plan.timeout
		if timeout == 0 {
			timeout = c.settings.callTimeout
		}
		sending, stop := context.WithTimeout(sending, timeout)
		defer stop()
		var err error
		answer, err = method(sending, request)
		if err == nil {
			return nil
		}
		failure := errorFromRPC(err, plan.about).lost()
		if ctx.Err() != nil && failure.Kind == ErrAnswerLost {
			return stoppedAfter(ctx)
		}
		return failure
	})
	return answer, err
}

// retried runs attempt until it succeeds or the rules say to give up.
func (c *connection) retried(ctx context.Context, mayRepeat bool, attempt func(context.Context) error) error {
	began := time.Now()
	for tries := 0; ; tries++ {
		if err := c.ready(ctx, patience{began, c.settings.retryFor}); err != nil {
			return err
		}
		err := attempt(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		c.follow(err)
		if c.closed.Load() {
			return errClosed().causedBy(err)
		}
		wait, inAll := c.waitBeforeRetry(err, tries, mayRepeat)
		if wait < 0 || time.Since(began)+wait > inAll {
			return err
		}
		if sleep(ctx, wait) != nil {
			return err
		}
	}
}

// waitBeforeRetry returns how long to wait, negative for not at all, and for how long to try altogether.
func (c *connection) waitBeforeRetry(err error, tries int, mayRepeat bool) (wait, patience time.Duration) {
	var failure *Error
	if !errors.As(err, &failure) {
		return -1, 0
	}
	wait = c.settings.backoff.wait(tries)
	switch {
	case failure.Is(ErrOverloaded):
		if failure.RetryAfter > 0 {
			// At least what the broker asked for, and not all at the same moment.
			wait = failure.RetryAfter + wait/2
		}
		return wait, c.settings.waitWhenOverloaded
	case failure.Is(ErrAnswerLost) && !mayRepeat, !failure.Is(ErrUnavailable):
		return -1, 0
	}
	return wait, c.settings.retryFor
}

// sleep waits, and returns the context's error if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
