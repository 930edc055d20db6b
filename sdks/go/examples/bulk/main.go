// Command bulk moves many messages the fastest way: large frames in, batches out, acks together.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"time"

	fila "github.com/fila-mq/fila/sdks/go"
)

const count = 10_000

// measurements are made as they are sent.
func measurements() iter.Seq[fila.NewMessage] {
	return func(yield func(fila.NewMessage) bool) {
		for i := range count {
			if !yield(fila.NewMessage{Payload: fmt.Append(nil, i)}) {
				return
			}
		}
	}
}

func main() {
	ctx := context.Background()
	client, err := fila.Connect(cmp.Or(os.Getenv("FILA_ADDR"), "localhost:5555"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if err := client.CreateQueue(ctx, "measurements"); err != nil {
		log.Fatal(err)
	}

	receipts, err := client.EnqueueSeq(ctx, "measurements", measurements())
	var some *fila.SomeFailedError
	if errors.As(err, &some) {
		log.Fatal("refused: ", len(some.Unwrap()))
	} else if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored", len(receipts))

	taken := 0
	for batch, err := range client.Batches(ctx, "measurements", 1000, fila.StopWhenIdle(time.Second)) {
		if err != nil {
			log.Fatal(err)
		}
		if err := client.AckMany(ctx, batch); err != nil {
			log.Fatal(err)
		}
		taken += len(batch)
	}
	fmt.Println("taken", taken)
}
