package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	fila "github.com/fila-mq/fila/sdks/go"
	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// What operators look at, and what they do with dead letters.
func init() { maps.Copy(operations, observing) }

var observing = map[string]operation{
	"get_status": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts := []fila.StatusOption{fila.TroublesOfQueue(r.Queue), fila.MaxTroubles(r.MaxTroubles)}
		if r.Fairness != nil {
			opts = append(opts, fila.FairnessKey(*r.Fairness))
		}
		told, err := c.GetStatus(ctx, opts...)
		return plain(told), err
	}),
	"list_late": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.LateOption
		if r.MaxKeys != nil {
			opts = append(opts, fila.MaxKeys(*r.MaxKeys))
		}
		told, err := c.ListLate(ctx, r.Queue, opts...)
		return plain(told), err
	}),
	"list_key_policies": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.PoliciesOption
		if r.Fairness != nil {
			opts = append(opts, fila.FairnessKey(*r.Fairness))
		}
		told, err := c.ListKeyPolicies(ctx, r.Queue, opts...)
		return answer{"policies": listed(told)}, err
	}),
	"find_keys": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts := as[fila.FindOption](r.channel())
		if r.Limit != nil {
			opts = append(opts, fila.Limit(*r.Limit))
		}
		told, err := c.FindKeys(ctx, r.Queue, r.Prefix, opts...)
		return plain(told), err
	}),
	"get_series": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts := as[fila.SeriesOption](r.channel())
		if r.Keys != nil {
			opts = append(opts, fila.Keys(r.Keys...))
		}
		told, err := c.GetSeries(ctx, r.Queue, opts...)
		return plain(told), err
	}),
	"watch_stats": withClient(watchStats),
	"watch_events": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.EventsOption
		if r.Queue != "" {
			opts = append(opts, fila.EventsOfQueue(r.Queue))
		}
		if r.Kinds != nil {
			opts = append(opts, fila.EventsOfKind(r.Kinds...))
		}
		if r.Fairness != nil {
			opts = append(opts, fila.FairnessKey(*r.Fairness))
		}
		if r.AfterPosition != 0 {
			opts = append(opts, fila.EventsAfter(r.AfterPosition))
		}
		if r.Follow {
			opts = append(opts, fila.FollowEvents())
		}
		told, err := taken(c.WatchEvents(ctx, opts...), r.MaxEvents)
		return answer{"events": told}, err
	}),
	"list_queue_versions": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		var opts []fila.VersionsOption
		if r.Before != nil {
			opts = append(opts, fila.Before(*r.Before))
		}
		if r.Limit != nil {
			opts = append(opts, fila.Limit(*r.Limit))
		}
		told, err := c.ListQueueVersions(ctx, r.Queue, opts...)
		return answer{"versions": listed(told)}, err
	}),
	"get_queue_version": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.GetQueueVersion(ctx, r.Queue, r.Number)
		return plain(told), err
	}),
	"dry_run_policy": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		opts, err := queueOptions(r.Config)
		if err != nil {
			return nil, err
		}
		told, err := c.DryRunPolicy(ctx, r.Queue, r.Last, opts...)
		return plain(told), err
	}),
	"drop_dead_letters": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		dropped, err := c.DropDeadLetters(ctx, r.Queue, r.Offsets)
		return answer{"dropped": dropped}, err
	}),
	"edit_dead_letter": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		id, err := c.EditDeadLetter(ctx, r.Queue, *r.Offset, r.Headers, r.Payload)
		return answer{"message_id": id}, err
	}),
	"create_schedule": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.CreateSchedule(ctx, r.Queue, r.Schedule, r.Settings.wire())
		return plain(told), err
	}),
	"update_schedule": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.UpdateSchedule(ctx, r.Queue, r.Schedule, r.Settings.wire())
		return plain(told), err
	}),
	"pause_schedule": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.PauseSchedule(
			ctx, r.Queue, r.Schedule, r.Paused == nil || *r.Paused, fila.PauseComment(r.Comment))
		return plain(told), err
	}),
	"delete_schedule": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return answer{}, c.DeleteSchedule(ctx, r.Queue, r.Schedule)
	}),
	"get_schedule": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.GetSchedule(ctx, r.Queue, r.Schedule)
		return plain(told), err
	}),
	"list_schedules": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.ListSchedules(ctx, r.Queue, r.PageSize, r.PageToken)
		return plain(told), err
	}),
	"set_limit": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.SetLimit(ctx, r.limit())
		return plain(told), err
	}),
	"get_limit": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.GetLimit(ctx, r.ThrottleKey)
		if told == nil {
			return answer{"limit": nil}, err
		}
		return answer{"limit": plain(told)}, err
	}),
	"list_limits": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.ListLimits(ctx, r.Prefix, r.After, r.MaxLimits)
		return plain(told), err
	}),
	"delete_limit": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		return answer{}, c.DeleteLimit(ctx, *r.Name)
	}),
	"reset_limit": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.ResetLimit(ctx, r.ThrottleKey, r.Spent)
		return plain(told), err
	}),
	"start_operation": withClient(startOperation),
	"watch_operation": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := taken(c.WatchOperation(ctx, r.Queue, r.OperationID), 0)
		return answer{"operations": told}, err
	}),
	"list_operations": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.ListOperations(ctx, r.Queue)
		return answer{"operations": listed(told)}, err
	}),
	"cancel_operation": withClient(func(ctx context.Context, c *fila.Client, r *request) (answer, error) {
		told, err := c.CancelOperation(ctx, r.Queue, r.OperationID)
		return plain(told), err
	}),
}

// taken is what a loop gives, at most so many where that is not 0.
func taken[T proto.Message](items iter.Seq2[T, error], most int) ([]answer, error) {
	told := []answer{}
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		if told = append(told, plain(item)); len(told) == most {
			break
		}
	}
	return told, nil
}

func watchStats(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	opts := as[fila.WatchOption](r.channel())
	if r.Order != "" {
		order, known := filav1.WatchStatsRequest_Order_value["ORDER_"+strings.ToUpper(r.Order)]
		if !known {
			return nil, fmt.Errorf("%w: order %s", errUnsupported, r.Order)
		}
		opts = append(opts, fila.OrderBy(filav1.WatchStatsRequest_Order(order)))
	}
	if r.Top != nil {
		opts = append(opts, fila.Top(*r.Top))
	}
	if r.Keys != nil {
		opts = append(opts, fila.Keys(r.Keys...))
	}
	told, err := taken(c.WatchStats(ctx, r.Queues, opts...), r.MaxChanges)
	return answer{"changes": told}, err
}

func startOperation(ctx context.Context, c *fila.Client, r *request) (answer, error) {
	kind, known := map[string]fila.OperationKind{
		"redrive": fila.OperationRedrive, "delete": fila.OperationDelete, "purge": fila.OperationPurge,
	}[r.Kind]
	if !known {
		return nil, fmt.Errorf("%w: kind %s", errUnsupported, r.Kind)
	}
	var opts []fila.OperationOption
	if r.RatePerSecond != nil {
		opts = append(opts, fila.OperationRate(*r.RatePerSecond))
	}
	if f := r.Filter; f != nil {
		if f.FairnessKey != nil {
			opts = append(opts, fila.FairnessKey(*f.FairnessKey))
		}
		if f.Reason != nil {
			opts = append(opts, fila.DiedOf(*f.Reason))
		}
		if f.Error != nil {
			opts = append(opts, fila.DiedWith(*f.Error))
		}
		if f.DiedFromMs != nil {
			opts = append(opts, fila.DiedSince(time.UnixMilli(*f.DiedFromMs)))
		}
		if f.DiedBeforeMs != nil {
			opts = append(opts, fila.DiedBefore(time.UnixMilli(*f.DiedBeforeMs)))
		}
		if f.SourceChannel != nil {
			opts = append(opts, fila.Channel(*f.SourceChannel))
		}
	}
	told, err := c.StartOperation(ctx, r.Queue, kind, opts...)
	return plain(told), err
}
