// Package prefetch decides how many messages a consumer holds: enough that no loop waits for the wire, no
// more than 50 ms of work.
//
// What lies in a client's buffer is out of the broker's hands: another consumer can't take it, and no quiet
// tenant can overtake it. So the buffer is measured in time, not in messages:
//
//	buffered work = unbegun messages x median handling time / loops that come free      at most the buffer time
//
// A Control is a function of (time, event) to a decision, with no clock and no I/O. All times are
// microseconds of one monotonic clock. sdks/conformance/prefetch.yaml states it step by step, and the SDKs
// of all languages replay that file.
package prefetch

import "slices"

const (
	// BufferUs is how much work may lie in the buffer, in microseconds, unless told otherwise.
	BufferUs = 50_000
	// BufferMessagesMax is how many messages may lie in the buffer, however quick they are; and how many may
	// be in hand beyond the loops.
	BufferMessagesMax = 1_000
	// WindowMax is the broker's bound on a session's window.
	WindowMax = 10_000
	// SampleEveryUs is how far apart the takings are of which handling times are measured.
	SampleEveryUs = 1_000

	samplesMax = 31
	// A message that waited the buffer time this often shows that the median misled.
	ageFactor = 4
	// So many messages must be settled for each that may lie in the buffer, and anew for each that went back: so
	// at most one in four is delivered in vain, however uneven the work is.
	settledPerBuffered = 4
)

// Decision is what to tell the broker now, in one Window frame.
type Decision struct {
	// Window is how many unsettled leases the session may hold from now on.
	Window int
	// GiveBack is how many unbegun messages to return with it: those that came last, which would wait longest.
	GiveBack int
}

// Control is what a session tells of its buffer, and asks for its window. A nil decision says nothing.
type Control interface {
	// Window is the one in force, which a session is opened with.
	Window() int
	// MedianUs is how long the program takes for a message; 0 while that is not known.
	MedianUs() int64
	// AcksFirst says whether loops work on for long after the broker's answer to their settlements, or may do so
	// for all that is known. Then what Settled decides must be sent before the settlement.
	AcksFirst() bool
	// CheckAt is when Tick may decide something next, if no other event comes first.
	CheckAt() (us int64, ok bool)

	// Joined: a loop that works on up to size messages at once begins.
	Joined(now int64, loop, size int) *Decision
	// Left: a loop ends. What it still has in hand stays in hand until it is settled.
	Left(now int64, loop int) *Decision
	// Delivered: messages arrived in the buffer.
	Delivered(now int64, count int) *Decision
	// Began: a loop took messages out of the buffer.
	Began(now int64, loop, count int)
	// Settled: messages that a loop took are in hand no longer: settled, released or lost. The loop may have left.
	Settled(now int64, loop, count int) *Decision
	// Answered: the broker has answered the settlement of all that a loop took, before the loop asked for more.
	Answered(now int64, loop int)
	// Dropped: messages left the buffer otherwise: revoked, or their lease is over. They count as the oldest.
	Dropped(count int)
	// Idle: a loop came free and found the buffer empty.
	Idle(now int64, loop int) *Decision
	// Handled: a message took so long, until it was settled and its loop had asked for more. asking is the
	// loop when it is its asking that ends the sample, and negative otherwise; Began or Idle of it follows.
	// afterUs is how long ago the settlement of all it took was answered, 0 when it is not yet; negative while
	// it holds something.
	Handled(now, handlingUs int64, asking int, afterUs int64) *Decision
	// Tick: time passed.
	Tick(now int64) *Decision
}

// handlingTimes are the newest samples of how long the program takes for a message.
type handlingTimes struct {
	samples []int64
	median  int64
}

func (h *handlingTimes) add(us int64) {
	if len(h.samples) == samplesMax {
		h.samples = h.samples[1:]
	}
	h.samples = append(h.samples, us)
	sorted := slices.Sorted(slices.Values(h.samples))
	h.median = sorted[(len(sorted)-1)/2]
}

func (h *handlingTimes) clear() { *h = handlingTimes{} }

// NewFixed returns a Control whose window has one size, whatever happens.
func NewFixed(window int) Control { return &fixed{window: window} }

type fixed struct {
	window int
	times  handlingTimes
}

func (f *fixed) Window() int                       { return f.window }
func (f *fixed) MedianUs() int64                   { return f.times.median }
func (f *fixed) AcksFirst() bool                   { return false }
func (f *fixed) CheckAt() (int64, bool)            { return 0, false }
func (f *fixed) Joined(int64, int, int) *Decision  { return nil }
func (f *fixed) Left(int64, int) *Decision         { return nil }
func (f *fixed) Delivered(int64, int) *Decision    { return nil }
func (f *fixed) Began(int64, int, int)             {}
func (f *fixed) Settled(int64, int, int) *Decision { return nil }
func (f *fixed) Answered(int64, int)               {}
func (f *fixed) Dropped(int)                       {}
func (f *fixed) Idle(int64, int) *Decision         { return nil }
func (f *fixed) Tick(int64) *Decision              { return nil }

func (f *fixed) Handled(_, handlingUs int64, _ int, _ int64) *Decision {
	f.times.add(handlingUs)
	return nil
}
