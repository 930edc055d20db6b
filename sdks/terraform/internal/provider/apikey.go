package provider

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	fila "github.com/fila-mq/fila/sdks/go"
	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// unrevokedMax ends a key of a run that was killed before it could take the key away.
const unrevokedMax = 24 * time.Hour

const privateKeyID = "key_id"

// apiKey makes a key for one run. It is ephemeral: neither a plan nor a state ever holds it.
type apiKey struct{ client *fila.Client }

type keyData struct {
	Name           types.String `tfsdk:"name"`
	ExpiresAfterMs types.Int64  `tfsdk:"expires_after_ms"`
	Key            types.String `tfsdk:"key"`
	KeyID          types.String `tfsdk:"key_id"`
}

func (*apiKey) Metadata(_ context.Context, asked ephemeral.MetadataRequest, answer *ephemeral.MetadataResponse) {
	answer.TypeName = asked.ProviderTypeName + "_key"
}

func (*apiKey) Schema(_ context.Context, _ ephemeral.SchemaRequest, answer *ephemeral.SchemaResponse) {
	ends := (&filav1.CreateKeyRequest{}).ProtoReflect().Descriptor().Fields().ByName("expires_after_ms")
	answer.Schema = schema.Schema{
		MarkdownDescription: "A new key of a name, made each time a plan or an apply needs it. It is in no state.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{Required: true, MarkdownDescription: "Whose key it is."},
			"expires_after_ms": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "How long the key is valid, for one that others use after the run. Where it is left " +
					"out, the key is taken away when the run ends.",
				Validators: []validator.Int64{check{ends}},
			},
			"key":    schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "The key itself."},
			"key_id": schema.StringAttribute{Computed: true, MarkdownDescription: "The part of it that is no secret."},
		},
	}
}

func (k *apiKey) Configure(_ context.Context, asked ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	k.client, _ = asked.ProviderData.(*fila.Client)
}

func (k *apiKey) Open(ctx context.Context, asked ephemeral.OpenRequest, answer *ephemeral.OpenResponse) {
	var data keyData
	answer.Diagnostics.Append(asked.Config.Get(ctx, &data)...)
	if answer.Diagnostics.HasError() {
		return
	}
	if k.client == nil {
		answer.Diagnostics.AddError("Cannot make a key", errNotConnected.Error())
		return
	}
	valid := time.Duration(data.ExpiresAfterMs.ValueInt64()) * time.Millisecond
	ofRun := valid == 0
	if ofRun {
		valid = unrevokedMax
	}
	made, err := k.client.CreateKey(ctx, data.Name.ValueString(), fila.ExpiresAfter(valid))
	if err != nil {
		answer.Diagnostics.AddError("Cannot make a key", err.Error())
		return
	}
	data.Key, data.KeyID = types.StringValue(made.GetKey()), types.StringValue(made.GetKeyId())
	answer.Diagnostics.Append(answer.Result.Set(ctx, &data)...)
	if ofRun {
		id, _ := json.Marshal(made.GetKeyId())
		answer.Diagnostics.Append(answer.Private.SetKey(ctx, privateKeyID, id)...)
	}
}

func (k *apiKey) Close(ctx context.Context, asked ephemeral.CloseRequest, answer *ephemeral.CloseResponse) {
	private, said := asked.Private.GetKey(ctx, privateKeyID)
	answer.Diagnostics.Append(said...)
	var id string
	if private == nil || json.Unmarshal(private, &id) != nil {
		return
	}
	if err := k.client.RevokeKey(ctx, id); err != nil && !errors.Is(err, fila.ErrNotFound) {
		answer.Diagnostics.AddError("Cannot take the run's key away", err.Error())
	}
}
