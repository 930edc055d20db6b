package fila

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// streamCodec lets streams send frames that are encoded already, and receive them undecoded: a generated
// object for every message would cost more than all else that a client does with it.
type streamCodec struct{}

// Name is that of gRPC's own codec, since the bytes are the same.
func (streamCodec) Name() string { return "proto" }

func (streamCodec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case mem.BufferSlice:
		return v, nil
	case proto.Message:
		encoded, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(encoded)}, err
	}
	panic("fila: a stream was given something that is no frame")
}

// Unmarshal keeps the frame: what is decoded from it points into it.
func (streamCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}
