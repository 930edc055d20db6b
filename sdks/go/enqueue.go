package fila

import (
	"context"
	"iter"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// An EnqueueOption is a wish for one message; see also [NewMessage].
type EnqueueOption interface{ applyToEnqueue(*NewMessage) }

type enqueueOption func(*NewMessage)

func (o enqueueOption) applyToEnqueue(m *NewMessage) { o(m) }

// DelayOption is what [Delay] returns.
type DelayOption time.Duration

// Delay of a message: not ready before this long from now. Of a Nack: it comes back after exactly this long,
// instead of the queue's backoff.
func Delay(d time.Duration) DelayOption { return DelayOption(d) }

func (o DelayOption) applyToEnqueue(m *NewMessage) { m.Delay = time.Duration(o) }

// DeliverAt: the message is not ready before this moment.
func DeliverAt(moment time.Time) EnqueueOption {
	return enqueueOption(func(m *NewMessage) { m.DeliverAt = moment })
}

// TTL: the message is dropped when nobody has leased it this long after it was accepted. A time that is over
// already is refused.
func TTL(d time.Duration) EnqueueOption {
	return enqueueOption(func(m *NewMessage) {
		m.TTL = d
		if d <= 0 {
			m.TTL = -1
		}
	})
}

// DedupKey: a second enqueue with this key within the queue's window answers the first one's id. An enqueue
// with a key is also safe to repeat, so the client does that by itself when an answer is lost.
func DedupKey(key string) EnqueueOption {
	return enqueueOption(func(m *NewMessage) { m.DedupKey = key })
}

// Replace: the latest wins. An earlier message with this [DedupKey] that is not delivered yet gives way to this one,
// which has its place, or begins its own delay. If the earlier one is leased, this one waits until that lease ends.
func Replace() EnqueueOption {
	return enqueueOption(func(m *NewMessage) { m.Replace = true })
}

// MaxWait goes with [Replace]: however often a message is replaced, its delay ends at the latest so long after the
// first of them was accepted.
func MaxWait(d time.Duration) EnqueueOption {
	return enqueueOption(func(m *NewMessage) { m.MaxWait = d })
}

func (o FairnessKeyOption) applyToEnqueue(m *NewMessage) { m.FairnessKey = string(o) }

// Weight is the weight of the message's fairness key, 1 to 1000, where the queue has [AllowProducerRouting].
func Weight(weight uint32) EnqueueOption {
	return enqueueOption(func(m *NewMessage) { m.Weight = weight })
}

// Cost is what a delivery of the message costs its fairness key, 0.001 to 1,000,000, where the queue has
// [AllowProducerRouting].
func Cost(cost float64) EnqueueOption {
	return enqueueOption(func(m *NewMessage) { m.Cost = cost })
}

// Priority is the message's priority among those of its fairness key: 0 to 3, where 3 goes first and 1 is usual.
func Priority(priority uint32) EnqueueOption {
	return enqueueOption(func(m *NewMessage) { m.Priority = &priority })
}

// Enqueue stores one message, and returns its id once it is as durable as the queue asks for. Calls of many
// goroutines travel together; a call alone is sent at once.
//
// It fails with ErrQueueNotFound, ErrInvalid, ErrOverloaded; with ErrUnavailable when the message was
// certainly not sent, and with ErrAnswerLost when it was sent and no answer came. An enqueue whose answer was
// lost is never repeated by the client, unless it has a DedupKey and no Replace: it could be stored twice. When
// ctx ends before the message was sent, it is not sent any more.
func (c *Client) Enqueue(
	ctx context.Context, queue string, headers map[string]string, payload []byte, opts ...EnqueueOption,
) (string, error) {
	message := NewMessage{Headers: headers, Payload: payload}
	for _, opt := range opts {
		opt.applyToEnqueue(&message)
	}
	receipt, err := c.EnqueueMessage(ctx, queue, message)
	return receipt.ID, err
}

// EnqueueMessage is Enqueue for a message that is made already, and answers its offset too.
func (c *Client) EnqueueMessage(ctx context.Context, queue string, message NewMessage) (Receipt, error) {
	if err := requireText("queue", queue); err != nil {
		return Receipt{}, err
	}
	m, err := newOutgoing(ctx, message)
	if err != nil {
		return Receipt{}, err
	}
	if ctx.Err() != nil {
		return Receipt{}, stoppedBefore(ctx)
	}
	if !c.connection.settings.batching || m.bytes > sharedBytesMax {
		return c.enqueueAlone(ctx, queue, &m)
	}
	producer, err := c.getProducer()
	if err != nil {
		return Receipt{}, err
	}
	return producer.enqueue(ctx, queue, &m)
}

// sharedBytesMax is above every frame. A message that is larger travels in a call of its own: a frame beyond
// the broker's bound ends the stream, for everybody whose messages are on it.
const sharedBytesMax = 8 << 20

func (c *Client) enqueueAlone(ctx context.Context, queue string, m *outgoing) (Receipt, error) {
	request := &filav1.EnqueueRequest{
		Queue: queue, Headers: m.Headers, Payload: m.Payload, Options: m.wireOptions(),
	}
	if len(m.trace) > 0 {
		request.Headers = make(map[string]string, len(m.Headers)+len(m.trace))
		for key, value := range m.Headers {
			request.Headers[key] = value
		}
		for _, header := range m.trace {
			request.Headers[header.key] = header.value
		}
	}
	plan := callPlan{about: subject{queue: queue}, repeatable: m.mayRepeat()}
	answer, err := call(ctx, c.connection, plan, request, c.connection.service.Enqueue)
	return Receipt{ID: answer.GetMessageId(), Offset: answer.GetOffset()}, err
}

func (m *outgoing) wireOptions() *filav1.EnqueueOptions {
	if m.Delay == 0 && m.DeliverAt.IsZero() && m.TTL == 0 && m.DedupKey == "" && !m.Replace && m.MaxWait == 0 &&
		m.FairnessKey == "" && m.Weight == 0 && m.Cost == 0 && m.Priority == nil {
		return nil
	}
	options := &filav1.EnqueueOptions{
		DelayMs: milliseconds(m.Delay), DedupKey: m.DedupKey, MaxWaitMs: milliseconds(m.MaxWait),
		FairnessKey: m.FairnessKey, Weight: m.Weight, Cost: m.Cost, Priority: m.Priority,
	}
	if m.Replace {
		options.OnDuplicate = filav1.EnqueueOptions_ON_DUPLICATE_REPLACE
	}
	if !m.DeliverAt.IsZero() {
		options.DeliverAt = timestamppb.New(m.DeliverAt)
	}
	if m.TTL != 0 {
		ttl := milliseconds(max(0, m.TTL))
		options.TtlMs = &ttl
	}
	return options
}

// EnqueueMany stores many messages, a window of large frames at a time; the fastest way to produce. It
// returns a receipt a message, in order. One bad message does not fail its neighbours: if any was refused,
// the error is a [*SomeFailedError], which tells what became of each.
func (c *Client) EnqueueMany(ctx context.Context, queue string, messages []NewMessage) ([]Receipt, error) {
	return c.EnqueueSeq(ctx, queue, slices.Values(messages))
}

// EnqueueSeq is EnqueueMany for messages that are made as they are sent: it reads them as fast as the broker
// takes them.
func (c *Client) EnqueueSeq(
	ctx context.Context, queue string, messages iter.Seq[NewMessage],
) ([]Receipt, error) {
	if err := requireText("queue", queue); err != nil {
		return nil, err
	}
	producer, err := c.getProducer()
	if err != nil {
		return nil, err
	}
	sending := &enqueueMany{client: c, producer: producer, queue: queue}
	for message := range messages {
		if err := sending.add(ctx, message); err != nil {
			return sending.finish(ctx, err)
		}
	}
	return sending.finish(ctx, sending.flush())
}

// enqueueMany is one EnqueueMany under way: slices in order, the oldest first.
type enqueueMany struct {
	client   *Client
	producer *producer
	queue    string
	filling  *frame
	sizes    frameSizes
	slices   []*enqueueSlice
	awaited  int
}

func (e *enqueueMany) add(ctx context.Context, message NewMessage) error {
	m, err := newOutgoing(ctx, message)
	if err != nil {
		return err
	}
	limits, size := e.producer.settings, m.bytes
	if e.filling != nil && len(e.filling.body)+size > limits.frameBytesMax {
		if err := e.flush(); err != nil {
			return err
		}
	}
	if size > sharedBytesMax {
		receipt, err := e.client.enqueueAlone(ctx, e.queue, &m)
		alone := &enqueueSlice{done: make(chan struct{}), receipts: []Receipt{receipt}, errs: []error{err}}
		close(alone.done)
		e.slices = append(e.slices, alone)
		return nil
	}
	if e.filling == nil {
		e.filling = newFrame(e.queue, e.sizes, size+64, time.Now())
		e.slices = append(e.slices, &enqueueSlice{done: make(chan struct{})})
	}
	slice := e.slices[len(e.slices)-1]
	e.filling.add(&m, e.queue, slice, len(e.filling.items))
	if !e.producer.isFull(e.filling) {
		return nil
	}
	if err := e.flush(); err != nil {
		return err
	}
	// One slice more than may be in flight, so that the writer always finds the next.
	for len(e.slices)-e.awaited > limits.framesInFlightMax {
		select {
		case <-e.slices[e.awaited].done:
			e.awaited++
		case <-ctx.Done():
			return stoppedBefore(ctx)
		}
	}
	return nil
}

// flush gives the slice that is being filled to the writer.
func (e *enqueueMany) flush() error {
	f := e.filling
	if f == nil {
		return nil
	}
	e.filling = nil
	e.sizes.note(f)
	slice := e.slices[len(e.slices)-1]
	slice.receipts, slice.errs = make([]Receipt, len(f.items)), make([]error, len(f.items))
	slice.unresolved.Store(int32(len(f.items)))
	if err := e.producer.put(f); err != nil {
		f.fail(err)
		return err
	}
	return nil
}

// finish waits for what is under way. stopped is why not all messages were read, if they were not.
func (e *enqueueMany) finish(ctx context.Context, stopped error) ([]Receipt, error) {
	if e.filling != nil { // never given to the writer
		e.slices = e.slices[:len(e.slices)-1]
	}
	var receipts []Receipt
	var errs []error
	for _, slice := range e.slices {
		select {
		case <-slice.done:
			receipts, errs = append(receipts, slice.receipts...), append(errs, slice.errs...)
			continue
		case <-ctx.Done():
		}
		failure := stoppedBefore(ctx)
		if e.producer.abandon(slice) {
			failure = stoppedAfter(ctx)
		}
		for range slice.errs {
			receipts, errs = append(receipts, Receipt{}), append(errs, failure)
		}
	}
	if failed := someFailed(errs); failed != nil {
		return receipts, failed
	}
	return receipts, stopped
}
