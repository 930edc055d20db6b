package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisClient is what the three adapters over the Redis protocol share: one pool, a connection for each goroutine.
type redisClient struct {
	plan   Plan
	client *redis.Client
}

func newRedisClient(plan Plan) redisClient {
	return redisClient{plan: plan, client: redis.NewClient(&redis.Options{
		Addr: plan.Addr, PoolSize: plan.Senders + plan.Receivers + 8, Protocol: 2,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, MaxRetries: -1,
	})}
}

func (c redisClient) close() { c.client.Close() }

// isNothing tells the reply that says that nothing came.
func isNothing(err error) bool { return errors.Is(err, redis.Nil) }

// filaRedis is Fila over the Redis protocol. Its messages have no headers, so all are of one fairness key.
type filaRedis struct{ redisClient }

const filaChannel = "default"

func newFilaRedis(plan Plan) (broker, error) { return &filaRedis{newRedisClient(plan)}, nil }

func (b *filaRedis) setup(ctx context.Context) error {
	if b.plan.Workload == "noisy" || b.plan.Workload == "limit" {
		return errors.New("messages pushed over Redis have no tenant: this load is of Fila over gRPC")
	}
	b.client.Do(ctx, "DEL", queueName(0))
	return b.client.Do(ctx, "SETNX", queueName(0), filaChannel).Err()
}

func (b *filaRedis) sender(context.Context) (sender, error)     { return &filaRedisSession{b}, nil }
func (b *filaRedis) receiver(context.Context) (receiver, error) { return &filaRedisSession{b}, nil }

type filaRedisSession struct{ b *filaRedis }

func (s *filaRedisSession) close() {}

func (s *filaRedisSession) send(ctx context.Context, batch []message) error {
	words := make([]any, 0, 2+len(batch))
	words = append(words, "RPUSH", queueName(0))
	for _, m := range batch {
		words = append(words, m.payload)
	}
	return s.b.client.Do(ctx, words...).Err()
}

func (s *filaRedisSession) receive(ctx context.Context, most int) ([]delivery, error) {
	reply, err := s.b.client.Do(ctx, "HMGET", queueName(0), filaChannel, most, pollWait.Seconds()).Slice()
	if err != nil {
		if isNothing(err) || ctx.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	deliveries := make([]delivery, len(reply))
	for i, entry := range reply {
		triple, ok := entry.([]any)
		if !ok || len(triple) != 3 {
			return nil, fmt.Errorf("HMGET answered %v where an id, a ticket and a body were expected", entry)
		}
		deliveries[i] = delivery{payload: []byte(triple[2].(string)), tag: triple[1]}
	}
	return deliveries, nil
}

func (s *filaRedisSession) settle(ctx context.Context, deliveries []delivery) error {
	words := make([]any, 0, 3+len(deliveries))
	words = append(words, "HDEL", queueName(0), filaChannel)
	for _, d := range deliveries {
		words = append(words, d.tag)
	}
	done, err := s.b.client.Do(ctx, words...).Int()
	if err == nil && done != len(deliveries) {
		return fmt.Errorf("HDEL settled %d of %d tickets", done, len(deliveries))
	}
	return err
}

func (s *filaRedisSession) giveBack(context.Context, []delivery, time.Duration) error {
	return errors.New("the Redis protocol of Fila has no way to give a message back")
}

// redisStream is a Redis stream with one consumer group: XADD in a pipeline, XREADGROUP, and XACK with XDEL, because a
// stream keeps what was acknowledged.
type redisStream struct{ redisClient }

const redisGroup = "peers"

func newRedisStream(plan Plan) (broker, error) { return &redisStream{newRedisClient(plan)}, nil }

func (b *redisStream) setup(ctx context.Context) error {
	if err := b.client.FlushAll(ctx).Err(); err != nil {
		return err
	}
	for first := 0; first < b.plan.queues(); first += 1000 {
		pipe := b.client.Pipeline()
		for number := first; number < min(first+1000, b.plan.queues()); number++ {
			pipe.XGroupCreateMkStream(ctx, queueName(number), redisGroup, "0")
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *redisStream) sender(context.Context) (sender, error) { return &redisStreamSession{b: b}, nil }

func (b *redisStream) receiver(context.Context) (receiver, error) {
	s := &redisStreamSession{b: b}
	for number := range b.plan.queues() {
		s.streams = append(s.streams, queueName(number))
	}
	for range b.plan.queues() {
		s.streams = append(s.streams, ">")
	}
	return s, nil
}

type redisStreamSession struct {
	b       *redisStream
	streams []string
}

type redisEntry struct{ stream, id string }

func (s *redisStreamSession) close() {}

func (s *redisStreamSession) send(ctx context.Context, batch []message) error {
	pipe := s.b.client.Pipeline()
	for _, m := range batch {
		s.add(ctx, pipe, queueName(s.b.plan.queueOf(m.tenant)), m.payload)
	}
	_, err := pipe.Exec(ctx)
	return err
}

func (s *redisStreamSession) add(ctx context.Context, pipe redis.Pipeliner, stream string, payload []byte) {
	pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []any{"p", payload}})
}

func (s *redisStreamSession) receive(ctx context.Context, most int) ([]delivery, error) {
	if s.b.plan.QueuePerTenant {
		most = 1 // of each stream: a larger count would serve the first streams first
	}
	streams, err := s.b.client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: redisGroup, Consumer: "c", Streams: s.streams, Count: int64(most), Block: pollWait,
	}).Result()
	if err != nil {
		if isNothing(err) || ctx.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	var deliveries []delivery
	for _, stream := range streams {
		for _, m := range stream.Messages {
			payload, _ := m.Values["p"].(string)
			deliveries = append(deliveries, delivery{payload: []byte(payload), tag: redisEntry{stream.Stream, m.ID}})
		}
	}
	return deliveries, nil
}

func (s *redisStreamSession) settle(ctx context.Context, deliveries []delivery) error {
	pipe := s.b.client.Pipeline()
	s.remove(ctx, pipe, deliveries)
	_, err := pipe.Exec(ctx)
	return err
}

// remove acknowledges and deletes, with one command of each for a stream.
func (s *redisStreamSession) remove(ctx context.Context, pipe redis.Pipeliner, deliveries []delivery) {
	ids := map[string][]string{}
	for _, d := range deliveries {
		entry := d.tag.(redisEntry)
		ids[entry.stream] = append(ids[entry.stream], entry.id)
	}
	for stream, of := range ids {
		pipe.XAck(ctx, stream, redisGroup, of...)
		pipe.XDel(ctx, stream, of...)
	}
}

// giveBack puts the messages at the end of their stream: a stream has no delays.
func (s *redisStreamSession) giveBack(ctx context.Context, deliveries []delivery, _ time.Duration) error {
	pipe := s.b.client.TxPipeline()
	for _, d := range deliveries {
		s.add(ctx, pipe, d.tag.(redisEntry).stream, d.payload)
	}
	s.remove(ctx, pipe, deliveries)
	_, err := pipe.Exec(ctx)
	return err
}

// redisList is a Redis list used as a queue that survives its consumers: LMOVE to a list of what is being handled, LREM
// from there.
type redisList struct{ redisClient }

func newRedisList(plan Plan) (broker, error) { return &redisList{newRedisClient(plan)}, nil }

const redisHandled = "peers-handled"

func (b *redisList) setup(ctx context.Context) error {
	if b.plan.QueuePerTenant {
		return errors.New("a list a tenant would be polled one by one: this load is of Redis streams")
	}
	return b.client.FlushAll(ctx).Err()
}

func (b *redisList) sender(context.Context) (sender, error)     { return &redisListSession{b}, nil }
func (b *redisList) receiver(context.Context) (receiver, error) { return &redisListSession{b}, nil }

type redisListSession struct{ b *redisList }

func (s *redisListSession) close() {}

func (s *redisListSession) send(ctx context.Context, batch []message) error {
	payloads := make([]any, len(batch))
	for i, m := range batch {
		payloads[i] = m.payload
	}
	return s.b.client.RPush(ctx, queueName(0), payloads...).Err()
}

func (s *redisListSession) receive(ctx context.Context, most int) ([]delivery, error) {
	pipe := s.b.client.Pipeline()
	moves := make([]*redis.StringCmd, most)
	for i := range moves {
		moves[i] = pipe.LMove(ctx, queueName(0), redisHandled, "LEFT", "RIGHT")
	}
	if _, err := pipe.Exec(ctx); err != nil && !isNothing(err) {
		return nil, err
	}
	var deliveries []delivery
	for _, move := range moves {
		if payload, err := move.Bytes(); err == nil {
			deliveries = append(deliveries, delivery{payload: payload, tag: payload})
		}
	}
	if len(deliveries) > 0 || ctx.Err() != nil {
		return deliveries, nil
	}
	payload, err := s.b.client.BLMove(ctx, queueName(0), redisHandled, "LEFT", "RIGHT", pollWait).Bytes()
	if err != nil {
		if isNothing(err) || ctx.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	return []delivery{{payload: payload, tag: payload}}, nil
}

func (s *redisListSession) settle(ctx context.Context, deliveries []delivery) error {
	pipe := s.b.client.Pipeline()
	for _, d := range deliveries {
		pipe.LRem(ctx, redisHandled, 1, d.tag)
	}
	_, err := pipe.Exec(ctx)
	return err
}

func (s *redisListSession) giveBack(ctx context.Context, deliveries []delivery, _ time.Duration) error {
	pipe := s.b.client.TxPipeline()
	for _, d := range deliveries {
		pipe.LRem(ctx, redisHandled, 1, d.tag)
		pipe.RPush(ctx, queueName(0), d.payload)
	}
	_, err := pipe.Exec(ctx)
	return err
}
