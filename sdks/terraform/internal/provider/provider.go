// Package provider makes resources, data sources and an ephemeral resource of Fila's API. Attributes come from the
// descriptors of the API's messages: what the API gets, the provider has.
package provider

import (
	"cmp"
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	fila "github.com/fila-mq/fila/sdks/go"
)

type server struct{}

// New makes the provider.
func New() provider.Provider { return server{} }

// connecting is the provider's configuration.
type connecting struct {
	Address    types.String `tfsdk:"address"`
	APIKey     types.String `tfsdk:"api_key"`
	CAFile     types.String `tfsdk:"ca_file"`
	CertFile   types.String `tfsdk:"cert_file"`
	KeyFile    types.String `tfsdk:"key_file"`
	ServerName types.String `tfsdk:"server_name"`
}

func (server) Metadata(_ context.Context, _ provider.MetadataRequest, answer *provider.MetadataResponse) {
	answer.TypeName, answer.Version = "fila", fila.Version
}

func (server) Schema(_ context.Context, _ provider.SchemaRequest, answer *provider.SchemaResponse) {
	text := func(about string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: about}
	}
	key := text("A key with the rights that the resources need; `FILA_API_KEY` where it is left out.")
	key.Sensitive = true
	answer.Schema = schema.Schema{
		MarkdownDescription: "What a Fila broker has: queues, limits, policies, names and rights.",
		Attributes: map[string]schema.Attribute{
			"address":     text("host:port, with https:// for TLS; `FILA_ADDR`, or localhost:5555, where it is left out."),
			"api_key":     key,
			"ca_file":     text("The certificates that the server's must come from; `FILA_CA_FILE` where it is left out."),
			"cert_file":   text("A client's certificate; `FILA_CERT_FILE` where it is left out."),
			"key_file":    text("The key of that certificate; `FILA_KEY_FILE` where it is left out."),
			"server_name": text("The name in the server's certificate, where it is not that of the address."),
		},
	}
}

func (server) Configure(ctx context.Context, asked provider.ConfigureRequest, answer *provider.ConfigureResponse) {
	var with connecting
	answer.Diagnostics.Append(asked.Config.Get(ctx, &with)...)
	if answer.Diagnostics.HasError() {
		return
	}
	if !asked.Config.Raw.IsFullyKnown() { // an apply knows it; what needs the server before then says so
		return
	}
	client, err := fila.Connect(with.Address.ValueString(), with.options()...)
	if err != nil {
		answer.Diagnostics.AddAttributeError(path.Root("address"), "Cannot connect to Fila", err.Error())
		return
	}
	answer.ResourceData, answer.DataSourceData, answer.EphemeralResourceData = client, client, client
}

func (c connecting) options() []fila.Option {
	var options []fila.Option
	if key := c.APIKey.ValueString(); key != "" {
		options = append(options, fila.WithAPIKey(key))
	}
	if file := c.CAFile.ValueString(); file != "" {
		options = append(options, fila.WithCA(file))
	}
	certificate, key := c.CertFile.ValueString(), c.KeyFile.ValueString()
	if certificate != "" || key != "" {
		certificate = cmp.Or(certificate, os.Getenv("FILA_CERT_FILE"))
		key = cmp.Or(key, os.Getenv("FILA_KEY_FILE"))
		options = append(options, fila.WithClientCertificate(certificate, key))
	}
	if name := c.ServerName.ValueString(); name != "" {
		options = append(options, fila.WithServerName(name))
	}
	return options
}

func (server) Resources(context.Context) []func() resource.Resource {
	made := make([]func() resource.Resource, len(kinds))
	for i, each := range kinds {
		made[i] = func() resource.Resource { return &managed{kind: each} }
	}
	return made
}

func (server) DataSources(context.Context) []func() datasource.DataSource {
	made := make([]func() datasource.DataSource, len(kinds))
	for i, each := range kinds {
		made[i] = func() datasource.DataSource { return &looked{kind: each} }
	}
	return made
}

func (server) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &apiKey{} }}
}
