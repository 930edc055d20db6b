package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	fila "github.com/fila-mq/fila/sdks/go"
)

// filaBroker is Fila over gRPC, by its Go SDK: EnqueueMany for batches, streams of batches, AckMany. One queue serves
// all tenants; the tenant is the fairness key, and where a rate is asked for the throttle key.
type filaBroker struct {
	plan   Plan
	client *fila.Client
}

const filaTenantHeader = "tenant"

func newFila(plan Plan) (broker, error) {
	client, err := fila.Connect(plan.Addr,
		fila.WithFrame(plan.Batch, 8<<20), fila.WithFramesInFlight(max(4, plan.Senders)),
		fila.WithWaitWhenOverloaded(time.Minute))
	if err != nil {
		return nil, err
	}
	return &filaBroker{plan: plan, client: client}, nil
}

func (b *filaBroker) setup(ctx context.Context) error {
	for number := range b.plan.queues() {
		name := queueName(number)
		if err := b.client.DeleteQueue(ctx, name); err != nil && !errors.Is(err, fila.ErrQueueNotFound) {
			return err
		}
		options := []fila.QueueOption{fila.FairnessKeyHeader(filaTenantHeader)}
		if b.plan.Workload == "limit" {
			options = append(options, fila.ThrottleKeyHeaders(filaTenantHeader))
		}
		if err := b.client.CreateQueue(ctx, name, options...); err != nil {
			return fmt.Errorf("queue %d: %w", number, err)
		}
	}
	return nil
}

func (b *filaBroker) limitTenants(ctx context.Context, tenants int, perSecond float64) error {
	for tenant := range tenants {
		key := "throttle." + tenantName(tenant)
		if err := b.client.SetConfig(ctx, key, fmt.Sprintf("%g,1", perSecond)); err != nil {
			return err
		}
	}
	return nil
}

func (b *filaBroker) close() { b.client.Close() }

type filaSender struct {
	b        *filaBroker
	messages []fila.NewMessage
	headers  map[int]map[string]string
}

func (b *filaBroker) sender(context.Context) (sender, error) {
	return &filaSender{b: b, headers: map[int]map[string]string{}}, nil
}

func (s *filaSender) of(m message) fila.NewMessage {
	headers := s.headers[m.tenant]
	if headers == nil {
		headers = map[string]string{filaTenantHeader: tenantName(m.tenant)}
		s.headers[m.tenant] = headers
	}
	return fila.NewMessage{Headers: headers, Payload: m.payload}
}

func (s *filaSender) send(ctx context.Context, batch []message) error {
	if len(batch) == 1 {
		_, err := s.b.client.EnqueueMessage(ctx, queueName(s.b.plan.queueOf(batch[0].tenant)), s.of(batch[0]))
		return err
	}
	s.messages = s.messages[:0]
	for _, m := range batch {
		s.messages = append(s.messages, s.of(m))
	}
	_, err := s.b.client.EnqueueMany(ctx, queueName(0), s.messages)
	return err
}

func (s *filaSender) close() {}

type filaReceiver struct {
	b      *filaBroker
	stream *fila.Stream
	batch  chan []*fila.Message
	failed chan error
}

func (b *filaBroker) receiver(ctx context.Context) (receiver, error) {
	stream, err := b.client.Consume(ctx, queueName(0), fila.Prefetch(b.plan.prefetch()))
	if err != nil {
		return nil, err
	}
	most := b.plan.Batch
	if b.plan.prefetch() == noisyTakeMost {
		most = noisyTakeMost
	}
	r := &filaReceiver{b: b, stream: stream, batch: make(chan []*fila.Message), failed: make(chan error, 1)}
	go r.read(ctx, stream.Batches(most))
	return r, nil
}

func (r *filaReceiver) read(ctx context.Context, batches iter.Seq2[[]*fila.Message, error]) {
	for batch, err := range batches {
		if err != nil {
			r.failed <- err
			return
		}
		select {
		case r.batch <- batch:
		case <-ctx.Done():
			return
		}
	}
}

func (r *filaReceiver) receive(ctx context.Context, _ int) ([]delivery, error) {
	select {
	case batch := <-r.batch:
		deliveries := make([]delivery, len(batch))
		for i, m := range batch {
			deliveries[i] = delivery{payload: m.Payload, tag: m}
		}
		return deliveries, nil
	case err := <-r.failed:
		return nil, err
	case <-ctx.Done():
		return nil, nil
	case <-time.After(pollWait):
		return nil, nil
	}
}

func filaMessages(deliveries []delivery) []*fila.Message {
	messages := make([]*fila.Message, len(deliveries))
	for i, d := range deliveries {
		messages[i] = d.tag.(*fila.Message)
	}
	return messages
}

func (r *filaReceiver) settle(ctx context.Context, deliveries []delivery) error {
	return r.b.client.AckMany(ctx, filaMessages(deliveries))
}

func (r *filaReceiver) giveBack(ctx context.Context, deliveries []delivery, after time.Duration) error {
	return r.b.client.NackMany(ctx, filaMessages(deliveries), "too early", fila.Delay(after))
}

func (r *filaReceiver) close() { r.stream.Close() }
