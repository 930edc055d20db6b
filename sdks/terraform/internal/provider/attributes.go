package provider

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/float64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A use says what a configuration may do with an attribute.
type use struct {
	// writable: a resource's setting. Otherwise it is only read, as in a data source.
	writable bool
	required bool
	// kept: while it is not written, a plan expects what the server had. Otherwise a plan that changes anything
	// expects any value, because the server may derive it from another.
	kept bool
}

// attributeOf is the attribute of one field of a message, by the field's kind.
func attributeOf(field protoreflect.FieldDescriptor, u use) schema.Attribute {
	optional, computed := u.writable && !u.required, !u.required
	about := "`" + string(field.Name()) + "` of the API's `" + string(field.Parent().Name()) + "`."
	inside := use{writable: u.writable}
	switch {
	case field.IsMap():
		return schema.MapAttribute{
			MarkdownDescription: about, Required: u.required, Optional: optional, Computed: computed,
			ElementType:   elementType(field.MapValue()),
			Validators:    validatorsOf[validator.Map](field, u),
			PlanModifiers: modifiers(u, mapplanmodifier.UseNonNullStateForUnknown()),
		}
	case field.IsList() && field.Message() != nil:
		return schema.ListNestedAttribute{
			MarkdownDescription: about, Required: u.required, Optional: optional, Computed: computed,
			NestedObject:  schema.NestedAttributeObject{Attributes: attributesOf(field.Message(), inside)},
			PlanModifiers: modifiers(u, listplanmodifier.UseNonNullStateForUnknown()),
		}
	case field.IsList():
		return schema.ListAttribute{
			MarkdownDescription: about, Required: u.required, Optional: optional, Computed: computed,
			ElementType:   elementType(field),
			PlanModifiers: modifiers(u, listplanmodifier.UseNonNullStateForUnknown()),
		}
	case field.Message() != nil:
		return schema.SingleNestedAttribute{
			MarkdownDescription: about, Required: u.required, Optional: optional, Computed: computed,
			Attributes:    attributesOf(field.Message(), inside),
			PlanModifiers: modifiers(u, objectplanmodifier.UseNonNullStateForUnknown()),
		}
	}
	switch elementType(field) {
	case types.BoolType:
		return schema.BoolAttribute{
			MarkdownDescription: about, Required: u.required, Optional: optional, Computed: computed,
			PlanModifiers: modifiers(u, boolplanmodifier.UseNonNullStateForUnknown()),
		}
	case types.Int64Type:
		return schema.Int64Attribute{
			MarkdownDescription: about, Required: u.required, Optional: optional, Computed: computed,
			Validators:    validatorsOf[validator.Int64](field, u),
			PlanModifiers: modifiers(u, int64planmodifier.UseNonNullStateForUnknown()),
		}
	case types.Float64Type:
		return schema.Float64Attribute{
			MarkdownDescription: about, Required: u.required, Optional: optional, Computed: computed,
			PlanModifiers: modifiers(u, float64planmodifier.UseNonNullStateForUnknown()),
		}
	}
	if words := wordsOf(field.Enum()); words != nil {
		about += " One of `" + strings.Join(words, "`, `") + "`."
	}
	return schema.StringAttribute{
		MarkdownDescription: about, Required: u.required, Optional: optional, Computed: computed,
		Validators:    validatorsOf[validator.String](field, u),
		PlanModifiers: modifiers(u, stringplanmodifier.UseNonNullStateForUnknown()),
	}
}

// attributesOf are those of all fields of a message that lies within another.
func attributesOf(message protoreflect.MessageDescriptor, u use) map[string]schema.Attribute {
	made := make(map[string]schema.Attribute)
	for _, field := range fieldsOf(message) {
		made[string(field.Name())] = attributeOf(field, u)
	}
	return made
}

func fieldsOf(message protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	listed := make([]protoreflect.FieldDescriptor, message.Fields().Len())
	for i := range listed {
		listed[i] = message.Fields().Get(i)
	}
	return listed
}

func modifiers[M any](u use, keeping M) []M {
	if u.writable && u.kept {
		return []M{keeping}
	}
	return nil
}

// elementType is the type of one value of a field, but of a message.
func elementType(field protoreflect.FieldDescriptor) attr.Type {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return types.BoolType
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return types.Float64Type
	case protoreflect.EnumKind, protoreflect.StringKind, protoreflect.BytesKind:
		return types.StringType
	}
	return types.Int64Type
}

// wordsOf are an enum's values as a configuration writes them: fsync for DURABILITY_FSYNC. The value 0, which says
// nothing, is the empty word.
func wordsOf(enum protoreflect.EnumDescriptor) []string {
	if enum == nil {
		return nil
	}
	var words []string
	for i := 1; i < enum.Values().Len(); i++ {
		words = append(words, wordOf(enum, enum.Values().Get(i).Number()))
	}
	return words
}

func wordOf(enum protoreflect.EnumDescriptor, number protoreflect.EnumNumber) string {
	value := enum.Values().ByNumber(number)
	switch {
	case number == 0:
		return ""
	case value == nil: // of a newer server
		return fmt.Sprint(number)
	}
	zero := string(enum.Values().ByNumber(0).Name())
	return strings.ToLower(strings.TrimPrefix(string(value.Name()), strings.TrimSuffix(zero, "UNSPECIFIED")))
}

func numberOf(enum protoreflect.EnumDescriptor, word string) protoreflect.EnumNumber {
	for i := range enum.Values().Len() {
		if number := enum.Values().Get(i).Number(); wordOf(enum, number) == word {
			return number
		}
	}
	return 0
}

// rangeOf is what an integer of this kind may be. A configuration's integers have 64 bits and a sign.
func rangeOf(kind protoreflect.Kind) (least, most int64) {
	switch kind {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return 0, math.MaxUint32
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return 0, math.MaxInt64
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

// A check refuses, when a plan is made, what a field cannot hold.
type check struct{ field protoreflect.FieldDescriptor }

func validatorsOf[V any](field protoreflect.FieldDescriptor, u use) []V {
	if made, fits := any(check{field}).(V); fits && u.writable {
		return []V{made}
	}
	return nil
}

func (c check) Description(context.Context) string         { return "what the API's field can hold" }
func (c check) MarkdownDescription(context.Context) string { return "what the API's field can hold" }

func (c check) integer(field protoreflect.FieldDescriptor, value int64) string {
	if least, most := rangeOf(field.Kind()); value < least || value > most {
		return fmt.Sprintf("%s must be from %d to %d, got %d.", c.field.Name(), least, most, value)
	}
	return ""
}

// ValidateInt64 holds a number to its kind's range.
func (c check) ValidateInt64(_ context.Context, asked validator.Int64Request, answer *validator.Int64Response) {
	if asked.ConfigValue.IsNull() || asked.ConfigValue.IsUnknown() {
		return
	}
	if wrong := c.integer(c.field, asked.ConfigValue.ValueInt64()); wrong != "" {
		answer.Diagnostics.AddAttributeError(asked.Path, "Out of range", wrong)
	}
}

// ValidateMap does the same with the numbers of a map, such as weights.
func (c check) ValidateMap(_ context.Context, asked validator.MapRequest, answer *validator.MapResponse) {
	for key, value := range asked.ConfigValue.Elements() {
		number, isNumber := value.(types.Int64)
		if !isNumber || number.IsNull() || number.IsUnknown() {
			continue
		}
		if wrong := c.integer(c.field.MapValue(), number.ValueInt64()); wrong != "" {
			answer.Diagnostics.AddAttributeError(asked.Path.AtMapKey(key), "Out of range", wrong)
		}
	}
}

// ValidateString holds a word to those of its enum.
func (c check) ValidateString(_ context.Context, asked validator.StringRequest, answer *validator.StringResponse) {
	words := wordsOf(c.field.Enum())
	if words == nil || asked.ConfigValue.IsNull() || asked.ConfigValue.IsUnknown() {
		return
	}
	if word := asked.ConfigValue.ValueString(); word != "" && !slices.Contains(words, word) {
		answer.Diagnostics.AddAttributeError(asked.Path, "No such value",
			fmt.Sprintf("%s must be one of %s, got %q.", c.field.Name(), strings.Join(words, ", "), word))
	}
}
