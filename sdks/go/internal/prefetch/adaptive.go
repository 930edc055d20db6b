package prefetch

import (
	"math"
	"slices"
)

const idle = math.MinInt64

type loop struct {
	number int
	size   int
	began  int64 // when it took what it works on; idle while it waits for work
}

type arrival struct {
	at   int64
	left int
}

// adaptive is a window that follows how fast the program works.
type adaptive struct {
	bufferUs int64
	times    handlingTimes
	window   int
	loops    []*loop
	byNumber map[int]*loop
	slots    int // the sum of the loops' sizes
	working  int // how many loops have something to work on
	inHand   int
	unbegun  int
	arrivals []arrival // oldest first
	taken    int       // not subtracted from the arrivals yet
	decided  int64
}

// NewAdaptive returns a Control that lets at most bufferUs microseconds of work lie in the buffer.
func NewAdaptive(bufferUs int64) Control {
	return &adaptive{bufferUs: bufferUs, byNumber: make(map[int]*loop)}
}

func (a *adaptive) Window() int     { return a.window }
func (a *adaptive) MedianUs() int64 { return a.times.median }

func (a *adaptive) find(number int) *loop {
	if known := a.byNumber[number]; known != nil {
		return known
	}
	panic("prefetch: an event of a loop that has not joined")
}

// Events that change counts. They come with every message, so they decide nothing.

func (a *adaptive) Began(now int64, number, count int) {
	taker := a.find(number)
	if taker.began == idle {
		a.working++
	}
	taker.began = now
	a.inHand += count
	a.unbegun -= count
	a.taken += count
}

// Settled decides for the last message of a loop that passed its messages on: no other event may come before
// the next delivery, which a window that is too wide would make too large.
func (a *adaptive) Settled(now int64, count int) *Decision {
	a.inHand -= count
	if a.inHand > 0 || a.working > 0 {
		return nil
	}
	return a.decide(now)
}

func (a *adaptive) Dropped(count int) {
	a.unbegun -= count
	a.taken += count
}

// Events that decide.

func (a *adaptive) Joined(now int64, number, size int) *Decision {
	joined := &loop{number: number, size: size, began: idle}
	a.loops = append(a.loops, joined)
	a.byNumber[number] = joined
	a.slots += size
	return a.decide(now)
}

func (a *adaptive) Left(now int64, number int) *Decision {
	for i, l := range a.loops {
		if l.number == number {
			a.loops = slices.Delete(a.loops, i, i+1)
			delete(a.byNumber, number)
			a.slots -= l.size
			if l.began != idle {
				a.working--
			}
			break
		}
	}
	return a.decide(now)
}

func (a *adaptive) Delivered(now int64, count int) *Decision {
	a.unbegun += count
	a.arrivals = append(a.arrivals, arrival{at: now, left: count})
	return a.decide(now)
}

func (a *adaptive) Idle(now int64, number int) *Decision {
	asker := a.find(number)
	if asker.began != idle {
		asker.began = idle
		a.working--
	}
	return a.decide(now)
}

// Handled: a loop that is just asking is not stuck, however long it took.
func (a *adaptive) Handled(now, handlingUs int64, asking int) *Decision {
	a.times.add(handlingUs)
	if asking >= 0 {
		a.find(asking).began = now
	}
	return a.decide(now)
}

func (a *adaptive) Tick(now int64) *Decision { return a.decide(now) }

func (a *adaptive) CheckAt() (int64, bool) {
	oldest, ok := a.oldest()
	if !ok {
		return 0, false
	}
	at := int64(math.MaxInt64)
	consider := func(moment int64) {
		if moment > a.decided {
			at = min(at, moment)
		}
	}
	consider(oldest + ageFactor*a.bufferUs)
	for _, l := range a.loops {
		if l.began != idle {
			consider(l.began + a.bufferUs)
		}
	}
	return at, at != math.MaxInt64
}

// The decision.

func (a *adaptive) decide(now int64) *Decision {
	a.decided = now
	var idling, coming, free, places int
	for _, l := range a.loops {
		// A loop that has worked for longer than the buffer time comes free nobody knows when.
		switch {
		case l.began == idle:
			idling++
			free += l.size
		case now-l.began < a.bufferUs:
			coming++
			places += l.size
		}
	}
	oldest, ok := a.oldest()
	// With a loop idle nothing lies unbegun for longer than it takes to hand it out.
	aged := idling == 0 && a.unbegun > 1 && ok && now-oldest >= ageFactor*a.bufferUs
	if aged {
		a.times.clear()
	}
	hands := a.hands(free, places)
	buffer := a.bufferMessages(idling + coming)
	target := min(hands+buffer, WindowMax)
	spare := max(0, hands-a.inHand)
	giveBack := 0
	if idling == 0 && (aged || a.unbegun > spare+2*buffer) {
		giveBack = max(0, a.unbegun-spare-buffer)
	}
	if giveBack == 0 && !a.isWorthTelling(target, idling) {
		return nil
	}
	a.window = target
	a.forgetNewest(giveBack)
	return &Decision{Window: target, GiveBack: giveBack}
}

// hands is how many messages may be in hand: one for each place in the loops that come free, and what the
// others hold. Of a loop that passes its messages on, all that it passed on and one more, so that it is not
// held up.
func (a *adaptive) hands(free, places int) int {
	return min(max(free+places, a.inHand+free), max(a.slots, BufferMessagesMax))
}

// bufferMessages is how many messages may wait: what the loops that come free do in the buffer time.
func (a *adaptive) bufferMessages(comingFree int) int {
	samples, median := len(a.times.samples), a.times.median
	switch {
	case comingFree == 0 || median > a.bufferUs:
		return 0
	case samples == 0:
		return 1
	}
	// A few quick messages prove little: so each further sample at most doubles what may wait.
	proven := min(1<<samples, BufferMessagesMax)
	return min(proven, int(a.bufferUs*int64(comingFree)/max(median, 1)))
}

// isWorthTelling: small differences would cost a frame for every message.
func (a *adaptive) isWorthTelling(target, idling int) bool {
	told := a.window
	if target > told {
		starved := idling > 0 && told <= a.inHand
		return starved || target-told >= max(1, told>>3)
	}
	return told-target >= max(1, told>>2)
}

// Since when the oldest has waited.

func (a *adaptive) oldest() (int64, bool) {
	for len(a.arrivals) > 0 && a.taken >= a.arrivals[0].left {
		a.taken -= a.arrivals[0].left
		a.arrivals = a.arrivals[1:]
	}
	if len(a.arrivals) == 0 {
		return 0, false
	}
	return a.arrivals[0].at, true
}

func (a *adaptive) forgetNewest(count int) {
	a.unbegun -= count
	for count > 0 {
		newest := &a.arrivals[len(a.arrivals)-1]
		part := min(count, newest.left)
		newest.left -= part
		count -= part
		if newest.left == 0 {
			a.arrivals = a.arrivals[:len(a.arrivals)-1]
		}
	}
}
