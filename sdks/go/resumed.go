package fila

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"
)

// A streamPlan is a call that answers with a stream, followed over as many streams as it takes.
type streamPlan[Request, Answer any] struct {
	about   subject
	request *Request
	open    func(context.Context, *Request, ...grpc.CallOption) (grpc.ServerStreamingClient[Answer], error)
	// goesOn says that the call is not over when the broker ends a stream: it is stopping. Without it every end is.
	goesOn func() bool
}

// answers loops over what the call answers. A broken stream is opened again with the request as it stands then: the
// caller's loop moves its place on. An error ends the loop: the broker's word; ErrUnavailable when it stays away.
func (p streamPlan[Request, Answer]) answers(ctx context.Context, c *connection) iter.Seq2[*Answer, error] {
	return func(yield func(*Answer, error) bool) {
		var lostAt time.Time
		for attempt := 0; ; attempt++ {
			progressed, err := p.once(ctx, c, yield)
			if err == nil {
				return
			}
			c.follow(err)
			if progressed || lostAt.IsZero() {
				attempt, lostAt = 0, time.Now()
			}
			wait := c.settings.backoff.wait(attempt)
			gaveUp := time.Since(lostAt)+wait > c.settings.retryFor
			if gaveUp || !errors.Is(err, ErrUnavailable) || ctx.Err() != nil || sleep(ctx, wait) != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// once reads over one stream. It returns nil when all was read, or the loop was left.
func (p streamPlan[Request, Answer]) once(
	ctx context.Context, c *connection, yield func(*Answer, error) bool,
) (progressed bool, err error) {
	if err := c.ready(ctx, patienceFromNow(c.settings.retryFor)); err != nil {
		return false, err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.alive, stop)()
	stream, err := p.open(reading, p.request)
	for err == nil {
		var answer *Answer
		if answer, err = stream.Recv(); err != nil {
			break
		}
		progressed = true
		if !yield(answer, nil) {
			return true, nil
		}
	}
	switch {
	case errors.Is(err, io.EOF) && p.goesOn != nil && p.goesOn():
		return progressed, newError(ErrUnavailable, "the broker ended the stream")
	case errors.Is(err, io.EOF):
		return progressed, nil
	case ctx.Err() != nil:
		return progressed, stoppedAfter(ctx)
	case c.closed.Load():
		return progressed, errClosed()
	}
	return progressed, errorFromRPC(err, p.about).broken()
}
