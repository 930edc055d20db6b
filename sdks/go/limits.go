package fila

import (
	"context"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// LimitSettings are a limit: a name, and at least one of rates, slots (MaxInFlight) and a budget.
type LimitSettings = filav1.Limit

// LimitRate is a token bucket of a limit.
type LimitRate = filav1.Rate

// LimitBudget is what may be used within each of periods of one length.
type LimitBudget = filav1.Budget

// LimitLearn says between which bounds the first rate follows its provider, in messages a second.
type LimitLearn = filav1.Learn

// What a rate or a budget counts.
const (
	// UnitMessages counts each message as 1; it is the default.
	UnitMessages = filav1.Limit_UNIT_MESSAGES
	// UnitCost counts each message as its cost.
	UnitCost = filav1.Limit_UNIT_COST
)

// SetLimit sets the limit of a throttle key as a whole, or where its name ends in a * that of each throttle key which
// begins so. It returns the limit with all that was left out. It needs the right `admin`, as all calls about limits. It
// fails with ErrInvalid.
func (c *Client) SetLimit(ctx context.Context, limit *LimitSettings) (*LimitSettings, error) {
	plan := callPlan{repeatable: repeatable}
	request := &filav1.SetLimitRequest{Limit: limit}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.SetLimit)
	return answer.GetLimit(), err
}

// GetLimit returns the limit that messages with this throttle key meet, its own or that of a pattern, and what of it is
// used; nil where nothing limits it.
func (c *Client) GetLimit(ctx context.Context, throttleKey string) (*filav1.LimitState, error) {
	plan := callPlan{repeatable: repeatable}
	request := &filav1.ListLimitsRequest{ThrottleKey: throttleKey}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ListLimits)
	if err != nil || len(answer.GetLimits()) == 0 {
		return nil, err
	}
	return answer.GetLimits()[0], nil
}

// ListLimits returns the limits whose names begin with prefix, in the order of their names: maxLimits of them (0 for
// 100, at most 1,000), behind the name after where that is not empty.
func (c *Client) ListLimits(
	ctx context.Context, prefix, after string, maxLimits uint32,
) (*filav1.ListLimitsResponse, error) {
	plan := callPlan{repeatable: repeatable}
	request := &filav1.ListLimitsRequest{Prefix: prefix, After: after, MaxLimits: maxLimits}
	return call(ctx, c.connection, plan, request, c.connection.admin.ListLimits)
}

// DeleteLimit deletes a limit by the name it was set with; what waits for it goes. It fails with ErrNotFound.
func (c *Client) DeleteLimit(ctx context.Context, name string) error {
	request := &filav1.DeleteLimitRequest{LimitName: name}
	_, err := call(ctx, c.connection, callPlan{repeatable: once}, request, c.connection.admin.DeleteLimit)
	return err
}

// ResetLimit says how much of its budget a throttle key has spent in this period, and returns how its limit is then. It
// fails with ErrNotFound, ErrInvalid.
func (c *Client) ResetLimit(ctx context.Context, throttleKey string, spent float64) (*filav1.LimitState, error) {
	// A second one would forget what was spent since the first.
	plan := callPlan{repeatable: once}
	request := &filav1.ResetLimitRequest{ThrottleKey: throttleKey, Spent: spent}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ResetLimit)
	return answer.GetLimit(), err
}
