package fila

import (
	"runtime"
	"sync/atomic"
)

// flight is frames of enqueues that are sent and not answered.
type flight struct {
	frames   map[uint64]*frame // by sequence
	messages int
}

func (f *flight) add(sequence uint64, sent *frame) {
	f.frames[sequence] = sent
	f.messages += len(sent.items)
}

// take removes a frame, and returns nil when it is not there.
func (f *flight) take(sequence uint64) *frame {
	taken := f.frames[sequence]
	if taken != nil {
		delete(f.frames, sequence)
		f.messages -= len(taken.items)
	}
	return taken
}

// With one frame in flight a second one leaves once it holds as many messages as that, if they are at least
// so many: while the broker syncs the first, the callers of the second are served, and neither waits for the
// other. Frames smaller than this cost more than the wait does.
const secondFrameLeast = 32

// wantsSecond reports whether a frame of so many messages is such a second one.
func (f *flight) wantsSecond(messages int) bool {
	return len(f.frames) == 1 && messages >= max(secondFrameLeast, f.messages)
}

// awaitCompany gives goroutines that were released together the chance to join the frame that is about to
// leave: it yields for as long as each yield brings something.
func awaitCompany(gathered *atomic.Int64) {
	for before := int64(-1); before != gathered.Load(); {
		before = gathered.Load()
		runtime.Gosched()
	}
}
