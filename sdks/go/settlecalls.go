package fila

import (
	"errors"
	"slices"
	"sync"
	"time"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// settleCalls settles by AckBatch, NackBatch and ExtendLease, for leases whose session is gone or never was.
type settleCalls struct {
	settler *settler
	running sync.WaitGroup
}

// send lets the pump go on to the next frame while this one is under way.
func (c *settleCalls) send(f *settleFrame) {
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		if f.verdict.kind == extended {
			c.extend(f)
		} else {
			c.settle(f)
		}
	}()
}

func (c *settleCalls) settle(f *settleFrame) {
	s := c.settler
	items := make([]*filav1.SettleItem, len(f.leases))
	for i, lease := range f.leases {
		items[i] = &filav1.SettleItem{
			MessageId: f.ids[i], LeaseId: lease, Error: f.verdict.reason, DelayMs: f.verdict.delay(),
			DeadLetter: f.verdict.kind == rejected, Release: f.verdict.kind == released,
			Feedback: f.verdict.feedback(),
		}
	}
	plan := callPlan{
		about: subject{queue: s.queue, channel: channelOrDefault(s.channel)},
		// Lease 0 settles whatever delivery is current: a second time it may be somebody else's.
		repeatable: !slices.Contains(f.leases, 0),
	}
	answer, err := c.call(f, plan, items)
	var failure *Error
	if errors.As(err, &failure) && len(f.ids) == 1 {
		failure.MessageID, failure.LeaseID = f.ids[0], f.leases[0]
	}
	if err != nil {
		s.refused(f.sequence, err)
		return
	}
	if len(answer.GetResults()) != len(items) {
		s.refused(f.sequence, newError(ErrInternal, "%d messages were settled, but %d results came back",
			len(items), len(answer.GetResults())))
		return
	}
	failures := map[int]error{}
	for i, result := range answer.GetResults() {
		if failure := s.failureOf(f, i, result); failure != nil {
			failures[i] = failure
		}
	}
	s.answered(f.sequence, failures, time.Time{})
}

func (c *settleCalls) call(
	f *settleFrame, plan callPlan, items []*filav1.SettleItem,
) (*filav1.SettleBatchResponse, error) {
	s, ctx := c.settler, c.settler.connection.alive
	if f.verdict.kind == acked {
		request := &filav1.AckBatchRequest{Queue: s.queue, Channel: s.channel, Items: items}
		return call(ctx, s.connection, plan, request, s.connection.service.AckBatch)
	}
	request := &filav1.NackBatchRequest{Queue: s.queue, Channel: s.channel, Items: items}
	return call(ctx, s.connection, plan, request, s.connection.service.NackBatch)
}

// extend makes a call a lease: there is no batch of them outside a session.
func (c *settleCalls) extend(f *settleFrame) {
	s := c.settler
	failures := map[int]error{}
	var expiresAt time.Time
	for i, lease := range f.leases {
		request := &filav1.ExtendLeaseRequest{
			Queue: s.queue, Channel: s.channel, MessageId: f.ids[i], LeaseId: lease, ExtendMs: f.verdict.extendMs,
		}
		about := subject{queue: s.queue, channel: channelOrDefault(s.channel), messageID: f.ids[i], leaseID: lease}
		answer, err := call(s.connection.alive, s.connection, callPlan{about: about, repeatable: repeatable}, request,
			s.connection.service.ExtendLease)
		if err != nil {
			failures[i] = err
			continue
		}
		expiresAt = answer.GetLeaseExpiresAt().AsTime()
	}
	s.answered(f.sequence, failures, expiresAt)
}
