package fila

import (
	"context"
	"time"
)

// ChannelOption is what [Channel] returns.
type ChannelOption string

// Channel is the channel a call is about; `default` unless given.
func Channel(name string) ChannelOption { return ChannelOption(name) }

func (o ChannelOption) applyToConsume(p *sessionPlan) { p.channel = string(o) }
func (o ChannelOption) applyToSettle(t *settleTarget) { t.channel = string(o) }
func (o ChannelOption) applyToNack(p *nackPlan)       { p.channel = string(o) }

// The calls by id are for when the message itself is not at hand. The client remembers the lease under which
// it delivered the message, so that a late call cannot settle somebody else's delivery: it fails with
// ErrLeaseLost. Of a message that was delivered elsewhere, whatever lease is current is settled.

// Ack says that a message is done; see [Message.Ack].
func (c *Client) Ack(ctx context.Context, queue, messageID string, opts ...SettleOption) error {
	_, err := c.settleByID(ctx, queue, messageID, verdict{kind: acked}, targetOf(opts))
	return err
}

// Nack says that a message failed; see [Message.Nack].
func (c *Client) Nack(ctx context.Context, queue, messageID, reason string, opts ...NackOption) error {
	v, target, err := nackVerdict(reason, opts)
	if err == nil {
		_, err = c.settleByID(ctx, queue, messageID, v, target)
	}
	return err
}

// Reject makes a message a dead letter now; see [Message.Reject].
func (c *Client) Reject(ctx context.Context, queue, messageID, reason string, opts ...SettleOption) error {
	v, err := rejectVerdict(reason)
	if err == nil {
		_, err = c.settleByID(ctx, queue, messageID, v, targetOf(opts))
	}
	return err
}

// Release puts a message back uncounted; see [Message.Release].
func (c *Client) Release(ctx context.Context, queue, messageID string, opts ...SettleOption) error {
	_, err := c.settleByID(ctx, queue, messageID, verdict{kind: released}, targetOf(opts))
	return err
}

// Extend holds a message longer; see [Message.Extend].
func (c *Client) Extend(
	ctx context.Context, queue, messageID string, by time.Duration, opts ...SettleOption,
) (time.Time, error) {
	v, err := extendVerdict(by)
	if err != nil {
		return time.Time{}, err
	}
	return c.settleByID(ctx, queue, messageID, v, targetOf(opts))
}

func targetOf(opts []SettleOption) settleTarget {
	var target settleTarget
	for _, opt := range opts {
		opt.applyToSettle(&target)
	}
	return target
}

func (c *Client) settleByID(
	ctx context.Context, queue, messageID string, v verdict, target settleTarget,
) (time.Time, error) {
	if err := requireName("queue", queue); err != nil {
		return time.Time{}, err
	}
	if err := requireName("message_id", messageID); err != nil {
		return time.Time{}, err
	}
	if err := requireText("channel", target.channel); err != nil {
		return time.Time{}, err
	}
	s, lease, err := c.holderOf(queue, target.channel, messageID)
	if err != nil {
		return time.Time{}, err
	}
	return s.settle(ctx, v, messageID, lease)
}

// holderOf returns who settles a delivery and under which lease; lease 0 when this client does not know it.
func (c *Client) holderOf(queue, channel, messageID string) (*settler, uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, 0, errClosed()
	}
	for s := range c.sessions {
		if s.plan.queue == queue && channelOrDefault(s.plan.channel) == channelOrDefault(channel) {
			if lease := s.holding.leaseOf(messageID); lease != 0 {
				return s.settler, lease, nil
			}
		}
	}
	p := c.pullerLocked(queue, channel)
	return p.settler, p.leaseOf(messageID), nil
}

// AckMany acks many messages, in few frames. The error is a [*SomeFailedError] when some were refused.
func (c *Client) AckMany(ctx context.Context, messages []*Message) error {
	return settleMany(ctx, verdict{kind: acked}, messages)
}

// NackMany nacks many messages for one reason, in few frames.
func (c *Client) NackMany(ctx context.Context, messages []*Message, reason string, opts ...NackOption) error {
	v, _, err := nackVerdict(reason, opts)
	if err != nil {
		return err
	}
	return settleMany(ctx, v, messages)
}

// ReleaseMany puts many messages back uncounted, in few frames.
func (c *Client) ReleaseMany(ctx context.Context, messages []*Message) error {
	return settleMany(ctx, verdict{kind: released}, messages)
}

func settleMany(ctx context.Context, v verdict, messages []*Message) error {
	if len(messages) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return stoppedBefore(ctx)
	}
	call := newSettleCall(len(messages))
	for first := 0; first < len(messages); {
		end := first + 1
		for end < len(messages) && messages[end].settler == messages[first].settler {
			end++
		}
		messages[first].settler.putAll(v, messages[first:end], call, first)
		first = end
	}
	for _, m := range messages {
		m.lease.end(errSettled)
	}
	if !call.wait(ctx) {
		return stoppedAfter(ctx)
	}
	return someFailed(call.results)
}
