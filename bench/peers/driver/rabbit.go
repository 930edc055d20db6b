package main

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// rabbitBroker is RabbitMQ with persistent messages, publisher confirms that are awaited a batch at a time, a channel a
// goroutine, a prefetch, and one acknowledgement for all of a batch. Acknowledgements are not answered.
type rabbitBroker struct {
	plan      Plan
	queueType string
	sending   *amqp.Connection
	receiving *amqp.Connection
}

func newRabbitQuorum(plan Plan) (broker, error)  { return newRabbit(plan, "quorum") }
func newRabbitClassic(plan Plan) (broker, error) { return newRabbit(plan, "classic") }

// Two connections: a publisher that is slowed down must not hold up acknowledgements.
func newRabbit(plan Plan, queueType string) (broker, error) {
	sending, err := amqp.Dial("amqp://guest:guest@" + plan.Addr + "/")
	if err != nil {
		return nil, err
	}
	receiving, err := amqp.Dial("amqp://guest:guest@" + plan.Addr + "/")
	if err != nil {
		sending.Close()
		return nil, err
	}
	return &rabbitBroker{plan: plan, queueType: queueType, sending: sending, receiving: receiving}, nil
}

func (b *rabbitBroker) close() {
	b.sending.Close()
	b.receiving.Close()
}

func (b *rabbitBroker) name(queue int) string { return b.queueType + "-" + queueName(queue) }

func (b *rabbitBroker) setup(context.Context) error {
	channel, err := b.sending.Channel()
	if err != nil {
		return err
	}
	defer channel.Close()
	for queue := range b.plan.queues() {
		if _, err := channel.QueueDelete(b.name(queue), false, false, false); err != nil {
			return err
		}
		arguments := amqp.Table{"x-queue-type": b.queueType}
		if _, err := channel.QueueDeclare(b.name(queue), true, false, false, false, arguments); err != nil {
			return err
		}
	}
	return nil
}

type rabbitSender struct {
	b        *rabbitBroker
	channel  *amqp.Channel
	confirms []*amqp.DeferredConfirmation
}

func (b *rabbitBroker) sender(context.Context) (sender, error) {
	channel, err := b.sending.Channel()
	if err != nil {
		return nil, err
	}
	return &rabbitSender{b: b, channel: channel}, channel.Confirm(false)
}

func (s *rabbitSender) close() { s.channel.Close() }

func (s *rabbitSender) send(ctx context.Context, batch []message) error {
	s.confirms = s.confirms[:0]
	for _, m := range batch {
		publishing := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: m.payload}
		queue := s.b.name(s.b.plan.queueOf(m.tenant))
		confirm, err := s.channel.PublishWithDeferredConfirmWithContext(ctx, "", queue, false, false, publishing)
		if err != nil {
			return err
		}
		s.confirms = append(s.confirms, confirm)
	}
	for _, confirm := range s.confirms {
		stored, err := confirm.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !stored {
			return errors.New("the broker refused a message")
		}
	}
	return nil
}

type rabbitReceiver struct {
	channel *amqp.Channel
	arrived <-chan amqp.Delivery
	merged  chan amqp.Delivery
}

// receiver tries again for a while where queues are there already: after a crash a quorum queue elects a leader first,
// and refuses consumers until it has one.
func (b *rabbitBroker) receiver(ctx context.Context) (receiver, error) {
	for giveUp := time.Now().Add(rabbitElection); ; {
		r, err := b.tryReceiver(ctx)
		if err == nil || b.plan.Setup || time.Now().After(giveUp) || ctx.Err() != nil {
			return r, err
		}
		if err := sleep(ctx, pollWait/4); err != nil {
			return nil, err
		}
	}
}

const rabbitElection = time.Minute

func (b *rabbitBroker) tryReceiver(ctx context.Context) (receiver, error) {
	channel, err := b.receiving.Channel()
	if err != nil {
		return nil, err
	}
	prefetch := b.plan.prefetch()
	if b.plan.QueuePerTenant {
		prefetch = 1 // of each queue
	}
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return nil, err
	}
	r := &rabbitReceiver{channel: channel}
	if b.plan.queues() == 1 {
		r.arrived, err = channel.Consume(b.name(0), "", false, false, false, false, nil)
		return r, err
	}
	r.merged = make(chan amqp.Delivery)
	r.arrived = r.merged
	for queue := range b.plan.queues() {
		arrived, err := channel.Consume(b.name(queue), "", false, false, false, false, nil)
		if err != nil {
			return nil, err
		}
		go func() {
			for d := range arrived {
				select {
				case r.merged <- d:
				case <-ctx.Done():
				}
			}
		}()
	}
	return r, nil
}

func (r *rabbitReceiver) close() { r.channel.Close() }

func (r *rabbitReceiver) receive(ctx context.Context, most int) ([]delivery, error) {
	var deliveries []delivery
	patient := time.After(pollWait)
	for len(deliveries) < most {
		var (
			d    amqp.Delivery
			open bool
		)
		if len(deliveries) == 0 {
			select {
			case d, open = <-r.arrived:
			case <-patient:
				return nil, nil
			case <-ctx.Done():
				return nil, nil
			}
		} else {
			select {
			case d, open = <-r.arrived:
			default:
				return deliveries, nil
			}
		}
		if !open {
			if ctx.Err() != nil {
				return nil, nil
			}
			return nil, errors.New("the broker closed the channel")
		}
		deliveries = append(deliveries, delivery{payload: d.Body, tag: d})
	}
	return deliveries, nil
}

// settle acknowledges one by one where queues share a channel: their messages don't reach it in the order of their tags.
func (r *rabbitReceiver) settle(_ context.Context, deliveries []delivery) error {
	if r.merged == nil {
		return deliveries[len(deliveries)-1].tag.(amqp.Delivery).Ack(true)
	}
	for _, d := range deliveries {
		if err := d.tag.(amqp.Delivery).Ack(false); err != nil {
			return err
		}
	}
	return nil
}

// giveBack puts the messages where they were: RabbitMQ delays nothing without a plugin.
func (r *rabbitReceiver) giveBack(_ context.Context, deliveries []delivery, _ time.Duration) error {
	for _, d := range deliveries {
		if err := d.tag.(amqp.Delivery).Nack(false, true); err != nil {
			return err
		}
	}
	return nil
}
