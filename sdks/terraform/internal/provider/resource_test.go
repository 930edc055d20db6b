package provider

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	fila "github.com/fila-mq/fila/sdks/go"
	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// olderServer knows queues without an order of their keys, and no limits.
type olderServer struct {
	filav1.UnimplementedFilaAdminServer
	queue *filav1.QueueConfig
}

func (s *olderServer) CreateQueue(
	_ context.Context, asked *filav1.CreateQueueRequest,
) (*filav1.CreateQueueResponse, error) {
	s.queue = proto.CloneOf(asked.GetConfig())
	s.queue.KeyOrder = 0
	return &filav1.CreateQueueResponse{}, nil
}

func (s *olderServer) GetQueue(
	context.Context, *filav1.GetQueueRequest,
) (*filav1.GetQueueResponse, error) {
	if s.queue == nil {
		return nil, status.Error(codes.NotFound, "there is no such queue")
	}
	return &filav1.GetQueueResponse{Config: s.queue}, nil
}

func (s *olderServer) DeleteQueue(
	context.Context, *filav1.DeleteQueueRequest,
) (*filav1.DeleteQueueResponse, error) {
	s.queue = nil
	return &filav1.DeleteQueueResponse{}, nil
}

// created is what a resource says when it is made on that server.
func created(t *testing.T, s *olderServer, k *kind, key []string, settings proto.Message) *resource.CreateResponse {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving := grpc.NewServer()
	filav1.RegisterFilaAdminServer(serving, s)
	go func() { _ = serving.Serve(listener) }()
	t.Cleanup(serving.Stop)
	client, err := fila.Connect(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	of := schema.Schema{Attributes: k.attributes(true)}
	plan := tfsdk.Plan{Schema: of, Raw: k.object(key, settings, typeOfSchema(k))}
	answer := &resource.CreateResponse{State: tfsdk.State{Schema: of, Raw: tftypes.NewValue(typeOfSchema(k), nil)}}
	(&managed{k, client}).Create(context.Background(), resource.CreateRequest{Plan: plan}, answer)
	return answer
}

func TestAQueueOfWhichTheServerDropsASettingStaysAndIsNotInTheState(t *testing.T) {
	server := &olderServer{}
	asked := &filav1.QueueConfig{KeyOrder: filav1.KeyOrder_KEY_ORDER_STRICT}
	answer := created(t, server, &queues, []string{"orders"}, asked)
	if !answer.Diagnostics.HasError() || !strings.Contains(answer.Diagnostics[0].Detail(), "key_order was sent") {
		t.Errorf("the dropped setting is not told: %v", answer.Diagnostics)
	}
	if server.queue == nil {
		t.Error("the queue was deleted, and its dead letters may be older than it")
	}
	if !answer.State.Raw.IsNull() {
		t.Error("it is in the state, and the next apply would replace it")
	}
}

func TestAQueueThatTheServerTakesWholeIsInTheState(t *testing.T) {
	server := &olderServer{}
	answer := created(t, server, &queues, []string{"orders"}, &filav1.QueueConfig{MaxDepth: 5})
	if answer.Diagnostics.HasError() || server.queue.GetMaxDepth() != 5 || answer.State.Raw.IsNull() {
		t.Errorf("it is not: %v", answer.Diagnostics)
	}
}

func TestAQueueThatIsThereAlreadyIsNotTakenOver(t *testing.T) {
	server := &olderServer{queue: &filav1.QueueConfig{MaxDepth: 7}}
	answer := created(t, server, &queues, []string{"orders"}, &filav1.QueueConfig{MaxDepth: 5})
	wanted := `Import it with the id "orders"`
	if !answer.Diagnostics.HasError() || !strings.Contains(answer.Diagnostics[0].Detail(), wanted) {
		t.Errorf("it is: %v", answer.Diagnostics)
	}
	if server.queue.GetMaxDepth() != 7 {
		t.Error("the queue was changed")
	}
}

func TestAServerWithoutLimitsIsToldWithTheVersionThatHasThem(t *testing.T) {
	answer := created(t, &olderServer{}, &limits, []string{"provider"}, &filav1.Limit{MaxInFlight: 5})
	wanted := "fila_limit needs a server of version " + fila.Version + " or newer"
	if !answer.Diagnostics.HasError() || !strings.Contains(answer.Diagnostics[0].Detail(), wanted) {
		t.Errorf("it is not: %v", answer.Diagnostics)
	}
}
