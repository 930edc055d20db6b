// Command fila-load puts load on a Fila broker and says what the broker did with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Hot paths here make little garbage and hold little memory; collecting less often leaves the processor to
// the broker, which shares the machine.
const gcPercent = 400

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(gcPercent)
	if err := run(ctx); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "fila-load:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if number, ok := os.LookupEnv(workerVariable); ok {
		return runWorker(ctx, number, os.Stdin, os.Stdout)
	}
	plan, asJSON, err := parsePlan(os.Args[1:], os.Stderr)
	if err != nil {
		return err
	}
	parts, err := runFleet(ctx, plan)
	if err != nil {
		return err
	}
	report := newReport(plan, parts)
	if asJSON {
		return report.writeJSON(os.Stdout)
	}
	return report.writeText(os.Stdout)
}
