package fila

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is how a call fails. Its text is a sentence for people; Kind, Code and Reason are for programs, and
// errors.Is(err, ErrQueueNotFound) asks for the kind or one of its parents. Which of the other fields are
// set depends on the kind; what was not told by the broker comes from the request.
type Error struct {
	Kind *Kind
	Code codes.Code
	// Reason is the broker's word, such as QUEUE_NOT_FOUND; empty when it was not the broker that failed the call.
	Reason  string
	Message string

	Queue     string
	Channel   string
	MessageID string
	LeaseID   uint64
	ConfigKey string
	Field     string
	// Owner is the address of the node of a group that serves; empty where it is not known.
	Owner string

	// RetryAfter is how long the broker suggests to wait; 0 when it said nothing.
	RetryAfter time.Duration

	cause error
}

func (e *Error) Error() string { return "fila: " + e.Message }

// Is reports whether target is the error's kind or a parent of it.
func (e *Error) Is(target error) bool {
	for kind := e.Kind; kind != nil; kind = kind.parent {
		if target == error(kind) {
			return true
		}
	}
	return false
}

// Unwrap is the gRPC status or the context's error behind it, where there is one.
func (e *Error) Unwrap() error { return e.cause }

// SomeFailedError says that some items of a batch failed; the others went well. errors.Is and errors.As look
// at each failure.
type SomeFailedError struct {
	// Results has one entry an item, in order: nil, or how it failed.
	Results []error
}

func (e *SomeFailedError) Error() string {
	failures := e.Unwrap()
	return fmt.Sprintf("fila: %d of %d failed; the first: %v", len(failures), len(e.Results), failures[0])
}

// Unwrap is the failures alone.
func (e *SomeFailedError) Unwrap() []error {
	failures := make([]error, 0, len(e.Results))
	for _, result := range e.Results {
		if result != nil {
			failures = append(failures, result)
		}
	}
	return failures
}

// someFailed returns nil when all results are nil.
func someFailed(results []error) error {
	for _, result := range results {
		if result != nil {
			return &SomeFailedError{Results: results}
		}
	}
	return nil
}

// subject is what a request is about, for the error it may end in.
type subject struct {
	queue     string
	channel   string
	messageID string
	leaseID   uint64
	configKey string
}

func newError(kind *Kind, format string, arguments ...any) *Error {
	return &Error{Kind: kind, Code: kind.code, Message: fmt.Sprintf(format, arguments...)}
}

func (e *Error) causedBy(cause error) *Error {
	e.cause = cause
	return e
}

func invalidField(field, format string, arguments ...any) *Error {
	e := newError(ErrInvalid, format, arguments...)
	e.Field = field
	return e
}

func errClosed() *Error {
	return newError(ErrClientClosed, "this client was closed; connect a new one")
}

// errorFromStatus is what (code, message, reason) mean. A reason that this version does not know comes from
// a newer broker: then the code still says which branch of the tree it belongs to.
func errorFromStatus(code codes.Code, message, reason string, about subject) *Error {
	kind := kindByReason[reason]
	if kind == nil || kind.code != code {
		kind = kindByCode[code]
	}
	if kind == nil {
		kind = ErrUnknown
	}
	if message == "" {
		message = "the broker answered " + code.String() + " without a text"
	}
	return &Error{
		Kind: kind, Code: code, Reason: reason, Message: message,
		Queue: about.queue, Channel: about.channel, MessageID: about.messageID, LeaseID: about.leaseID,
		ConfigKey: about.configKey,
	}
}

const errorDomain = "fila"

// errorFromRPC is what a failed call means, its ErrorInfo and RetryInfo included.
func errorFromRPC(failure error, about subject) *Error {
	answer := status.Convert(failure)
	var info *errdetails.ErrorInfo
	var retryAfter time.Duration
	for _, detail := range answer.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			if detail.GetDomain() == errorDomain {
				info = detail
			}
		case *errdetails.RetryInfo:
			retryAfter = detail.GetRetryDelay().AsDuration()
		}
	}
	e := errorFromStatus(answer.Code(), answer.Message(), info.GetReason(), about)
	e.RetryAfter = retryAfter
	e.cause = failure
	if e.Kind == ErrOverloaded && info == nil && strings.Contains(e.Message, "larger than max") {
		e.Kind = ErrLimitExceeded // gRPC's own bound on a message, on either side
	}
	told := info.GetMetadata()
	set := func(field *string, name string) {
		if value, ok := told[name]; ok {
			*field = value
		}
	}
	set(&e.Queue, "queue")
	set(&e.Channel, "channel")
	set(&e.MessageID, "message_id")
	set(&e.ConfigKey, "config_key")
	set(&e.Field, "field")
	set(&e.Owner, "owner")
	if lease, err := strconv.ParseUint(told["lease_id"], 10, 64); err == nil {
		e.LeaseID = lease
	}
	return e
}

// isTransportFailure tells a connection that failed from a broker that said something.
func (e *Error) isTransportFailure() bool {
	if e.Reason != "" {
		return false
	}
	switch e.Code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal:
		return true
	}
	return false
}

// lost turns a failure of the transport into ErrAnswerLost: the request was on its way.
func (e *Error) lost() *Error {
	if !e.isTransportFailure() {
		return e
	}
	lost := *e
	lost.Kind = ErrAnswerLost
	lost.Message = "the request may have arrived, but no answer came: " + e.Message
	return &lost
}

// broken turns a failure of the transport into ErrUnavailable: a stream ended, and said nothing of any request.
func (e *Error) broken() *Error {
	if !e.isTransportFailure() {
		return e
	}
	broken := *e
	broken.Kind = ErrUnavailable
	broken.Message = "the stream broke: " + e.Message
	return &broken
}

// stoppedBefore is the failure of a call that its context ended before anything was sent.
func stoppedBefore(ctx context.Context) error {
	return fmt.Errorf("fila: stopped before anything was sent: %w", context.Cause(ctx))
}

// stoppedConsuming is what a consumer ends with whose context ended.
func stoppedConsuming(ctx context.Context) error {
	return fmt.Errorf("fila: the consumer was left, for its context ended: %w", context.Cause(ctx))
}

// stoppedAfter is the failure of a call that its context ended while the answer was awaited.
func stoppedAfter(ctx context.Context) *Error {
	return newError(ErrAnswerLost, "stopped waiting for the answer (%v); it may or may not have happened",
		context.Cause(ctx)).causedBy(context.Cause(ctx))
}
