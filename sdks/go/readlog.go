package fila

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// A LogOption bounds ReadLog: a [FairnessKey], or one of the bounds below. All that are given must hold.
type LogOption interface{ applyToLog(*filav1.ReadLogRequest) }

type logOption func(*filav1.ReadLogRequest)

func (o logOption) applyToLog(r *filav1.ReadLogRequest)         { o(r) }
func (o FairnessKeyOption) applyToLog(r *filav1.ReadLogRequest) { r.FairnessKey = string(o) }

// LogOffsets reads from an offset (0: the oldest retained) to below another (0: the head as of the call).
func LogOffsets(from, to uint64) LogOption {
	return logOption(func(r *filav1.ReadLogRequest) { r.FromOffset, r.ToOffset = from, to })
}

// LogSince reads only what was appended at this moment or later.
func LogSince(moment time.Time) LogOption {
	return logOption(func(r *filav1.ReadLogRequest) { r.FromTime = timestamppb.New(moment) })
}

// LogBefore reads only what was appended before this moment.
func LogBefore(moment time.Time) LogOption {
	return logOption(func(r *filav1.ReadLogRequest) { r.ToTime = timestamppb.New(moment) })
}

// LogBatch is how many messages the broker sends at once at most; 100 unless set.
func LogBatch(max uint32) LogOption {
	return logOption(func(r *filav1.ReadLogRequest) { r.MaxBatch = max })
}

// ReadLog loops over retained messages in offset order, leasing nothing. A broken stream is resumed where it
// was. An error ends the loop: ErrQueueNotFound; ErrUnavailable when the broker stays away.
func (c *Client) ReadLog(
	ctx context.Context, queue string, opts ...LogOption,
) iter.Seq2[*StoredMessage, error] {
	request := &filav1.ReadLogRequest{Queue: queue}
	for _, opt := range opts {
		opt.applyToLog(request)
	}
	return func(yield func(*StoredMessage, error) bool) {
		settings := &c.connection.settings
		var lostAt time.Time
		for attempt := 0; ; attempt++ {
			progressed, err := c.readLogOnce(ctx, request, yield)
			if err == nil {
				return
			}
			if progressed || lostAt.IsZero() {
				attempt, lostAt = 0, time.Now()
			}
			wait := settings.backoff.wait(attempt)
			gaveUp := time.Since(lostAt)+wait > settings.retryFor
			if gaveUp || !errors.Is(err, ErrUnavailable) || ctx.Err() != nil || sleep(ctx, wait) != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// readLogOnce reads over one stream. It returns nil when all was read, or the loop was left.
func (c *Client) readLogOnce(
	ctx context.Context, request *filav1.ReadLogRequest, yield func(*StoredMessage, error) bool,
) (progressed bool, err error) {
	if err := c.connection.ready(ctx, time.Now().Add(c.connection.settings.retryFor)); err != nil {
		return false, err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.connection.alive, stop)()
	stream, err := c.connection.admin.ReadLog(reading, request)
	for err == nil {
		var answer *filav1.ReadLogResponse
		if answer, err = stream.Recv(); err != nil {
			break
		}
		progressed = true
		// Before the messages: after a break, go on behind what was handed out.
		request.FromOffset = answer.GetNextOffset()
		for _, message := range storedMessages(answer.GetMessages()) {
			if !yield(message, nil) {
				return true, nil
			}
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return progressed, nil
	case ctx.Err() != nil:
		return progressed, stoppedAfter(ctx)
	case c.connection.closed.Load():
		return progressed, errClosed()
	}
	return progressed, errorFromRPC(err, subject{queue: request.GetQueue()}).broken()
}
