package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	fila "github.com/fila-mq/fila/sdks/go"
)

// A kind is what a resource, and the data source of the same name, is made of: what names one, a message whose fields
// are its settings, and the calls.
type kind struct {
	name  string
	about string
	// keys are the attributes that say which one; an import's id has them in this order, with commas between them.
	keys []string
	// mayBeEmpty are those of them that a configuration may leave out.
	mayBeEmpty []string
	// settings is an empty message; nil where there are none.
	settings proto.Message
	// only are the fields that are settings; all but the keys where it is nil.
	only []string
	// required are those that a configuration must write.
	required []string
	// fixed are those that are set when it is made; another value replaces it.
	fixed []string
	// derived are those that the server may change with another one.
	derived []string

	// always: each is there, with its defaults before anything is set.
	always bool
	// stays: one of which the server drops a setting is not deleted again, because it may hold what was there before.
	stays bool

	// refuse says what is wrong with a plan before anything is done; the state is empty where one is to be made.
	refuse func(planned, state object) *unfit
	// try asks the server the same of one that is there; nil where the server has no call for it.
	try func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, changed []string) error

	// get returns nil, or fails with ErrNotFound, where there is none.
	get func(ctx context.Context, c *fila.Client, key []string) (proto.Message, error)
	// create gets what the configuration writes.
	create func(ctx context.Context, c *fila.Client, key []string, settings proto.Message) error
	// update gets all that the plan knows, and which fields of it change; nil where there are no settings.
	update func(ctx context.Context, c *fila.Client, key []string, settings proto.Message, changed []string) error
	remove func(ctx context.Context, c *fila.Client, key []string) error
}

// message describes the settings; nil where there are none.
func (k *kind) message() protoreflect.MessageDescriptor {
	if k.settings == nil {
		return nil
	}
	return k.settings.ProtoReflect().Descriptor()
}

func (k *kind) fields() []protoreflect.FieldDescriptor {
	if k.settings == nil {
		return nil
	}
	return slices.DeleteFunc(fieldsOf(k.message()), func(field protoreflect.FieldDescriptor) bool {
		name := string(field.Name())
		return slices.Contains(k.keys, name) || k.only != nil && !slices.Contains(k.only, name)
	})
}

// attributes are those of the resource, or of the data source, which only reads.
func (k *kind) attributes(writable bool) map[string]schema.Attribute {
	made := map[string]schema.Attribute{}
	for _, name := range k.keys {
		which := schema.StringAttribute{Required: true, MarkdownDescription: "Which " + k.name + ": its `" + name + "`."}
		if slices.Contains(k.mayBeEmpty, name) {
			which.Required, which.Optional = false, true
			if writable {
				which.Computed, which.Default = true, stringdefault.StaticString("")
			}
		}
		if writable {
			which.PlanModifiers = []planmodifier.String{stringplanmodifier.RequiresReplace()}
		}
		made[name] = which
	}
	for _, field := range k.fields() {
		name := string(field.Name())
		attribute := attributeOf(field, use{
			writable: writable,
			required: writable && slices.Contains(k.required, name),
			kept:     !slices.Contains(k.derived, name),
		})
		if text, isText := attribute.(schema.StringAttribute); isText && writable && slices.Contains(k.fixed, name) {
			text.PlanModifiers = append(text.PlanModifiers, stringplanmodifier.RequiresReplaceIfConfigured())
			attribute = text
		}
		made[name] = attribute
	}
	return made
}

// keyOf is what names the one that an object is about.
func (k *kind) keyOf(from object) []string {
	key := make([]string, len(k.keys))
	for i, name := range k.keys {
		key[i] = textOf(from[name])
	}
	return key
}

// object makes the value of one, of its key and of what the server says of it.
func (k *kind) object(key []string, settings proto.Message, kind tftypes.Type) tftypes.Value {
	made := object{}
	for i, name := range k.keys {
		made[name] = tftypes.NewValue(tftypes.String, key[i])
	}
	for _, field := range k.fields() {
		made[string(field.Name())] = read(field, settings.ProtoReflect())
	}
	return tftypes.NewValue(kind, made)
}

// settingsOf makes the message of what is known of an object.
func (k *kind) settingsOf(from object) proto.Message {
	if k.settings == nil {
		return nil
	}
	made := k.settings.ProtoReflect().New()
	chosen := object{}
	for _, field := range k.fields() {
		chosen[string(field.Name())] = from[string(field.Name())]
	}
	write(chosen, made)
	return made.Interface()
}
