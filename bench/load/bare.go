package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// bareClient drives EnqueueStream and ConsumeSession with frames it has built beforehand: the least a
// client can do, and so the measure for all others.
type bareClient struct {
	plan  Plan
	conn  *grpc.ClientConn
	tally *Tally
}

func newBareClient(plan Plan, tally *Tally) (client, error) {
	conn, err := dial(plan)
	if err != nil {
		return nil, err
	}
	return &bareClient{plan: plan, conn: conn, tally: tally}, nil
}

func (c *bareClient) close() { c.conn.Close() }

// Frames are built once and sent again and again: so many that every key has come as often as it should.
const bareFramesMax = 1000

func (c *bareClient) buildFrames(producer int) []batchFrame {
	count := min(bareFramesMax, c.plan.Keys/greatestCommonDivisor(c.plan.Keys, c.plan.Batch))
	if c.plan.Distribution == zipf {
		count = max(16, bareFramesMax/c.plan.Batch)
	}
	nextKey := newKeys(c.plan, producer)
	frames := make([]batchFrame, count)
	for i := range frames {
		frames[i] = newBatchFrame(c.plan, nextKey)
	}
	return frames
}

func greatestCommonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// produce sends frames on a stream of its own until ctx ends.
func (c *bareClient) produce(ctx context.Context, producer int) error {
	frames := c.buildFrames(producer)
	call, err := c.conn.NewStream(ctx, &filav1.FilaService_ServiceDesc.Streams[0],
		filav1.FilaService_EnqueueStream_FullMethodName, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return unlessStopped(ctx, err)
	}
	underWay := newUnanswered(c.plan)
	received := make(chan error, 1)
	go func() { received <- c.receiveAnswers(call, underWay) }()

	pace := newPace(c.plan, producer)
	for sequence := uint64(1); ; sequence++ {
		at, err := pace.next(ctx, underWay)
		if err != nil {
			break
		}
		underWay.add(sequence, at)
		if err := call.SendMsg(frames[int(sequence)%len(frames)].encode(sequence, at)); err != nil {
			break // the receiver learns why
		}
	}
	return unlessStopped(ctx, <-received)
}

func (c *bareClient) receiveAnswers(call grpc.ClientStream, underWay *unanswered) error {
	for {
		var reply rawFrame
		if err := call.RecvMsg(&reply); err != nil {
			return err
		}
		answer, err := scanAnswer(reply.bytes())
		if err == nil && answer.refused > 0 && c.tally.Refused.Load() == 0 {
			sayWhyRefused(reply.bytes())
		}
		reply.free()
		if err != nil {
			return err
		}
		c.tally.answered(underWay.remove(answer.sequence), answer.stored, answer.refused)
	}
}

// Acks gather while so many ack frames are unanswered, so that under load one frame answers for several
// deliveries, and no timer is needed.
const bareAcksUnanswered = 2

// consume acks all that a session of its own delivers until ctx ends.
func (c *bareClient) consume(ctx context.Context, consumer int) error {
	call, err := c.conn.NewStream(ctx, &filav1.FilaService_ServiceDesc.Streams[2],
		filav1.FilaService_ConsumeSession_FullMethodName, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if err := call.SendMsg(encodeOpen(c.plan)); err != nil {
		return unlessStopped(ctx, err)
	}
	acks := &ackGathering{call: call}
	var frame sessionFrame
	for {
		var reply rawFrame
		if err := call.RecvMsg(&reply); err != nil {
			return unlessStopped(ctx, err)
		}
		err := scanSession(reply.bytes(), &frame)
		reply.free()
		if err != nil {
			return err
		}
		if frame.settled {
			acked := acks.settled(frame.sequence)
			c.tally.Acked.Add(int64(acked - frame.failures))
			c.tally.SettleFailed.Add(int64(frame.failures))
		}
		if frame.delivered > 0 {
			c.tally.Consumed.Add(int64(frame.delivered))
			now := monotonic()
			for _, at := range frame.stamps {
				c.tally.delivered(at, now)
			}
			acks.add(frame.packedLeases, frame.delivered)
		}
		if err := acks.flush(); err != nil {
			return unlessStopped(ctx, err)
		}
	}
}

// ackGathering collects leases while earlier ack frames are unanswered. Only the receiving goroutine uses it.
type ackGathering struct {
	call       grpc.ClientStream
	packed     []byte
	count      int
	sequence   uint64
	unanswered map[uint64]int
}

func (a *ackGathering) add(packedLeases []byte, count int) {
	a.packed = append(a.packed, packedLeases...)
	a.count += count
}

func (a *ackGathering) flush() error {
	if a.count == 0 || len(a.unanswered) >= bareAcksUnanswered {
		return nil
	}
	if a.unanswered == nil {
		a.unanswered = make(map[uint64]int)
	}
	a.sequence++
	a.unanswered[a.sequence] = a.count
	frame := encodeAck(a.sequence, a.packed)
	a.packed, a.count = a.packed[:0], 0
	return a.call.SendMsg(frame)
}

func (a *ackGathering) settled(sequence uint64) int {
	count := a.unanswered[sequence]
	delete(a.unanswered, sequence)
	return count
}

func unlessStopped(ctx context.Context, err error) error {
	if isStopped(ctx) {
		return nil
	}
	return fmt.Errorf("the stream ended: %w", err)
}
