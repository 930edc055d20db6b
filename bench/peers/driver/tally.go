package main

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// stampBytes at the front of each payload: the moment the message was meant to be sent, its tenant, its number.
const stampBytes = 32

type stamp struct {
	at     int64
	tenant int
	number int
}

func (s stamp) put(payload []byte) {
	binary.LittleEndian.PutUint64(payload, uint64(s.at))
	binary.LittleEndian.PutUint64(payload[8:], uint64(s.tenant))
	binary.LittleEndian.PutUint64(payload[16:], uint64(s.number))
}

func readStamp(payload []byte) stamp {
	return stamp{
		at:     int64(binary.LittleEndian.Uint64(payload)),
		tenant: int(binary.LittleEndian.Uint64(payload[8:])),
		number: int(binary.LittleEndian.Uint64(payload[16:])),
	}
}

var started = time.Now()

// now is nanoseconds of this process's monotonic clock: senders and receivers of a latency are one process.
func now() int64 { return int64(time.Since(started)) }

// newPayload is random enough that no broker's or file system's compression gains by it.
func newPayload(bytes int) []byte {
	payload := make([]byte, bytes)
	seed := uint64(88172645463325252)
	for i := range payload {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		payload[i] = byte(seed)
	}
	return payload
}

// Latency is a distribution in microseconds.
type Latency struct {
	Count int64 `json:"count"`
	P50   int64 `json:"p50"`
	P90   int64 `json:"p90"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
}

type latencies struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
}

const latencyMaxUs = int64(10 * time.Minute / time.Microsecond)

func newLatencies() *latencies { return &latencies{histogram: hdrhistogram.New(1, latencyMaxUs, 3)} }

func (l *latencies) record(nanoseconds int64, count int) {
	us := min(max(nanoseconds/1000, 1), latencyMaxUs)
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.histogram.RecordValues(us, int64(count)) // within its bounds
}

func (l *latencies) read() Latency {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.histogram
	return Latency{Count: h.TotalCount(), P50: h.ValueAtQuantile(50), P90: h.ValueAtQuantile(90),
		P99: h.ValueAtQuantile(99), Max: h.Max()}
}

// tally counts from the start; latencies are of the measured stretch only.
type tally struct {
	sent, taken, settled atomic.Int64
	measuring            atomic.Bool
	answer, delivery     *latencies
}

func newTally() *tally { return &tally{answer: newLatencies(), delivery: newLatencies()} }

// cpuSeconds is what this process has used, user and system.
func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}
