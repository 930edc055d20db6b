package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	fila "github.com/fila-mq/fila/sdks/go"
)

// unfit is what is wrong with one attribute.
type unfit struct{ attribute, sentence string }

func (u *unfit) Error() string { return u.sentence }

var errNotConnected = errors.New("where the server is, or the key for it, is not known before another resource is " +
	"there. Apply that one first, with -target")

// report says what failed, at the attribute that it is about where that is known.
func (k *kind) report(said *diag.Diagnostics, doing string, err error) {
	summary := fmt.Sprintf("Cannot %s fila_%s", doing, k.name)
	var wrong *unfit
	var failure *fila.Error
	switch {
	case errors.As(err, &wrong):
		said.AddAttributeError(path.Root(wrong.attribute), summary, wrong.sentence)
	case errors.Is(err, fila.ErrNotSupported):
		said.AddError(summary, fmt.Sprintf("The server does not know this call: it is older than the provider. "+
			"fila_%s needs a server of version %s or newer. It said: %v", k.name, fila.Version, err))
	case errors.As(err, &failure) && k.attributeOf(failure.Field) != "":
		said.AddAttributeError(path.Root(k.attributeOf(failure.Field)), summary, failure.Message)
	default:
		said.AddError(summary, err.Error())
	}
}

// attributeOf is the attribute that a server means by a field of its request, such as config.retry.base_ms; empty where
// it means none.
func (k *kind) attributeOf(field string) string {
	attributes := k.attributes(true)
	for _, word := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' }) {
		if _, has := attributes[word]; has {
			return word
		}
	}
	return ""
}
