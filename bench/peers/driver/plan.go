package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Plan is one load on one broker.
type Plan struct {
	Broker   string
	Addr     string
	Workload string

	Senders   int // goroutines that send a batch, wait until all of it is stored, and send the next
	Receivers int // goroutines that take a batch, settle it, and take the next
	Batch     int
	Payload   int
	Rate      float64 // messages a second of all senders, by the clock; 0: as fast as answers come
	Count     int     // messages to send or take, for workloads that end by themselves
	WarmUp    time.Duration
	Duration  time.Duration

	Tenants        int
	QueuePerTenant bool
	Backlog        int     // of the tenant that floods
	ReceiveRate    float64 // messages a second that the receiver of noisy and limit takes
	TenantRate     float64 // limit: messages a second each tenant may have delivered

	// Setup makes the queues anew; without it they are those of an earlier run.
	Setup  bool
	Synced bool // every message on disk before its answer, where that is asked for by the client
}

// A workload runs a load and returns what goes to JSON.
type workload func(context.Context, Plan, broker) (any, error)

var workloads = map[string]workload{
	"life":  life,
	"fill":  fill,
	"drain": drain,
	"noisy": noisy,
	"limit": limit,
}

func parsePlan(arguments []string, out io.Writer) (Plan, error) {
	plan := Plan{}
	flags := flag.NewFlagSet("peers-driver", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&plan.Broker, "broker", "", "whose adapter: "+strings.Join(names(brokers), ", "))
	flags.StringVar(&plan.Addr, "addr", "", "the broker's `host:port`")
	flags.StringVar(&plan.Workload, "workload", "life", strings.Join(names(workloads), ", "))
	flags.IntVar(&plan.Senders, "senders", 8, "goroutines that send")
	flags.IntVar(&plan.Receivers, "receivers", 2, "goroutines that take and settle")
	flags.IntVar(&plan.Batch, "batch", 100, "messages sent together, and most that are taken together")
	flags.IntVar(&plan.Payload, "payload", 1024, "`bytes`, at least 32")
	flags.Float64Var(&plan.Rate, "rate", 0, "messages a second by the clock; 0: as fast as answers come")
	flags.IntVar(&plan.Count, "count", 0, "fill and drain: messages")
	flags.DurationVar(&plan.WarmUp, "warm-up", time.Second, "how long to run before measuring")
	flags.DurationVar(&plan.Duration, "duration", 4*time.Second, "how long to measure")
	flags.IntVar(&plan.Tenants, "tenants", 1, "who messages are of")
	flags.BoolVar(&plan.QueuePerTenant, "queue-per-tenant", false, "a queue for each of them instead of one for all")
	flags.IntVar(&plan.Backlog, "backlog", 20_000, "noisy: waiting messages of the tenant that floods")
	flags.Float64Var(&plan.ReceiveRate, "receive-rate", 2_000, "noisy, limit: messages a second the receiver takes")
	flags.Float64Var(&plan.TenantRate, "tenant-rate", 10, "limit: messages a second each tenant may have")
	flags.BoolVar(&plan.Setup, "setup", true, "make the queues anew")
	flags.BoolVar(&plan.Synced, "synced", true, "every message on disk before its answer, where the client says so")
	if err := flags.Parse(arguments); err != nil {
		return Plan{}, err
	}
	return plan, plan.validate()
}

func (p Plan) validate() error {
	switch {
	case brokers[p.Broker] == nil:
		return fmt.Errorf("-broker must be one of %s, got %q", strings.Join(names(brokers), ", "), p.Broker)
	case workloads[p.Workload] == nil:
		return fmt.Errorf("-workload must be one of %s, got %q", strings.Join(names(workloads), ", "), p.Workload)
	case p.Addr == "":
		return errors.New("-addr is needed: the broker's host:port")
	case p.Payload < stampBytes:
		return fmt.Errorf("-payload must be at least %d, got %d", stampBytes, p.Payload)
	case p.Batch < 1 || p.Batch > 1_000:
		return fmt.Errorf("-batch must be 1 to 1000, got %d", p.Batch)
	case p.Senders < 0 || p.Receivers < 0 || p.Senders+p.Receivers == 0:
		return errors.New("nothing to do: give -senders, -receivers or both")
	case p.Tenants < 1:
		return fmt.Errorf("-tenants must be at least 1, got %d", p.Tenants)
	case (p.Workload == "fill" || p.Workload == "drain") && p.Count < 1:
		return fmt.Errorf("-count must be at least 1 for %s, got %d", p.Workload, p.Count)
	}
	return nil
}

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// queues is how many queues the plan needs.
func (p Plan) queues() int {
	if p.QueuePerTenant {
		return p.Tenants
	}
	return 1
}

// queueOf is the number of the queue of a tenant's messages.
func (p Plan) queueOf(tenant int) int {
	if p.QueuePerTenant {
		return tenant
	}
	return 0
}

func queueName(number int) string  { return fmt.Sprintf("peers-%06d", number) }
func tenantName(tenant int) string { return fmt.Sprintf("t%07d", tenant) }

// prefetch is how many messages a receiver's client may hold beside those it handles: few where a worker's speed is the
// point, since nobody else can be served what it holds.
func (p Plan) prefetch() int {
	if p.Workload == "noisy" || p.Workload == "limit" {
		return noisyTakeMost
	}
	return max(50, 4*p.Batch)
}
