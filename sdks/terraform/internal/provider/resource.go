package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	fila "github.com/fila-mq/fila/sdks/go"
)

// managed is the resource of a kind.
type managed struct {
	*kind
	client *fila.Client
}

func (m *managed) Metadata(_ context.Context, asked resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = asked.ProviderTypeName + "_" + m.name
}

func (m *managed) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	answer.Schema = schema.Schema{MarkdownDescription: m.about, Attributes: m.attributes(true)}
}

func (m *managed) Configure(_ context.Context, asked resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	m.client, _ = asked.ProviderData.(*fila.Client)
}

// found asks the server for one; the value is null where there is none.
func (k *kind) found(ctx context.Context, c *fila.Client, key []string, of tftypes.Type) (tftypes.Value, error) {
	if c == nil {
		return tftypes.Value{}, errNotConnected
	}
	settings, err := k.get(ctx, c, key)
	if errors.Is(err, fila.ErrNotFound) || err == nil && settings == nil {
		return tftypes.NewValue(of, nil), nil
	}
	if err != nil {
		return tftypes.Value{}, err
	}
	return k.object(key, settings, of), nil
}

// ModifyPlan refuses what can be known to fail before anything is done.
func (m *managed) ModifyPlan(
	ctx context.Context, asked resource.ModifyPlanRequest, answer *resource.ModifyPlanResponse,
) {
	if asked.Plan.Raw.IsNull() || asked.Plan.Raw.Equal(asked.State.Raw) {
		return
	}
	planned, state := objectOf(asked.Plan.Raw), objectOf(asked.State.Raw)
	if m.refuse != nil {
		if wrong := m.refuse(planned, state); wrong != nil {
			m.report(&answer.Diagnostics, "plan", wrong)
			return
		}
	}
	if m.try == nil || m.client == nil || len(state) == 0 || len(answer.RequiresReplace) > 0 {
		return
	}
	changed := m.changes(planned, state)
	if len(changed) == 0 {
		return
	}
	// Another failure than a bad value is for the change itself to tell.
	err := m.try(ctx, m.client, m.keyOf(planned), m.settingsOf(planned), changed)
	if errors.Is(err, fila.ErrInvalid) {
		m.report(&answer.Diagnostics, "plan", err)
	}
}

func (k *kind) changes(planned, state object) []string {
	if k.settings == nil {
		return nil
	}
	return changes(k.message(), planned, state, "")
}

func (m *managed) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	planned := objectOf(asked.Plan.Raw)
	key := m.keyOf(planned)
	there, err := m.found(ctx, m.client, key, asked.Plan.Raw.Type())
	if err == nil && !there.IsNull() && !m.always {
		err = fmt.Errorf("it is there already, and not in the state. Import it with the id %q, or make one with "+
			"another %s", strings.Join(key, ","), m.keys[len(m.keys)-1])
	}
	if err == nil {
		err = m.create(ctx, m.client, key, m.settingsOf(planned))
	}
	if err != nil {
		m.report(&answer.Diagnostics, "create", err)
		return
	}
	if !m.keep(ctx, "create", asked.Plan, &answer.State, &answer.Diagnostics) && !m.always {
		// In the state it would be replaced by the next apply, with all that came into it meanwhile.
		answer.State.RemoveResource(ctx)
		if m.stays {
			answer.Diagnostics.AddWarning("It stays on the server", "It is not in the state. Leave the setting out, "+
				"and import it with the id "+strings.Join(key, ",")+"; or delete it.")
		} else if err := m.remove(ctx, m.client, key); err != nil {
			m.report(&answer.Diagnostics, "take back", err)
		}
	}
}

func (m *managed) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	planned := objectOf(asked.Plan.Raw)
	changed := m.changes(planned, objectOf(asked.State.Raw))
	if len(changed) > 0 {
		if err := m.update(ctx, m.client, m.keyOf(planned), m.settingsOf(planned), changed); err != nil {
			m.report(&answer.Diagnostics, "update", err)
			return
		}
	}
	m.keep(ctx, "update", asked.Plan, &answer.State, &answer.Diagnostics)
}

// keep puts what the server has now into the state. It says what the server did not take, and returns false then.
func (m *managed) keep(
	ctx context.Context, doing string, plan tfsdk.Plan, state *tfsdk.State, said *diag.Diagnostics,
) (taken bool) {
	planned := objectOf(plan.Raw)
	now, err := m.found(ctx, m.client, m.keyOf(planned), plan.Raw.Type())
	if err == nil && now.IsNull() {
		err = fmt.Errorf("the server took it, and has no such %s now: somebody may have deleted it", m.name)
	}
	if err != nil {
		m.report(said, doing, err)
		return true
	}
	state.Raw, taken = now, true
	has := objectOf(now)
	for name, value := range planned {
		if !keeps(value, has[name]) {
			taken = false
			m.report(said, doing, &unfit{name, fmt.Sprintf("%s was sent, and the server has another value now. A server "+
				"older than %s may not know this setting; or somebody changed it meanwhile.", name, fila.Version)})
		}
	}
	return taken
}

func (m *managed) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	now, err := m.found(ctx, m.client, m.keyOf(objectOf(asked.State.Raw)), asked.State.Raw.Type())
	if err != nil {
		m.report(&answer.Diagnostics, "read", err)
		return
	}
	answer.State.Raw = now
}

func (m *managed) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	err := m.remove(ctx, m.client, m.keyOf(objectOf(asked.State.Raw)))
	if err != nil && !errors.Is(err, fila.ErrNotFound) {
		m.report(&answer.Diagnostics, "destroy", err)
	}
}

// ImportState takes an id apart: the keys with commas between them. The last one may have commas itself.
func (m *managed) ImportState(
	ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse,
) {
	key := strings.SplitN(asked.ID, ",", len(m.keys))
	for len(key) < len(m.keys) && len(key) >= len(m.keys)-len(m.mayBeEmpty) {
		key = append(key, "")
	}
	if len(key) < len(m.keys) {
		answer.Diagnostics.AddError("Cannot import fila_"+m.name, fmt.Sprintf(
			"The id must be %s, with commas between them, got %q.", strings.Join(m.keys, ","), asked.ID))
		return
	}
	for i, name := range m.keys {
		answer.Diagnostics.Append(answer.State.SetAttribute(ctx, path.Root(name), key[i])...)
	}
}

var _ interface {
	resource.ResourceWithConfigure
	resource.ResourceWithImportState
	resource.ResourceWithModifyPlan
} = (*managed)(nil)
