package provider

import (
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/protobuf/proto"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

func typeOfSchema(k *kind) tftypes.Type {
	return schema.Schema{Attributes: k.attributes(true)}.Type().TerraformType(context.Background())
}

func TestEachKindHasAValidSchemaWhoseTypeIsThatOfItsValues(t *testing.T) {
	for _, k := range kinds {
		said := schema.Schema{Attributes: k.attributes(true)}.ValidateImplementation(context.Background())
		if said.HasError() {
			t.Errorf("%s: %v", k.name, said)
		}
		// NewValue panics where the two differ.
		k.object(make([]string, len(k.keys)), k.settings, typeOfSchema(k))
	}
}

func TestSettingsComeBackAsTheyWereWritten(t *testing.T) {
	attempts := uint32(0)
	written := map[*kind]proto.Message{
		&queues: &filav1.QueueConfig{
			MaxAttempts: &attempts, Durability: filav1.Durability_DURABILITY_OS, Weights: map[string]uint32{"a": 3},
			ThrottleKeyHeaders: []string{"provider"}, Retry: &filav1.RetryPolicy{BaseMs: 5, Jitter: 0.1},
			DisconnectGraceMs: proto.Uint64(0),
		},
		&limits: &filav1.Limit{
			Rates:  []*filav1.Rate{{PerSecond: 0.1, Unit: filav1.Limit_UNIT_COST}, {}},
			Budget: &filav1.Budget{Amount: 5, AnchorMs: -7}, Shadow: true,
		},
		&schedules: &filav1.ScheduleSettings{
			Cron: "0 9 * * *", Payload: []byte("x"), Missed: filav1.MissedRule_MISSED_RULE_ALL,
		},
	}
	for k, settings := range written {
		value := k.object(make([]string, len(k.keys)), settings, typeOfSchema(k))
		if again := k.settingsOf(objectOf(value)); !proto.Equal(again, settings) {
			t.Errorf("%s: %v came back as %v", k.name, settings, again)
		}
	}
}

func TestAnUpdateNamesOnlyWhatThePlanKnowsAndChanges(t *testing.T) {
	of := func(settings *filav1.QueueConfig) object {
		return objectOf(queues.object([]string{"q"}, settings, typeOfSchema(&queues)))
	}
	state := of(&filav1.QueueConfig{MaxDepth: 1, Retry: &filav1.RetryPolicy{BaseMs: 5, CapMs: 9}})
	planned := of(&filav1.QueueConfig{MaxDepth: 2, Retry: &filav1.RetryPolicy{BaseMs: 6, CapMs: 9}})
	planned["max_bytes"] = tftypes.NewValue(tftypes.Number, tftypes.UnknownValue)
	if got := fmt.Sprint(queues.changes(planned, state)); got != "[max_depth retry.base_ms]" {
		t.Errorf("the mask is %s", got)
	}
}

func TestAFieldOfARequestIsTheAttributeThatItComesFrom(t *testing.T) {
	for field, attribute := range map[string]string{
		"config.retry.base_ms": "retry", "limit.rates[0].per_second": "rates", "update_mask": "",
	} {
		k := &queues
		if attribute == "rates" {
			k = &limits
		}
		if got := k.attributeOf(field); got != attribute {
			t.Errorf("%s is taken for %q", field, got)
		}
	}
}

func TestChannelsOfAQueueThatIsThereAreNotChanged(t *testing.T) {
	of := func(channels ...string) object {
		return objectOf(queues.object([]string{"q"}, &filav1.QueueConfig{Channels: channels}, typeOfSchema(&queues)))
	}
	if queues.refuse(of("a", "b"), of("a")) == nil {
		t.Error("a plan that adds a channel is not refused")
	}
	if queues.refuse(of("a"), of("a")) != nil || queues.refuse(of("a"), object{}) != nil {
		t.Error("a plan that changes no channel is refused")
	}
}
