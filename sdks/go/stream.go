package fila

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"
)

// A ConsumeOption is a setting of one consumer.
type ConsumeOption interface{ applyToConsume(*sessionPlan) }

type consumeOption func(*sessionPlan)

func (o consumeOption) applyToConsume(p *sessionPlan) { o(p) }

// Prefetch fixes how many messages the consumer holds at once, those in the program's hands included; 1 to
// 10,000.
func Prefetch(n int) ConsumeOption {
	return consumeOption(func(p *sessionPlan) { p.prefetch, p.adaptive = n, false })
}

// AdaptivePrefetch, the default unless WithPrefetch says otherwise, follows how fast the program works: at
// most 50 ms of work lie in the buffer.
func AdaptivePrefetch() ConsumeOption {
	return consumeOption(func(p *sessionPlan) { p.adaptive = true })
}

// StopWhenIdle ends Recv with io.EOF, and a loop, when nothing arrived for this long. Time in which
// the broker is not heard does not count: an outage is not an empty queue.
func StopWhenIdle(d time.Duration) ConsumeOption {
	return consumeOption(func(p *sessionPlan) { p.stopWhenIdle = d })
}

// ConsumerName is the consumer's name for people, at most 128 bytes; ListConsumers shows it.
func ConsumerName(name string) ConsumeOption {
	return consumeOption(func(p *sessionPlan) { p.name = name })
}

// MaxLeaseRenewal says how long the broker keeps a lease by itself while the consumer lives: 10 min unless
// set, at most 12 h, 0 for the bare visibility timeout. Work that takes longer needs Extend.
func MaxLeaseRenewal(d time.Duration) ConsumeOption {
	return consumeOption(func(p *sessionPlan) { p.renewal = &d })
}

// Workers says how many goroutines will call Recv. Unset, it is learned from those that wait at once.
func Workers(n int) ConsumeOption { return consumeOption(func(p *sessionPlan) { p.workers = n }) }

// Stream is a consumer of one queue and channel. Any number of goroutines may share it; each message goes to
// one of them.
//
// A stream that breaks is resumed with backoff, and what was in hand meanwhile stays in hand. Every other
// error is returned by Recv, such as ErrQueueNotFound when the queue is deleted under it.
type Stream struct {
	session  *session
	receiver receivers
}

// Consume starts a consumer. It returns once the broker has accepted it, and fails with ErrQueueNotFound,
// ErrChannelNotFound, ErrInvalid, or ErrUnavailable when no broker answers. The stream is left when ctx ends,
// as by Close.
func (c *Client) Consume(ctx context.Context, queue string, opts ...ConsumeOption) (*Stream, error) {
	plan := sessionPlan{
		queue: queue, prefetch: c.connection.settings.prefetch, adaptive: c.connection.settings.adaptive,
	}
	for _, opt := range opts {
		opt.applyToConsume(&plan)
	}
	if err := plan.validate(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, stoppedBefore(ctx)
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed()
	}
	s := newSession(c.connection, plan, c.outlive)
	c.sessions[s] = struct{}{}
	c.mu.Unlock()
	stream := &Stream{session: s}
	for range max(1, plan.workers) {
		stream.receiver.unused = append(stream.receiver.unused, s.holding.join(1))
	}
	go s.run()
	select {
	case <-s.opened:
	case <-s.ended:
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, s.failure
	case <-ctx.Done():
		s.leave(io.EOF)
		return nil, stoppedBefore(ctx)
	}
	stop := context.AfterFunc(ctx, func() { s.leave(stoppedConsuming(ctx)) })
	context.AfterFunc(s.ctx, func() { stop() })
	return stream, nil
}

func (p *sessionPlan) validate() error {
	if err := requireName("queue", p.queue); err != nil {
		return err
	}
	switch {
	case !p.adaptive && (p.prefetch < 1 || p.prefetch > windowMax):
		// As many as a consumer can name when it resumes a broken stream.
		return invalidField("prefetch", "prefetch must be from 1 to %d, got %d", windowMax, p.prefetch)
	case p.workers < 0 || p.workers > windowMax:
		return invalidField("workers", "workers must be from 0 to %d, got %d", windowMax, p.workers)
	case p.stopWhenIdle < 0:
		return invalidField("stop_when_idle", "the time to stop when idle must not be negative, got %v", p.stopWhenIdle)
	case p.renewal != nil && *p.renewal < 0:
		return invalidField("max_lease_renewal_ms", "a lease's renewal must not be negative, got %v", *p.renewal)
	}
	if err := requireText("name", p.name); err != nil {
		return err
	}
	return requireText("channel", p.channel)
}

// Recv returns the next message. It fails with io.EOF after Close, and when nothing came for as long as
// StopWhenIdle allows; with the context's error when the stream's context ended.
func (s *Stream) Recv() (*Message, error) {
	l := s.receiver.pick(s.session.holding)
	taken, err := s.session.receive(l, 1, s.session.plan.stopWhenIdle)
	s.receiver.giveBack(l)
	if err != nil {
		return nil, err
	}
	return taken[0], nil
}

// Messages loops over the stream's messages. Several loops share them. Leaving the last loop does not close
// the stream: Close does.
func (s *Stream) Messages() iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for batch, err := range s.loop(1) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(batch[0], nil) {
				return
			}
		}
	}
}

// Batches loops over lists of what has arrived: at least one message each, at most max. With AckMany it is
// the fastest way to consume. A batch is begun whole when it is handed out.
func (s *Stream) Batches(max int) iter.Seq2[[]*Message, error] { return s.loop(max) }

func (s *Stream) loop(size int) iter.Seq2[[]*Message, error] {
	return func(yield func([]*Message, error) bool) {
		l := s.receiver.takeUnused(s.session.holding, size)
		defer s.session.holding.part(l)
		for {
			taken, err := s.session.receive(l, size, s.session.plan.stopWhenIdle)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(taken, err) || err != nil {
				return
			}
		}
	}
}

// Close takes nothing more, and gives back what was not handed out, at once. What is in hand can be settled
// as before; the stream ends when all of it is, or a visibility timeout from now.
func (s *Stream) Close() error {
	s.session.leave(io.EOF)
	return nil
}

// Messages consumes a queue in one loop:
//
//	for msg, err := range client.Messages(ctx, "orders") {
//
// Leaving the loop closes the stream and gives back what was not handed out. An error ends the loop; without
// StopWhenIdle it ends in no other way by itself. When ctx ends, the last error is the context's.
func (c *Client) Messages(
	ctx context.Context, queue string, opts ...ConsumeOption,
) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		stream, err := c.Consume(ctx, queue, opts...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer stream.Close()
		for msg, err := range stream.Messages() {
			if !yield(msg, err) {
				return
			}
		}
	}
}

// Batches is Messages for lists of what has arrived, at most max messages each.
func (c *Client) Batches(
	ctx context.Context, queue string, max int, opts ...ConsumeOption,
) iter.Seq2[[]*Message, error] {
	return func(yield func([]*Message, error) bool) {
		stream, err := c.Consume(ctx, queue, opts...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer stream.Close()
		for batch, err := range stream.Batches(max) {
			if !yield(batch, err) {
				return
			}
		}
	}
}

// receivers are the loops behind Recv. A goroutine has no name, so a call is taken for one that came free, and
// when all wait at once, for one more.
type receivers struct {
	mu     sync.Mutex
	unused []*loop
	busy   []*loop // were handed a message, oldest first
}

func (r *receivers) pick(h *holding) *loop {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.unused) - 1; last >= 0 {
		l := r.unused[last]
		r.unused = r.unused[:last]
		return l
	}
	if len(r.busy) == 0 {
		return h.join(1)
	}
	found := 0 // of a program that passes messages on, the oldest
	for i, l := range r.busy {
		if l.inHand.Load() == 0 {
			found = i
			break
		}
	}
	l := r.busy[found]
	r.busy = append(r.busy[:found], r.busy[found+1:]...)
	return l
}

func (r *receivers) giveBack(l *loop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = append(r.busy, l)
}

// takeUnused returns a loop for an iterator: the one that waits for a first Recv, if it has the size.
func (r *receivers) takeUnused(h *holding, size int) *loop {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.unused) - 1; last >= 0 {
		l := r.unused[last]
		r.unused = r.unused[:last]
		if size == l.size {
			return l
		}
		defer h.part(l)
	}
	return h.join(size)
}
