package fila

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"
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
		reading := proto.Clone(request).(*filav1.ReadLogRequest)
		log := streamPlan[filav1.ReadLogRequest, filav1.ReadLogResponse]{
			about: subject{queue: queue}, request: reading, open: c.connection.admin.ReadLog,
		}
		for answer, err := range log.answers(ctx, c.connection) {
			if err != nil {
				yield(nil, err)
				return
			}
			// Before the messages: after a break, go on behind what was handed out.
			reading.FromOffset = answer.GetNextOffset()
			for _, message := range storedMessages(answer.GetMessages()) {
				if !yield(message, nil) {
					return
				}
			}
		}
	}
}
