package fila

import (
	"context"
	"sync"
)

// leaseContext is a context that ends with a lease; made when somebody asks for it.
type leaseContext struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelCauseFunc
	over   error
}

func (l *leaseContext) context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
		if l.over != nil {
			l.cancel(l.over)
		}
	}
	return l.ctx
}

func (l *leaseContext) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return
	}
	l.over = cause
	if l.cancel != nil {
		l.cancel(cause)
	}
}

// errSettled ends the context of a message that its program is done with.
var errSettled = newError(ErrClientClosed, "the message is settled")
