package main

import "golang.org/x/sys/unix"

// monotonic is the machine's own clock in nanoseconds. Producers and consumers of several processes share
// it, which Go's own monotonic reading does not allow.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic("CLOCK_MONOTONIC: " + err.Error())
	}
	return now.Nano()
}
