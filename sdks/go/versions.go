package fila

import (
	"context"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// BeforeOption is what [Before] returns.
type BeforeOption uint64

// Before turns the page of a list that begins with the newest: only what has a number below this, the last one's.
func Before(number uint64) BeforeOption { return BeforeOption(number) }

// A VersionsOption says more about ListQueueVersions: [Before], or [Limit].
type VersionsOption interface {
	applyToVersions(*filav1.ListQueueVersionsRequest)
}

func (o BeforeOption) applyToVersions(r *filav1.ListQueueVersionsRequest) { r.Before = uint64(o) }
func (o LimitOption) applyToVersions(r *filav1.ListQueueVersionsRequest)  { r.Limit = uint32(o) }

// ListQueueVersions returns the versions of a queue's settings, newest first: who changed what, when, and why. The last
// 100 are kept.
func (c *Client) ListQueueVersions(
	ctx context.Context, queue string, opts ...VersionsOption,
) ([]*filav1.QueueVersion, error) {
	request := &filav1.ListQueueVersionsRequest{Queue: queue}
	for _, opt := range opts {
		opt.applyToVersions(request)
	}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ListQueueVersions)
	return answer.GetVersions(), err
}

// GetQueueVersion reads one version of a queue's settings, the newest for number 0. It fails with ErrQueueNotFound, and
// with ErrNotFound for a version that is not kept.
func (c *Client) GetQueueVersion(
	ctx context.Context, queue string, number uint64,
) (*filav1.GetQueueVersionResponse, error) {
	request := &filav1.GetQueueVersionRequest{Queue: queue, Number: number}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.GetQueueVersion)
}

// DryRunPolicy says how these settings would route a queue's newest messages and judge its newest dead letters: the
// last so many of each, at most 1,000, 0 for 100. Without settings it tries those that hold. Nothing is changed.
func (c *Client) DryRunPolicy(
	ctx context.Context, queue string, last uint32, opts ...QueueOption,
) (*filav1.DryRunPolicyResponse, error) {
	s := settingsOf(opts)
	if s.expectedVersion != 0 || s.comment != "" {
		return nil, invalidField("expected_version", "ExpectedVersion and Comment are for UpdateQueue: a trial changes nothing")
	}
	request := &filav1.DryRunPolicyRequest{Queue: queue, Config: &s.config, UpdateMask: s.mask(), Last: last}
	plan := callPlan{about: subject{queue: queue}, repeatable: repeatable}
	return call(ctx, c.connection, plan, request, c.connection.admin.DryRunPolicy)
}
