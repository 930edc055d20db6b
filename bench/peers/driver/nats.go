package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsBroker is a JetStream work queue on files: asynchronous publishes with acks awaited, pull consumers, a subject a
// queue. An ack of a message is not answered unless asked for twice; it is not asked for, as is usual.
type natsBroker struct {
	plan Plan
	conn *nats.Conn
	js   jetstream.JetStream
}

const natsStream = "PEERS"

func natsSubject(queue int) string { return "peers." + queueName(queue) }

func newNATS(plan Plan) (broker, error) {
	conn, err := nats.Connect("nats://" + plan.Addr)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(max(256, 2*plan.Senders*plan.Batch)))
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &natsBroker{plan: plan, conn: conn, js: js}, nil
}

func (b *natsBroker) setup(ctx context.Context) error {
	if err := b.js.DeleteStream(ctx, natsStream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	_, err := b.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{"peers.>"},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return err
	}
	for queue := range b.plan.queues() {
		_, err := b.js.CreateConsumer(ctx, natsStream, jetstream.ConsumerConfig{
			Durable: queueName(queue), FilterSubject: natsSubject(queue), AckPolicy: jetstream.AckExplicitPolicy,
			MaxAckPending: max(1_000, 4*b.plan.Receivers*b.plan.Batch),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *natsBroker) close() { b.conn.Close() }

type natsSender struct {
	b       *natsBroker
	futures []jetstream.PubAckFuture
}

func (b *natsBroker) sender(context.Context) (sender, error) { return &natsSender{b: b}, nil }

func (s *natsSender) close() {}

func (s *natsSender) send(ctx context.Context, batch []message) error {
	if len(batch) == 1 {
		_, err := s.b.js.Publish(ctx, natsSubject(s.b.plan.queueOf(batch[0].tenant)), batch[0].payload)
		return err
	}
	s.futures = s.futures[:0]
	for _, m := range batch {
		future, err := s.b.js.PublishAsync(natsSubject(s.b.plan.queueOf(m.tenant)), m.payload)
		if err != nil {
			return err
		}
		s.futures = append(s.futures, future)
	}
	for _, future := range s.futures {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// natsReceiver fetches from one consumer, or lets the consumers of many queues each have one message under way.
type natsReceiver struct {
	b        *natsBroker
	consumer jetstream.Consumer
	arrived  chan jetstream.Msg
	stop     []jetstream.ConsumeContext
}

func (b *natsBroker) receiver(ctx context.Context) (receiver, error) {
	r := &natsReceiver{b: b}
	var err error
	if b.plan.queues() == 1 {
		r.consumer, err = b.js.Consumer(ctx, natsStream, queueName(0))
		return r, err
	}
	r.arrived = make(chan jetstream.Msg)
	for queue := range b.plan.queues() {
		consumer, err := b.js.Consumer(ctx, natsStream, queueName(queue))
		if err != nil {
			return nil, err
		}
		consuming, err := consumer.Consume(func(m jetstream.Msg) {
			select {
			case r.arrived <- m:
			case <-ctx.Done():
			}
		}, jetstream.PullMaxMessages(1))
		if err != nil {
			return nil, err
		}
		r.stop = append(r.stop, consuming)
	}
	return r, nil
}

func (r *natsReceiver) close() {
	for _, consuming := range r.stop {
		consuming.Stop()
	}
}

func (r *natsReceiver) receive(ctx context.Context, most int) ([]delivery, error) {
	if r.consumer == nil {
		return r.receiveOne(ctx), nil
	}
	fetched, err := r.consumer.Fetch(most, jetstream.FetchMaxWait(pollWait))
	if err != nil {
		return nil, err
	}
	var deliveries []delivery
	for m := range fetched.Messages() {
		deliveries = append(deliveries, delivery{payload: m.Data(), tag: m})
	}
	if err := fetched.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil {
		return deliveries, err
	}
	return deliveries, nil
}

func (r *natsReceiver) receiveOne(ctx context.Context) []delivery {
	select {
	case m := <-r.arrived:
		return []delivery{{payload: m.Data(), tag: m}}
	case <-ctx.Done():
	case <-time.After(pollWait):
	}
	return nil
}

func (r *natsReceiver) settle(_ context.Context, deliveries []delivery) error {
	for _, d := range deliveries {
		if err := d.tag.(jetstream.Msg).Ack(); err != nil {
			return err
		}
	}
	return nil
}

func (r *natsReceiver) giveBack(_ context.Context, deliveries []delivery, after time.Duration) error {
	for _, d := range deliveries {
		if err := d.tag.(jetstream.Msg).NakWithDelay(after); err != nil {
			return err
		}
	}
	return nil
}
