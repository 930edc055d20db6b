// Command firststeps makes a queue, puts a message in, and takes it out again.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	fila "github.com/fila-mq/fila/sdks/go"
)

func main() {
	ctx := context.Background()
	client, err := fila.Connect(cmp.Or(os.Getenv("FILA_ADDR"), "localhost:5555"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if err := client.CreateQueue(ctx, "coffee", fila.FairnessKeyHeader("tenant")); err != nil {
		log.Fatal(err)
	}
	id, err := client.Enqueue(ctx, "coffee", map[string]string{"tenant": "acme"}, []byte("one coffee"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("stored as", id)

	for msg, err := range client.Messages(ctx, "coffee") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s wants %s\n", msg.Headers["tenant"], msg.Payload)
		if err := msg.Ack(ctx); err != nil {
			log.Fatal(err)
		}
		break // a worker would go on for ever
	}
}
