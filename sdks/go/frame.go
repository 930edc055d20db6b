package fila

import (
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// frame is enqueues that travel together, encoded as they came: what single calls gathered, or a slice of
// one EnqueueMany.
type frame struct {
	queue   string // of every message that names none itself
	body    []byte // EnqueueBatchRequest.messages
	items   []frameItem
	firstAt time.Time // when its first message was given
	sentAt  time.Time
	tries   int // how often its messages were sent before
}

type frameItem struct {
	end       int  // where the message ends in body
	mayRepeat bool // sending it twice stores it once
	queue     string
	asker     asker
	index     int // the asker's own number for the message
}

// An asker waits for the outcome of messages. Its methods are called without locks held, but gone and sent
// are read and written under the producer's.
type asker interface {
	resolve(index int, receipt Receipt, err error)
	// gone reports whether nobody waits any more, so that what was not sent need not be.
	gone() bool
	// sent notes whether the message is on its way.
	sent(bool)
}

// frameSizes remembers how large frames are lately, to give the next one its room at once.
type frameSizes struct{ bytes, items int }

func (s *frameSizes) note(f *frame) {
	s.bytes = max(len(f.body), s.bytes-s.bytes/8)
	s.items = max(len(f.items), s.items-s.items/8)
}

// Bodies of frames that were answered are used again. A broker that answered a frame has received it whole, so
// nothing reads it any more.
var frameBodies sync.Pool

func newFrame(queue string, like frameSizes, bytesLeast int, now time.Time) *frame {
	f := &frame{queue: queue, items: make([]frameItem, 0, like.items), firstAt: now}
	if body, ok := frameBodies.Get().(*[]byte); ok {
		f.body = (*body)[:0]
	}
	if want := max(like.bytes, bytesLeast); cap(f.body) < want {
		f.body = make([]byte, 0, want+want/8)
	}
	return f
}

// recycle is called when nothing of the frame will be sent again.
func (f *frame) recycle() {
	body := f.body
	f.body = nil
	frameBodies.Put(&body)
}

func (f *frame) add(m *outgoing, queue string, to asker, index int) {
	if queue == f.queue {
		m.queue = ""
	} else {
		m.queue = queue
	}
	f.body = appendMessage(f.body, m)
	f.items = append(f.items, frameItem{
		end: len(f.body), mayRepeat: m.mayRepeat(), queue: queue, asker: to, index: index,
	})
}

func (f *frame) message(i int) []byte {
	start := 0
	if i > 0 {
		start = f.items[i-1].end
	}
	return f.body[start:f.items[i].end]
}

// part is a frame of only these messages, to send them again.
func (f *frame) part(indexes []int) *frame {
	part := &frame{queue: f.queue, firstAt: f.firstAt, sentAt: f.sentAt, tries: f.tries}
	for _, i := range indexes {
		part.body = append(part.body, f.message(i)...)
		item := f.items[i]
		item.end = len(part.body)
		part.items = append(part.items, item)
	}
	return part
}

// withoutGone is the frame without messages whose callers went away before they were sent.
func (f *frame) withoutGone() *frame {
	var stay []int
	for i, item := range f.items {
		if !item.asker.gone() {
			stay = append(stay, i)
		}
	}
	if len(stay) == len(f.items) {
		return f
	}
	return f.part(stay)
}

// encode is the frame as an EnqueueStreamRequest.
func (f *frame) encode(sequence uint64) mem.BufferSlice {
	queue := appendText(nil, 1, f.queue)
	head := appendNumber(make([]byte, 0, len(queue)+24), 1, sequence)
	head = protowire.AppendTag(head, 2, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(queue)+len(f.body)))
	head = append(head, queue...)
	return mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(f.body)}
}

func (f *frame) fail(err error) {
	for _, item := range f.items {
		item.asker.resolve(item.index, Receipt{}, err)
	}
}

// enqueueCall is the asker of one Enqueue.
type enqueueCall struct {
	done   chan struct{} // of one place, so that resolve never waits
	answer Receipt
	err    error

	isGone, isSent bool
}

func (c *enqueueCall) resolve(_ int, receipt Receipt, err error) {
	c.answer, c.err = receipt, err
	c.done <- struct{}{}
}

func (c *enqueueCall) gone() bool    { return c.isGone }
func (c *enqueueCall) sent(now bool) { c.isSent = now }

// enqueueSlice is the asker of one frame of an EnqueueMany.
type enqueueSlice struct {
	done       chan struct{}
	receipts   []Receipt
	errs       []error
	unresolved atomic.Int32

	isGone, isSent bool
}

func (s *enqueueSlice) resolve(index int, receipt Receipt, err error) {
	s.receipts[index], s.errs[index] = receipt, err
	if s.unresolved.Add(-1) == 0 {
		close(s.done)
	}
}

func (s *enqueueSlice) gone() bool    { return s.isGone }
func (s *enqueueSlice) sent(now bool) { s.isSent = now }
