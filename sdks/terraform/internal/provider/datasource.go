package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	fila "github.com/fila-mq/fila/sdks/go"
)

// looked is the data source of a kind: it reads one that is there.
type looked struct {
	*kind
	client *fila.Client
}

func (l *looked) Metadata(_ context.Context, asked datasource.MetadataRequest, answer *datasource.MetadataResponse) {
	answer.TypeName = asked.ProviderTypeName + "_" + l.name
}

func (l *looked) Schema(_ context.Context, _ datasource.SchemaRequest, answer *datasource.SchemaResponse) {
	answer.Schema = schema.Schema{MarkdownDescription: l.about, Attributes: map[string]schema.Attribute{}}
	for name, attribute := range l.attributes(false) {
		answer.Schema.Attributes[name] = attribute
	}
}

func (l *looked) Configure(_ context.Context, asked datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	l.client, _ = asked.ProviderData.(*fila.Client)
}

func (l *looked) Read(ctx context.Context, asked datasource.ReadRequest, answer *datasource.ReadResponse) {
	key := l.keyOf(objectOf(asked.Config.Raw))
	now, err := l.found(ctx, l.client, key, asked.Config.Raw.Type())
	if err == nil && now.IsNull() {
		err = fmt.Errorf("there is no %s %s", l.name, strings.Join(key, ", "))
	}
	if err != nil {
		l.report(&answer.Diagnostics, "read", err)
		return
	}
	answer.State.Raw = now
}
