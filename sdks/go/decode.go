package fila

import (
	"errors"
	"hash/maphash"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

var errMalformed = errors.New("the broker's frame is no message of fila.v1")

// fields walks over an encoded message without building anything.
type fields struct {
	rest   []byte
	number protowire.Number
	bytes  []byte // of a length-delimited field
	value  uint64 // of a varint or a fixed64
	failed bool
}

func (f *fields) next() bool {
	if len(f.rest) == 0 || f.failed {
		return false
	}
	tag := f.varint()
	f.number = protowire.Number(tag >> 3)
	switch kind := protowire.Type(tag & 7); kind {
	case protowire.BytesType:
		length := f.varint()
		if length > uint64(len(f.rest)) {
			f.failed = true
			return false
		}
		f.bytes, f.rest = f.rest[:length], f.rest[length:]
	case protowire.VarintType:
		f.value = f.varint()
	default:
		f.skipOrFixed(kind)
	}
	return !f.failed
}

// varint reads most of those that there are, of one byte, without a call.
func (f *fields) varint() uint64 {
	if len(f.rest) > 0 && f.rest[0] < 0x80 {
		value := uint64(f.rest[0])
		f.rest = f.rest[1:]
		return value
	}
	return f.longVarint()
}

func (f *fields) longVarint() uint64 {
	value, n := protowire.ConsumeVarint(f.rest)
	if n < 0 {
		f.failed = true
		return 0
	}
	f.rest = f.rest[n:]
	return value
}

func (f *fields) skipOrFixed(kind protowire.Type) {
	var n int
	if kind == protowire.Fixed64Type {
		f.value, n = protowire.ConsumeFixed64(f.rest)
	} else {
		n = protowire.ConsumeFieldValue(f.number, kind, f.rest)
	}
	if n < 0 {
		f.failed = true
		return
	}
	f.rest = f.rest[n:]
}

func (f *fields) err() error {
	if f.failed {
		return errMalformed
	}
	return nil
}

// recurring gives one string for the same short bytes coming again soon: names and values of headers, fairness
// keys, queues. What falls on the same place takes it over.
type recurring struct {
	seed   maphash.Seed
	places [512]string
}

const recurringBytesMax = 64

func newRecurring() *recurring { return &recurring{seed: maphash.MakeSeed()} }

func (r *recurring) text(b []byte) string {
	if len(b) > recurringBytesMax {
		return string(b)
	}
	place := &r.places[maphash.Bytes(r.seed, b)%uint64(len(r.places))]
	if *place != string(b) {
		*place = string(b)
	}
	return *place
}

// decodeDelivery reads a ConsumeSessionResponse.Delivery. The messages point into the frame.
func decodeDelivery(delivery []byte, known *recurring) ([]Message, error) {
	count := 0
	for f := (fields{rest: delivery}); f.next(); {
		count++
	}
	messages := make([]Message, 0, count)
	f := fields{rest: delivery}
	for f.next() {
		if f.number != 1 {
			continue
		}
		messages = append(messages, Message{})
		if err := decodeMessage(f.bytes, &messages[len(messages)-1], known); err != nil {
			return nil, err
		}
	}
	return messages, f.err()
}

func decodeMessage(encoded []byte, m *Message, known *recurring) error {
	f := fields{rest: encoded}
	for f.next() {
		var err error
		switch f.number {
		case 1:
			m.ID = string(f.bytes)
		case 2:
			err = decodeHeader(f.bytes, m, known)
		case 3:
			m.Payload = f.bytes[:len(f.bytes):len(f.bytes)]
		case 4:
			err = decodeMetadata(f.bytes, m, known)
		case 5:
			err = decodeTimestamps(f.bytes, m)
		}
		if err != nil {
			return err
		}
	}
	return f.err()
}

func decodeHeader(entry []byte, m *Message, known *recurring) error {
	var key, value string
	f := fields{rest: entry}
	for f.next() {
		switch f.number {
		case 1:
			key = known.text(f.bytes)
		case 2:
			value = known.text(f.bytes)
		}
	}
	if m.Headers == nil {
		m.Headers = make(map[string]string, 4)
	}
	m.Headers[key] = value
	return f.err()
}

// usualPriority is left out on the wire.
const usualPriority = 1

func decodeMetadata(metadata []byte, m *Message, known *recurring) error {
	m.Cost, m.Priority = 0, usualPriority
	f := fields{rest: metadata}
	for f.next() {
		switch f.number {
		case 1:
			m.FairnessKey = known.text(f.bytes)
		case 2:
			m.Weight = int(f.value)
		case 3:
			m.ThrottleKeys = append(m.ThrottleKeys, known.text(f.bytes))
		case 4:
			m.AttemptCount = int(f.value)
		case 5:
			m.Queue = known.text(f.bytes)
		case 6:
			m.Offset = f.value
		case 7:
			m.LeaseID = f.value
		case 8:
			m.Cost = math.Float64frombits(f.value)
		case 9:
			m.Channel = known.text(f.bytes)
		case 10:
			letter := new(filav1.DeadLetter)
			if err := proto.Unmarshal(f.bytes, letter); err != nil {
				return errMalformed
			}
			m.DeadLetter = newDeadLetter(letter)
		case 11:
			m.Redelivered = f.value != 0
		case 12:
			m.CameBack = f.value != 0
		case 13:
			m.Priority = int(f.value)
		}
	}
	return f.err()
}

func newDeadLetter(letter *filav1.DeadLetter) *DeadLetter {
	return &DeadLetter{
		SourceQueue:   letter.GetSourceQueue(),
		SourceChannel: letter.GetSourceChannel(),
		Reason:        letter.GetReason(),
		LastError:     letter.GetLastError(),
		Attempts:      int(letter.GetAttempts()),
		At:            letter.GetAt().AsTime(),
	}
}

func decodeTimestamps(timestamps []byte, m *Message) error {
	f := fields{rest: timestamps}
	for f.next() {
		moment, err := decodeMoment(f.bytes)
		if err != nil {
			return err
		}
		switch f.number {
		case 1:
			m.EnqueuedAt = moment
		case 2:
			m.LeasedAt = moment
		case 3:
			m.LeaseExpiresAt = moment
		case 4:
			m.AppendedAt = moment
		}
	}
	return f.err()
}

func decodeMoment(timestamp []byte) (time.Time, error) {
	var seconds, nanoseconds int64
	f := fields{rest: timestamp}
	for f.next() {
		switch f.number {
		case 1:
			seconds = int64(f.value)
		case 2:
			nanoseconds = int64(f.value)
		}
	}
	return time.Unix(seconds, nanoseconds).UTC(), f.err()
}

// newMessage is a message as a generated object has it, for calls that are not worth more.
func newMessage(wire *filav1.Message) *Message {
	metadata, timestamps := wire.GetMetadata(), wire.GetTimestamps()
	m := &Message{
		StoredMessage: StoredMessage{
			ID: wire.GetId(), Headers: wire.GetHeaders(), Payload: wire.GetPayload(),
			Queue: metadata.GetQueueId(), Channel: metadata.GetChannel(), Offset: metadata.GetOffset(),
			FairnessKey: metadata.GetFairnessKey(), Weight: int(metadata.GetWeight()), Cost: metadata.GetCost(),
			ThrottleKeys: metadata.GetThrottleKeys(), AttemptCount: int(metadata.GetAttemptCount()),
			Redelivered: metadata.GetRedelivered(), CameBack: metadata.GetCameBack(), Priority: usualPriority,
			EnqueuedAt: timestamps.GetEnqueuedAt().AsTime(), AppendedAt: timestamps.GetAppendedAt().AsTime(),
		},
		LeaseID: metadata.GetLeaseId(),
	}
	if metadata != nil && metadata.Priority != nil {
		m.Priority = int(metadata.GetPriority())
	}
	if timestamps.GetLeasedAt() != nil {
		m.LeasedAt, m.LeaseExpiresAt = timestamps.GetLeasedAt().AsTime(), timestamps.GetLeaseExpiresAt().AsTime()
	}
	if timestamps.GetDueAt() != nil {
		m.DueAt = timestamps.GetDueAt().AsTime()
	}
	if letter := metadata.GetDeadLetter(); letter != nil {
		m.DeadLetter = newDeadLetter(letter)
	}
	return m
}

// enqueueAnswer is an EnqueueStreamResponse.
type enqueueAnswer struct {
	sequence uint64
	results  []enqueueResult
}

type enqueueResult struct {
	receipt Receipt
	status  *filav1.ItemStatus // why it was refused; nil when it was stored
}

func decodeEnqueueAnswer(frame []byte) (enqueueAnswer, error) {
	var answer enqueueAnswer
	f := fields{rest: frame}
	for f.next() {
		switch f.number {
		case 1:
			answer.sequence = f.value
		case 2:
			result, err := decodeEnqueueResult(f.bytes)
			if err != nil {
				return answer, err
			}
			answer.results = append(answer.results, result)
		}
	}
	return answer, f.err()
}

func decodeEnqueueResult(encoded []byte) (enqueueResult, error) {
	var result enqueueResult
	f := fields{rest: encoded}
	for f.next() {
		switch f.number {
		case 1:
			result.receipt.ID = string(f.bytes)
		case 2:
			result.receipt.Offset = f.value
		case 3:
			status := new(filav1.ItemStatus)
			if err := proto.Unmarshal(f.bytes, status); err != nil {
				return result, errMalformed
			}
			if status.GetCode() != 0 {
				result.status = status
			}
		}
	}
	return result, f.err()
}
