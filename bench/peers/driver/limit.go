package main

import (
	"context"
	"math"
	"time"
)

// LimitReport says how well each tenant's rate was kept, and at what price.
type LimitReport struct {
	Seconds    float64 `json:"seconds"`
	Deliveries int     `json:"deliveries"` // all that came, with those that had to be given back
	Handled    int     `json:"handled"`
	Wasted     float64 `json:"wasted"` // deliveries given back for one that was handled
	// Of each tenant's rate against the plan's, as a part of it.
	MeanError  float64 `json:"mean_error"`
	WorstError float64 `json:"worst_error"`
}

// A limiting broker keeps the tenants' rates itself: what it delivers may be handled.
type limitingBroker interface {
	limitTenants(ctx context.Context, tenants int, perSecond float64) error
}

// limit lets every tenant have more waiting than its rate allows. Where the broker knows no limits, the receiver
// counts tokens and gives back what comes too early, to come again when its tenant's next token is due.
func limit(ctx context.Context, plan Plan, b broker) (any, error) {
	limiting, inBroker := b.(limitingBroker)
	if inBroker {
		if err := limiting.limitTenants(ctx, plan.Tenants, plan.TenantRate); err != nil {
			return nil, err
		}
	}
	backlog := int(float64(plan.Tenants) * plan.TenantRate * plan.Duration.Seconds() * 2)
	if err := preload(ctx, plan, b, backlog, func(i int) int { return i % plan.Tenants }); err != nil {
		return nil, err
	}
	r, err := b.receiver(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()

	handled := make([]int, plan.Tenants)
	buckets := newBuckets(plan)
	report := LimitReport{}
	mark("begin")
	began := now()
	end := began + int64(plan.Duration)
	for now() < end && ctx.Err() == nil {
		deliveries, err := r.receive(ctx, min(plan.Batch, noisyTakeMost))
		if err != nil {
			return nil, err
		}
		report.Deliveries += len(deliveries)
		var done []delivery
		for _, d := range deliveries {
			tenant := readStamp(d.payload).tenant
			if wait := buckets.take(tenant, inBroker); wait > 0 {
				if err := r.giveBack(ctx, []delivery{d}, wait); err != nil {
					return nil, err
				}
				continue
			}
			handled[tenant]++
			done = append(done, d)
		}
		if len(done) > 0 {
			if err := r.settle(ctx, done); err != nil {
				return nil, err
			}
		}
	}
	mark("end")
	report.Seconds = time.Duration(now() - began).Seconds()
	wanted := plan.TenantRate*report.Seconds + 1 // a bucket begins with one token
	for _, count := range handled {
		report.Handled += count
		off := math.Abs(float64(count)-wanted) / wanted
		report.MeanError += off / float64(plan.Tenants)
		report.WorstError = max(report.WorstError, off)
	}
	report.Wasted = float64(report.Deliveries-report.Handled) / float64(max(1, report.Handled))
	return report, ctx.Err()
}

// buckets hold one token each at most.
type buckets struct {
	interval int64
	due      []int64
}

func newBuckets(plan Plan) *buckets {
	return &buckets{interval: int64(float64(time.Second) / plan.TenantRate), due: make([]int64, plan.Tenants)}
}

// take returns 0 when the tenant may have a message now, and else how long until it may.
func (b *buckets) take(tenant int, inBroker bool) time.Duration {
	if inBroker {
		return 0
	}
	at := now()
	if wait := b.due[tenant] - at; wait > 0 {
		return time.Duration(wait)
	}
	b.due[tenant] = max(b.due[tenant]+b.interval, at)
	return 0
}
