package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	fila "github.com/fila-mq/fila/sdks/go"
)

func storedAnswer(r fila.Receipt) answer { return answer{"message_id": r.ID, "offset": r.Offset} }

func messageAnswer(m *fila.StoredMessage) answer {
	told := answer{
		"id": m.ID, "queue": m.Queue, "channel": m.Channel, "offset": m.Offset, "headers": orEmpty(m.Headers),
		"payload": base64.StdEncoding.EncodeToString(m.Payload), "fairness_key": m.FairnessKey, "weight": m.Weight,
		"cost": m.Cost, "priority": m.Priority, "throttle_keys": append([]string{}, m.ThrottleKeys...), "attempt_count": m.AttemptCount,
		"enqueued_at_ms": m.EnqueuedAt.UnixMilli(), "appended_at_ms": m.AppendedAt.UnixMilli(), "due_at_ms": nil, "dead_letter": nil,
	}
	if !m.DueAt.IsZero() {
		told["due_at_ms"] = m.DueAt.UnixMilli()
	}
	if letter := m.DeadLetter; letter != nil {
		told["dead_letter"] = answer{
			"source_queue": letter.SourceQueue, "source_channel": letter.SourceChannel, "reason": letter.Reason,
			"last_error": letter.LastError, "attempts": letter.Attempts, "at_ms": letter.At.UnixMilli(),
		}
	}
	return told
}

func leasedAnswer(m *fila.Message) answer {
	told := messageAnswer(&m.StoredMessage)
	told["lease_id"], told["redelivered"], told["came_back"] = m.LeaseID, m.Redelivered, m.CameBack
	told["leased_at_ms"], told["lease_expires_at_ms"] = m.LeasedAt.UnixMilli(), m.LeaseExpiresAt.UnixMilli()
	return told
}

func orEmpty(headers map[string]string) map[string]string {
	if headers == nil {
		return map[string]string{}
	}
	return headers
}

// codeNames are gRPC's own; Go's codes print in another spelling.
func codeName(code codes.Code) string {
	if code == codes.Canceled {
		return "CANCELLED"
	}
	var name strings.Builder
	for i, letter := range code.String() {
		if i > 0 && unicode.IsUpper(letter) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(letter))
	}
	return name.String()
}

// partly is a batch of which some items failed, and what the others gave.
type partly struct {
	some     *fila.SomeFailedError
	receipts []fila.Receipt // of enqueues
}

func (p *partly) Error() string { return p.some.Error() }

func errorAnswer(err error) answer {
	var batch *partly
	if errors.As(err, &batch) {
		return someAnswer(batch.some, batch.receipts)
	}
	var some *fila.SomeFailedError
	if errors.As(err, &some) {
		return someAnswer(some, nil)
	}
	var failure *fila.Error
	if !errors.As(err, &failure) {
		return answer{"kind": "Unexpected", "code": "", "reason": "", "message": fmt.Sprintf("%T: %v", err, err)}
	}
	told := answer{
		"kind": failure.Kind.String(), "code": codeName(failure.Code), "reason": failure.Reason, "message": failure.Error(),
	}
	if failure.Is(fila.ErrInvalid) && failure.Reason == "" {
		told["kind"], told["code"] = "Argument", "" // the SDK itself refused it
	}
	for name, value := range map[string]string{
		"queue": failure.Queue, "channel": failure.Channel, "message_id": failure.MessageID, "field": failure.Field,
		"config_key": failure.ConfigKey,
	} {
		if value != "" {
			told[name] = value
		}
	}
	if failure.LeaseID != 0 {
		told["lease_id"] = failure.LeaseID
	}
	if failure.RetryAfter > 0 {
		told["retry_after_s"] = failure.RetryAfter.Seconds()
	}
	return told
}

func someAnswer(some *fila.SomeFailedError, receipts []fila.Receipt) answer {
	var told answer
	var results []answer
	for i, result := range some.Results {
		switch {
		case result != nil:
			if told == nil {
				told = maps.Clone(errorAnswer(result))
			}
			results = append(results, answer{"error": errorAnswer(result)})
		case receipts != nil:
			results = append(results, answer{"ok": storedAnswer(receipts[i])})
		default:
			results = append(results, answer{"ok": answer{}})
		}
	}
	return answer{
		"kind": "SomeFailed", "code": told["code"], "reason": told["reason"], "message": some.Error(), "results": results,
	}
}

// plain is a wire message as JSON: the proto's names, moments in milliseconds, enums without their prefix.
func plain(message proto.Message) answer {
	told := answer{}
	reflected := message.ProtoReflect()
	fields := reflected.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		value := reflected.Get(field)
		name := string(field.Name())
		switch {
		case field.IsMap():
			entries := answer{}
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				entries[key.String()] = value.Interface()
				return true
			})
			told[name] = entries
		case field.IsList():
			items := []any{}
			if isMoment(field) {
				name += "_ms"
			}
			for i := range value.List().Len() {
				items = append(items, plainValue(field, value.List().Get(i)))
			}
			told[name] = items
		case isMoment(field):
			if reflected.Has(field) {
				told[name+"_ms"] = plainValue(field, value)
			}
		default:
			told[name] = plainValue(field, value)
		}
	}
	return told
}

func plainValue(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch {
	case isMoment(field):
		return moment(value.Message().Interface().(*timestamppb.Timestamp).AsTime())
	case field.Message() != nil:
		return plain(value.Message().Interface())
	case field.Enum() != nil:
		name := string(field.Enum().Values().ByNumber(value.Enum()).Name())
		return strings.ToLower(strings.TrimPrefix(name, enumPrefix(string(field.Enum().Name()))))
	}
	return value.Interface()
}

func isMoment(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && field.Message().FullName() == "google.protobuf.Timestamp"
}

// enumPrefix: HookFallback begins its values with HOOK_FALLBACK_.
func enumPrefix(name string) string {
	var prefix strings.Builder
	for i, letter := range name {
		if i > 0 && unicode.IsUpper(letter) {
			prefix.WriteByte('_')
		}
		prefix.WriteRune(unicode.ToUpper(letter))
	}
	return prefix.String() + "_"
}

func listed[T proto.Message](items []T) []answer {
	told := []answer{}
	for _, item := range items {
		told = append(told, plain(item))
	}
	return told
}

func moment(at time.Time) int64 { return at.UnixMilli() }
