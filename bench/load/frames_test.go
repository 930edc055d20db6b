package main

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

func testPlan() Plan {
	return Plan{Queue: "load", Producers: 1, Batch: 3, PayloadBytes: 64, Keys: 2, Distribution: uniform,
		KeyHeader: "tenant", MaxInFlight: 7, Processes: 1, ZipfExponent: 1.1, Window: 1}
}

func TestBatchFrameIsAnEnqueueStreamRequest(t *testing.T) {
	plan := testPlan()
	encoded := newBatchFrame(plan, newKeys(plan, 0)).encode(300, 12345)
	var request filav1.EnqueueStreamRequest
	if err := proto.Unmarshal(encoded.Materialize(), &request); err != nil {
		t.Fatal(err)
	}
	if request.GetSequence() != 300 || request.GetBatch().GetQueue() != "load" {
		t.Fatalf("got sequence %d and queue %q", request.GetSequence(), request.GetBatch().GetQueue())
	}
	messages := request.GetBatch().GetMessages()
	if len(messages) != plan.Batch {
		t.Fatalf("got %d messages, want %d", len(messages), plan.Batch)
	}
	for i, message := range messages {
		if len(message.GetPayload()) != plan.PayloadBytes {
			t.Errorf("message %d: payload of %d bytes", i, len(message.GetPayload()))
		}
		if got, want := message.GetHeaders()["tenant"], keyName(i%2); got != want {
			t.Errorf("message %d: key %q, want %q", i, got, want)
		}
		at, stamped := readStamp(message.GetPayload())
		if stamped != (i == 0) || (stamped && at != 12345) {
			t.Errorf("message %d: stamp %d, %v: the first message alone carries the moment", i, at, stamped)
		}
	}
}

func TestASmallPayloadIsSentUnstamped(t *testing.T) {
	plan := testPlan()
	plan.PayloadBytes = stampBytes - 1
	encoded := newBatchFrame(plan, newKeys(plan, 0)).encode(1, 12345)
	var request filav1.EnqueueStreamRequest
	if err := proto.Unmarshal(encoded.Materialize(), &request); err != nil {
		t.Fatal(err)
	}
	for _, message := range request.GetBatch().GetMessages() {
		if got := message.GetPayload(); len(got) != stampBytes-1 {
			t.Errorf("got payload %q", got)
		}
	}
}

func TestSessionFramesAreConsumeSessionRequests(t *testing.T) {
	packed := protowire.AppendVarint(protowire.AppendVarint(nil, 5), 7_000_000)
	for name, test := range map[string]struct {
		encoded []byte
		want    *filav1.ConsumeSessionRequest
	}{
		"open": {encodeOpen(testPlan()).Materialize(), &filav1.ConsumeSessionRequest{
			Request: &filav1.ConsumeSessionRequest_Open_{
				Open: &filav1.ConsumeSessionRequest_Open{Queue: "load", MaxInFlight: 7}}}},
		"ack": {encodeAck(9, packed).Materialize(), &filav1.ConsumeSessionRequest{
			Request: &filav1.ConsumeSessionRequest_Ack{
				Ack: &filav1.Settle{Sequence: 9, LeaseIds: []uint64{5, 7_000_000}}}}},
	} {
		var got filav1.ConsumeSessionRequest
		if err := proto.Unmarshal(test.encoded, &got); err != nil {
			t.Fatal(name, err)
		}
		if !proto.Equal(&got, test.want) {
			t.Errorf("%s: got %v, want %v", name, &got, test.want)
		}
	}
}

func TestScanAnswerCountsStoredAndRefused(t *testing.T) {
	reply, err := proto.Marshal(&filav1.EnqueueStreamResponse{Sequence: 4, Results: []*filav1.EnqueueResult{
		{MessageId: "a", Offset: 1},
		{Error: &filav1.ItemStatus{Code: 8, Reason: "QUEUE_FULL"}},
		{MessageId: "b", Offset: 2},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := scanAnswer(reply)
	if err != nil || got != (answer{sequence: 4, stored: 2, refused: 1}) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestScanSessionReadsLeasesStampsAndSettlements(t *testing.T) {
	delivery := &filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Delivery_{
		Delivery: &filav1.ConsumeSessionResponse_Delivery{Messages: []*filav1.Message{
			{Id: "a", Payload: newPayload(testPlan(), 99), Metadata: &filav1.MessageMetadata{LeaseId: 300, Offset: 7}},
			{Id: "b", Headers: map[string]string{"k": "v"}, Metadata: &filav1.MessageMetadata{LeaseId: 1}},
		}}}}
	settled := &filav1.ConsumeSessionResponse{Response: &filav1.ConsumeSessionResponse_Settled_{
		Settled: &filav1.ConsumeSessionResponse_Settled{Sequence: 8,
			Failures: []*filav1.ConsumeSessionResponse_Failure{{LeaseId: 1}}}}}
	var frame sessionFrame
	scan := func(message proto.Message) {
		t.Helper()
		reply, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		if err := scanSession(reply, &frame); err != nil {
			t.Fatal(err)
		}
	}
	scan(delivery)
	want := protowire.AppendVarint(protowire.AppendVarint(nil, 300), 1)
	if frame.delivered != 2 || frame.settled || !slices.Equal(frame.packedLeases, want) ||
		!slices.Equal(frame.stamps, []int64{99}) {
		t.Errorf("a delivery was read as %+v", frame)
	}
	scan(settled)
	if frame.delivered != 0 || !frame.settled || frame.sequence != 8 || frame.failures != 1 {
		t.Errorf("a settlement was read as %+v", frame)
	}
}

func TestAMalformedReplyIsAnErrorAndNoPanic(t *testing.T) {
	for _, reply := range [][]byte{{0x12}, {0x12, 0xff}, {0x12, 0x02, 0x0a, 0x05}, {0xff, 0xff, 0xff}} {
		if err := scanSession(reply, &sessionFrame{}); err == nil {
			t.Errorf("%x was taken for a session frame", reply)
		}
	}
}

func TestKeysComeInTurnOrByZipf(t *testing.T) {
	plan := testPlan()
	plan.Keys = 1000
	count := func(nextKey func() string) map[string]int {
		counts := map[string]int{}
		for range 10_000 {
			counts[nextKey()]++
		}
		return counts
	}
	inTurn := slices.Collect(maps.Values(count(newKeys(plan, 0))))
	if len(inTurn) != 1000 || slices.Min(inTurn) != 10 || slices.Max(inTurn) != 10 {
		t.Errorf("uniform: %d keys, %d to %d times each", len(inTurn), slices.Min(inTurn), slices.Max(inTurn))
	}
	plan.Distribution = zipf
	uneven := count(newKeys(plan, 0))
	if uneven[keyName(0)] < 10*max(1, uneven[keyName(100)]) {
		t.Errorf("zipf: the first key came %d times, the hundredth %d", uneven[keyName(0)], uneven[keyName(100)])
	}
	if maps.Equal(uneven, count(newKeys(plan, 1))) {
		t.Error("two producers send the same sequence of keys")
	}
}
