package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	fila "github.com/fila-mq/fila/sdks/go"
	"go.opentelemetry.io/otel/trace"
)

// batchMax is how large a batch may be, as in the other languages.
const batchMax = 1000

// taking is a loop over a consumer, one step at a time. A step that outlives its request is the next one's.
type taking struct {
	open func(context.Context) (*fila.Stream, error)

	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	stream *fila.Stream
	next   func() ([]*fila.Message, error)
	stop   func()
	step   chan outcome
}

type outcome struct {
	messages []*fila.Message
	err      error
}

func newTaking(open func(context.Context) (*fila.Stream, error)) *taking {
	ctx, cancel := context.WithCancel(context.Background())
	return &taking{open: open, ctx: ctx, cancel: cancel, stop: func() {}}
}

// take returns what the loop gives next; nothing when the time is over.
func (t *taking) take(ctx context.Context, wait time.Duration, batches bool) ([]*fila.Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.step == nil {
		t.step = make(chan outcome, 1)
		go func(to chan outcome) {
			messages, err := t.advance(batches)
			to <- outcome{messages, err}
		}(t.step)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case done := <-t.step:
		t.step = nil
		return done.messages, done.err
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *taking) advance(batches bool) ([]*fila.Message, error) {
	if t.stream == nil {
		stream, err := t.open(t.ctx)
		if err != nil {
			return nil, err
		}
		t.stream = stream
		t.next = func() ([]*fila.Message, error) {
			m, err := stream.Recv()
			return []*fila.Message{m}, err
		}
		if batches {
			next, stop := iter.Pull2(stream.Batches(batchMax))
			t.stop = stop
			t.next = func() ([]*fila.Message, error) {
				batch, err, ok := next()
				if !ok {
					return nil, io.EOF
				}
				return batch, err
			}
		}
	}
	return t.next()
}

func (t *taking) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stream != nil {
		t.stream.Close()
	} else {
		t.cancel()
	}
	if t.step != nil {
		<-t.step
		t.step = nil
	}
	t.stop()
	if t.stream != nil {
		t.stream.Close()
	}
}

func (d *driver) taking(r *request) (*taking, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.consumers[r.Consumer]
	if t == nil {
		return nil, fmt.Errorf("%w: no consumer %q", errUnsupported, r.Consumer)
	}
	return t, nil
}

func consume(d *driver, _ context.Context, r *request) (answer, error) {
	c, err := d.client(r)
	if err != nil {
		return nil, err
	}
	opts := as[fila.ConsumeOption](r.channel())
	if r.Prefetch != nil {
		if n, err := decode[int](r.Prefetch); err == nil {
			opts = append(opts, fila.Prefetch(n))
		} else {
			opts = append(opts, fila.AdaptivePrefetch())
		}
	}
	if r.StopWhenIdS != nil {
		opts = append(opts, fila.StopWhenIdle(seconds(*r.StopWhenIdS)))
	}
	if r.Name != nil {
		opts = append(opts, fila.ConsumerName(*r.Name))
	}
	if r.RenewalMs != nil {
		opts = append(opts, fila.MaxLeaseRenewal(ms(*r.RenewalMs)))
	}
	// With a context that is over the SDK looks at the arguments, and opens nothing.
	over, stop := context.WithCancel(context.Background())
	stop()
	if _, err := c.Consume(over, r.Queue, opts...); errors.Is(err, fila.ErrInvalid) {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.consumers[r.Consumer] = newTaking(func(ctx context.Context) (*fila.Stream, error) {
		return c.Consume(ctx, r.Queue, opts...)
	})
	return nil, nil
}

const receiveTimeout = 5 * time.Second

func (r *request) timeout() time.Duration {
	if r.TimeoutMs == nil {
		return receiveTimeout
	}
	return ms(*r.TimeoutMs)
}

func receive(d *driver, ctx context.Context, r *request) (answer, error) {
	t, err := d.taking(r)
	if err != nil {
		return nil, err
	}
	count, taken, ended := 1, []answer{}, false
	if r.Count != nil {
		count = int(*r.Count)
	}
	deadline := time.Now().Add(r.timeout())
	for len(taken) < count && !ended {
		messages, err := t.take(ctx, max(0, time.Until(deadline)), false)
		switch {
		case errors.Is(err, io.EOF):
			ended = true
		case err != nil:
			return nil, err
		case messages == nil:
			return answer{"messages": taken, "ended": false}, nil
		default:
			taken = append(taken, d.handOut(messages[0]))
		}
	}
	return answer{"messages": taken, "ended": ended}, nil
}

func receiveBatch(d *driver, ctx context.Context, r *request) (answer, error) {
	t, err := d.taking(r)
	if err != nil {
		return nil, err
	}
	messages, err := t.take(ctx, r.timeout(), true)
	taken := []answer{}
	if errors.Is(err, io.EOF) {
		return answer{"messages": taken, "ended": true}, nil
	}
	for _, m := range messages {
		taken = append(taken, d.handOut(m))
	}
	return answer{"messages": taken, "ended": false}, err
}

func leave(d *driver, _ context.Context, r *request) (answer, error) {
	t, err := d.taking(r)
	if err == nil {
		t.leave()
	}
	return nil, err
}

func awaitLost(d *driver, ctx context.Context, r *request) (answer, error) {
	m, err := d.message(r.Handle)
	if err != nil {
		return nil, err
	}
	select {
	case <-m.Context().Done():
		var lost *fila.Error
		if !errors.As(context.Cause(m.Context()), &lost) || !lost.Is(fila.ErrLeaseLost) {
			return answer{"lost": false}, nil
		}
		return answer{"lost": true, "reason": lost.Reason}, nil
	case <-time.After(r.timeout()):
		return answer{"lost": false}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// spanOf is what a span begins with that works on the message: its parent, and its links.
func spanOf(ctx context.Context, m *fila.Message, r *request) (answer, error) {
	ctx, option := m.Traced(ctx, fila.TracedOption(r.Parent))
	config := trace.NewSpanStartConfig(option)
	links := []string{}
	for _, link := range config.Links() {
		links = append(links, spanName(link.SpanContext))
	}
	return answer{"parent": spanName(trace.SpanContextFromContext(ctx)), "links": links}, nil
}

// spanName is a span's trace and its id; empty where there is none.
func spanName(span trace.SpanContext) string {
	if !span.IsValid() {
		return ""
	}
	return span.TraceID().String() + "-" + span.SpanID().String()
}
