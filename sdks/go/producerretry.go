package fila

import (
	"errors"
	"time"
)

// What the producer sends again, and when it gives up.

// mayTryAgain reports whether the broker refused for now only, and the caller's patience allows another try.
func (p *producer) mayTryAgain(failure *Error, f *frame) bool {
	waited := time.Since(f.firstAt)
	if failure.Is(ErrOverloaded) {
		return waited < p.settings.waitWhenOverloaded
	}
	return failure.Is(ErrUnavailable) && waited < p.settings.retryFor
}

func (p *producer) sendLater(f *frame) {
	f.tries++
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		defer f.fail(p.closed)
		return
	}
	p.delayed[f] = time.AfterFunc(p.settings.backoff.wait(f.tries-1), func() {
		p.mu.Lock()
		if _, waiting := p.delayed[f]; waiting {
			delete(p.delayed, f)
			p.waitingBytes += len(f.body)
			p.full = append(p.full, f)
		}
		p.mu.Unlock()
		p.wakeUp()
	})
}

// loseInFlight is called when the stream is over: what may be repeated goes back to the front, the rest is
// answered with why.
func (p *producer) loseInFlight(failure *Error) {
	p.mu.Lock()
	frames := make([]*frame, 0, len(p.inFlight.frames))
	for sequence := p.sequence; len(p.inFlight.frames) > 0; sequence-- {
		if f := p.inFlight.take(sequence); f != nil {
			frames = append(frames, f)
		}
	}
	var lost []func()
	for _, f := range frames { // newest first, so that the oldest ends up in front
		var again []int
		patient := p.closed == nil && time.Since(f.firstAt) < p.settings.retryFor
		for i, item := range f.items {
			// A node that stands by has taken none of it.
			if (item.mayRepeat || failure.Is(ErrNotOwner)) && patient && failure.Is(ErrUnavailable) {
				again = append(again, i)
				continue
			}
			err := lostInFlight(failure, item.queue, p.closed)
			lost = append(lost, func() { item.asker.resolve(item.index, Receipt{}, err) })
		}
		if again != nil {
			part := f.part(again)
			part.tries++
			p.waitingBytes += len(part.body)
			p.full = append([]*frame{part}, p.full...)
		}
	}
	p.mu.Unlock()
	for _, resolve := range lost {
		resolve()
	}
}

func lostInFlight(failure *Error, queue string, closed error) *Error {
	err := *failure
	err.Queue = queue
	if failure.Is(ErrUnavailable) && failure.Reason == "" {
		err.Kind = ErrAnswerLost
		err.Message = "the message was sent, but no answer came, so it may or may not be stored (" + failure.Message +
			"). With a dedup key it would have been sent again"
	}
	if closed != nil {
		err.cause = errors.Join(closed, failure.cause)
	}
	return &err
}

// failImpatient fails what has waited to be sent for longer than a broker may stay away.
func (p *producer) failImpatient(failure *Error) {
	p.mu.Lock()
	var impatient []*frame
	var stay []*frame
	for _, f := range p.full {
		if time.Since(f.firstAt) > p.settings.retryFor {
			p.waitingBytes -= len(f.body)
			impatient = append(impatient, f)
		} else {
			stay = append(stay, f)
		}
	}
	p.full = stay
	p.mu.Unlock()
	for _, f := range impatient {
		f.fail(failure)
	}
}

func (p *producer) failWaiting(err error) {
	p.mu.Lock()
	waiting := p.full
	if p.gathering != nil {
		waiting = append(waiting, p.gathering)
	}
	for f, timer := range p.delayed {
		timer.Stop()
		waiting = append(waiting, f)
	}
	p.full, p.gathering, p.waitingBytes = nil, nil, 0
	clear(p.delayed)
	p.letNextIn()
	p.mu.Unlock()
	for _, f := range waiting {
		f.fail(err)
	}
}

// A broker that does not answer.

// checkOldest ends the stream when the oldest frame in flight has waited too long for its answer.
func (p *producer) checkOldest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching = false
	if len(p.inFlight.frames) == 0 {
		return
	}
	oldest := time.Now()
	for _, f := range p.inFlight.frames {
		if f.sentAt.Before(oldest) {
			oldest = f.sentAt
		}
	}
	if remaining := p.settings.callTimeout - time.Since(oldest); remaining > 0 {
		p.watching = true
		time.AfterFunc(remaining, p.checkOldest)
	} else if p.cancelStream != nil {
		p.cancelStream(newError(ErrUnavailable, "the broker at %s has not answered for %v", p.connection.target,
			p.settings.callTimeout))
	}
}
