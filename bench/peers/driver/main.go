// Command peers-driver puts one load on one broker, through that broker's own maintained client, and prints what it
// measured as JSON. All brokers get the same loads: what differs is a broker's adapter, and nothing else.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Collecting less often leaves the processor to the broker, which shares the machine.
const gcPercent = 400

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(gcPercent)
	if err := run(ctx); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peers-driver:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	plan, err := parsePlan(os.Args[1:], os.Stderr)
	if err != nil {
		return err
	}
	b, err := brokers[plan.Broker](plan)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", plan.Broker, plan.Addr, err)
	}
	defer b.close()
	if plan.Setup {
		if err := b.setup(ctx); err != nil {
			return fmt.Errorf("prepare %s: %w", plan.Broker, err)
		}
	}
	report, err := workloads[plan.Workload](ctx, plan, b)
	if err != nil {
		return fmt.Errorf("%s: %w", plan.Workload, err)
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}
