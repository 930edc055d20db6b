package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// Producers and consumers of several processes share the machine's own clock. Go's readings of it have a
// zero of their own in each process, so they count from a moment that was read from the machine.
var (
	started   = time.Now()
	startedNs = machineClock()
)

// monotonic is the machine's own clock in nanoseconds.
func monotonic() int64 { return startedNs + int64(time.Since(started)) }

func machineClock() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic("CLOCK_MONOTONIC: " + err.Error())
	}
	return now.Nano()
}
