package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// LifeReport is of a load of senders, receivers or both over a measured stretch.
type LifeReport struct {
	Seconds     float64 `json:"seconds"`
	SentPerS    float64 `json:"sent_per_s"`
	SettledPerS float64 `json:"settled_per_s"`
	Messages    int64   `json:"messages"` // sent and settled in the stretch, whichever there is, the fewer of both
	ClientCPU   float64 `json:"client_cpu_s"`
	Answer      Latency `json:"answer_us"`
	Delivery    Latency `json:"delivery_us"`
}

var errOver = errors.New("the load is over")

// life sends and takes for as long as the plan says.
func life(ctx context.Context, plan Plan, b broker) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := newTally()
	var loops sync.WaitGroup
	run := func(what string, loop func() error) {
		loops.Go(func() {
			if err := loop(); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for range plan.Receivers {
		run("receiver", func() error { return takeAll(ctx, plan, b, t) })
	}
	for i := range plan.Senders {
		run("sender", func() error { return sendAll(ctx, plan, b, t, i) })
	}
	if err := sleep(ctx, plan.WarmUp); err != nil {
		return nil, err
	}
	mark("begin")
	t.measuring.Store(true)
	began, cpu, sent, settled := now(), cpuSeconds(), t.sent.Load(), t.settled.Load()
	err := sleep(ctx, plan.Duration)
	t.measuring.Store(false)
	seconds := time.Duration(now() - began).Seconds()
	sent, settled = t.sent.Load()-sent, t.settled.Load()-settled
	cpu = cpuSeconds() - cpu
	mark("end")
	cancel(errOver)
	waitFor(&loops)
	if err != nil {
		return nil, err
	}
	messages := sent
	if plan.Receivers > 0 {
		messages = settled
	}
	return LifeReport{
		Seconds: seconds, SentPerS: float64(sent) / seconds, SettledPerS: float64(settled) / seconds,
		Messages: messages, ClientCPU: cpu, Answer: t.answer.read(), Delivery: t.delivery.read(),
	}, nil
}

// mark tells the parent process when the measured stretch begins and ends, so that the broker's processor
// time and bytes written are taken for the same stretch.
func mark(what string) { fmt.Fprintln(os.Stderr, "mark", what) }

// Clients may wait long for an answer that will not come any more.
const patience = 3 * time.Second

func waitFor(loops *sync.WaitGroup) {
	over := make(chan struct{})
	go func() { loops.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(patience):
	}
}

func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pace names the moment at which each batch of one sender is meant to be sent.
type pace struct {
	interval, due int64
}

func newPace(plan Plan, rate float64, number int) *pace {
	if rate <= 0 {
		return &pace{}
	}
	interval := int64(float64(time.Second) * float64(plan.Batch) * float64(plan.Senders) / rate)
	// Spread over one interval, or the senders' batches would come in bursts.
	return &pace{interval: interval, due: now() + interval*int64(number)/int64(plan.Senders)}
}

// next waits for the moment and returns it; a moment that has passed stays as it was, and the batch is late.
func (p *pace) next(ctx context.Context) (int64, error) {
	if p.interval == 0 {
		return now(), ctx.Err()
	}
	due := p.due
	p.due += p.interval
	if wait := due - now(); wait > 0 {
		return due, sleep(ctx, time.Duration(wait))
	}
	return due, ctx.Err()
}

func sendAll(ctx context.Context, plan Plan, b broker, t *tally, number int) error {
	s, err := b.sender(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	batch := newBatch(plan)
	p := newPace(plan, plan.Rate, number)
	for sequence := 0; ; sequence++ {
		if plan.Rate == 0 && plan.Receivers > 0 {
			t.waitForReceivers(ctx, plan)
		}
		at, err := p.next(ctx)
		if err != nil {
			return nil
		}
		for i := range batch {
			batch[i].tenant = (sequence*len(batch) + i + number) % plan.Tenants
			stamp{at: at, tenant: batch[i].tenant}.put(batch[i].payload)
		}
		if err := s.send(ctx, batch); err != nil {
			return err
		}
		t.sent.Add(int64(len(batch)))
		if t.measuring.Load() {
			t.answer.record(now()-at, len(batch))
		}
	}
}

// waitForReceivers keeps a load steady: senders that are faster than receivers would measure a growing backlog instead.
func (t *tally) waitForReceivers(ctx context.Context, plan Plan) {
	most := int64(max(steadyBacklog, 2*plan.Senders*plan.Batch))
	for t.sent.Load()-t.taken.Load() > most && ctx.Err() == nil {
		time.Sleep(steadyPause)
	}
}

const (
	steadyBacklog = 2_000
	steadyPause   = 500 * time.Microsecond
)

func newBatch(plan Plan) []message {
	batch := make([]message, plan.Batch)
	for i := range batch {
		batch[i].payload = newPayload(plan.Payload)
	}
	return batch
}

func takeAll(ctx context.Context, plan Plan, b broker, t *tally) error {
	r, err := b.receiver(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	for ctx.Err() == nil {
		deliveries, err := r.receive(ctx, plan.Batch)
		if err != nil {
			return err
		}
		if len(deliveries) == 0 {
			continue
		}
		t.taken.Add(int64(len(deliveries)))
		if t.measuring.Load() {
			arrived := now()
			for _, d := range deliveries {
				t.delivery.record(arrived-readStamp(d.payload).at, 1)
			}
		}
		if err := r.settle(ctx, deliveries); err != nil {
			return err
		}
		t.settled.Add(int64(len(deliveries)))
	}
	return nil
}
