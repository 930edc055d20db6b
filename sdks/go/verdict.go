package fila

import (
	"time"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

type verdictKind uint8

const (
	acked verdictKind = iota
	nacked
	rejected
	released
	extended
)

// verdict is what is said of a delivery. Deliveries of one verdict travel in one frame, so it is comparable.
type verdict struct {
	kind     verdictKind
	reason   string
	delayMs  uint64
	hasDelay bool
	extendMs uint64
	limited  bool // a provider refused it, for this limit and so long
	limit    string
	retryMs  uint64
}

func (v verdict) feedback() []*filav1.LimitFeedback {
	if !v.limited {
		return nil
	}
	return []*filav1.LimitFeedback{{
		Limit: v.limit, Kind: filav1.LimitFeedback_KIND_LIMITED, RetryAfterMs: v.retryMs,
	}}
}

func (v verdict) delay() *uint64 {
	if !v.hasDelay {
		return nil
	}
	return &v.delayMs
}

// A SettleOption says more about which delivery a call by id means.
type SettleOption interface{ applyToSettle(*settleTarget) }

// A NackOption is a [Delay] or a [SettleOption].
type NackOption interface{ applyToNack(*nackPlan) }

type settleTarget struct{ channel string }

type nackPlan struct {
	settleTarget
	delay    time.Duration
	hasDelay bool
}

func (o DelayOption) applyToNack(p *nackPlan) { p.delay, p.hasDelay = time.Duration(o), true }

func nackVerdict(reason string, opts []NackOption) (verdict, settleTarget, error) {
	var plan nackPlan
	for _, opt := range opts {
		opt.applyToNack(&plan)
	}
	if err := requireText("error", reason); err != nil {
		return verdict{}, plan.settleTarget, err
	}
	if plan.delay < 0 {
		return verdict{}, plan.settleTarget, invalidField("delay_ms", "Delay must not be negative, got %v", plan.delay)
	}
	return verdict{kind: nacked, reason: reason, delayMs: milliseconds(plan.delay), hasDelay: plan.hasDelay},
		plan.settleTarget, nil
}

// retryAfterMax is the longest that a limit closes: then the provider is asked again.
const retryAfterMax = 5 * time.Minute

func limitedVerdict(l Limited) (verdict, error) {
	if err := requireText("error", l.Reason); err != nil {
		return verdict{}, err
	}
	if err := requireText("limit", l.Limit); err != nil {
		return verdict{}, err
	}
	if l.RetryAfter < 0 {
		return verdict{}, invalidField("retry_after_ms", "RetryAfter must not be negative, got %v", l.RetryAfter)
	}
	retryMs := milliseconds(min(l.RetryAfter, retryAfterMax))
	return verdict{
		kind: nacked, reason: l.Reason, delayMs: retryMs, hasDelay: l.RetryAfter > 0,
		limited: true, limit: l.Limit, retryMs: retryMs,
	}, nil
}

func rejectVerdict(reason string) (verdict, error) {
	return verdict{kind: rejected, reason: reason}, requireText("error", reason)
}

func extendVerdict(by time.Duration) (verdict, error) {
	if by <= 0 {
		return verdict{}, invalidField("extend_ms", "a lease is extended by a positive time, got %v", by)
	}
	return verdict{kind: extended, extendMs: milliseconds(by)}, nil
}
