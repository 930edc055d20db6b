// Command goredis lives a message's life through go-redis, unchanged: made to be run by test_clients.py.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	for _, protocol := range []int{2, 3} {
		if err := live(os.Args[1], protocol); err != nil {
			fmt.Fprintf(os.Stderr, "RESP%d: %v\n", protocol, err)
			os.Exit(1)
		}
	}
	fmt.Println("ok")
}

func live(address string, protocol int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: protocol, ClientName: "worker-1"})
	defer client.Close()

	if err := client.SetNX(ctx, "orders", "mail", 0).Err(); err != nil {
		return err
	}
	pipe := client.Pipeline()
	for number := range 100 {
		pipe.RPush(ctx, "orders", number)
	}
	replies, err := pipe.Exec(ctx)
	if err != nil || len(replies) != 100 {
		return fmt.Errorf("pipeline: %d replies, %w", len(replies), err)
	}
	rows, err := client.Do(ctx, "HMGET", "orders", "mail", 200, "0.5").Slice()
	if err != nil || len(rows) != 100 {
		return fmt.Errorf("HMGET: %d rows, %w", len(rows), err)
	}
	tickets := make([]string, len(rows))
	for i, row := range rows {
		tickets[i] = fmt.Sprint(row.([]any)[1])
	}
	acked, err := client.HDel(ctx, "orders", append([]string{"mail"}, tickets...)...).Result()
	if err != nil || acked != 100 {
		return fmt.Errorf("HDEL: %d, %w", acked, err)
	}
	if err := client.LPush(ctx, "orders", "x").Err(); err == nil || !strings.Contains(err.Error(), "ERR unknown command") {
		return fmt.Errorf("LPUSH: %w", err)
	}
	deleted, err := client.Del(ctx, "orders").Result()
	if err != nil || deleted != 1 {
		return fmt.Errorf("DEL: %d, %w", deleted, err)
	}
	err = client.RPush(ctx, "orders", "x").Err()
	if err == nil || !strings.HasPrefix(err.Error(), "QNF") {
		return fmt.Errorf("RPUSH to nowhere: %w", err)
	}
	return nil
}
