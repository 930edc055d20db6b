package main

import (
	"context"
	"fmt"

	fila "github.com/fila-mq/fila/sdks/go"
)

// sdkClient is the Go SDK as most programs use it: each Enqueue and each Ack is awaited. A producer is a
// goroutine that enqueues one message after another, a consumer one that receives and acks one after another;
// all share one client and one stream.
type sdkClient struct {
	plan   Plan
	client *fila.Client
	stream *fila.Stream
	tally  *Tally
}

func newSDKClient(plan Plan, tally *Tally) (client, error) {
	connected, err := fila.Connect(plan.Addr)
	if err != nil {
		return nil, err
	}
	c := &sdkClient{plan: plan, client: connected, tally: tally}
	if plan.Consumers > 0 {
		opts := []fila.ConsumeOption{fila.Workers(plan.Consumers)}
		if c.stream, err = connected.Consume(context.Background(), plan.Queue, opts...); err != nil {
			connected.Close()
			return nil, err
		}
	}
	return c, nil
}

func (c *sdkClient) close() { c.client.Close() }

func (c *sdkClient) produce(ctx context.Context, producer int) error {
	return produceOneByOne(ctx, c.plan, c.tally, producer, func(headers map[string]string, payload []byte) error {
		_, err := c.client.Enqueue(ctx, c.plan.Queue, headers, payload)
		return err
	})
}

func (c *sdkClient) consume(ctx context.Context, _ int) error {
	defer context.AfterFunc(ctx, func() { c.stream.Close() })()
	for {
		m, err := c.stream.Recv()
		if isStopped(ctx) {
			return nil
		}
		if err != nil {
			return err
		}
		c.arrived(m)
		err = m.Ack(ctx)
		if isStopped(ctx) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ack: %w", err)
		}
		c.tally.Acked.Add(1)
	}
}

func (c *sdkClient) arrived(m *fila.Message) {
	c.tally.Consumed.Add(1)
	if at, ok := readStamp(m.Payload); ok {
		c.tally.delivered(at, monotonic())
	}
}

// sdkManyClient is the Go SDK in bulk: EnqueueMany, batches, and acks of a batch at a time.
type sdkManyClient struct {
	sdkClient
}

func newSDKManyClient(plan Plan, tally *Tally) (client, error) {
	connected, err := fila.Connect(plan.Addr, fila.WithFrame(plan.Batch, 8<<20), fila.WithFramesInFlight(plan.Window))
	if err != nil {
		return nil, err
	}
	return &sdkManyClient{sdkClient{plan: plan, client: connected, tally: tally}}, nil
}

// manyFrames is how many frames one EnqueueMany sends.
const manyFrames = 200

func (c *sdkManyClient) produce(ctx context.Context, producer int) error {
	nextKey, pace, underWay := newKeys(c.plan, producer), newPace(c.plan, producer), newUnanswered(c.plan)
	payload := make([]byte, c.plan.PayloadBytes)
	headersByKey := map[string]map[string]string{}
	messages := make([]fila.NewMessage, manyFrames*c.plan.Batch)
	for sequence := uint64(1); ; sequence++ {
		at, err := pace.next(ctx, underWay)
		if err != nil {
			return nil
		}
		underWay.add(sequence, at)
		for i := range messages {
			key := nextKey()
			if headersByKey[key] == nil {
				headersByKey[key] = map[string]string{c.plan.KeyHeader: key}
			}
			messages[i] = fila.NewMessage{Headers: headersByKey[key], Payload: payload}
			if i%c.plan.Batch == 0 {
				messages[i].Payload = newPayload(c.plan, monotonic())
			}
		}
		_, err = c.client.EnqueueMany(ctx, c.plan.Queue, messages)
		if isStopped(ctx) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("enqueue many: %w", err)
		}
		c.tally.answered(underWay.remove(sequence), len(messages), 0)
	}
}

func (c *sdkManyClient) consume(ctx context.Context, _ int) error {
	for batch, err := range c.client.Batches(ctx, c.plan.Queue, 1000) {
		if isStopped(ctx) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, m := range batch {
			c.arrived(m)
		}
		err = c.client.AckMany(ctx, batch)
		if isStopped(ctx) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ack: %w", err)
		}
		c.tally.Acked.Add(int64(len(batch)))
	}
	return nil
}
