package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// unaryClient makes one call a message and waits for its answer; it consumes as the bare client does. With
// one producer it shows what a call costs, and so what an SDK adds to it.
type unaryClient struct {
	bareClient
}

func newUnaryClient(plan Plan, tally *Tally) (client, error) {
	plan.Batch = 1
	conn, err := dial(plan)
	if err != nil {
		return nil, err
	}
	return &unaryClient{bareClient{plan: plan, conn: conn, tally: tally}}, nil
}

func (c *unaryClient) produce(ctx context.Context, producer int) error {
	stub := filav1.NewFilaServiceClient(c.conn)
	return produceOneByOne(ctx, c.plan, c.tally, producer, func(headers map[string]string, payload []byte) error {
		request := &filav1.EnqueueRequest{Queue: c.plan.Queue, Headers: headers, Payload: payload}
		_, err := stub.Enqueue(ctx, request, grpc.WaitForReady(false))
		return err
	})
}

// produceOneByOne calls send for message after message, the next when the last was answered. In an open
// loop a message that is late because of that is charged for it.
func produceOneByOne(
	ctx context.Context, plan Plan, tally *Tally, producer int,
	send func(headers map[string]string, payload []byte) error,
) error {
	plan.Batch = 1
	nextKey, pace := newKeys(plan, producer), newPace(plan, producer)
	headersByKey := map[string]map[string]string{}
	payload := make([]byte, plan.PayloadBytes) // sent again and again: a call is over before the next begins
	for !isStopped(ctx) {
		at := monotonic()
		if plan.Rate > 0 {
			var err error
			if at, err = pace.next(ctx, nil); err != nil {
				return nil
			}
		}
		key := nextKey()
		headers := headersByKey[key]
		if headers == nil {
			headers = map[string]string{plan.KeyHeader: key}
			headersByKey[key] = headers
		}
		if len(payload) >= stampBytes {
			appendStamp(payload[:0], at)
		}
		err := send(headers, payload)
		if isStopped(ctx) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
		tally.answered(at, 1, 0)
	}
	return nil
}

// newPayload is the payload of one message, stamped where there is room for it.
func newPayload(plan Plan, at int64) []byte {
	payload := make([]byte, plan.PayloadBytes)
	if plan.PayloadBytes >= stampBytes {
		appendStamp(payload[:0], at)
	}
	return payload
}
