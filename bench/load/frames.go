package main

import (
	"encoding/binary"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Frames of the wire contract as bytes. A generated message object costs more than the broker spends on the
// message, so the bare client builds its requests once and reads of a reply only what it counts. A test
// holds these functions and the generated code together.

// stampMagic opens the payload of a message that carries the moment it was meant to be sent.
const stampMagic = 0x64616f6c616c6966 // "filaload"

const stampBytes = 16

// A batchFrame is an EnqueueStreamRequest but for its sequence number, which goes before it.
type batchFrame struct {
	head []byte // up to the stamp in the first message's payload
	tail []byte // after it; shared by every sending
}

// newBatchFrame builds a frame of batch messages, with the next keys.
func newBatchFrame(plan Plan, nextKey func() string) batchFrame {
	payload := make([]byte, plan.PayloadBytes)
	batch := appendText(nil, 1, plan.Queue)
	stampAt := 0
	for i := range plan.Batch {
		header := appendText(appendText(nil, 1, plan.KeyHeader), 2, nextKey())
		message := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), header)
		message = protowire.AppendBytes(protowire.AppendTag(message, 3, protowire.BytesType), payload)
		batch = protowire.AppendBytes(protowire.AppendTag(batch, 2, protowire.BytesType), message)
		if i == 0 {
			stampAt = len(batch) - len(payload)
		}
	}
	request := protowire.AppendTag(nil, 2, protowire.BytesType)
	request = protowire.AppendVarint(request, uint64(len(batch)))
	stampAt += len(request)
	request = append(request, batch...)
	if plan.PayloadBytes < stampBytes {
		return batchFrame{tail: request}
	}
	return batchFrame{head: request[:stampAt], tail: request[stampAt+stampBytes:]}
}

// encode returns the frame as it is sent: under this number, stamped with this moment.
func (f batchFrame) encode(sequence uint64, at int64) mem.BufferSlice {
	first := make([]byte, 0, len(f.head)+stampBytes+11)
	first = protowire.AppendVarint(protowire.AppendTag(first, 1, protowire.VarintType), sequence)
	if f.head != nil {
		first = append(first, f.head...)
		first = appendStamp(first, at)
	}
	return mem.BufferSlice{mem.SliceBuffer(first), mem.SliceBuffer(f.tail)}
}

func appendStamp(to []byte, at int64) []byte {
	to = binary.LittleEndian.AppendUint64(to, stampMagic)
	return binary.LittleEndian.AppendUint64(to, uint64(at))
}

// readStamp returns the moment a payload was meant to be sent, if it says.
func readStamp(payload []byte) (int64, bool) {
	if len(payload) < stampBytes || binary.LittleEndian.Uint64(payload) != stampMagic {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint64(payload[8:])), true
}

func appendText(to []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), text)
}

func encodeOpen(plan Plan) mem.BufferSlice {
	open := appendText(nil, 1, plan.Queue)
	open = protowire.AppendVarint(protowire.AppendTag(open, 3, protowire.VarintType), uint64(plan.MaxInFlight))
	return mem.BufferSlice{mem.SliceBuffer(appendBlock(nil, 1, open))}
}

// encodeAck takes the leases as packed varints.
func encodeAck(sequence uint64, packedLeases []byte) mem.BufferSlice {
	settle := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), sequence)
	settle = appendBlock(settle, 2, packedLeases)
	return mem.BufferSlice{mem.SliceBuffer(appendBlock(nil, 3, settle))}
}

func appendBlock(to []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), content)
}
