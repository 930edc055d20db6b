package fila

import (
	"context"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// ScheduleSettings say when a schedule fires, by Cron and TimeZone or by EveryMs, and what it enqueues.
type ScheduleSettings = filav1.ScheduleSettings

// What becomes of moments at which the broker could not fire.
const (
	// MissedOne is one message for all of them, which names the newest; it is the default.
	MissedOne = filav1.MissedRule_MISSED_RULE_ONE
	// MissedAll is a message for each, for the newest 100 at most.
	MissedAll = filav1.MissedRule_MISSED_RULE_ALL
	// MissedSkip is none.
	MissedSkip = filav1.MissedRule_MISSED_RULE_SKIP
)

// CreateSchedule makes a schedule of a queue: messages that the broker enqueues by itself. It fails with
// ErrQueueNotFound, ErrExists, ErrInvalid (for a cron line that never fires, too).
func (c *Client) CreateSchedule(
	ctx context.Context, queue, schedule string, settings *ScheduleSettings,
) (*filav1.Schedule, error) {
	request := &filav1.CreateScheduleRequest{Queue: queue, Schedule: schedule, Settings: settings}
	plan := callPlan{about: subject{queue: queue}, repeatable: once}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.CreateSchedule)
	return answer.GetSchedule(), err
}

// UpdateSchedule gives a schedule these settings, and all that are left out their defaults. It fails with
// ErrQueueNotFound, ErrNotFound, ErrInvalid.
func (c *Client) UpdateSchedule(
	ctx context.Context, queue, schedule string, settings *ScheduleSettings,
) (*filav1.Schedule, error) {
	request := &filav1.UpdateScheduleRequest{Queue: queue, Schedule: schedule, Settings: settings}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.UpdateSchedule)
	return answer.GetSchedule(), err
}

// PauseOption says more of a pause.
type PauseOption func(*filav1.PauseScheduleRequest)

// PauseComment says why, in at most 1,024 bytes; it is kept with the pause.
func PauseComment(comment string) PauseOption {
	return func(r *filav1.PauseScheduleRequest) { r.Comment = comment }
}

// PauseSchedule pauses a schedule, or lets it go on with the first moment that comes. It fails with ErrQueueNotFound,
// ErrNotFound.
func (c *Client) PauseSchedule(
	ctx context.Context, queue, schedule string, paused bool, options ...PauseOption,
) (*filav1.Schedule, error) {
	request := &filav1.PauseScheduleRequest{Queue: queue, Schedule: schedule, Paused: paused}
	for _, option := range options {
		option(request)
	}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.PauseSchedule)
	return answer.GetSchedule(), err
}

// DeleteSchedule deletes a schedule; what it has enqueued stays. It fails with ErrQueueNotFound, ErrNotFound.
func (c *Client) DeleteSchedule(ctx context.Context, queue, schedule string) error {
	request := &filav1.DeleteScheduleRequest{Queue: queue, Schedule: schedule}
	plan := callPlan{about: subject{queue: queue}, repeatable: once}
	_, err := call(ctx, c.connection, plan, request, c.connection.admin.DeleteSchedule)
	return err
}

// GetSchedule returns how a schedule stands, with its next five moments. It fails with ErrQueueNotFound, ErrNotFound.
func (c *Client) GetSchedule(ctx context.Context, queue, schedule string) (*filav1.Schedule, error) {
	request := &filav1.GetScheduleRequest{Queue: queue, Schedule: schedule}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.GetSchedule)
	return answer.GetSchedule(), err
}

// ListSchedules returns schedules with their next five moments, of one queue or, where the name is empty, of all:
// pageSize of them (0 for 100, at most 1,000), behind an earlier page where its NextPageToken is given.
func (c *Client) ListSchedules(
	ctx context.Context, queue string, pageSize uint32, pageToken string,
) (*filav1.ListSchedulesResponse, error) {
	request := &filav1.ListSchedulesRequest{Queue: queue, PageSize: pageSize, PageToken: pageToken}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.ListSchedules)
}
