// Package fila is the Go client of the message broker Fila.
//
//	client, err := fila.Connect("localhost:5555")
//	...
//	defer client.Close()
//	id, err := client.Enqueue(ctx, "orders", map[string]string{"tenant": "acme"}, []byte("one coffee"))
//
//	for msg, err := range client.Messages(ctx, "orders") {
//		if err != nil {
//			return err
//		}
//		fmt.Printf("%s wants %s\n", msg.Headers["tenant"], msg.Payload)
//		if err := msg.Ack(ctx); err != nil {
//			return err
//		}
//	}
//
// A [Client] is one connection; any number of goroutines may share it. Concurrent calls travel together,
// so a call from each of many goroutines costs little more than one.
//
// Every failure is an [*Error], and belongs to one of the kinds that errors.Is knows:
//
//	if errors.Is(err, fila.ErrQueueNotFound) { ... }
//
// A call that is cut off by its context also matches context.Canceled or context.DeadlineExceeded.
package fila

// Version of this SDK.
const Version = "0.1.0"
