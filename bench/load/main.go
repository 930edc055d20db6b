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
	"runtime/pprof"
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

// startProfile writes where this process spends its time, for `go tool pprof`.
func startProfile(name string) (stop func(), err error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}, nil
}

func run(ctx context.Context) error {
	if number, ok := os.LookupEnv(workerVariable); ok {
		return runWorker(ctx, number, os.Stdin, os.Stdout)
	}
	plan, asJSON, err := parsePlan(os.Args[1:], os.Stderr)
	if err != nil {
		return err
	}
	if plan.profile != "" {
		stop, err := startProfile(plan.profile)
		if err != nil {
			return err
		}
		defer stop()
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
