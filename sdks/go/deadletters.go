package fila

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	filav1 "github.com/fila-mq/fila/sdks/go/v1"
)

// DropDeadLetters drops the dead letters with these offsets (1 to 1,000) for good. It returns how many were there.
func (c *Client) DropDeadLetters(ctx context.Context, dlq string, offsets []uint64) (uint64, error) {
	request := &filav1.DropDeadLettersRequest{DlqQueue: dlq, Offsets: offsets}
	// Offsets are never given again, so a second run drops nothing else.
	plan := callPlan{about: subject{queue: dlq}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.DropDeadLetters)
	return answer.GetDropped(), err
}

// EditDeadLetter sends a dead letter back to the queue it came from with these headers and this payload in place of its
// own, and returns the new message's id. It fails with ErrQueueNotFound, ErrMessageNotFound, ErrInvalid, ErrConflict.
func (c *Client) EditDeadLetter(
	ctx context.Context, dlq string, offset uint64, headers map[string]string, payload []byte,
) (string, error) {
	request := &filav1.EditDeadLetterRequest{DlqQueue: dlq, Offset: offset, Headers: headers, Payload: payload}
	plan := callPlan{about: subject{queue: dlq}, repeatable: once}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.EditDeadLetter)
	return answer.GetMessageId(), err
}

// OperationKind is what a long operation does with dead letters.
type OperationKind = filav1.StartOperationRequest_Kind

// What a long operation may do.
const (
	// OperationRedrive moves dead letters back to the queue they came from.
	OperationRedrive = filav1.StartOperationRequest_KIND_REDRIVE
	// OperationDelete drops those that are meant, for good.
	OperationDelete = filav1.StartOperationRequest_KIND_DELETE
	// OperationPurge drops all, for good; it takes no filter.
	OperationPurge = filav1.StartOperationRequest_KIND_PURGE
)

// An OperationOption paces StartOperation, or says which dead letters are meant: what is given must all hold. A
// [FairnessKey], a [Channel] they failed in, or one of the options below.
type OperationOption interface {
	applyToOperation(*filav1.StartOperationRequest)
}

type operationOption func(*filav1.StartOperationRequest)

func (o operationOption) applyToOperation(r *filav1.StartOperationRequest) { o(r) }

func (o FairnessKeyOption) applyToOperation(r *filav1.StartOperationRequest) {
	filterOf(r).FairnessKey = string(o)
}

func (o ChannelOption) applyToOperation(r *filav1.StartOperationRequest) {
	filterOf(r).SourceChannel = string(o)
}

func filterOf(r *filav1.StartOperationRequest) *filav1.DeadLetterFilter {
	if r.Filter == nil {
		r.Filter = &filav1.DeadLetterFilter{}
	}
	return r.Filter
}

// OperationRate is how many dead letters are moved or dropped a second; without it, as fast as it goes.
func OperationRate(perSecond float64) OperationOption {
	return operationOption(func(r *filav1.StartOperationRequest) { r.RatePerSecond = perSecond })
}

// DiedOf means only those that died of this: max_attempts, on_failure, ttl, rejected or skipped.
func DiedOf(reason string) OperationOption {
	return operationOption(func(r *filav1.StartOperationRequest) { filterOf(r).Reason = reason })
}

// DiedWith means only those whose last error has this text in it.
func DiedWith(text string) OperationOption {
	return operationOption(func(r *filav1.StartOperationRequest) { filterOf(r).Error = text })
}

// DiedSince means only those that died at this moment or later.
func DiedSince(moment time.Time) OperationOption {
	return operationOption(func(r *filav1.StartOperationRequest) { filterOf(r).DiedFrom = timestamppb.New(moment) })
}

// DiedBefore means only those that died before this moment.
func DiedBefore(moment time.Time) OperationOption {
	return operationOption(func(r *filav1.StartOperationRequest) { filterOf(r).DiedBefore = timestamppb.New(moment) })
}

// StartOperation starts to move dead letters back, or to drop them, in the broker itself: its caller may go away. It
// fails with ErrQueueNotFound, ErrInvalid, ErrConflict (one runs on that queue already), ErrSourceQueueGone.
func (c *Client) StartOperation(
	ctx context.Context, dlq string, kind OperationKind, opts ...OperationOption,
) (*filav1.Operation, error) {
	request := &filav1.StartOperationRequest{DlqQueue: dlq, Kind: kind}
	for _, opt := range opts {
		opt.applyToOperation(request)
	}
	// A second start would find the first one running, or begin another.
	plan := callPlan{about: subject{queue: dlq}, repeatable: once}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.StartOperation)
	return answer.GetOperation(), err
}

// ListOperations returns the operations on a dead-letter queue, or on all where the name is empty, newest first: those
// that have ended, too.
func (c *Client) ListOperations(ctx context.Context, dlq string) ([]*filav1.Operation, error) {
	request := &filav1.ListOperationsRequest{DlqQueue: dlq}
	plan := callPlan{about: subject{queue: dlq}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.ListOperations)
	return answer.GetOperations(), err
}

// CancelOperation ends an operation, and returns how it stands; what it did is done. It fails with ErrNotFound.
func (c *Client) CancelOperation(ctx context.Context, dlq, operationID string) (*filav1.Operation, error) {
	request := &filav1.CancelOperationRequest{DlqQueue: dlq, Id: operationID}
	plan := callPlan{about: subject{queue: dlq}, repeatable: repeatable}
	answer, err := call(ctx, c.connection, plan, request, c.connection.admin.CancelOperation)
	return answer.GetOperation(), err
}

// WatchOperation loops over how an operation stands: at once, then each time it has come further, at most twice a
// second, until it has ended. A broken stream is opened again. An error ends the loop: ErrNotFound; ErrUnavailable when
// the broker stays away.
func (c *Client) WatchOperation(
	ctx context.Context, dlq, operationID string,
) iter.Seq2[*filav1.Operation, error] {
	return func(yield func(*filav1.Operation, error) bool) {
		state := filav1.Operation_STATE_RUNNING
		watched := streamPlan[filav1.WatchOperationRequest, filav1.WatchOperationResponse]{
			about:   subject{queue: dlq},
			request: &filav1.WatchOperationRequest{DlqQueue: dlq, Id: operationID},
			open:    c.connection.admin.WatchOperation,
			goesOn:  func() bool { return state == filav1.Operation_STATE_RUNNING },
		}
		for answer, err := range watched.answers(ctx, c.connection) {
			state = answer.GetOperation().GetState()
			if !yield(answer.GetOperation(), err) {
				return
			}
		}
	}
}
