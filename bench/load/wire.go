package main

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// Windows of this size never make the transport wait between two frames, and spare it measuring the path.
const flowWindowBytes = 16 << 20

const replyBytesMax = 64 << 20

// keyVariable is where the SDKs look for a key, too: on the command line others could read it.
const keyVariable = "FILA_API_KEY"

func dial(plan Plan) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if plan.CA != "" {
		var err error
		if transport, err = credentials.NewClientTLSFromFile(plan.CA, ""); err != nil {
			return nil, fmt.Errorf("-ca: %w", err)
		}
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithInitialWindowSize(flowWindowBytes),
		grpc.WithInitialConnWindowSize(flowWindowBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(replyBytesMax)),
	}
	if key := os.Getenv(keyVariable); key != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer("Bearer "+key)))
	}
	return grpc.NewClient(plan.Addr, options...)
}

// bearer is a key, as it is sent with every call.
type bearer string

var _ credentials.PerRPCCredentials = bearer("")

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// createQueue makes the queue unless it is there.
func createQueue(ctx context.Context, plan Plan) error {
	conn, err := dial(plan)
	if err != nil {
		return err
	}
	defer conn.Close()
	request := &filav1.CreateQueueRequest{
		Name:   plan.Queue,
		Config: &filav1.QueueConfig{FairnessKeyHeader: plan.KeyHeader},
	}
	_, err = filav1.NewFilaAdminClient(conn).CreateQueue(ctx, request)
	if err != nil && status.Code(err) != codes.AlreadyExists {
		return fmt.Errorf("create queue %s at %s: %w", plan.Queue, plan.Addr, err)
	}
	return nil
}

// rawCodec sends mem.BufferSlice and receives into *rawFrame, both as they are on the wire.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

// rawFrame is one received message. Its bytes are valid until free.
type rawFrame struct{ buffer mem.Buffer }

func (f *rawFrame) bytes() []byte { return f.buffer.ReadOnlyData() }
func (f *rawFrame) free()         { f.buffer.Free() }

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) { return v.(mem.BufferSlice), nil }

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*rawFrame).buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

// isStopped tells an end that we asked for from one that the broker or the network made.
func isStopped(ctx context.Context) bool { return ctx.Err() != nil }
