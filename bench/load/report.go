package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is the sum of what all processes measured.
type Report struct {
	Plan         Plan     `json:"plan"`
	Seconds      float64  `json:"seconds"`
	ProducedPerS float64  `json:"produced_per_s"`
	ConsumedPerS float64  `json:"consumed_per_s"`
	AckedPerS    float64  `json:"acked_per_s"`
	Refused      int64    `json:"refused"`
	SettleFailed int64    `json:"settle_failed"`
	BacklogStart int64    `json:"backlog_start"`
	BacklogEnd   int64    `json:"backlog_end"`
	CPUSeconds   float64  `json:"cpu_s"`
	ServerCPU    float64  `json:"server_cpu_s"`
	HeapFirst    uint64   `json:"heap_first"`
	HeapLast     uint64   `json:"heap_last"`
	Enqueue      *Latency `json:"enqueue_us,omitempty"`
	Delivery     *Latency `json:"delivery_us,omitempty"`
}

// Latency is a distribution in microseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   int64   `json:"p50"`
	P90   int64   `json:"p90"`
	P99   int64   `json:"p99"`
	P999  int64   `json:"p999"`
	Max   int64   `json:"max"`
}

func newReport(plan Plan, parts []Measured) Report {
	report := Report{Plan: plan}
	enqueue, delivery := newHistogram(), newHistogram()
	var first, last Counts
	for _, part := range parts {
		first, last = first.plus(part.First), last.plus(part.Last)
		report.Seconds = max(report.Seconds, part.Seconds)
		report.ProducedPerS += float64(part.Last.Produced-part.First.Produced) / part.Seconds
		report.ConsumedPerS += float64(part.Last.Consumed-part.First.Consumed) / part.Seconds
		report.AckedPerS += float64(part.Last.Acked-part.First.Acked) / part.Seconds
		report.CPUSeconds += part.CPUSeconds
		report.ServerCPU = max(report.ServerCPU, part.ServerCPU) // each process looked at the same one
		report.HeapFirst += part.HeapFirst
		report.HeapLast += part.HeapLast
		enqueue.Merge(hdrhistogram.Import(part.Enqueue))
		delivery.Merge(hdrhistogram.Import(part.Delivery))
	}
	report.Refused = last.Refused
	report.SettleFailed = last.SettleFailed
	report.BacklogStart = first.Produced - first.Consumed
	report.BacklogEnd = last.Produced - last.Consumed
	report.Enqueue, report.Delivery = newLatency(enqueue), newLatency(delivery)
	return report
}

func newLatency(histogram *hdrhistogram.Histogram) *Latency {
	if histogram.TotalCount() == 0 {
		return nil
	}
	return &Latency{
		Count: histogram.TotalCount(),
		Mean:  histogram.Mean(),
		P50:   histogram.ValueAtQuantile(50),
		P90:   histogram.ValueAtQuantile(90),
		P99:   histogram.ValueAtQuantile(99),
		P999:  histogram.ValueAtQuantile(99.9),
		Max:   histogram.Max(),
	}
}

func (r Report) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r Report) writeText(out io.Writer) error {
	loop, from := "closed", "from sending"
	if r.Plan.Rate > 0 {
		loop, from = fmt.Sprintf("open, %.0f/s", r.Plan.Rate), "from the scheduled moment"
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "client\t%s, %d process(es), %d producer(s) and %d consumer(s) in each\n",
		r.Plan.Client, r.Plan.Processes, r.Plan.Producers, r.Plan.Consumers)
	fmt.Fprintf(table, "load\t%s loop, batch %d, %d B, %d keys %s\n",
		loop, r.Plan.Batch, r.Plan.PayloadBytes, r.Plan.Keys, r.Plan.Distribution)
	fmt.Fprintf(table, "produced\t%.0f/s\t%d refused\n", r.ProducedPerS, r.Refused)
	fmt.Fprintf(table, "consumed\t%.0f/s\tbacklog %d to %d\n", r.ConsumedPerS, r.BacklogStart, r.BacklogEnd)
	fmt.Fprintf(table, "acked\t%.0f/s\t%d refused\n", r.AckedPerS, r.SettleFailed)
	fmt.Fprintf(table, "CPU here\t%.2f of a core\n", r.CPUSeconds/r.Seconds)
	if r.Plan.ServerPID != 0 {
		fmt.Fprintf(table, "CPU of the server\t%.2f of a core\n", r.ServerCPU/r.Seconds)
	}
	fmt.Fprintf(table, "live heap here\t%.1f MiB\t%.1f MiB at the end\n", mib(r.HeapFirst), mib(r.HeapLast))
	r.Enqueue.writeText(table, "enqueue to answer, "+from)
	r.Delivery.writeText(table, "enqueue to delivery, "+from)
	return table.Flush()
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func (l *Latency) writeText(out io.Writer, name string) {
	if l == nil {
		return
	}
	fmt.Fprintf(out, "%s\tp50 %d us\tp90 %d\tp99 %d\tp99.9 %d\tmax %d\t(%d)\n",
		name, l.P50, l.P90, l.P99, l.P999, l.Max, l.Count)
}
