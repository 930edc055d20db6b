package main

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestAnOpenLoopKeepsTheMomentsOfItsSchedule(t *testing.T) {
	var now int64
	pace := &pace{
		now:      func() int64 { return now },
		sleep:    func(_ context.Context, wait time.Duration) error { now += int64(wait); return nil },
		interval: 10,
	}
	pace.start(0, 1)
	var moments []int64
	for i := range 5 {
		if i == 2 {
			now += 25 // the broker stalls
		}
		at, err := pace.next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		moments = append(moments, at)
	}
	// Without the schedule the frames after the stall would count from when they were sent at last.
	if want := []int64{0, 10, 20, 30, 40}; !slices.Equal(moments, want) {
		t.Errorf("meant to be sent at %v, want %v", moments, want)
	}
}

func TestProducersOfAnOpenLoopShareTheInterval(t *testing.T) {
	var starts []int64
	for producer := range 4 {
		pace := &pace{now: func() int64 { return 0 }, interval: 100}
		pace.start(producer, 4)
		starts = append(starts, pace.due)
	}
	if want := []int64{0, 25, 50, 75}; !slices.Equal(starts, want) {
		t.Errorf("start at %v, want %v", starts, want)
	}
}

func TestAClosedLoopWaitsForRoom(t *testing.T) {
	plan := testPlan()
	plan.Window = 2
	underWay, pace := newUnanswered(plan), newPace(plan, 0)
	for sequence := range uint64(2) {
		at, err := pace.next(t.Context(), underWay)
		if err != nil {
			t.Fatal(err)
		}
		underWay.add(sequence, at)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := pace.next(stopped, underWay); err == nil {
		t.Fatal("a third frame was sent into a window of two")
	}
	underWay.remove(0)
	if _, err := pace.next(t.Context(), underWay); err != nil {
		t.Fatal(err)
	}
}

func TestFrameIntervalDividesTheRate(t *testing.T) {
	plan := testPlan()
	plan.Rate, plan.Batch, plan.Producers, plan.Processes = 10_000, 100, 2, 5
	if got := plan.frameInterval(); got != 100*time.Millisecond {
		t.Errorf("got %v: ten producers share a hundred frames a second", got)
	}
}

func TestASleepIsNeverTooShortAndEndsWithItsContext(t *testing.T) {
	for _, asked := range []time.Duration{100 * time.Microsecond, 3 * time.Millisecond} {
		before := machineClock()
		if err := sleepExactly(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		if slept := time.Duration(machineClock() - before); slept < asked {
			t.Errorf("slept %v of %v: frames would be sent before their moment", slept, asked)
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := sleepExactly(stopped, time.Hour); err == nil {
		t.Error("a load that is over goes on sleeping")
	}
}
