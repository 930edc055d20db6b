package prefetch

import (
	"math"
	"slices"
)

// never is no moment: of a loop that waits for work, when it began; of a settlement, when it was answered.
const never = math.MinInt64

type loop struct {
	number   int
	size     int
	held     int   // how many messages that it took are in hand
	began    int64 // when it took what it works on; never while it waits for work
	settled  bool  // it has settled all it took, and has not asked for more since
	hasLeft  bool  // its places left the window with that
	answered int64 // when the broker answered that
}

// countedSince is since when a loop has counted as coming free, for the buffer time; never while no moment ends that.
func (l *loop) countedSince() int64 {
	if l.settled {
		return l.answered
	}
	return l.began
}

type arrival struct {
	at   int64
	left int
}

// adaptive is a window that follows how fast the program works.
type adaptive struct {
	bufferUs  int64
	times     handlingTimes
	after     handlingTimes // from the broker's answer to the loop's asking
	acksFirst bool          // true until a loop has shown how soon it asks after the answer
	window    int
	loops     []*loop
	byNumber  map[int]*loop
	slots     int  // the sum of the loops' sizes
	working   int  // how many loops have something to work on
	moved     bool // a loop's places left the window or came back to it
	inHand    int
	unbegun   int
	arrivals  []arrival // oldest first
	taken     int       // not subtracted from the arrivals yet
	earned    int       // what was settled, less what went back
	decided   int64
}

// NewAdaptive returns a Control that lets at most bufferUs microseconds of work lie in the buffer.
func NewAdaptive(bufferUs int64) Control {
	return &adaptive{
		bufferUs: bufferUs, byNumber: make(map[int]*loop), acksFirst: true, earned: settledPerBuffered,
	}
}

func (a *adaptive) Window() int     { return a.window }
func (a *adaptive) MedianUs() int64 { return a.times.median }
func (a *adaptive) AcksFirst() bool { return a.acksFirst }

func (a *adaptive) find(number int) *loop {
	if known := a.byNumber[number]; known != nil {
		return known
	}
	panic("prefetch: an event of a loop that has not joined")
}

// Events that change counts. They come with every message, so they decide nothing.

func (a *adaptive) Began(now int64, number, count int) {
	taker := a.find(number)
	a.asks(taker, now)
	taker.held += count
	a.inHand += count
	a.unbegun -= count
	a.taken += count
}

// Settled decides when the loop's places leave the window, and for the last message of a loop that passed its
// messages on: no other event may come before the next delivery, which a window that is too wide would make too
// large.
func (a *adaptive) Settled(now int64, number, count int) *Decision {
	a.inHand -= count
	a.earned = min(a.earned+count, settledPerBuffered*BufferMessagesMax)
	if worker := a.byNumber[number]; worker != nil {
		worker.held -= count
		if worker.held == 0 && worker.began != never {
			worker.settled, worker.answered = true, never
			if a.acksFirst {
				a.moved, worker.hasLeft = true, true
				return a.decide(now)
			}
		}
	}
	if a.inHand > 0 || a.working > 0 {
		return nil
	}
	return a.decide(now)
}

func (a *adaptive) Answered(now int64, number int) {
	if worker := a.byNumber[number]; worker != nil && worker.settled {
		worker.answered = now
	}
}

func (a *adaptive) Dropped(count int) {
	a.unbegun -= count
	a.taken += count
}

// Events that decide.

func (a *adaptive) Joined(now int64, number, size int) *Decision {
	joined := &loop{number: number, size: size, began: never}
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
			if l.began != never {
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
	a.asks(asker, now)
	asker.began = never
	a.working--
	return a.decide(now)
}

// Handled: a loop that is just asking is not stuck, however long it took.
func (a *adaptive) Handled(now, handlingUs int64, asking int, afterUs int64) *Decision {
	a.times.add(handlingUs)
	if asking >= 0 {
		if afterUs >= 0 {
			a.after.add(afterUs)
			a.acksFirst = a.after.median > a.bufferUs
		}
		a.asks(a.find(asking), now)
	}
	return a.decide(now)
}

// asks: a loop asks for more, and counts as coming free from now on.
func (a *adaptive) asks(l *loop, now int64) {
	switch {
	case l.began == never:
		a.working++
	case l.hasLeft:
		a.moved = true
	}
	l.began = now
	l.settled, l.hasLeft = false, false
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
		if since := l.countedSince(); since != never {
			consider(since + a.bufferUs)
		}
	}
	return at, at != math.MaxInt64
}

// The decision.

func (a *adaptive) decide(now int64) *Decision {
	a.decided = now
	var idling, coming, places int
	for _, l := range a.loops {
		since := l.countedSince()
		// A loop that has worked for longer than the buffer time comes free nobody knows when.
		switch {
		case l.began == never:
			idling++
			places += l.size
		case since == never || now-since < a.bufferUs:
			coming++
			if !l.settled || !a.acksFirst {
				places += max(0, l.size-l.held)
			}
		}
	}
	oldest, ok := a.oldest()
	// With a loop idle nothing lies unbegun for longer than it takes to hand it out.
	aged := idling == 0 && a.unbegun > 1 && ok && now-oldest >= ageFactor*a.bufferUs
	if aged {
		a.times.clear()
		a.earned = settledPerBuffered
	}
	hands := a.hands(places)
	buffer := a.bufferMessages(idling + coming)
	target := min(hands+buffer, WindowMax)
	spare := max(0, hands-a.inHand)
	giveBack := 0
	if idling == 0 && (aged || a.unbegun > spare+2*buffer) {
		giveBack = max(0, a.unbegun-spare-buffer)
	}
	tells := giveBack > 0 || a.isWorthTelling(target, idling)
	a.moved = false
	if !tells {
		return nil
	}
	a.window = target
	a.earned = max(0, a.earned-settledPerBuffered*giveBack)
	a.forgetNewest(giveBack)
	return &Decision{Window: target, GiveBack: giveBack}
}

// hands is how many messages may be in hand: those that are, and one for each free place of the loops that come
// free. So a loop that passes its messages on is not held up.
func (a *adaptive) hands(places int) int {
	return min(a.inHand+places, max(a.slots, BufferMessagesMax))
}

// bufferMessages is how many messages may wait: what the loops that come free do in the buffer time.
func (a *adaptive) bufferMessages(comingFree int) int {
	samples, median := len(a.times.samples), a.times.median
	switch {
	case comingFree == 0 || 5*median > 4*a.bufferUs:
		return 0 // so near to the buffer time half of what waits would go back
	case samples == 0:
		return 1
	}
	return min(a.earned/settledPerBuffered, int(a.bufferUs*int64(comingFree)/max(median, 1)))
}

// isWorthTelling: small differences would cost a frame for every message.
func (a *adaptive) isWorthTelling(target, idling int) bool {
	told := a.window
	if a.moved {
		return target != told
	}
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
