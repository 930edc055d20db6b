package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"google.golang.org/protobuf/proto"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// A client produces and consumes one way. produce and consume return nil when ctx ends.
type client interface {
	produce(ctx context.Context, producer int) error
	consume(ctx context.Context, consumer int) error
	close()
}

var clients = map[string]func(Plan, *Tally) (client, error){
	"bare":     newBareClient,
	"unary":    newUnaryClient,
	"sdk":      newSDKClient,
	"sdk-many": newSDKManyClient,
}

func clientNames() []string { return slices.Sorted(maps.Keys(clients)) }

// Measured is what one process found in the measured stretch.
type Measured struct {
	Seconds    float64                `json:"seconds"`
	First      Counts                 `json:"first"`
	Last       Counts                 `json:"last"`
	CPUSeconds float64                `json:"cpu_s"`
	ServerCPU  float64                `json:"server_cpu_s"`
	HeapFirst  uint64                 `json:"heap_first"`
	HeapLast   uint64                 `json:"heap_last"`
	Enqueue    *hdrhistogram.Snapshot `json:"enqueue"`
	Delivery   *hdrhistogram.Snapshot `json:"delivery"`
}

// runLoad runs one process's part of the plan and measures it.
func runLoad(ctx context.Context, plan Plan, process int) (Measured, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tally := newTally()
	running, err := clients[plan.Client](plan, tally)
	if err != nil {
		return Measured{}, err
	}
	defer running.close()

	var loops sync.WaitGroup
	start := func(what string, number int, loop func(context.Context, int) error) {
		loops.Go(func() {
			if err := loop(ctx, number); err != nil {
				cancel(fmt.Errorf("%s %d: %w", what, number, err))
			}
		})
	}
	for i := range plan.Consumers {
		start("consumer", process*plan.Consumers+i, running.consume)
	}
	for i := range plan.Producers {
		start("producer", process*plan.Producers+i, running.produce)
	}
	measured, err := measure(ctx, plan, tally)
	cancel(errDone)
	loops.Wait()
	return measured, err
}

var errDone = errors.New("the load is over")

func measure(ctx context.Context, plan Plan, tally *Tally) (Measured, error) {
	if err := sleep(ctx, plan.WarmUp); err != nil {
		return Measured{}, err
	}
	heap := liveHeap()
	serverCPU, err := serverCPUSeconds(plan.ServerPID)
	if err != nil {
		return Measured{}, err
	}
	began, cpu, first := monotonic(), cpuSeconds(), tally.read()
	tally.measuring.Store(true)
	stopped := sleep(ctx, plan.Duration)
	tally.measuring.Store(false)
	serverCPUAfter, err := serverCPUSeconds(plan.ServerPID)
	if stopped != nil {
		err = stopped // and perhaps the cause of the other
	}
	measured := Measured{
		Seconds:    time.Duration(monotonic() - began).Seconds(),
		First:      first,
		Last:       tally.read(),
		CPUSeconds: cpuSeconds() - cpu,
		ServerCPU:  serverCPUAfter - serverCPU,
		HeapFirst:  heap,
		Enqueue:    tally.enqueue.export(),
		Delivery:   tally.delivery.export(),
	}
	measured.HeapLast = liveHeap()
	return measured, err
}

// liveHeap is what is reachable, in bytes.
func liveHeap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// sleep returns early, with the cause, when a producer or consumer has failed.
func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sayWhyRefused prints the first refusal of a run: their number alone tells nobody what to do.
func sayWhyRefused(reply []byte) {
	var response filav1.EnqueueStreamResponse
	if proto.Unmarshal(reply, &response) != nil {
		return
	}
	for _, result := range response.GetResults() {
		if result.GetError() != nil {
			fmt.Fprintf(os.Stderr, "refused: %s: %s\n", result.GetError().GetReason(), result.GetError().GetMessage())
			return
		}
	}
}
