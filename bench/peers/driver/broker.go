package main

import (
	"context"
	"time"
)

// A broker makes what the plan needs, and connects goroutines to it. Its adapter uses the client that its makers
// maintain, in the way that client is meant to be used.
type broker interface {
	// setup makes the plan's queues, empty.
	setup(context.Context) error
	sender(context.Context) (sender, error)
	receiver(context.Context) (receiver, error)
	close()
}

// A sender is used by one goroutine.
type sender interface {
	// send returns once the broker has answered for every message: what its durability promises is so.
	send(context.Context, []message) error
	close()
}

// A receiver is used by one goroutine.
type receiver interface {
	// receive returns up to max messages; none when nothing came for a while or ctx ended.
	receive(ctx context.Context, max int) ([]delivery, error)
	// settle tells the broker that these are done, and returns once it has answered, where it answers.
	settle(context.Context, []delivery) error
	// giveBack returns messages that may not be handled yet: they come again after this long, or at once where
	// the broker knows no delay.
	giveBack(ctx context.Context, deliveries []delivery, after time.Duration) error
	close()
}

// pollWait is how long a receiver waits for a first message before it returns without one.
const pollWait = 200 * time.Millisecond

type message struct {
	tenant  int
	payload []byte
}

type delivery struct {
	payload []byte
	// tag is what the adapter needs to settle it.
	tag any
}

var brokers = map[string]func(Plan) (broker, error){
	"fila-grpc":       newFila,
	"fila-redis":      newFilaRedis,
	"redis-stream":    newRedisStream,
	"redis-list":      newRedisList,
	"nats":            newNATS,
	"rabbitmq-quorum": newRabbitQuorum,
	"rabbitmq":        newRabbitClassic,
	"kafka":           newKafka,
	"beanstalkd":      newBeanstalk,
}
