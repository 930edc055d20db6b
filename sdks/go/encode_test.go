//go:build go1.25

package fila

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// What is encoded and decoded by hand must be what the generated code says.

func TestAFrameOfEnqueuesIsAnEnqueueStreamRequest(t *testing.T) {
	moment := time.Unix(1_800_000_000, 123_000_000).UTC()
	ttl := uint64(60_000)
	messages := []NewMessage{
		{},
		{Payload: []byte("päyload"), Headers: map[string]string{"ключ": "значение", "empty": ""}},
		{Payload: bytes.Repeat([]byte{0xff}, 1<<20), Delay: 1500 * time.Microsecond, DedupKey: "key"},
		{DedupKey: "key", Replace: true, MaxWait: time.Minute, FairnessKey: "acme", Weight: 300, Cost: 2.5,
			Priority: new(uint32)},
		{DeliverAt: moment, TTL: time.Minute},
	}
	f := newFrame("q", frameSizes{}, 0, time.Time{})
	want := &filav1.EnqueueStreamRequest{Sequence: 1 << 40, Batch: &filav1.EnqueueBatchRequest{Queue: "q", Messages: []*filav1.EnqueueMessage{
		{Payload: []byte{}},
		{Payload: []byte("päyload"), Headers: map[string]string{"ключ": "значение", "empty": "", "traceparent": "00-1"}, Queue: "other"},
		{Payload: messages[2].Payload, Options: &filav1.EnqueueOptions{DelayMs: 2, DedupKey: "key"}},
		{Options: &filav1.EnqueueOptions{
			DedupKey: "key", OnDuplicate: filav1.EnqueueOptions_ON_DUPLICATE_REPLACE, MaxWaitMs: 60_000,
			FairnessKey: "acme", Weight: 300, Cost: 2.5, Priority: new(uint32),
		}},
		{Options: &filav1.EnqueueOptions{DeliverAt: timestamppb.New(moment), TtlMs: &ttl}},
	}}}
	for i, message := range messages {
		m, queue := &outgoing{NewMessage: message}, "q"
		if i == 1 {
			m.trace, queue = traceHeaders{{"traceparent", "00-1"}}, "other"
		}
		f.add(m, queue, nil, i)
	}
	var got filav1.EnqueueStreamRequest
	if err := proto.Unmarshal(f.encode(1<<40).Materialize(), &got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&got, want) {
		t.Errorf("got %v", &got)
	}
	var part filav1.EnqueueStreamRequest
	if err := proto.Unmarshal(f.part([]int{1, 4}).encode(5).Materialize(), &part); err != nil {
		t.Fatal(err)
	}
	want.Sequence, want.Batch.Messages = 5, []*filav1.EnqueueMessage{want.Batch.Messages[1], want.Batch.Messages[4]}
	if !proto.Equal(&part, want) {
		t.Errorf("a part is %v", &part)
	}
}

func TestTheLengthOfAMessageIsRightWhateverWasExpectedOfIt(t *testing.T) {
	for _, bytes := range []int{0, 100, 112, 1 << 14, 1 << 21} {
		for payload := range 300 {
			message := NewMessage{Payload: make([]byte, payload), DedupKey: "key"}
			encoded := appendMessage([]byte("before"), &outgoing{NewMessage: message, bytes: bytes})
			var got filav1.EnqueueBatchRequest
			if err := proto.Unmarshal(encoded[len("before"):], &got); err != nil {
				t.Fatalf("%d bytes instead of %d: %v", payload, bytes, err)
			}
			one := got.GetMessages()[0]
			if len(one.GetPayload()) != payload || one.GetOptions().GetDedupKey() != "key" {
				t.Fatalf("%d bytes instead of %d: got %v", payload, bytes, &got)
			}
		}
	}
}

func TestTextsThatRecurAreOneAndOthersAreWhole(t *testing.T) {
	texts := newRecurring()
	for i := range 5000 {
		text := fmt.Sprintf("tenant-%d", i)
		if got := texts.text([]byte(text)); got != text {
			t.Fatalf("%q was read as %q", text, got)
		}
	}
	long := strings.Repeat("x", recurringBytesMax+1)
	if texts.text([]byte(long)) != long {
		t.Error("a long text was cut")
	}
	key := []byte("acme")
	if texts.text(key); testing.AllocsPerRun(100, func() { texts.text(key) }) != 0 {
		t.Error("a text that came before was made again")
	}
}

func TestADeliveryIsReadAsTheGeneratedCodeReadsIt(t *testing.T) {
	at := func(seconds int64) *timestamppb.Timestamp { return &timestamppb.Timestamp{Seconds: seconds, Nanos: 5} }
	wire := &filav1.Message{
		Id: "0193", Headers: map[string]string{"tenant": "acme", "ключ": ""}, Payload: []byte{0, 1, 2},
		Metadata: &filav1.MessageMetadata{
			FairnessKey: "acme", Weight: 3, ThrottleKeys: []string{"a", "b"}, AttemptCount: 2, QueueId: "q", Offset: 1 << 50,
			LeaseId: 1 << 60, Cost: 2.5, Channel: "audit", Redelivered: true, CameBack: true, Priority: new(uint32),
			DeadLetter: &filav1.DeadLetter{SourceQueue: "s", SourceChannel: "c", Reason: "rejected", LastError: "no", Attempts: 4, At: at(9)},
		},
		Timestamps: &filav1.MessageTimestamps{EnqueuedAt: at(1), LeasedAt: at(2), LeaseExpiresAt: at(3), AppendedAt: at(4)},
	}
	encoded, err := proto.Marshal(&filav1.ConsumeSessionResponse_Delivery{Messages: []*filav1.Message{wire, {Id: "bare"}}})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := decodeDelivery(encoded, newRecurring())
	if err != nil || len(messages) != 2 || messages[1].ID != "bare" {
		t.Fatalf("got %d messages, %v", len(messages), err)
	}
	got, want := &messages[0], newMessage(wire)
	letter := *got.DeadLetter
	if letter != *want.DeadLetter {
		t.Errorf("dead letter %+v", letter)
	}
	if got.ID != want.ID || !bytes.Equal(got.Payload, want.Payload) || len(got.Headers) != 2 || got.Headers["tenant"] != "acme" ||
		got.Queue != "q" || got.Channel != "audit" || got.Offset != want.Offset || got.LeaseID != want.LeaseID ||
		got.FairnessKey != "acme" || got.Weight != 3 || got.Cost != 2.5 || len(got.ThrottleKeys) != 2 || got.AttemptCount != 2 ||
		got.Priority != 0 || want.Priority != 0 ||
		!got.Redelivered || !got.CameBack || !got.EnqueuedAt.Equal(want.EnqueuedAt) || !got.AppendedAt.Equal(want.AppendedAt) ||
		!got.LeasedAt.Equal(want.LeasedAt) || !got.LeaseExpiresAt.Equal(want.LeaseExpiresAt) || got.LeasedAt.Unix() != 2 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAnEnqueueAnswerIsReadAsTheGeneratedCodeReadsIt(t *testing.T) {
	encoded, err := proto.Marshal(&filav1.EnqueueStreamResponse{Sequence: 3, Results: []*filav1.EnqueueResult{
		{MessageId: "a", Offset: 7}, {Error: &filav1.ItemStatus{Code: 5, Reason: "QUEUE_NOT_FOUND", Message: "none"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := decodeEnqueueAnswer(encoded)
	if err != nil || answer.sequence != 3 || len(answer.results) != 2 || answer.results[0].receipt != (Receipt{"a", 7}) ||
		answer.results[0].status != nil || answer.results[1].status.GetReason() != "QUEUE_NOT_FOUND" {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func FuzzDecodersNeverPanic(f *testing.F) {
	f.Add([]byte{0x0a, 0x03, 0x22, 0x01, 0x3a})
	f.Add([]byte{0x12, 0x05, 0x1a, 0x03, 0x08, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, frame []byte) {
		_, _ = decodeDelivery(frame, newRecurring())
		_, _ = decodeEnqueueAnswer(frame)
	})
}
