package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	fila "github.com/fila-mq/fila/sdks/go"
)

type operation func(*driver, context.Context, *request) (answer, error)

// withClient is an operation on a client.
func withClient(call func(context.Context, *fila.Client, *request) (answer, error)) operation {
	return func(d *driver, ctx context.Context, r *request) (answer, error) {
		c, err := d.client(r)
		if err != nil {
			return nil, err
		}
		return call(ctx, c.Client, r)
	}
}

// withMessage is an operation on a message that was handed out.
func withMessage(call func(context.Context, *fila.Message, *request) (answer, error)) operation {
	return func(d *driver, ctx context.Context, r *request) (answer, error) {
		m, err := d.message(r.Handle)
		if err != nil {
			return nil, err
		}
		return call(ctx, m, r)
	}
}

// withMessages is an operation on many of them.
func withMessages(call func(context.Context, *fila.Client, []*fila.Message, *request) error) operation {
	return func(d *driver, ctx context.Context, r *request) (answer, error) {
		c, err := d.client(r)
		if err != nil {
			return nil, err
		}
		messages := make([]*fila.Message, len(r.Handles))
		for i, handle := range r.Handles {
			if messages[i], err = d.message(handle); err != nil {
				return nil, err
			}
		}
		return nil, call(ctx, c.Client, messages, r)
	}
}

var operations = map[string]operation{
	"connect":           connect,
	"close":             closeClient,
	"cancel":            cancel,
	"connection_events": connectionEvents,
	"enqueue":           withClient(enqueue),
	"enqueue_many":      withClient(enqueueMany),
	"consume":           consume,
	"receive":           receive,
	"receive_batch":     receiveBatch,
	"leave":             leave,
	"await_lost":        awaitLost,
	"lease":             lease,
	"ack": withMessage(func(ctx context.Context, m *fila.Message, _ *request) (answer, error) {
		return nil, m.Ack(ctx)
	}),
	"nack": withMessage(func(ctx context.Context, m *fila.Message, r *request) (answer, error) {
		if r.DeadLetter {
			return nil, m.Reject(ctx, r.Error)
		}
		return nil, m.Nack(ctx, r.Error, r.nackOptions()...)
	}),
	"reject": withMessage(func(ctx context.Context, m *fila.Message, r *request) (answer, error) {
		return nil, m.Reject(ctx, r.Error)
	}),
	"release": withMessage(func(ctx context.Context, m *fila.Message, _ *request) (answer, error) {
		return nil, m.Release(ctx)
	}),
	"span_of": withMessage(spanOf),
	"limited": withMessage(func(ctx context.Context, m *fila.Message, r *request) (answer, error) {
		return nil, m.Limited(ctx, fila.Limited{RetryAfter: ms(r.RetryAfterMs), Limit: r.ThrottleKey, Reason: r.Error})
	}),
	"extend": withMessage(func(ctx context.Context, m *fila.Message, r *request) (answer, error) {
		until, err := m.Extend(ctx, ms(r.ExtendMs))
		return answer{"lease_expires_at_ms": moment(until)}, err
	}),
	"ack_by_id": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return nil, c.Ack(ctx, r.Queue, r.MessageID, as[fila.SettleOption](r.channel())...)
	}),
	"nack_by_id": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		if r.DeadLetter {
			return nil, c.Reject(ctx, r.Queue, r.MessageID, r.Error, as[fila.SettleOption](r.channel())...)
		}
		opts := append(r.nackOptions(), as[fila.NackOption](r.channel())...)
		return nil, c.Nack(ctx, r.Queue, r.MessageID, r.Error, opts...)
	}),
	"release_by_id": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return nil, c.Release(ctx, r.Queue, r.MessageID, as[fila.SettleOption](r.channel())...)
	}),
	"extend_by_id": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		until, err := c.Extend(ctx, r.Queue, r.MessageID, ms(r.ExtendMs), as[fila.SettleOption](r.channel())...)
		return answer{"lease_expires_at_ms": moment(until)}, err
	}),
	"ack_many": withMessages(func(ctx context.Context, c *fila.Client, messages []*fila.Message, _ *request) error {
		return c.AckMany(ctx, messages)
	}),
	"nack_many": withMessages(func(ctx context.Context, c *fila.Client, messages []*fila.Message, r *request) error {
		return c.NackMany(ctx, messages, r.Error, r.nackOptions()...)
	}),
	"release_many": withMessages(func(ctx context.Context, c *fila.Client, messages []*fila.Message, _ *request) error {
		return c.ReleaseMany(ctx, messages)
	}),
	"create_queue": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts, err := queueOptions(r.Config)
		if err != nil {
			return nil, err
		}
		return nil, c.CreateQueue(ctx, r.Queue, opts...)
	}),
	"get_queue": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		got, err := c.GetQueue(ctx, r.Queue)
		return plain(got), err
	}),
	"update_queue": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts, err := queueOptions(r.Config)
		if err != nil {
			return nil, err
		}
		if r.ExpectedVersion != 0 {
			opts = append(opts, fila.ExpectedVersion(r.ExpectedVersion))
		}
		if r.Comment != "" {
			opts = append(opts, fila.Comment(r.Comment))
		}
		got, err := c.UpdateQueue(ctx, r.Queue, opts...)
		return answer{"config": plain(got)}, err
	}),
	"delete_queue": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return nil, c.DeleteQueue(ctx, r.Queue, r.force()...)
	}),
	"list_queues": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		got, err := c.ListQueues(
			ctx, fila.QueuesFrom(r.Prefix), fila.QueuesContaining(r.Containing),
			fila.QueuesPage(r.PageSize, r.PageToken))
		return answer{"queues": listed(got)}, err
	}),
	"get_stats": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts := as[fila.StatsOption](r.channel())
		if r.MaxKeys != nil {
			opts = append(opts, fila.MaxKeys(*r.MaxKeys))
		}
		got, err := c.GetStats(ctx, r.Queue, opts...)
		return plain(got), err
	}),
	"purge": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		purged, err := c.Purge(ctx, r.Queue, r.purgeOptions()...)
		return answer{"purged": purged}, err
	}),
	"peek": withClient(peek),
	"list_pending": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts, count := pageAsked(r)
		seen, err := c.ListPending(ctx, r.Queue, count, opts...)
		return answer{"messages": listed(seen)}, err
	}),
	"redrive": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.RedriveOption
		if r.Count != nil {
			opts = append(opts, fila.RedriveCount(*r.Count))
		}
		if r.RatePerSecond != nil {
			opts = append(opts, fila.RedriveRate(*r.RatePerSecond))
		}
		if r.Offsets != nil {
			opts = append(opts, fila.RedriveOffsets(r.Offsets...))
		}
		redriven, err := c.Redrive(ctx, r.Queue, opts...)
		return answer{"redriven": redriven}, err
	}),
	"create_channel": withClient(createChannel),
	"delete_channel": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return nil, c.DeleteChannel(ctx, r.Queue, r.channelName())
	}),
	"list_channels": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		got, err := c.ListChannels(ctx, r.Queue)
		return answer{"channels": listed(got)}, err
	}),
	"seek_channel": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		switch {
		case r.ValidateOnly && r.TimeMs != nil:
			told, err := c.PreviewSeekTime(ctx, r.Queue, r.channelName(), time.UnixMilli(*r.TimeMs))
			return plain(told), err
		case r.ValidateOnly:
			told, err := c.PreviewSeekOffset(ctx, r.Queue, r.channelName(), *r.Offset)
			return plain(told), err
		}
		if r.TimeMs != nil {
			offset, err := c.SeekTime(ctx, r.Queue, r.channelName(), time.UnixMilli(*r.TimeMs))
			return answer{"offset": offset}, err
		}
		offset, err := c.SeekOffset(ctx, r.Queue, r.channelName(), *r.Offset)
		return answer{"offset": offset}, err
	}),
	"purge_channel": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		purged, err := c.PurgeChannel(ctx, r.Queue, r.purgeOptions()...)
		return answer{"purged": purged}, err
	}),
	"set_config": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return nil, c.SetConfig(ctx, r.Key, r.Value)
	}),
	"get_config": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		value, err := c.GetConfig(ctx, r.Key)
		return answer{"value": value}, err
	}),
	"list_config": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		got, err := c.ListConfig(ctx, r.Prefix)
		entries := answer{}
		for _, entry := range got {
			entries[entry.Key] = entry.Value
		}
		return answer{"entries": entries}, err
	}),
	"set_key_policy": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		got, err := c.SetKeyPolicy(ctx, r.Queue, r.fairnessKey(), r.keyPolicy()...)
		return plain(got), err
	}),
	"preview_key_policy": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts := append(as[fila.PreviewOption](r.keyPolicy()), as[fila.PreviewOption](r.channel())...)
		got, err := c.PreviewKeyPolicy(ctx, r.Queue, r.fairnessKey(), opts...)
		return plain(got), err
	}),
	"explain_key": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		got, err := c.ExplainKey(ctx, r.Queue, r.fairnessKey(), as[fila.ExplainOption](r.channel())...)
		return plain(got), err
	}),
	"skip_message": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts := as[fila.SkipOption](r.channel())
		if r.MessageID != "" {
			opts = append(opts, fila.OnlyMessage(r.MessageID))
		}
		got, err := c.SkipMessage(ctx, r.Queue, r.fairnessKey(), opts...)
		return plain(got), err
	}),
	"get_message":     withClient(getMessage),
	"cancel_messages": withClient(cancelMessages),
	"read_log":        withClient(readLog),
	"list_consumers": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		got, err := c.ListConsumers(ctx, r.Queue, as[fila.ConsumersOption](r.channel())...)
		return answer{"consumers": listed(got)}, err
	}),
}

func (r *request) force() []fila.ForceOption {
	if r.Force {
		return []fila.ForceOption{fila.Force()}
	}
	return nil
}

func (r *request) channelName() string {
	if r.Channel == nil {
		return ""
	}
	return *r.Channel
}

func (r *request) fairnessKey() string {
	if r.Fairness == nil {
		return ""
	}
	return *r.Fairness
}

func (r *request) nackOptions() []fila.NackOption {
	if r.DelayMs == nil {
		return nil
	}
	return []fila.NackOption{fila.Delay(ms(*r.DelayMs))}
}

func (r *request) purgeOptions() []fila.PurgeOption {
	opts := as[fila.PurgeOption](r.channel())
	if r.Fairness != nil {
		opts = append(opts, fila.FairnessKey(*r.Fairness))
	}
	return opts
}

func connect(d *driver, _ context.Context, r *request) (answer, error) {
	c := &connected{}
	opts, err := connectOptions(r.Options, func(event fila.ConnectionEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, event.Kind)
	})
	if err != nil {
		return nil, err
	}
	if c.Client, err = fila.Connect(r.Target, opts...); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients[r.Client] = c
	return nil, nil
}

func closeClient(d *driver, _ context.Context, r *request) (answer, error) {
	c, err := d.client(r)
	if err != nil {
		return nil, err
	}
	return nil, c.Close()
}

func cancel(d *driver, _ context.Context, r *request) (answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stop := d.cancels[r.Request]; stop != nil {
		stop()
	}
	return nil, nil
}

func connectionEvents(d *driver, _ context.Context, r *request) (answer, error) {
	c, err := d.client(r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return answer{"events": append([]fila.ConnectionEventKind{}, c.events...)}, nil
}

func enqueue(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	receipt, err := c.EnqueueMessage(ctx, r.Queue, r.single())
	return storedAnswer(receipt), err
}

func enqueueMany(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	messages := make([]fila.NewMessage, len(r.Messages))
	for i := range r.Messages {
		messages[i] = r.Messages[i].message()
	}
	receipts, err := c.EnqueueMany(ctx, r.Queue, messages)
	var some *fila.SomeFailedError
	if errors.As(err, &some) {
		return nil, &partly{some, receipts}
	}
	results := []answer{}
	for _, receipt := range receipts {
		results = append(results, storedAnswer(receipt))
	}
	return answer{"results": results}, err
}

func lease(d *driver, ctx context.Context, r *request) (answer, error) {
	c, err := d.client(r)
	if err != nil {
		return nil, err
	}
	opts, count := as[fila.LeaseOption](r.channel()), 1
	if r.WaitMs != nil {
		opts = append(opts, fila.Wait(ms(*r.WaitMs)))
	}
	if r.MaxMessages != nil {
		count = *r.MaxMessages
	}
	pulled, err := c.Lease(ctx, r.Queue, count, opts...)
	messages := []answer{}
	for _, m := range pulled {
		messages = append(messages, d.handOut(m))
	}
	return answer{"messages": messages}, err
}

func pageAsked(r *request) ([]fila.PeekOption, int) {
	opts, count := as[fila.PeekOption](r.channel()), 10
	if r.Fairness != nil {
		opts = append(opts, fila.FairnessKey(*r.Fairness))
	}
	if r.AfterOffset != nil {
		opts = append(opts, fila.AfterOffset(*r.AfterOffset))
	}
	if r.MaxMessages != nil {
		count = *r.MaxMessages
	}
	return opts, count
}

func peek(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	opts, count := pageAsked(r)
	seen, err := c.Peek(ctx, r.Queue, count, opts...)
	messages := []answer{}
	for _, m := range seen {
		messages = append(messages, messageAnswer(m))
	}
	return answer{"messages": messages}, err
}

func createChannel(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	var opts []fila.ChannelStart
	if r.Start != nil {
		start, err := channelStart(r.Start)
		if err != nil {
			return nil, err
		}
		opts = append(opts, start)
	}
	if r.ExpiresIdle != nil {
		opts = append(opts, fila.ChannelExpiresAfterIdle(ms(*r.ExpiresIdle)))
	}
	offset, err := c.CreateChannel(ctx, r.Queue, r.channelName(), opts...)
	return answer{"start_offset": offset}, err
}

func channelStart(raw json.RawMessage) (fila.ChannelStart, error) {
	switch string(raw) {
	case `"head"`:
		return fila.FromHead(), nil
	case `"oldest"`:
		return fila.FromOldest(), nil
	}
	place, err := decode[struct {
		Offset *uint64 `json:"offset"`
		TimeMs *int64  `json:"time_ms"`
	}](raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: start: %w", errUnsupported, err)
	case place.Offset != nil:
		return fila.FromOffset(*place.Offset), nil
	case place.TimeMs != nil:
		return fila.FromTime(time.UnixMilli(*place.TimeMs)), nil
	}
	return nil, fmt.Errorf("%w: start %s", errUnsupported, raw)
}

func readLog(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	opts := []fila.LogOption{fila.LogOffsets(r.FromOffset, r.ToOffset)}
	if r.FromTimeMs != nil {
		opts = append(opts, fila.LogSince(time.UnixMilli(*r.FromTimeMs)))
	}
	if r.ToTimeMs != nil {
		opts = append(opts, fila.LogBefore(time.UnixMilli(*r.ToTimeMs)))
	}
	if r.Fairness != nil {
		opts = append(opts, fila.FairnessKey(*r.Fairness))
	}
	if r.MaxBatch != nil {
		opts = append(opts, fila.LogBatch(*r.MaxBatch))
	}
	count := 1000
	if r.MaxMessages != nil {
		count = *r.MaxMessages
	}
	messages := []answer{}
	for m, err := range c.ReadLog(ctx, r.Queue, opts...) {
		if err != nil {
			return nil, err
		}
		if messages = append(messages, messageAnswer(m)); len(messages) == count {
			break
		}
	}
	return answer{"messages": messages}, nil
}
