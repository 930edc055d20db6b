package fila

import (
	"context"
	"time"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// A LeaseOption says more about a pull: a [Channel], or a [Wait].
type LeaseOption interface{ applyToLease(*filav1.LeaseRequest) }

type leaseOption func(*filav1.LeaseRequest)

func (o leaseOption) applyToLease(r *filav1.LeaseRequest)   { o(r) }
func (o ChannelOption) applyToLease(r *filav1.LeaseRequest) { r.Channel = string(o) }

// Wait lets a pull wait this long for its first message.
func Wait(d time.Duration) LeaseOption {
	return leaseOption(func(r *filav1.LeaseRequest) { r.WaitMs = uint32(milliseconds(max(0, d))) })
}

// leaseGrace is how much longer than its wait a pull may go unanswered.
const leaseGrace = 10 * time.Second

// Lease pulls up to max messages (at most 10,000) that are ready; none when there are none. They are begun
// as soon as they are delivered, and theirs is the bare visibility timeout: no stream keeps them.
func (c *Client) Lease(ctx context.Context, queue string, max int, opts ...LeaseOption) ([]*Message, error) {
	if err := requireName("queue", queue); err != nil {
		return nil, err
	}
	if max < 1 {
		return nil, invalidField("max_messages", "max must be at least 1, got %d", max)
	}
	request := &filav1.LeaseRequest{Queue: queue, MaxMessages: uint32(max)}
	for _, opt := range opts {
		opt.applyToLease(request)
	}
	if err := requireText("channel", request.GetChannel()); err != nil {
		return nil, err
	}
	puller, err := c.getPuller(queue, request.GetChannel())
	if err != nil {
		return nil, err
	}
	plan := callPlan{
		about: subject{queue: queue, channel: channelOrDefault(request.GetChannel())},
		// A pull whose answer is lost leaves its messages leased until they expire; pulling again is right.
		repeatable: repeatable,
		timeout:    time.Duration(request.GetWaitMs())*time.Millisecond + leaseGrace,
	}
	answer, err := call(ctx, c.connection, plan, request, c.connection.service.Lease)
	if err != nil {
		return nil, err
	}
	messages := make([]*Message, len(answer.GetMessages()))
	for i, wire := range answer.GetMessages() {
		messages[i] = newMessage(wire)
		messages[i].settler = puller.settler
		puller.remember(messages[i].ID, messages[i].LeaseID)
	}
	return messages, nil
}
