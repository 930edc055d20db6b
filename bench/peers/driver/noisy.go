package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// NoisyReport says how long the quiet tenants' messages waited while one tenant's backlog was before them.
type NoisyReport struct {
	Seconds    float64 `json:"seconds"`
	QuietSent  int     `json:"quiet_sent"`
	QuietTaken int     `json:"quiet_taken"`
	// Wait is of the quiet tenants' messages, from the moment each was meant to be sent. One that had not come
	// at the end counts with the time it had waited by then, so where QuietTaken is less than QuietSent, these
	// are lower bounds.
	Wait       Latency `json:"wait_us"`
	NoisyTaken int     `json:"noisy_taken"`
}

const (
	noisyTenant   = 0
	quietPerS     = 50.0 // messages of all quiet tenants together
	noisyTakeMost = 10   // a worker that takes few at a time: what it holds, nobody else can be served
)

// noisy fills one tenant's backlog, then lets the others send a little, with a receiver of a fixed speed. The noisy
// tenant goes on sending, as much as the receiver takes.
func noisy(ctx context.Context, plan Plan, b broker) (any, error) {
	if plan.Tenants < 2 {
		return nil, fmt.Errorf("needs at least 2 tenants, got %d", plan.Tenants)
	}
	if err := preload(ctx, plan, b, plan.Backlog, func(int) int { return noisyTenant }); err != nil {
		return nil, fmt.Errorf("backlog: %w", err)
	}
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ledger := &quietLedger{}
	var loops sync.WaitGroup
	start := func(loop func() error) {
		loops.Go(func() {
			if err := loop(); err != nil && run.Err() == nil {
				cancel(err)
			}
		})
	}
	start(func() error { return takeAtSpeed(run, plan, b, ledger) })
	start(func() error { return sendNoise(run, plan, b) })
	start(func() error { return sendQuiet(run, plan, b, ledger) })
	mark("begin")
	began := now()
	err := sleep(run, plan.Duration)
	mark("end")
	report := ledger.report(now())
	report.Seconds = time.Duration(now() - began).Seconds()
	cancel(errOver)
	waitFor(&loops)
	return report, err
}

// preload sends count messages whose tenants the function names.
func preload(ctx context.Context, plan Plan, b broker, count int, tenant func(int) int) error {
	s, err := b.sender(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	plan.Batch = 100
	batch := newBatch(plan)
	for sent := 0; sent < count; {
		part := batch[:min(len(batch), count-sent)]
		for i := range part {
			part[i].tenant = tenant(sent + i)
			stamp{at: now(), tenant: part[i].tenant, number: -1}.put(part[i].payload)
		}
		if err := s.send(ctx, part); err != nil {
			return err
		}
		sent += len(part)
	}
	return nil
}

// quietLedger knows when each quiet message was meant to be sent, and which have come.
type quietLedger struct {
	mu         sync.Mutex
	meant      []int64
	came       []bool
	waits      []int64
	noisyTaken int
}

func (l *quietLedger) add(at int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meant, l.came = append(l.meant, at), append(l.came, false)
	return len(l.meant) - 1
}

func (l *quietLedger) arrived(s stamp) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.tenant == noisyTenant:
		l.noisyTaken++
	case s.number >= 0 && s.number < len(l.came) && !l.came[s.number]:
		l.came[s.number] = true
		l.waits = append(l.waits, now()-s.at)
	}
}

func (l *quietLedger) report(end int64) NoisyReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := newLatencies()
	for _, wait := range l.waits {
		waits.record(wait, 1)
	}
	for i, came := range l.came {
		if !came {
			waits.record(end-l.meant[i], 1)
		}
	}
	return NoisyReport{QuietSent: len(l.meant), QuietTaken: len(l.waits), Wait: waits.read(), NoisyTaken: l.noisyTaken}
}

// takeAtSpeed is a worker that handles so many messages a second, one batch after another.
func takeAtSpeed(ctx context.Context, plan Plan, b broker, ledger *quietLedger) error {
	r, err := b.receiver(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	for ctx.Err() == nil {
		deliveries, err := r.receive(ctx, noisyTakeMost)
		if err != nil {
			return err
		}
		began := now()
		for _, d := range deliveries {
			ledger.arrived(readStamp(d.payload))
		}
		handled := time.Duration(float64(len(deliveries)) / plan.ReceiveRate * float64(time.Second))
		_ = sleep(ctx, handled-time.Duration(now()-began))
		if len(deliveries) > 0 {
			if err := r.settle(ctx, deliveries); err != nil {
				return err
			}
		}
	}
	return nil
}

func sendNoise(ctx context.Context, plan Plan, b broker) error {
	s, err := b.sender(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	plan.Batch, plan.Senders = 10, 1
	batch := newBatch(plan)
	for p := newPace(plan, plan.ReceiveRate, 0); ; {
		at, err := p.next(ctx)
		if err != nil {
			return nil
		}
		for i := range batch {
			batch[i].tenant = noisyTenant
			stamp{at: at, tenant: noisyTenant, number: -1}.put(batch[i].payload)
		}
		if err := s.send(ctx, batch); err != nil {
			return err
		}
	}
}

func sendQuiet(ctx context.Context, plan Plan, b broker, ledger *quietLedger) error {
	s, err := b.sender(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	plan.Batch, plan.Senders = 1, 1
	batch := newBatch(plan)
	p := newPace(plan, quietPerS, 0)
	for sequence := 0; ; sequence++ {
		at, err := p.next(ctx)
		if err != nil {
			return nil
		}
		batch[0].tenant = 1 + sequence%(plan.Tenants-1)
		stamp{at: at, tenant: batch[0].tenant, number: ledger.add(at)}.put(batch[0].payload)
		if err := s.send(ctx, batch); err != nil {
			return err
		}
	}
}
