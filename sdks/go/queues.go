package fila

import (
	"context"
	"time"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// Answers that hold more than one value are the wire's own messages, explained field by field in package
// filav1: what a newer broker adds is there to read.

// CreateQueue makes a queue and its dead-letter queue, named as it with .dlq behind. It fails with
// ErrQueueExists, ErrInvalid.
func (c *Client) CreateQueue(ctx context.Context, queue string, opts ...QueueOption) error {
	if err := requireName("queue", queue); err != nil {
		return err
	}
	s := settingsOf(opts)
	if s.expectedVersion != 0 || s.comment != "" {
		return invalidField("expected_version", "ExpectedVersion and Comment are for UpdateQueue: a new queue has no version")
	}
	request := &filav1.CreateQueueRequest{Name: queue, Config: &s.config}
	plan := callPlan{about: subject{queue: queue}}
	_, err := call(ctx, c.connection, plan, request, c.connection.admin.CreateQueue)
	return err
}

// GetQueue reads a queue's settings, defaults filled in.
func (c *Client) GetQueue(ctx context.Context, queue string) (*filav1.GetQueueResponse, error) {
	request := &filav1.GetQueueRequest{Queue: queue}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.GetQueue)
}

// UpdateQueue changes the settings given, and no other; they apply at once to what waits. It returns them all. With
// [ExpectedVersion] it fails with ErrConflict where somebody else changed them since; a [Comment] is kept with the
// version.
func (c *Client) UpdateQueue(
	ctx context.Context, queue string, opts ...QueueOption,
) (*filav1.QueueConfig, error) {
	s := settingsOf(opts)
	request := &filav1.UpdateQueueRequest{
		Queue: queue, Config: &s.config, UpdateMask: s.mask(), ExpectedVersion: s.expectedVersion, Comment: s.comment,
	}
	// With an expected version a second run would find the version that the first one made.
	plan := callPlan{about: subject{queue: queue}, repeatable: s.expectedVersion == 0}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.UpdateQueue)
	return answer.GetConfig(), err
}

// ForceOption is what [Force] returns.
type ForceOption struct{}

// Force does what is refused without it: DeleteQueue while a published batch of a sink is still on its way into the
// queue, RevokeKey, RevokeGrant and ForgetPrincipal where nobody is an admin then.
func Force() ForceOption { return ForceOption{} }

// DeleteQueue deletes a queue, its own dead-letter queue, and everything in them. While a published batch of a sink is
// still on its way into it, only with [Force]; else it fails with ErrConflict.
func (c *Client) DeleteQueue(ctx context.Context, queue string, force ...ForceOption) error {
	request := &filav1.DeleteQueueRequest{Queue: queue, Force: len(force) > 0}
	plan := callPlan{about: subject{queue: queue}}
	_, err := call(ctx, c.connection, plan, request, c.connection.admin.DeleteQueue)
	return err
}

// ListQueuesOption says which queues to list.
type ListQueuesOption func(*filav1.ListQueuesRequest)

// QueuesFrom lists only queues whose names begin so, in letters of either case.
func QueuesFrom(prefix string) ListQueuesOption {
	return func(r *filav1.ListQueuesRequest) { r.Prefix = prefix }
}

// QueuesContaining lists only queues whose names have this in them, in letters of either case.
func QueuesContaining(part string) ListQueuesOption {
	return func(r *filav1.ListQueuesRequest) { r.Containing = part }
}

// QueuesPage lists at most so many queues, up to 1,000, behind the name; an empty name for the first page.
func QueuesPage(size uint32, after string) ListQueuesOption {
	return func(r *filav1.ListQueuesRequest) { r.PageSize, r.PageToken = size, after }
}

// ListQueues returns every queue, dead-letter queues included, sorted by name, or those that options ask for.
func (c *Client) ListQueues(ctx context.Context, options ...ListQueuesOption) ([]*filav1.QueueInfo, error) {
	request, plan := &filav1.ListQueuesRequest{}, callPlan{repeatable: repeatable}
	for _, option := range options {
		option(request)
	}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ListQueues)
	return answer.GetQueues(), err
}

// A StatsOption says more about GetStats: a [Channel], or [MaxKeys].
type StatsOption interface {
	applyToStats(*filav1.GetStatsRequest)
}

// MaxKeysOption is what [MaxKeys] returns.
type MaxKeysOption uint32

// MaxKeys is how many fairness keys are listed at most: 1,000 unless set by GetStats, which lists so many buckets too;
// 20 unless set, and no more than 1,000, by ListLate.
func MaxKeys(n uint32) MaxKeysOption { return MaxKeysOption(n) }

func (o MaxKeysOption) applyToStats(r *filav1.GetStatsRequest) { r.MaxKeys = uint32(o) }
func (o ChannelOption) applyToStats(r *filav1.GetStatsRequest) { r.Channel = string(o) }

// GetStats returns a queue in numbers: over all channels, or of one.
func (c *Client) GetStats(
	ctx context.Context, queue string, opts ...StatsOption,
) (*filav1.GetStatsResponse, error) {
	request := &filav1.GetStatsRequest{Queue: queue}
	for _, opt := range opts {
		opt.applyToStats(request)
	}
	plan := callPlan{about: subject{queue: queue, channel: request.GetChannel()}, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.GetStats)
}

// A PurgeOption narrows a purge: a [Channel], or a [FairnessKey].
type PurgeOption interface{ applyToPurge(*purgePlan) }

type purgePlan struct {
	channel, key *string
}

func (o ChannelOption) applyToPurge(p *purgePlan) {
	name := string(o)
	p.channel = &name
}

// FairnessKeyOption is what [FairnessKey] returns.
type FairnessKeyOption string

// FairnessKey narrows a call to the messages of one fairness key. Of an enqueue: the message's fairness key, where the
// queue has [AllowProducerRouting].
func FairnessKey(key string) FairnessKeyOption { return FairnessKeyOption(key) }

func (o FairnessKeyOption) applyToPurge(p *purgePlan) {
	key := string(o)
	p.key = &key
}

func purgePlanOf(opts []PurgeOption) purgePlan {
	var plan purgePlan
	for _, opt := range opts {
		opt.applyToPurge(&plan)
	}
	return plan
}

// Purge drops a queue's pending messages: all, or of one key, in every channel or in one. It returns how many.
func (c *Client) Purge(ctx context.Context, queue string, opts ...PurgeOption) (uint64, error) {
	plan := purgePlanOf(opts)
	request := &filav1.PurgeQueueRequest{Queue: queue, FairnessKey: plan.key, Channel: plan.channel}
	about := subject{queue: queue, channel: request.GetChannel()}
	answer, err := call(ctx, c.connection, callPlan{about: about}, request, c.connection.admin.PurgeQueue)
	return answer.GetPurged(), err
}

// A PeekOption says more about Peek and ListPending: a [Channel], a [FairnessKey], or [AfterOffset].
type PeekOption interface {
	applyToPeek(*filav1.PeekMessagesRequest)
}

type peekOption func(*filav1.PeekMessagesRequest)

func (o peekOption) applyToPeek(r *filav1.PeekMessagesRequest)        { o(r) }
func (o ChannelOption) applyToPeek(r *filav1.PeekMessagesRequest)     { r.Channel = string(o) }
func (o FairnessKeyOption) applyToPeek(r *filav1.PeekMessagesRequest) { r.FairnessKey = string(o) }

// AfterOffset turns the page: only messages after this offset, the last one's.
func AfterOffset(offset uint64) PeekOption {
	return peekOption(func(r *filav1.PeekMessagesRequest) { r.AfterOffset = offset })
}

// Peek looks at up to max pending messages (at most 1,000) in offset order, without leasing them.
func (c *Client) Peek(
	ctx context.Context, queue string, max int, opts ...PeekOption,
) ([]*StoredMessage, error) {
	if max < 1 {
		return nil, invalidField("max_messages", "max must be at least 1, got %d", max)
	}
	request := &filav1.PeekMessagesRequest{Queue: queue, MaxMessages: uint32(max)}
	for _, opt := range opts {
		opt.applyToPeek(request)
	}
	about := subject{queue: queue, channel: channelOrDefault(request.GetChannel())}
	answer, err := call(ctx, c.connection, callPlan{about: about, repeatable: repeatable}, request,
		c.connection.admin.PeekMessages)
	if err != nil {
		return nil, err
	}
	return storedMessages(answer.GetMessages()), nil
}

// ListPending lists up to max messages that are not done (at most 1,000) in offset order: what each is doing and since
// when, without headers and payload. The right to view is enough. Takes the options of Peek.
func (c *Client) ListPending(
	ctx context.Context, queue string, max int, opts ...PeekOption,
) ([]*filav1.PendingMessage, error) {
	if max < 1 {
		return nil, invalidField("max_messages", "max must be at least 1, got %d", max)
	}
	asked := &filav1.PeekMessagesRequest{}
	for _, opt := range opts {
		opt.applyToPeek(asked)
	}
	request := &filav1.ListPendingRequest{
		Queue: queue, Channel: asked.Channel, MaxMessages: uint32(max),
		AfterOffset: asked.AfterOffset, FairnessKey: asked.FairnessKey,
	}
	about := subject{queue: queue, channel: channelOrDefault(request.GetChannel())}
	answer, err := call(ctx, c.connection, callPlan{about: about, repeatable: repeatable}, request,
		c.connection.admin.ListPending)
	return answer.GetMessages(), err
}

func storedMessages(wire []*filav1.Message) []*StoredMessage {
	messages := make([]*StoredMessage, len(wire))
	for i, message := range wire {
		messages[i] = &newMessage(message).StoredMessage
	}
	return messages
}

// A RedriveOption says more about Redrive.
type RedriveOption func(*filav1.RedriveRequest)

// RedriveCount moves at most this many dead letters; without it, all that are there at the start.
func RedriveCount(n uint64) RedriveOption { return func(r *filav1.RedriveRequest) { r.Count = n } }

// RedriveRate moves so many dead letters a second; without it, as fast as it goes.
func RedriveRate(perSecond float64) RedriveOption {
	return func(r *filav1.RedriveRequest) { r.RatePerSecond = perSecond }
}

// RedriveOffsets moves just the dead letters with these offsets, at most 1,000.
func RedriveOffsets(offsets ...uint64) RedriveOption {
	return func(r *filav1.RedriveRequest) { r.Offsets = offsets }
}

// Redrive moves dead letters back to the queue they came from, oldest first, and returns how many. A paced
// redrive takes its time: it may go on for as long as ctx does.
func (c *Client) Redrive(ctx context.Context, dlq string, opts ...RedriveOption) (uint64, error) {
	request := &filav1.RedriveRequest{DlqQueue: dlq}
	for _, opt := range opts {
		opt(request)
	}
	plan := callPlan{about: subject{queue: dlq}}
	if request.GetRatePerSecond() > 0 {
		plan.timeout = 365 * 24 * time.Hour
	}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.Redrive)
	return answer.GetRedriven(), err
}
