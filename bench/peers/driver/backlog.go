package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// BacklogReport is of a load that ends by itself.
type BacklogReport struct {
	Messages  int64   `json:"messages"`
	Seconds   float64 `json:"seconds"`
	PerS      float64 `json:"per_s"`
	FirstMs   float64 `json:"first_ms"` // drain: from the start of this process to the first message
	ClientCPU float64 `json:"client_cpu_s"`
}

// fill sends -count messages.
func fill(ctx context.Context, plan Plan, b broker) (any, error) {
	var left atomic.Int64
	left.Store(int64(plan.Count))
	mark("begin")
	began, cpu := now(), cpuSeconds()
	err := together(ctx, plan.Senders, func(ctx context.Context, number int) error {
		s, err := b.sender(ctx)
		if err != nil {
			return err
		}
		defer s.close()
		batch := newBatch(plan)
		for ctx.Err() == nil {
			mine := min(int64(plan.Batch), left.Add(-int64(plan.Batch))+int64(plan.Batch))
			if mine <= 0 {
				return nil
			}
			for i := range batch[:mine] {
				batch[i].tenant = (int(mine) + i + number) % plan.Tenants
				stamp{tenant: batch[i].tenant}.put(batch[i].payload)
			}
			if err := s.send(ctx, batch[:mine]); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	mark("end")
	return newBacklogReport(int64(plan.Count), began, cpu, 0), err
}

// drain takes and settles -count messages; fewer when none came for a while, which its report shows.
func drain(ctx context.Context, plan Plan, b broker) (any, error) {
	var taken, first, last atomic.Int64
	mark("begin")
	began, cpu := now(), cpuSeconds()
	err := together(ctx, plan.Receivers, func(ctx context.Context, _ int) error {
		r, err := b.receiver(ctx)
		if err != nil {
			return err
		}
		defer r.close()
		idleSince := now()
		for taken.Load() < int64(plan.Count) && now()-idleSince < int64(drainIdle) {
			deliveries, err := r.receive(ctx, plan.Batch)
			if err != nil {
				return err
			}
			if len(deliveries) == 0 {
				continue
			}
			idleSince = now()
			first.CompareAndSwap(0, idleSince)
			if err := r.settle(ctx, deliveries); err != nil {
				return err
			}
			taken.Add(int64(len(deliveries)))
			last.Store(now())
		}
		return ctx.Err()
	})
	mark("end")
	report := newBacklogReport(taken.Load(), began, cpu, first.Load())
	if last.Load() > began {
		report.Seconds = time.Duration(last.Load() - began).Seconds()
		report.PerS = float64(report.Messages) / report.Seconds
	}
	return report, err
}

// drainIdle is how long a drain waits for a message that may be lost.
const drainIdle = 20 * time.Second

func newBacklogReport(messages, began int64, cpu float64, first int64) BacklogReport {
	seconds := time.Duration(now() - began).Seconds()
	return BacklogReport{
		Messages: messages, Seconds: seconds, PerS: float64(messages) / seconds,
		FirstMs: float64(first) / 1e6, ClientCPU: cpuSeconds() - cpu,
	}
}

// together runs so many goroutines; the first failure ends all.
func together(ctx context.Context, count int, run func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			if err := run(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
