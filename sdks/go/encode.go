package fila

import (
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Enqueues as bytes. A frame of enqueues is encoded as its messages come, so that nothing is built twice.
// Field numbers are those of proto/fila/v1/service.proto; a test holds them and the generated code together.

// outgoing is one message as it will be sent.
type outgoing struct {
	NewMessage
	queue string // empty: the frame's
	trace traceHeaders
}

func (m *outgoing) validate() error {
	if m.Delay < 0 {
		return invalidField("delay_ms", "Delay must not be negative, got %v", m.Delay)
	}
	if !utf8.ValidString(m.DedupKey) {
		return invalidField("dedup_key", "DedupKey must be UTF-8, got %.40q", m.DedupKey)
	}
	for key, value := range m.Headers {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return invalidField("headers", "headers must be UTF-8, got %.40q: %.40q; send bytes in the payload, "+
				"or encode them", key, value)
		}
	}
	return nil
}

// size is what the message brings along, in bytes.
func (m *outgoing) size() int {
	size := len(m.Payload)
	for key, value := range m.Headers {
		size += len(key) + len(value)
	}
	return size
}

func requireName(field, value string) error {
	if value == "" {
		return invalidField(field, "%s must be given", field)
	}
	return requireText(field, value)
}

func requireText(field, value string) error {
	if !utf8.ValidString(value) {
		return invalidField(field, "%s must be UTF-8, got %.40q", field, value)
	}
	return nil
}

// appendMessage appends the message as an element of EnqueueBatchRequest.messages.
func appendMessage(to []byte, m *outgoing) []byte {
	options := appendOptions(nil, m)
	size := sizeText(m.queue) + protowire.SizeBytes(len(m.Payload)) + 1
	for key, value := range m.Headers {
		size += 1 + protowire.SizeBytes(sizeEntry(key, value))
	}
	for _, header := range m.trace {
		size += 1 + protowire.SizeBytes(sizeEntry(header.key, header.value))
	}
	if options != nil {
		size += 1 + protowire.SizeBytes(len(options))
	}
	to = slices.Grow(to, size+10)
	to = protowire.AppendVarint(protowire.AppendTag(to, 2, protowire.BytesType), uint64(size))
	to = appendText(to, 1, m.queue)
	for key, value := range m.Headers {
		to = appendEntry(to, key, value)
	}
	for _, header := range m.trace {
		to = appendEntry(to, header.key, header.value)
	}
	to = protowire.AppendBytes(protowire.AppendTag(to, 3, protowire.BytesType), m.Payload)
	if options != nil {
		to = protowire.AppendBytes(protowire.AppendTag(to, 4, protowire.BytesType), options)
	}
	return to
}

func sizeEntry(key, value string) int {
	return 2 + protowire.SizeBytes(len(key)) + protowire.SizeBytes(len(value))
}

func appendEntry(to []byte, key, value string) []byte {
	to = protowire.AppendVarint(protowire.AppendTag(to, 2, protowire.BytesType), uint64(sizeEntry(key, value)))
	to = protowire.AppendString(protowire.AppendTag(to, 1, protowire.BytesType), key)
	return protowire.AppendString(protowire.AppendTag(to, 2, protowire.BytesType), value)
}

func sizeText(text string) int {
	if text == "" {
		return 0
	}
	return 1 + protowire.SizeBytes(len(text))
}

func appendText(to []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return to
	}
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), text)
}

func appendNumber(to []byte, field protowire.Number, number uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), number)
}

// appendOptions returns nil when nothing was asked for.
func appendOptions(to []byte, m *outgoing) []byte {
	if m.Delay > 0 {
		to = appendNumber(to, 1, milliseconds(m.Delay))
	}
	if !m.DeliverAt.IsZero() {
		moment := appendNumber(nil, 1, uint64(m.DeliverAt.Unix()))
		moment = appendNumber(moment, 2, uint64(m.DeliverAt.Nanosecond()))
		to = protowire.AppendBytes(protowire.AppendTag(to, 2, protowire.BytesType), moment)
	}
	if m.TTL != 0 {
		to = appendNumber(to, 3, milliseconds(max(0, m.TTL)))
	}
	return appendText(to, 4, m.DedupKey)
}

// milliseconds rounds up: a wait is never shorter than asked for.
func milliseconds(d time.Duration) uint64 {
	return uint64((d + time.Millisecond - 1) / time.Millisecond)
}
