package fila

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// A ChannelStart says where a new channel begins: [FromHead], [FromOldest], [FromOffset] or [FromTime]; or,
// with [ChannelExpiresAfterIdle], how it ends.
type ChannelStart func(*filav1.CreateChannelRequest)

// FromHead: the channel sees only what is appended from now on; the default.
func FromHead() ChannelStart {
	return func(r *filav1.CreateChannelRequest) { r.Start = &filav1.CreateChannelRequest_Head{Head: true} }
}

// FromOldest: the channel sees everything that is retained.
func FromOldest() ChannelStart {
	return func(r *filav1.CreateChannelRequest) { r.Start = &filav1.CreateChannelRequest_Oldest{Oldest: true} }
}

// FromOffset: the channel sees what is retained from this offset on.
func FromOffset(offset uint64) ChannelStart {
	return func(r *filav1.CreateChannelRequest) { r.Start = &filav1.CreateChannelRequest_Offset{Offset: offset} }
}

// FromTime: the channel sees what was appended at this moment or later.
func FromTime(moment time.Time) ChannelStart {
	return func(r *filav1.CreateChannelRequest) {
		r.Start = &filav1.CreateChannelRequest_Time{Time: timestamppb.New(moment)}
	}
}

// ChannelExpiresAfterIdle deletes the channel after this long without a consumer or pull: at least 1 s.
func ChannelExpiresAfterIdle(d time.Duration) ChannelStart {
	return func(r *filav1.CreateChannelRequest) { r.ExpiresAfterIdleMs = milliseconds(d) }
}

// CreateChannel adds a channel to a queue, and returns the first offset it will see. It fails with
// ErrQueueNotFound, ErrChannelExists.
func (c *Client) CreateChannel(
	ctx context.Context, queue, channel string, opts ...ChannelStart,
) (uint64, error) {
	request := &filav1.CreateChannelRequest{Queue: queue, Channel: channel}
	for _, opt := range opts {
		opt(request)
	}
	plan := callPlan{about: subject{queue: queue, channel: channel}}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.CreateChannel)
	return answer.GetStartOffset(), err
}

// DeleteChannel deletes a channel, its leases and what it had pending.
func (c *Client) DeleteChannel(ctx context.Context, queue, channel string) error {
	request := &filav1.DeleteChannelRequest{Queue: queue, Channel: channel}
	plan := callPlan{about: subject{queue: queue, channel: channel}}
	_, err := call(ctx, c.connection, plan, request, c.connection.admin.DeleteChannel)
	return err
}

// ListChannels returns a queue's channels in numbers, sorted by name.
func (c *Client) ListChannels(ctx context.Context, queue string) ([]*filav1.ChannelInfo, error) {
	request := &filav1.ListChannelsRequest{Queue: queue}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ListChannels)
	return answer.GetChannels(), err
}

// SeekOffset moves a channel to an offset; its leases end. An empty channel means `default`. It returns the
// offset it is at now, which lies within what is retained.
func (c *Client) SeekOffset(ctx context.Context, queue, channel string, offset uint64) (uint64, error) {
	answer, err := c.seek(ctx, seekOffset(queue, channel, offset))
	return answer.GetOffset(), err
}

// SeekTime is SeekOffset to the first message appended at this moment or later.
func (c *Client) SeekTime(ctx context.Context, queue, channel string, moment time.Time) (uint64, error) {
	answer, err := c.seek(ctx, seekTime(queue, channel, moment))
	return answer.GetOffset(), err
}

// PreviewSeekOffset says what SeekOffset would do, and does nothing: how many messages would be delivered again, how
// many not any more, how many leases would end.
func (c *Client) PreviewSeekOffset(
	ctx context.Context, queue, channel string, offset uint64,
) (*filav1.SeekChannelResponse, error) {
	request := seekOffset(queue, channel, offset)
	request.ValidateOnly = true
	return c.seek(ctx, request)
}

// PreviewSeekTime says what SeekTime would do, and does nothing.
func (c *Client) PreviewSeekTime(
	ctx context.Context, queue, channel string, moment time.Time,
) (*filav1.SeekChannelResponse, error) {
	request := seekTime(queue, channel, moment)
	request.ValidateOnly = true
	return c.seek(ctx, request)
}

func seekOffset(queue, channel string, offset uint64) *filav1.SeekChannelRequest {
	return &filav1.SeekChannelRequest{
		Queue: queue, Channel: channel, Target: &filav1.SeekChannelRequest_Offset{Offset: offset},
	}
}

func seekTime(queue, channel string, moment time.Time) *filav1.SeekChannelRequest {
	return &filav1.SeekChannelRequest{
		Queue: queue, Channel: channel, Target: &filav1.SeekChannelRequest_Time{Time: timestamppb.New(moment)},
	}
}

// seek is made once: a second one would take back the leases given since the first. One that only looks may be
// repeated.
func (c *Client) seek(
	ctx context.Context, request *filav1.SeekChannelRequest,
) (*filav1.SeekChannelResponse, error) {
	about := subject{queue: request.GetQueue(), channel: channelOrDefault(request.GetChannel())}
	plan := callPlan{about: about, repeatable: request.GetValidateOnly()}
	return call(ctx, c.connection, plan, request, c.connection.admin.SeekChannel)
}

// PurgeChannel drops what is pending in one channel; others keep theirs. It returns how many messages.
func (c *Client) PurgeChannel(ctx context.Context, queue string, opts ...PurgeOption) (uint64, error) {
	plan := purgePlanOf(opts)
	request := &filav1.PurgeChannelRequest{Queue: queue, FairnessKey: plan.key}
	if plan.channel != nil {
		request.Channel = *plan.channel
	}
	about := subject{queue: queue, channel: channelOrDefault(request.GetChannel())}
	answer, err := call(ctx, c.connection, callPlan{about: about}, request, c.connection.admin.PurgeChannel)
	return answer.GetPurged(), err
}

// A ConsumersOption narrows ListConsumers: a [Channel].
type ConsumersOption interface {
	applyToConsumers(*filav1.ListConsumersRequest)
}

func (o ChannelOption) applyToConsumers(r *filav1.ListConsumersRequest) { r.Channel = string(o) }

// ListConsumers returns who consumes a queue, and what each consumer holds, oldest first.
func (c *Client) ListConsumers(
	ctx context.Context, queue string, opts ...ConsumersOption,
) ([]*filav1.ConsumerInfo, error) {
	request := &filav1.ListConsumersRequest{Queue: queue}
	for _, opt := range opts {
		opt.applyToConsumers(request)
	}
	plan := callPlan{about: subject{queue: queue, channel: request.GetChannel()}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ListConsumers)
	return answer.GetConsumers(), err
}
