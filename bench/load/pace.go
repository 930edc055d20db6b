package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pace says when the next frame is due.
type pace struct {
	now      func() int64
	sleep    func(context.Context, time.Duration) error
	interval time.Duration
	due      int64
}

func newPace(plan Plan, producer int) *pace {
	p := &pace{now: monotonic, sleep: sleepExactly, interval: plan.frameInterval()}
	p.start(producer, plan.Producers)
	return p
}

// start spreads the producers over one interval, or their frames would come in bursts.
func (p *pace) start(producer, producers int) {
	if p.interval > 0 {
		p.due = p.now() + int64(p.interval)*int64(producer%producers)/int64(producers)
	}
}

// next waits until a frame may be sent, and returns the moment it was meant to be: in a closed loop when
// there is room in the window, in an open loop by the clock alone. A late frame keeps its moment.
func (p *pace) next(ctx context.Context, underWay *unanswered) (int64, error) {
	if p.interval == 0 {
		select {
		case underWay.room <- struct{}{}:
			return p.now(), nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	due := p.due
	p.due += int64(p.interval)
	if wait := due - p.now(); wait > 0 {
		return due, p.sleep(ctx, time.Duration(wait))
	}
	return due, ctx.Err()
}

// While nothing else runs, Go's timers count whole milliseconds. A frame sent late because of that would charge the
// broker for it, so the machine's own clock waits for what is left after so much.
const timerStep = 2 * time.Millisecond

// sleepExactly returns some microseconds after duration, and early, with the cause, when ctx ends before the last
// milliseconds of it.
func sleepExactly(ctx context.Context, duration time.Duration) error {
	until := machineClock() + int64(duration)
	if duration > timerStep {
		if err := sleep(ctx, duration-timerStep); err != nil {
			return err
		}
	}
	// Of the thread that will sleep: the kernel otherwise gathers wake-ups within 50 microseconds.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	wake := unix.NsecToTimespec(until)
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &wake, nil) == unix.EINTR {
	}
	return ctx.Err()
}

// unanswered holds the moments at which frames under way were meant to be sent, and their number down.
type unanswered struct {
	room chan struct{} // nil in an open loop: the schedule alone decides
	mu   sync.Mutex
	at   map[uint64]int64
}

func newUnanswered(plan Plan) *unanswered {
	u := &unanswered{at: make(map[uint64]int64)}
	if plan.Rate == 0 {
		u.room = make(chan struct{}, plan.Window)
	}
	return u
}

func (u *unanswered) add(sequence uint64, at int64) {
	u.mu.Lock()
	u.at[sequence] = at
	u.mu.Unlock()
}

func (u *unanswered) remove(sequence uint64) int64 {
	u.mu.Lock()
	at := u.at[sequence]
	delete(u.at, sequence)
	u.mu.Unlock()
	if u.room != nil {
		<-u.room
	}
	return at
}
