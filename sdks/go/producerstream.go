package fila

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// The producer's stream: one goroutine writes what is due, another takes in the answers.

func (p *producer) run() {
	defer close(p.ended)
	for {
		if err := p.awaitWork(); err != nil {
			p.failWaiting(err)
			return
		}
		err := p.connection.ready(p.connection.alive, patienceFromNow(p.settings.retryFor))
		if err != nil {
			p.failWaiting(err)
			continue
		}
		p.followStream()
	}
}

func (p *producer) awaitWork() error {
	for {
		p.mu.Lock()
		closed, idle := p.closed, p.gathering == nil && len(p.full) == 0
		p.mu.Unlock()
		if closed != nil || !idle {
			return closed
		}
		<-p.wake
	}
}

// followStream writes frames until the stream ends, and settles the accounts of those it left unanswered.
func (p *producer) followStream() {
	ctx, cancel := context.WithCancelCause(p.connection.alive)
	defer cancel(nil)
	stream, err := p.connection.channel.NewStream(ctx, &filav1.FilaService_ServiceDesc.Streams[0],
		filav1.FilaService_EnqueueStream_FullMethodName, grpc.ForceCodecV2(streamCodec{}))
	var failure *Error
	if err != nil {
		failure = errorFromRPC(err, subject{}).broken()
	} else {
		p.mu.Lock()
		p.cancelStream = cancel
		p.mu.Unlock()
		ended := make(chan *Error, 1)
		go func() { ended <- p.read(ctx, stream) }()
		if failure = p.write(stream, ended); failure == nil {
			cancel(nil)
			failure = <-ended
		}
	}
	p.mu.Lock()
	p.cancelStream = nil
	p.retries++
	retries, closed := p.retries, p.closed
	p.mu.Unlock()
	p.loseInFlight(failure)
	p.connection.follow(failure)
	if !failure.Is(ErrUnavailable) {
		p.failWaiting(failure) // the broker's word on the stream holds for what had not been sent, too
	} else if closed == nil && p.hasUnanswered() {
		_ = sleep(p.connection.alive, p.settings.backoff.wait(retries-1))
		p.failImpatient(failure)
	}
}

// write sends what is due until the stream ends. It returns why when the reader has told it already.
func (p *producer) write(stream grpc.ClientStream, ended chan *Error) *Error {
	for {
		sequence, f := p.nextFrame()
		if f == nil {
			select {
			case <-p.wake:
				awaitCompany(&p.gathered)
				continue
			case failure := <-ended:
				return failure
			}
		}
		if err := stream.SendMsg(f.encode(sequence)); err != nil {
			p.takeBack(sequence) // gRPC takes a message whole or not at all
			return nil
		}
	}
}

// takeBack puts a frame that gRPC did not take in front of those that wait.
func (p *producer) takeBack(sequence uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.inFlight.take(sequence)
	if f == nil {
		return
	}
	for _, item := range f.items {
		item.asker.sent(false)
	}
	p.waitingBytes += len(f.body)
	p.full = append([]*frame{f}, p.full...)
}

// nextFrame takes the frame to send now; nil when it is time to wait.
func (p *producer) nextFrame() (uint64, *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.closed == nil && len(p.inFlight.frames) < p.settings.framesInFlightMax {
		f := p.due()
		if f == nil {
			return 0, nil
		}
		p.waitingBytes -= len(f.body)
		p.letNextIn()
		p.sizes.note(f)
		if f = f.withoutGone(); len(f.items) == 0 {
			continue
		}
		for _, item := range f.items {
			item.asker.sent(true)
		}
		p.sequence++
		f.sentAt = time.Now()
		p.inFlight.add(p.sequence, f)
		if !p.watching {
			p.watching = true
			time.AfterFunc(p.settings.callTimeout, p.checkOldest)
		}
		return p.sequence, f
	}
	return 0, nil
}

func (p *producer) due() *frame {
	if len(p.full) > 0 {
		f := p.full[0]
		p.full[0] = nil
		p.full = p.full[1:]
		return f
	}
	f := p.gathering
	if f == nil {
		return nil
	}
	waited := time.Since(f.firstAt)
	if len(p.inFlight.frames) > 0 && !p.inFlight.wantsSecond(len(f.items)) && waited < p.settings.linger {
		if !p.lingering {
			p.lingering = true
			time.AfterFunc(p.settings.linger-waited, p.lingerOver)
		}
		return nil
	}
	p.gathering = nil
	return f
}

func (p *producer) lingerOver() {
	p.mu.Lock()
	p.lingering = false
	p.mu.Unlock()
	p.wakeUp()
}

// read takes in answers until the stream ends, and returns why it did.
func (p *producer) read(ctx context.Context, stream grpc.ClientStream) *Error {
	for {
		var reply []byte
		if err := stream.RecvMsg(&reply); err != nil {
			if cause, ok := context.Cause(ctx).(*Error); ok {
				return cause
			}
			return errorFromRPC(err, subject{}).broken()
		}
		answer, err := decodeEnqueueAnswer(reply)
		if err != nil {
			return newError(ErrUnavailable, "the stream broke: %v", err)
		}
		p.takeIn(answer)
	}
}

func (p *producer) takeIn(answer enqueueAnswer) {
	p.mu.Lock()
	f := p.inFlight.take(answer.sequence)
	p.retries = 0
	p.mu.Unlock()
	if f == nil {
		return
	}
	if len(answer.results) != len(f.items) {
		f.fail(newError(ErrInternal, "%d messages were sent, but %d results came back",
			len(f.items), len(answer.results)))
		p.wakeUp()
		return
	}
	var again []int
	for i, result := range answer.results {
		item := f.items[i]
		if result.status == nil {
			item.asker.resolve(item.index, result.receipt, nil)
			continue
		}
		failure := errorFromStatus(codes.Code(result.status.GetCode()), result.status.GetMessage(),
			result.status.GetReason(), subject{queue: item.queue})
		if p.mayTryAgain(failure, f) {
			again = append(again, i)
		} else {
			item.asker.resolve(item.index, Receipt{}, failure)
		}
	}
	if again != nil {
		p.sendLater(f.part(again))
	}
	f.recycle()
	p.wakeUp()
}
