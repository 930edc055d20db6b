package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/protobuf/proto"

	fila "github.com/fila-mq/fila/sdks/go"
	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// kinds are all resources of the provider.
var kinds = []*kind{&queues, &limits, &keyPolicies, &config, &principals, &grants, &schedules}

var queues = kind{
	name:     "queue",
	about:    "A queue with its dead-letter queue. Destroying it destroys the messages in both.",
	keys:     []string{"name"},
	settings: &filav1.QueueConfig{},
	stays:    true, // a dead-letter queue of its name may have been there with its letters
	get: func(ctx context.Context, c *fila.Client, key []string) (proto.Message, error) {
		answer, err := c.GetQueue(ctx, key[0])
		return answer.GetConfig(), err
	},
	create: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message) error {
		return c.CreateQueue(ctx, key[0], fila.Settings(settings.(*filav1.QueueConfig)))
	},
	update: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, changed []string) error {
		_, err := c.UpdateQueue(ctx, key[0], fila.Settings(settings.(*filav1.QueueConfig), changed...))
		return err
	},
	remove: func(ctx context.Context, c *fila.Client, key []string) error { return c.DeleteQueue(ctx, key[0]) },
	refuse: func(planned, state object) *unfit {
		if is, was := planned["channels"], state["channels"]; len(state) == 0 || !is.IsFullyKnown() || is.Equal(was) {
			return nil
		}
		return &unfit{"channels", "channels are made with the queue and do not change here. Take the change back, and " +
			"use `fila channel create` or `fila channel delete`; or replace the queue, which destroys its messages."}
	},
	try: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, changed []string) error {
		_, err := c.DryRunPolicy(ctx, key[0], 1, fila.Settings(settings.(*filav1.QueueConfig), changed...))
		return err
	},
}

var limits = kind{
	name:     "limit",
	about:    "A limit of a throttle key, or with a `*` at the end of its name one of each key that begins so.",
	keys:     []string{"name"},
	settings: &filav1.Limit{},
	get: func(ctx context.Context, c *fila.Client, key []string) (proto.Message, error) {
		answer, err := c.ListLimits(ctx, key[0], "", 1)
		for _, each := range answer.GetLimits() {
			if each.GetLimit().GetName() == key[0] {
				return each.GetLimit(), err
			}
		}
		return nil, err
	},
	create: setLimit,
	update: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, _ []string) error {
		return setLimit(ctx, c, key, settings)
	},
	remove: func(ctx context.Context, c *fila.Client, key []string) error { return c.DeleteLimit(ctx, key[0]) },
}

func setLimit(ctx context.Context, c *fila.Client, key []string, settings proto.Message) error {
	limit := settings.(*filav1.Limit)
	limit.Name = key[0]
	_, err := c.SetLimit(ctx, limit)
	return err
}

var keyPolicies = kind{
	name:     "key_policy",
	about:    "What holds for one fairness key of a queue. Destroying it gives the key the queue's defaults back.",
	keys:     []string{"queue", "fairness_key"},
	settings: &filav1.SetKeyPolicyRequest{},
	only:     []string{"weight", "paused", "max_in_flight", "rate_per_second", "burst"},
	derived:  []string{"burst"},
	always:   true,
	get: func(ctx context.Context, c *fila.Client, key []string) (proto.Message, error) {
		policies, err := c.ListKeyPolicies(ctx, key[0], fila.FairnessKey(key[1]))
		for _, each := range policies {
			if each.GetFairnessKey() == key[1] {
				return &filav1.SetKeyPolicyRequest{
					Weight: &each.Weight, Paused: &each.Paused, MaxInFlight: &each.MaxInFlight,
					RatePerSecond: &each.RatePerSecond, Burst: &each.Burst,
				}, err
			}
		}
		return nil, err
	},
	create: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message) error {
		return setPolicy(ctx, c, key, settings)
	},
	update: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, changed []string) error {
		// What is not written stays as it is: a cap that is sent back is no default any more.
		return setPolicy(ctx, c, key, onlyThese(settings, changed))
	},
	try: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, changed []string) error {
		_, err := c.PreviewKeyPolicy(ctx, key[0], key[1], policyOption(onlyThese(settings, changed)))
		return err
	},
	remove: func(ctx context.Context, c *fila.Client, key []string) error {
		options := []fila.KeyPolicyOption{
			fila.KeyWeight(0), fila.KeyPaused(false), fila.KeyCapByDefault(), fila.KeyRateByDefault(),
		}
		_, err := c.SetKeyPolicy(ctx, key[0], key[1], options...)
		return err
	},
}

func setPolicy(ctx context.Context, c *fila.Client, key []string, settings proto.Message) error {
	_, err := c.SetKeyPolicy(ctx, key[0], key[1], policyOption(settings))
	return err
}

func policyOption(settings proto.Message) fila.KeyPolicyOption {
	return func(request *filav1.SetKeyPolicyRequest) { proto.Merge(request, settings) }
}

func onlyThese(settings proto.Message, names []string) proto.Message {
	chosen := proto.Clone(settings)
	for _, field := range fieldsOf(chosen.ProtoReflect().Descriptor()) {
		if !slices.Contains(names, string(field.Name())) {
			chosen.ProtoReflect().Clear(field)
		}
	}
	return chosen
}

var config = kind{
	name:     "config",
	about:    "A value of the runtime config, which every script can read.",
	keys:     []string{"key"},
	settings: &filav1.SetConfigRequest{},
	required: []string{"value"},
	get: func(ctx context.Context, c *fila.Client, key []string) (proto.Message, error) {
		value, err := c.GetConfig(ctx, key[0])
		return &filav1.SetConfigRequest{Value: value}, err
	},
	create: setConfig,
	update: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, _ []string) error {
		return setConfig(ctx, c, key, settings)
	},
	remove: func(ctx context.Context, c *fila.Client, key []string) error { return c.SetConfig(ctx, key[0], "") },
	refuse: func(planned, _ object) *unfit {
		if value := planned["value"]; value.IsKnown() && textOf(value) == "" {
			return &unfit{"value", "value must not be empty: an empty one deletes the key. Leave the resource out instead."}
		}
		return nil
	},
}

func setConfig(ctx context.Context, c *fila.Client, key []string, settings proto.Message) error {
	return c.SetConfig(ctx, key[0], settings.(*filav1.SetConfigRequest).GetValue())
}

var principals = kind{
	name: "principal",
	about: "A name that keys and rights are given to, with its quotas. Destroying it forgets its keys and rights too. " +
		"A name without a key, a right or a quota goes by itself after a day.",
	keys:     []string{"name"},
	settings: &filav1.Principal{},
	only:     []string{"tenant", "quotas"},
	fixed:    []string{"tenant"},
	get: func(ctx context.Context, c *fila.Client, key []string) (proto.Message, error) {
		answer, err := c.GetPrincipal(ctx, key[0])
		return answer, err
	},
	create: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message) error {
		// A name comes into being with a key or a right. This key is taken away before anybody has it.
		wanted := settings.(*filav1.Principal)
		made, err := c.CreateKey(ctx, key[0], fila.AsTenant(wanted.GetTenant()))
		if err != nil {
			return err
		}
		if err := c.RevokeKey(ctx, made.GetKeyId()); err != nil || wanted.GetQuotas() == nil {
			return err
		}
		if _, err = c.SetQuotas(ctx, key[0], wanted.GetQuotas()); err != nil {
			// Refused quotas leave no name behind, which the next apply would find.
			_, _ = c.ForgetPrincipal(ctx, key[0])
		}
		return err
	},
	update: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, _ []string) error {
		_, err := c.SetQuotas(ctx, key[0], settings.(*filav1.Principal).GetQuotas())
		return err
	},
	remove: func(ctx context.Context, c *fila.Client, key []string) error {
		_, err := c.ForgetPrincipal(ctx, key[0])
		return err
	},
}

var grants = kind{
	name:       "grant",
	about:      "One right of a name. A name that is new is made with it.",
	keys:       []string{"name", "right", "queue", "channel"},
	mayBeEmpty: []string{"queue", "channel"},
	refuse: func(planned, _ object) *unfit {
		var wrong *unfit
		if right := planned["right"]; right.IsKnown() {
			_, err := permission([]string{"", textOf(right), "", ""})
			errors.As(err, &wrong)
		}
		return wrong
	},
	get: func(ctx context.Context, c *fila.Client, key []string) (proto.Message, error) {
		wanted, err := permission(key)
		if err != nil {
			return nil, err
		}
		has, err := c.GetPrincipal(ctx, key[0])
		for _, each := range has.GetPermissions() {
			if proto.Equal(each, wanted) {
				return each, err
			}
		}
		return nil, err
	},
	create: func(ctx context.Context, c *fila.Client, key []string, _ proto.Message) error {
		right, err := permission(key)
		if err == nil {
			_, err = c.Grant(ctx, key[0], right)
		}
		return err
	},
	remove: func(ctx context.Context, c *fila.Client, key []string) error {
		right, err := permission(key)
		if err == nil {
			_, err = c.RevokeGrant(ctx, key[0], []*filav1.Permission{right})
		}
		return err
	},
}

func permission(key []string) (*filav1.Permission, error) {
	right := numberOf(filav1.Right(0).Descriptor(), key[1])
	if right == 0 {
		words := strings.Join(wordsOf(filav1.Right(0).Descriptor()), ", ")
		return nil, &unfit{"right", fmt.Sprintf("right must be one of %s, got %q.", words, key[1])}
	}
	return &filav1.Permission{Right: filav1.Right(right), Queue: key[2], Channel: key[3]}, nil
}

var schedules = kind{
	name:     "schedule",
	about:    "Messages that the broker enqueues by itself, at the moments of a cron line or an interval.",
	keys:     []string{"queue", "schedule"},
	settings: &filav1.ScheduleSettings{},
	derived:  []string{"cron", "every_ms"},
	refuse: func(planned, _ object) *unfit {
		every := tftypes.NewValue(tftypes.Number, 0)
		if textOf(planned["cron"]) != "" && planned["every_ms"].IsKnown() && !planned["every_ms"].Equal(every) {
			return &unfit{"every_ms", "cron and every_ms are both there. Write exactly one of them."}
		}
		return nil
	},
	get: func(ctx context.Context, c *fila.Client, key []string) (proto.Message, error) {
		const page = 1000
		for token := ""; ; {
			listed, err := c.ListSchedules(ctx, key[0], page, token)
			for _, each := range listed.GetSchedules() {
				if each.GetSchedule() == key[1] {
					return each.GetSettings(), err
				}
			}
			if token = listed.GetNextPageToken(); err != nil || token == "" {
				return nil, err
			}
		}
	},
	create: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message) error {
		_, err := c.CreateSchedule(ctx, key[0], key[1], settings.(*filav1.ScheduleSettings))
		return err
	},
	update: func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, _ []string) error {
		_, err := c.UpdateSchedule(ctx, key[0], key[1], settings.(*filav1.ScheduleSettings))
		return err
	},
	remove: func(ctx context.Context, c *fila.Client, key []string) error {
		return c.DeleteSchedule(ctx, key[0], key[1])
	},
}
