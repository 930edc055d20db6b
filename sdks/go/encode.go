package fila

import (
	"context"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Enqueues as bytes. A frame of enqueues is encoded as its messages come, so that nothing is built twice.
// Field numbers are those of proto/fila/v1/service.proto; a test holds them and the generated code together.

const onDuplicateReplace = 2

// outgoing is one message as it will be sent.
type outgoing struct {
	NewMessage
	queue string // empty: the frame's
	trace traceHeaders
	bytes int // of payload and headers
}

// mayRepeat: sent twice it is stored once. One that replaces others could replace a newer one.
func (m *outgoing) mayRepeat() bool { return m.DedupKey != "" && !m.Replace }

// newOutgoing refuses what cannot be sent.
func newOutgoing(ctx context.Context, message NewMessage) (outgoing, error) {
	m := outgoing{NewMessage: message, trace: tracedBy(ctx, message.Headers), bytes: len(message.Payload)}
	if m.Delay < 0 {
		return m, invalidField("delay_ms", "Delay must not be negative, got %v", m.Delay)
	}
	if m.MaxWait < 0 {
		return m, invalidField("max_wait_ms", "MaxWait must not be negative, got %v", m.MaxWait)
	}
	if !utf8.ValidString(m.FairnessKey) {
		return m, invalidField("fairness_key", "FairnessKey must be UTF-8, got %.40q", m.FairnessKey)
	}
	if !utf8.ValidString(m.DedupKey) {
		return m, invalidField("dedup_key", "DedupKey must be UTF-8, got %.40q", m.DedupKey)
	}
	for key, value := range m.Headers {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return m, invalidField("headers", "headers must be UTF-8, got %.40q: %.40q; send bytes in the payload, "+
				"or encode them", key, value)
		}
		m.bytes += len(key) + len(value)
	}
	return m, nil
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
	to = slices.Grow(to, m.bytes+len(m.queue)+8*len(m.Headers)+64)
	to = protowire.AppendTag(to, 2, protowire.BytesType)
	start, lengthBytes := len(to), protowire.SizeVarint(uint64(m.bytes)+16)
	to = append(to, make([]byte, lengthBytes)...)
	to = appendText(to, 1, m.queue)
	for key, value := range m.Headers {
		to = appendEntry(to, key, value)
	}
	for _, header := range m.trace {
		to = appendEntry(to, header.key, header.value)
	}
	to = protowire.AppendBytes(protowire.AppendTag(to, 3, protowire.BytesType), m.Payload)
	if options := appendOptions(nil, m); options != nil {
		to = protowire.AppendBytes(protowire.AppendTag(to, 4, protowire.BytesType), options)
	}
	return fillInLength(to, start, lengthBytes)
}

// fillInLength writes the length of what follows into the place that was kept for it at start, and moves what
// follows if that takes another number of bytes. Knowing the length beforehand would take one more walk over
// the headers.
func fillInLength(to []byte, start, lengthBytes int) []byte {
	length := uint64(len(to) - start - lengthBytes)
	if needed := protowire.SizeVarint(length); needed != lengthBytes {
		content := to[start+lengthBytes:]
		to = slices.Grow(to, needed)[:start+needed+int(length)]
		copy(to[start+needed:], content)
	}
	protowire.AppendVarint(to[:start], length)
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
	to = appendText(to, 4, m.DedupKey)
	if m.Replace {
		to = appendNumber(to, 5, onDuplicateReplace)
	}
	if m.MaxWait > 0 {
		to = appendNumber(to, 6, milliseconds(m.MaxWait))
	}
	if m.Priority != nil {
		to = appendNumber(to, 7, uint64(*m.Priority))
	}
	to = appendText(to, 8, m.FairnessKey)
	if m.Weight != 0 {
		to = appendNumber(to, 9, uint64(m.Weight))
	}
	if m.Cost != 0 {
		to = protowire.AppendFixed64(protowire.AppendTag(to, 10, protowire.Fixed64Type), math.Float64bits(m.Cost))
	}
	return to
}

// milliseconds rounds up: a wait is never shorter than asked for.
func milliseconds(d time.Duration) uint64 {
	return uint64((d + time.Millisecond - 1) / time.Millisecond)
}
