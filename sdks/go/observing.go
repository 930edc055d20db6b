package fila

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// A StatusOption narrows what GetStatus says is wrong: [TroublesOfQueue], a [FairnessKey], [MaxTroubles].
type StatusOption interface {
	applyToStatus(*filav1.GetStatusRequest)
}

type statusOption func(*filav1.GetStatusRequest)

func (o statusOption) applyToStatus(r *filav1.GetStatusRequest)      { o(r) }
func (o FairnessKeyOption) applyToStatus(r *filav1.GetStatusRequest) { r.FairnessKey = string(o) }

// TroublesOfQueue leaves only troubles of this queue. With it a [FairnessKey] leaves out the pauses of other keys.
func TroublesOfQueue(queue string) StatusOption {
	return statusOption(func(r *filav1.GetStatusRequest) { r.Queue = queue })
}

// MaxTroubles is how many troubles are told at most: 4 unless set, and no more than 100.
func MaxTroubles(n uint32) StatusOption {
	return statusOption(func(r *filav1.GetStatusRequest) { r.MaxTroubles = n })
}

// GetStatus says what is wrong, and how the broker is: version, disk, connections, damage. Who is no admin is told the
// version, the disk and whether it is stopping, and troubles of its queues.
func (c *Client) GetStatus(ctx context.Context, opts ...StatusOption) (*filav1.GetStatusResponse, error) {
	request, plan := &filav1.GetStatusRequest{}, callPlan{repeatable: repeatable}
	for _, opt := range opts {
		opt.applyToStatus(request)
	}
	return call(ctx, c.connection, plan, request, c.connection.admin.GetStatus)
}

// A LateOption says more about ListLate: [MaxKeys].
type LateOption interface{ applyToLate(*filav1.ListLateRequest) }

func (o MaxKeysOption) applyToLate(r *filav1.ListLateRequest) { r.MaxKeys = uint32(o) }

// ListLate ranks the fairness keys of one queue, or of all where the name is empty, by how long their next message has
// been waiting, with the cause.
func (c *Client) ListLate(
	ctx context.Context, queue string, opts ...LateOption,
) (*filav1.ListLateResponse, error) {
	request := &filav1.ListLateRequest{Queue: queue}
	for _, opt := range opts {
		opt.applyToLate(request)
	}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.ListLate)
}

// A PoliciesOption narrows ListKeyPolicies: a [FairnessKey].
type PoliciesOption interface {
	applyToPolicies(*filav1.ListKeyPoliciesRequest)
}

func (o FairnessKeyOption) applyToPolicies(r *filav1.ListKeyPoliciesRequest) {
	r.FairnessKey = string(o)
}

// ListKeyPolicies returns what SetKeyPolicy set for single keys of a queue, or for the one named, also when that is
// nothing.
func (c *Client) ListKeyPolicies(
	ctx context.Context, queue string, opts ...PoliciesOption,
) ([]*filav1.KeyPolicy, error) {
	request := &filav1.ListKeyPoliciesRequest{Queue: queue}
	for _, opt := range opts {
		opt.applyToPolicies(request)
	}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ListKeyPolicies)
	return answer.GetPolicies(), err
}

// LimitOption is what [Limit] returns.
type LimitOption uint32

// Limit is how much is listed at most: keys by FindKeys (20 unless set, up to 256), versions by ListQueueVersions (all
// that are kept unless set), records by ListAudit (100 unless set, up to 1,000).
func Limit(n uint32) LimitOption { return LimitOption(n) }

// A FindOption says more about FindKeys: a [Channel], or [Limit].
type FindOption interface{ applyToFind(*filav1.FindKeysRequest) }

func (o ChannelOption) applyToFind(r *filav1.FindKeysRequest) { r.Channel = string(o) }
func (o LimitOption) applyToFind(r *filav1.FindKeysRequest)   { r.Limit = uint32(o) }

// FindKeys finds a queue's fairness keys that begin so, those with most pending first.
func (c *Client) FindKeys(
	ctx context.Context, queue, prefix string, opts ...FindOption,
) (*filav1.FindKeysResponse, error) {
	request := &filav1.FindKeysRequest{Queue: queue, Prefix: prefix}
	for _, opt := range opts {
		opt.applyToFind(request)
	}
	about := subject{queue: queue, channel: channelOrDefault(request.GetChannel())}
	plan := callPlan{about: about, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.FindKeys)
}

// KeysOption is what [Keys] returns.
type KeysOption []string

// Keys are fairness keys to tell besides, at most 50.
func Keys(names ...string) KeysOption { return names }

// A SeriesOption says more about GetSeries: a [Channel], or [Keys], which are recorded from then on, for the hour
// that follows.
type SeriesOption interface {
	applyToSeries(*filav1.GetSeriesRequest)
}

func (o ChannelOption) applyToSeries(r *filav1.GetSeriesRequest) { r.Channel = string(o) }
func (o KeysOption) applyToSeries(r *filav1.GetSeriesRequest)    { r.Keys = o }

// GetSeries looks back at the last hour of a channel and of some of its keys, in points of ten seconds.
func (c *Client) GetSeries(
	ctx context.Context, queue string, opts ...SeriesOption,
) (*filav1.GetSeriesResponse, error) {
	request := &filav1.GetSeriesRequest{Queue: queue}
	for _, opt := range opts {
		opt.applyToSeries(request)
	}
	about := subject{queue: queue, channel: channelOrDefault(request.GetChannel())}
	plan := callPlan{about: about, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.GetSeries)
}

// A WatchOption says more about WatchStats: a [Channel], [Keys], [OrderBy] or [Top].
type WatchOption interface {
	applyToWatch(*filav1.WatchStatsRequest)
}

type watchOption func(*filav1.WatchStatsRequest)

func (o watchOption) applyToWatch(r *filav1.WatchStatsRequest)   { o(r) }
func (o ChannelOption) applyToWatch(r *filav1.WatchStatsRequest) { r.Channel = string(o) }
func (o KeysOption) applyToWatch(r *filav1.WatchStatsRequest)    { r.Keys = o }

// OrderBy is by what the leading keys are ranked, largest first: their backlog unless set.
func OrderBy(order filav1.WatchStatsRequest_Order) WatchOption {
	return watchOption(func(r *filav1.WatchStatsRequest) { r.Order = order })
}

// Top is how many leading keys are told, at most 50; 20 unless set.
func Top(n uint32) WatchOption {
	return watchOption(func(r *filav1.WatchStatsRequest) { r.Top = &n })
}

// WatchStats loops over what changes in up to 20 queues and their leading keys: everything at first, then about once a
// second what changed. Without queues it tells of all of them, keys left out. A broken stream is opened again, and
// begins with everything. An error ends the loop: ErrQueueNotFound, ErrChannelNotFound, ErrInvalid; ErrUnavailable when
// the broker stays away.
func (c *Client) WatchStats(
	ctx context.Context, queues []string, opts ...WatchOption,
) iter.Seq2[*filav1.WatchStatsResponse, error] {
	request := &filav1.WatchStatsRequest{Queues: queues}
	for _, opt := range opts {
		opt.applyToWatch(request)
	}
	about := subject{channel: channelOrDefault(request.GetChannel())}
	if len(queues) == 1 {
		about.queue = queues[0]
	}
	return streamPlan[filav1.WatchStatsRequest, filav1.WatchStatsResponse]{
		about: about, request: request, open: c.connection.admin.WatchStats, goesOn: func() bool { return true },
	}.answers(ctx, c.connection)
}

// An EventsOption narrows WatchEvents, or has it go on: [EventsOfQueue], [EventsOfKind], a [FairnessKey],
// [EventsAfter], [FollowEvents].
type EventsOption interface {
	applyToEvents(*filav1.WatchEventsRequest)
}

type eventsOption func(*filav1.WatchEventsRequest)

func (o eventsOption) applyToEvents(r *filav1.WatchEventsRequest)      { o(r) }
func (o FairnessKeyOption) applyToEvents(r *filav1.WatchEventsRequest) { r.FairnessKey = string(o) }

// EventsOfQueue tells only of this queue.
func EventsOfQueue(queue string) EventsOption {
	return eventsOption(func(r *filav1.WatchEventsRequest) { r.Queue = queue })
}

// EventsOfKind tells only of these kinds: queue.created, or queue for all that begin with it. At most 64.
func EventsOfKind(kinds ...string) EventsOption {
	return eventsOption(func(r *filav1.WatchEventsRequest) { r.Kinds = kinds })
}

// EventsAfter tells only what came after the event at this position.
func EventsAfter(position uint64) EventsOption {
	return eventsOption(func(r *filav1.WatchEventsRequest) { r.AfterPosition = position })
}

// FollowEvents goes on with what happens; without it the loop ends with what is kept.
func FollowEvents() EventsOption {
	return eventsOption(func(r *filav1.WatchEventsRequest) { r.Follow = true })
}

// WatchEvents loops over what happened, oldest first. A broken stream is resumed where it was. An error ends the loop:
// ErrQueueNotFound, ErrNotAllowed; ErrUnavailable when the broker stays away.
func (c *Client) WatchEvents(ctx context.Context, opts ...EventsOption) iter.Seq2[*filav1.Event, error] {
	request := &filav1.WatchEventsRequest{}
	for _, opt := range opts {
		opt.applyToEvents(request)
	}
	return func(yield func(*filav1.Event, error) bool) {
		watching := proto.Clone(request).(*filav1.WatchEventsRequest)
		happened := streamPlan[filav1.WatchEventsRequest, filav1.WatchEventsResponse]{
			about: subject{queue: request.GetQueue()}, request: watching, open: c.connection.admin.WatchEvents,
			goesOn: watching.GetFollow,
		}
		for answer, err := range happened.answers(ctx, c.connection) {
			if err != nil {
				yield(nil, err)
				return
			}
			watching.AfterPosition = answer.GetNextPosition()
			for _, event := range answer.GetEvents() {
				if !yield(event, nil) {
					return
				}
			}
		}
	}
}
