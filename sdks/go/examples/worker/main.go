// Command worker runs several goroutines over one consumer until it is told to stop: by SIGTERM or Ctrl-C,
// or here, when nothing has come for a second.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	fila "github.com/fila-mq/fila/sdks/go"
)

const (
	queue   = "emails"
	workers = 4
)

func main() {
	client, err := fila.Connect(cmp.Or(os.Getenv("FILA_ADDR"), "localhost:5555"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := prepare(ctx, client); err != nil {
		log.Fatal(err)
	}

	stream, err := client.Consume(ctx, queue, fila.Workers(workers), fila.StopWhenIdle(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	var running sync.WaitGroup
	for range workers {
		running.Add(1)
		go func() {
			defer running.Done()
			work(stream)
		}()
	}
	running.Wait()
}

func work(stream *fila.Stream) {
	for {
		msg, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, context.Canceled):
			return
		case err != nil:
			log.Print(err)
			return
		}
		// The message's own context ends when its lease is lost: then it is somebody else's work.
		if failure := send(msg.Context(), msg.Payload); failure != nil {
			err = msg.Nack(context.Background(), failure.Error())
		} else {
			err = msg.Ack(context.Background())
		}
		if errors.Is(err, fila.ErrLeaseLost) {
			log.Print("took too long: ", msg.ID)
		} else if err != nil {
			log.Print(err)
		}
	}
}

func send(ctx context.Context, email []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Printf("sent %s\n", email)
	return nil
}

func prepare(ctx context.Context, client *fila.Client) error {
	if err := client.CreateQueue(ctx, queue); err != nil && !errors.Is(err, fila.ErrQueueExists) {
		return err
	}
	var emails []fila.NewMessage
	for i := range 10 {
		emails = append(emails, fila.NewMessage{Payload: fmt.Appendf(nil, "email %d", i)})
	}
	_, err := client.EnqueueMany(ctx, queue, emails)
	return err
}
