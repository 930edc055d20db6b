package provider

import (
	"context"
	"math/big"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// An object is the value of a resource, or of an attribute that has attributes.
type object = map[string]tftypes.Value

// objectOf takes an object apart; it is empty where the value is null or not known.
func objectOf(value tftypes.Value) object {
	inside := object{}
	if value.IsKnown() && !value.IsNull() {
		_ = value.As(&inside)
	}
	return inside
}

func textOf(value tftypes.Value) string {
	var text string
	if value.IsKnown() && !value.IsNull() {
		_ = value.As(&text)
	}
	return text
}

// typeOf is the type of a field's value, as the schema of attributes.go makes it.
func typeOf(field protoreflect.FieldDescriptor) tftypes.Type {
	switch {
	case field.IsMap():
		return tftypes.Map{ElementType: oneTypeOf(field.MapValue())}
	case field.IsList():
		return tftypes.List{ElementType: oneTypeOf(field)}
	}
	return oneTypeOf(field)
}

func oneTypeOf(field protoreflect.FieldDescriptor) tftypes.Type {
	if field.Message() == nil {
		return elementType(field).TerraformType(context.Background())
	}
	inside := map[string]tftypes.Type{}
	for _, each := range fieldsOf(field.Message()) {
		inside[string(each.Name())] = typeOf(each)
	}
	return tftypes.Object{AttributeTypes: inside}
}

// write puts what is known of an object into a message. A message within it that says nothing is left out, as the
// server takes it for "none": so a budget of 0 takes a limit's budget away.
func write(from object, into protoreflect.Message) {
	for _, field := range fieldsOf(into.Descriptor()) {
		value, has := from[string(field.Name())]
		if !has || value.IsNull() || !value.IsKnown() {
			continue
		}
		switch {
		case field.IsMap():
			entries := into.Mutable(field).Map()
			for key, entry := range objectOf(value) {
				entries.Set(protoreflect.ValueOfString(key).MapKey(), scalar(field.MapValue(), entry))
			}
		case field.IsList():
			writeList(field, value, into.Mutable(field).List())
		case field.Message() != nil:
			made := into.NewField(field)
			write(objectOf(value), made.Message())
			if says(made.Message()) {
				into.Set(field, made)
			}
		default:
			into.Set(field, scalar(field, value))
		}
	}
}

func writeList(field protoreflect.FieldDescriptor, value tftypes.Value, into protoreflect.List) {
	var items []tftypes.Value
	_ = value.As(&items)
	for _, item := range items {
		if field.Message() == nil {
			into.Append(scalar(field, item))
			continue
		}
		made := into.NewElement()
		write(objectOf(item), made.Message())
		into.Append(made)
	}
}

func says(message protoreflect.Message) bool {
	something := false
	message.Range(func(protoreflect.FieldDescriptor, protoreflect.Value) bool {
		something = true
		return false
	})
	return something
}

func scalar(field protoreflect.FieldDescriptor, value tftypes.Value) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.BoolKind:
		var yes bool
		_ = value.As(&yes)
		return protoreflect.ValueOfBool(yes)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(textOf(value))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(textOf(value)))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(numberOf(field.Enum(), textOf(value)))
	}
	number := new(big.Float)
	if value.IsKnown() && !value.IsNull() {
		_ = value.As(&number)
	}
	signed, _ := number.Int64()
	switch field.Kind() {
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		real, _ := number.Float64()
		return protoreflect.ValueOfFloat64(real)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(signed))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(signed))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(signed))
	}
	return protoreflect.ValueOfInt64(signed)
}

// read makes the value of a field of a message. Nothing is null: what is left out is empty, or 0.
func read(field protoreflect.FieldDescriptor, from protoreflect.Message) tftypes.Value {
	value := from.Get(field)
	switch {
	case field.IsMap():
		entries := object{}
		value.Map().Range(func(key protoreflect.MapKey, entry protoreflect.Value) bool {
			entries[key.String()] = readOne(field.MapValue(), entry)
			return true
		})
		return tftypes.NewValue(typeOf(field), entries)
	case field.IsList():
		items := make([]tftypes.Value, value.List().Len())
		for i := range items {
			items[i] = readOne(field, value.List().Get(i))
		}
		return tftypes.NewValue(typeOf(field), items)
	}
	return readOne(field, value)
}

func readOne(field protoreflect.FieldDescriptor, value protoreflect.Value) tftypes.Value {
	kind := oneTypeOf(field)
	switch field.Kind() {
	case protoreflect.MessageKind:
		inside := object{}
		for _, each := range fieldsOf(field.Message()) {
			inside[string(each.Name())] = read(each, value.Message())
		}
		return tftypes.NewValue(kind, inside)
	case protoreflect.BoolKind:
		return tftypes.NewValue(kind, value.Bool())
	case protoreflect.StringKind:
		return tftypes.NewValue(kind, value.String())
	case protoreflect.BytesKind: // of other bytes than UTF-8 a state can hold no more than this
		return tftypes.NewValue(kind, strings.ToValidUTF8(string(value.Bytes()), "\uFFFD"))
	case protoreflect.EnumKind:
		return tftypes.NewValue(kind, wordOf(field.Enum(), value.Enum()))
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		return tftypes.NewValue(kind, decimal(value.Float()))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return tftypes.NewValue(kind, new(big.Float).SetUint64(value.Uint()))
	}
	return tftypes.NewValue(kind, value.Int())
}

// decimal is the number that a configuration means by the shortest text of this one: 0.1 is no power of two, so the
// 64 bits of a message hold another number than the text.
func decimal(number float64) *big.Float {
	const precision = 512 // as in Terraform
	text := strconv.FormatFloat(number, 'g', -1, 64)
	made, _, _ := big.ParseFloat(text, 10, precision, big.ToNearestEven)
	return made
}

// changes are the fields of a message in which a plan differs from the state, as the mask of an update names them.
// What a plan does not know yet is what the configuration leaves to the server.
func changes(message protoreflect.MessageDescriptor, planned, state object, above string) []string {
	var paths []string
	for _, field := range fieldsOf(message) {
		name := string(field.Name())
		value, has := planned[name]
		switch {
		case !has || value.IsNull() || !value.IsKnown() || value.Equal(state[name]):
		case field.Message() != nil && !field.IsList() && !field.IsMap():
			paths = append(paths, changes(field.Message(), objectOf(value), objectOf(state[name]), above+name+".")...)
		default:
			paths = append(paths, above+name)
		}
	}
	return paths
}

// keeps tells whether what a server has is what was planned, as far as the plan knows it.
func keeps(planned, has tftypes.Value) bool {
	switch {
	case !planned.IsKnown() || planned.IsNull():
		return true
	case planned.IsFullyKnown() || has.IsNull():
		return planned.Equal(has)
	case planned.Type().Is(tftypes.Object{}):
		inside := objectOf(has)
		for name, value := range objectOf(planned) {
			if !keeps(value, inside[name]) {
				return false
			}
		}
		return true
	case planned.Type().Is(tftypes.List{}):
		var items, others []tftypes.Value
		_, _ = planned.As(&items), has.As(&others)
		for i := range items {
			if i >= len(others) || !keeps(items[i], others[i]) {
				return false
			}
		}
		return len(items) == len(others)
	}
	return true
}
