// Command requestreply asks over one queue and gets the answer over another, in as few lines as it takes.
// A program of yours looks at the errors.
package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"

	fila "github.com/fila-mq/fila/sdks/go"
)

func main() {
	ctx := context.Background()
	client, _ := fila.Connect(cmp.Or(os.Getenv("FILA_ADDR"), "localhost:5555"))
	defer client.Close()
	_ = client.CreateQueue(ctx, "requests")
	served := make(chan struct{})
	go serve(ctx, client, served)

	replyQueue := "replies-1"
	_ = client.CreateQueue(ctx, replyQueue)
	_, _ = client.Enqueue(ctx, "requests", map[string]string{"reply_to": replyQueue}, []byte("hello"))
	stream, _ := client.Consume(ctx, replyQueue)
	reply, _ := stream.Recv()
	fmt.Println(string(reply.Payload))
	_ = client.Ack(ctx, replyQueue, reply.ID)
	_ = client.DeleteQueue(ctx, replyQueue)
	<-served
}

func serve(ctx context.Context, client *fila.Client, served chan struct{}) {
	defer close(served)
	stream, _ := client.Consume(ctx, "requests")
	defer stream.Close()
	msg, _ := stream.Recv()
	_, _ = client.Enqueue(ctx, msg.Headers["reply_to"], nil, bytes.ToUpper(msg.Payload))
	_ = msg.Ack(ctx)
}
