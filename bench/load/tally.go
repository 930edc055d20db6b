package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Tally is what one process has counted. Counters run from the start; latencies are kept only of the
// measured stretch.
type Tally struct {
	Produced     atomic.Int64
	Refused      atomic.Int64
	Consumed     atomic.Int64
	Acked        atomic.Int64
	SettleFailed atomic.Int64

	measuring atomic.Bool
	enqueue   latencies
	delivery  latencies
}

// Latency is kept from 1 us to 10 min, to three digits.
const (
	latencyMaxUs  = int64(10 * time.Minute / time.Microsecond)
	latencyDigits = 3
)

type latencies struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, latencyMaxUs, latencyDigits) }

func newTally() *Tally {
	return &Tally{
		enqueue:  latencies{histogram: newHistogram()},
		delivery: latencies{histogram: newHistogram()},
	}
}

func (l *latencies) record(from, to int64, count int) {
	us := min(max((to-from)/1000, 1), latencyMaxUs)
	l.mu.Lock()
	defer l.mu.Unlock()
	// The value is within the bounds, which is all that can fail.
	_ = l.histogram.RecordValues(us, int64(count))
}

func (l *latencies) export() *hdrhistogram.Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.histogram.Export()
}

// answered notes a frame of messages that was meant to be sent at `at` and was answered now.
func (t *Tally) answered(at int64, stored, refused int) {
	t.Produced.Add(int64(stored))
	t.Refused.Add(int64(refused))
	if t.measuring.Load() && stored > 0 {
		t.enqueue.record(at, monotonic(), stored)
	}
}

// delivered notes a message that was meant to be sent at `at` and has arrived now.
func (t *Tally) delivered(at, now int64) {
	if t.measuring.Load() {
		t.delivery.record(at, now, 1)
	}
}

// Counts is a reading of the counters.
type Counts struct {
	Produced     int64 `json:"produced"`
	Refused      int64 `json:"refused"`
	Consumed     int64 `json:"consumed"`
	Acked        int64 `json:"acked"`
	SettleFailed int64 `json:"settle_failed"`
}

func (t *Tally) read() Counts {
	return Counts{
		Produced:     t.Produced.Load(),
		Refused:      t.Refused.Load(),
		Consumed:     t.Consumed.Load(),
		Acked:        t.Acked.Load(),
		SettleFailed: t.SettleFailed.Load(),
	}
}

func (c Counts) plus(other Counts) Counts {
	return Counts{
		Produced:     c.Produced + other.Produced,
		Refused:      c.Refused + other.Refused,
		Consumed:     c.Consumed + other.Consumed,
		Acked:        c.Acked + other.Acked,
		SettleFailed: c.SettleFailed + other.SettleFailed,
	}
}

// cpuSeconds is what this process has used, user and system.
func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// The kernel tells a process's CPU time in these, whatever its own clock ticks at.
const clockTick = 10 * time.Millisecond

// serverCPUSeconds is what a process of this machine has used, all its threads, user and system; 0 where none is named.
func serverCPUSeconds(pid int) (float64, error) {
	if pid == 0 {
		return 0, nil
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("-server-pid: %w", err)
	}
	// The second field is the program's name, in brackets, and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var ticks int64
	for _, field := range fields[11:13] {
		count, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		ticks += count
	}
	return (time.Duration(ticks) * clockTick).Seconds(), nil
}
