//go:build go1.25

package fila

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// adminCalls are all calls of FilaAdmin and FilaAuth but those that answer with a stream, and the answers they get.
func adminCalls(ctx context.Context, c *Client) map[string]struct {
	answer     proto.Message
	repeatable bool
	call       func() error
} {
	type one = struct {
		answer     proto.Message
		repeatable bool
		call       func() error
	}
	return map[string]one{
		"CreateQueue": {&filav1.CreateQueueResponse{}, false, func() error { return c.CreateQueue(ctx, "q") }},
		"DeleteQueue": {&filav1.DeleteQueueResponse{}, false, func() error { return c.DeleteQueue(ctx, "q") }},
		"PurgeQueue":  {&filav1.PurgeQueueResponse{}, false, func() error { _, err := c.Purge(ctx, "q"); return err }},
		"Redrive":     {&filav1.RedriveResponse{}, false, func() error { _, err := c.Redrive(ctx, "q"); return err }},
		"CreateChannel": {&filav1.CreateChannelResponse{}, false, func() error {
			_, err := c.CreateChannel(ctx, "q", "c")
			return err
		}},
		"DeleteChannel": {&filav1.DeleteChannelResponse{}, false, func() error { return c.DeleteChannel(ctx, "q", "c") }},
		"SeekChannel": {&filav1.SeekChannelResponse{}, false, func() error {
			_, err := c.SeekOffset(ctx, "q", "", 1)
			return err
		}},
		"PurgeChannel": {&filav1.PurgeChannelResponse{}, false, func() error { _, err := c.PurgeChannel(ctx, "q"); return err }},
		"GetQueue":     {&filav1.GetQueueResponse{}, true, func() error { _, err := c.GetQueue(ctx, "q"); return err }},
		"UpdateQueue": {&filav1.UpdateQueueResponse{}, true, func() error {
			_, err := c.UpdateQueue(ctx, "q", MaxAttempts(1))
			return err
		}},
		"ListQueues":    {&filav1.ListQueuesResponse{}, true, func() error { _, err := c.ListQueues(ctx); return err }},
		"GetStats":      {&filav1.GetStatsResponse{}, true, func() error { _, err := c.GetStats(ctx, "q"); return err }},
		"PeekMessages":  {&filav1.PeekMessagesResponse{}, true, func() error { _, err := c.Peek(ctx, "q", 1); return err }},
		"ListChannels":  {&filav1.ListChannelsResponse{}, true, func() error { _, err := c.ListChannels(ctx, "q"); return err }},
		"ListConsumers": {&filav1.ListConsumersResponse{}, true, func() error { _, err := c.ListConsumers(ctx, "q"); return err }},
		"SetConfig":     {&filav1.SetConfigResponse{}, true, func() error { return c.SetConfig(ctx, "k", "v") }},
		"GetConfig":     {&filav1.GetConfigResponse{}, true, func() error { _, err := c.GetConfig(ctx, "k"); return err }},
		"ListConfig":    {&filav1.ListConfigResponse{}, true, func() error { _, err := c.ListConfig(ctx, ""); return err }},
		"SetKeyPolicy": {&filav1.SetKeyPolicyResponse{}, true, func() error {
			_, err := c.SetKeyPolicy(ctx, "q", "k", KeyPaused(true))
			return err
		}},
		"SkipMessage": {&filav1.SkipMessageResponse{}, false, func() error {
			_, err := c.SkipMessage(ctx, "q", "k", Channel("c"), OnlyMessage("m"))
			return err
		}},
		"ExplainKey": {&filav1.ExplainKeyResponse{}, true, func() error { _, err := c.ExplainKey(ctx, "q", "k"); return err }},
		"PreviewKeyPolicy": {&filav1.PreviewKeyPolicyResponse{}, true, func() error {
			_, err := c.PreviewKeyPolicy(ctx, "q", "k", KeyWeight(3), Channel("c"))
			return err
		}},
		"GetStatus": {&filav1.GetStatusResponse{}, true, func() error { _, err := c.GetStatus(ctx); return err }},
		"ListLate":  {&filav1.ListLateResponse{}, true, func() error { _, err := c.ListLate(ctx, ""); return err }},
		"ListKeyPolicies": {&filav1.ListKeyPoliciesResponse{}, true, func() error {
			_, err := c.ListKeyPolicies(ctx, "q")
			return err
		}},
		"FindKeys": {&filav1.FindKeysResponse{}, true, func() error { _, err := c.FindKeys(ctx, "q", ""); return err }},
		"ListPending": {&filav1.ListPendingResponse{}, true, func() error {
			_, err := c.ListPending(ctx, "q", 3, Channel("c"), FairnessKey("k"), AfterOffset(7))
			return err
		}},
		"GetSeries": {&filav1.GetSeriesResponse{}, true, func() error { _, err := c.GetSeries(ctx, "q"); return err }},
		"ListQueueVersions": {&filav1.ListQueueVersionsResponse{}, true, func() error {
			_, err := c.ListQueueVersions(ctx, "q")
			return err
		}},
		"GetQueueVersion": {&filav1.GetQueueVersionResponse{}, true, func() error {
			_, err := c.GetQueueVersion(ctx, "q", 0)
			return err
		}},
		"DryRunPolicy": {&filav1.DryRunPolicyResponse{}, true, func() error {
			_, err := c.DryRunPolicy(ctx, "q", 0, MaxAttempts(1))
			return err
		}},
		"CreateSchedule": {&filav1.CreateScheduleResponse{}, false, func() error {
			_, err := c.CreateSchedule(ctx, "q", "s", &ScheduleSettings{EveryMs: 1000})
			return err
		}},
		"UpdateSchedule": {&filav1.UpdateScheduleResponse{}, true, func() error {
			_, err := c.UpdateSchedule(ctx, "q", "s", &ScheduleSettings{EveryMs: 1000})
			return err
		}},
		"PauseSchedule": {&filav1.PauseScheduleResponse{}, true, func() error {
			_, err := c.PauseSchedule(ctx, "q", "s", true)
			return err
		}},
		"DeleteSchedule": {&filav1.DeleteScheduleResponse{}, false, func() error { return c.DeleteSchedule(ctx, "q", "s") }},
		"GetSchedule": {&filav1.GetScheduleResponse{}, true, func() error {
			_, err := c.GetSchedule(ctx, "q", "s")
			return err
		}},
		"ListSchedules": {&filav1.ListSchedulesResponse{}, true, func() error {
			_, err := c.ListSchedules(ctx, "", 0, "")
			return err
		}},
		"SetLimit": {&filav1.SetLimitResponse{}, true, func() error {
			_, err := c.SetLimit(ctx, &LimitSettings{Name: "k", MaxInFlight: 1})
			return err
		}},
		"ListLimits":  {&filav1.ListLimitsResponse{}, true, func() error { _, err := c.GetLimit(ctx, "k"); return err }},
		"DeleteLimit": {&filav1.DeleteLimitResponse{}, false, func() error { return c.DeleteLimit(ctx, "k") }},
		"ResetLimit":  {&filav1.ResetLimitResponse{}, false, func() error { _, err := c.ResetLimit(ctx, "k", 0); return err }},
		"DropDeadLetters": {&filav1.DropDeadLettersResponse{}, true, func() error {
			_, err := c.DropDeadLetters(ctx, "q", []uint64{1})
			return err
		}},
		"EditDeadLetter": {&filav1.EditDeadLetterResponse{}, false, func() error {
			_, err := c.EditDeadLetter(ctx, "q", 1, nil, nil)
			return err
		}},
		"StartOperation": {&filav1.StartOperationResponse{}, false, func() error {
			_, err := c.StartOperation(ctx, "q", OperationPurge)
			return err
		}},
		"ListOperations": {&filav1.ListOperationsResponse{}, true, func() error { _, err := c.ListOperations(ctx, ""); return err }},
		"CancelOperation": {&filav1.CancelOperationResponse{}, true, func() error {
			_, err := c.CancelOperation(ctx, "q", "o")
			return err
		}},
		"WhoAmI":      {&filav1.WhoAmIResponse{}, true, func() error { _, err := c.WhoAmI(ctx); return err }},
		"CreateKey":   {&filav1.CreateKeyResponse{}, false, func() error { _, err := c.CreateKey(ctx, "n"); return err }},
		"RotateKey":   {&filav1.RotateKeyResponse{}, false, func() error { _, err := c.RotateKey(ctx, "k"); return err }},
		"RevokeKey":   {&filav1.RevokeKeyResponse{}, false, func() error { return c.RevokeKey(ctx, "k") }},
		"Grant":       {&filav1.GrantResponse{}, true, func() error { _, err := c.Grant(ctx, "n", CanAdmin()); return err }},
		"RevokeGrant": {&filav1.RevokeGrantResponse{}, false, func() error { _, err := c.RevokeGrant(ctx, "n", nil); return err }},
		"ForgetPrincipal": {&filav1.ForgetPrincipalResponse{}, false, func() error {
			_, err := c.ForgetPrincipal(ctx, "n")
			return err
		}},
		"GetPrincipal": {&filav1.GetPrincipalResponse{}, true, func() error { _, err := c.GetPrincipal(ctx, ""); return err }},
		"SetQuotas":    {&filav1.SetQuotasResponse{}, true, func() error { _, err := c.SetQuotas(ctx, "n", nil); return err }},
		"ListAudit":    {&filav1.ListAuditResponse{}, true, func() error { _, err := c.ListAudit(ctx); return err }},
		"CreateTenantLink": {&filav1.CreateTenantLinkResponse{}, false, func() error {
			_, err := c.CreateTenantLink(ctx, "q", "acme", ExpiresAfter(time.Hour))
			return err
		}},
		"ListTenantLinks": {&filav1.ListTenantLinksResponse{}, true, func() error {
			_, err := c.ListTenantLinks(ctx, "q")
			return err
		}},
		"RevokeTenantLink": {&filav1.RevokeTenantLinkResponse{}, false, func() error { return c.RevokeTenantLink(ctx, "q", "l") }},
		"ListPrincipals": {&filav1.ListPrincipalsResponse{}, true, func() error {
			_, err := c.ListPrincipals(ctx, "")
			return err
		}},
	}
}

func TestACallWhoseAnswerIsLostIsRepeatedOnlyWhereThatIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		for name, one := range adminCalls(t.Context(), client) {
			attempts := 0
			broker.unary = func(_ context.Context, method string, _ any) (any, error) {
				if method != "/fila.v1.FilaAdmin/"+name && method != "/fila.v1.FilaAuth/"+name {
					t.Errorf("%s called %s", name, method)
				}
				attempts++
				if attempts == 1 {
					return nil, status.Error(codes.Unavailable, "the connection broke")
				}
				return one.answer, nil
			}
			err := one.call()
			switch {
			case one.repeatable && (err != nil || attempts != 2):
				t.Errorf("%s: %v after %d attempts", name, err, attempts)
			case !one.repeatable && (!errors.Is(err, ErrAnswerLost) || attempts != 1):
				t.Errorf("%s, which must not be repeated: %v after %d attempts", name, err, attempts)
			}
		}
	})
}

func TestAChangeThatExpectsAVersionIsNotRepeatedAndALookAtASeekIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		attempts := 0
		broker.unary = func(context.Context, string, any) (any, error) {
			if attempts++; attempts == 2 {
				return &filav1.SeekChannelResponse{}, nil
			}
			return nil, status.Error(codes.Unavailable, "the connection broke")
		}
		if _, err := client.PreviewSeekOffset(t.Context(), "q", "", 1); err != nil || attempts != 2 {
			t.Errorf("a look at a seek: %v after %d attempts", err, attempts)
		}
		_, err := client.UpdateQueue(t.Context(), "q", MaxAttempts(1), ExpectedVersion(3))
		if !errors.Is(err, ErrAnswerLost) || attempts != 3 {
			t.Errorf("a change that expects a version: %v after %d attempts", err, attempts)
		}
	})
}

func TestAVersionAndACommentAreForUpdatesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		broker.unary = func(context.Context, string, any) (any, error) {
			return nil, status.Error(codes.Internal, "nothing should have been sent")
		}
		for _, opt := range []QueueOption{ExpectedVersion(1), Comment("why")} {
			if err := client.CreateQueue(t.Context(), "q", opt); !errors.Is(err, ErrInvalid) {
				t.Errorf("creating: %v", err)
			}
			if _, err := client.DryRunPolicy(t.Context(), "q", 0, opt); !errors.Is(err, ErrInvalid) {
				t.Errorf("trying: %v", err)
			}
		}
	})
}

func TestAnUpdateNamesExactlyWhatWasGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		var got *filav1.UpdateQueueRequest
		broker.unary = func(_ context.Context, _ string, request any) (any, error) {
			got = request.(*filav1.UpdateQueueRequest)
			return &filav1.UpdateQueueResponse{Config: got.GetConfig()}, nil
		}
		if _, err := client.UpdateQueue(t.Context(), "q", MaxDepth(0), RetryBase(time.Second), DropAfter(time.Hour)); err != nil {
			t.Fatal(err)
		}
		want := &filav1.UpdateQueueRequest{
			Queue: "q",
			Config: &filav1.QueueConfig{
				Retry:     &filav1.RetryPolicy{BaseMs: 1000},
				Retention: &filav1.Retention{HardPeriodMs: 3_600_000},
			},
			UpdateMask: settingsOf([]QueueOption{MaxDepth(0), RetryBase(0), DropAfter(0)}).mask(),
		}
		if !proto.Equal(got, want) || len(got.GetUpdateMask().GetPaths()) != 3 || got.GetUpdateMask().GetPaths()[1] != "retry.base_ms" {
			t.Errorf("got %v", got)
		}
		settings := Settings(want.GetConfig(), want.GetUpdateMask().GetPaths()...)
		if _, err := client.UpdateQueue(t.Context(), "q", settings); err != nil || !proto.Equal(got, want) {
			t.Errorf("settings as a message: got %v, %v", got, err)
		}
	})
}

func TestEveryQueueOptionSetsAFieldThatTheMaskNames(t *testing.T) {
	all := []QueueOption{
		OnEnqueueScript("x"), OnFailureScript("x"), VisibilityTimeout(1), MaxAttempts(0), DurableFsync(), MaxDepth(1), MaxBytes(1),
		FairnessKeyHeader("x"), WeightHeader("x"), Weights(map[string]uint32{"a": 1}), CostHeader("x"), PriorityHeader("x"), ThrottleKeyHeaders("x"),
		RetryExponential(1, 1), RetryJitter(1), HoldOnHookFailure(true), KeepFor(1), KeepBytes(1), DropAfter(1), DropBeyond(1),
		Channels("x"), DedupWindow(1), TTLToDLQ(true), Paused(true), DisconnectGrace(1), ExpiresAfterIdle(1),
		IntakeHeaders("x"), IntakeDedupHeaders("x"),
		KeyRateDefault(1), KeyBurstDefault(1), KeyCapDefault(1), KeyCommittedDefault(1), StrictKeyOrder(true), KeyLimit("x"),
		PausedChannels("x"),
		AllowProducerRouting(true),
	}
	s := settingsOf(all)
	if !s.mask().IsValid(&s.config) {
		t.Errorf("the mask %v names what is no field", s.paths)
	}
	fields := s.config.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); !s.config.ProtoReflect().Has(field) {
			t.Errorf("no option sets %s", field.Name())
		}
	}
}
