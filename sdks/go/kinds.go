package fila

import "google.golang.org/grpc/codes"

// A Kind is a class of errors. Kinds form a tree: an error of a kind is also one of the kind's parents, so
// errors.Is(err, ErrNotFound) holds for ErrQueueNotFound too.
type Kind struct {
	name   string
	parent *Kind
	code   codes.Code
}

// Error makes a Kind a target for errors.Is.
func (k *Kind) Error() string { return "fila: " + k.name }

// String is the kind's name, such as QueueNotFound. Fila's SDKs in all languages use the same names.
func (k *Kind) String() string { return k.name }

// Parent is the wider kind, or nil.
func (k *Kind) Parent() *Kind { return k.parent }

func newKind(name string, code codes.Code) *Kind { return &Kind{name: name, code: code} }

func (k *Kind) child(name string) *Kind { return &Kind{name: name, parent: k, code: k.code} }

// childBy is a child that the broker tells by a code of its own.
func (k *Kind) childBy(name string, code codes.Code) *Kind {
	return &Kind{name: name, parent: k, code: code}
}

// The kinds of failure. What each carries besides its text stands behind it.
var (
	// ErrNotFound and its children: what was named does not exist.
	ErrNotFound          = newKind("NotFound", codes.NotFound)
	ErrQueueNotFound     = ErrNotFound.child("QueueNotFound")     // Queue
	ErrChannelNotFound   = ErrNotFound.child("ChannelNotFound")   // Queue, Channel
	ErrMessageNotFound   = ErrNotFound.child("MessageNotFound")   // Queue, MessageID; done, dropped, or not leased
	ErrConfigKeyNotFound = ErrNotFound.child("ConfigKeyNotFound") // ConfigKey

	// ErrExists and its children: what should have been made exists already.
	ErrExists        = newKind("Exists", codes.AlreadyExists)
	ErrQueueExists   = ErrExists.child("QueueExists")   // Queue
	ErrChannelExists = ErrExists.child("ChannelExists") // Queue, Channel

	// ErrInvalid and its child: the request is wrong, and repeating it changes nothing.
	ErrInvalid       = newKind("Invalid", codes.InvalidArgument) // Field
	ErrLimitExceeded = ErrInvalid.child("LimitExceeded")         // a bound of the broker's [limits]

	// ErrConflict and its children: right once, or right in another state.
	ErrConflict        = newKind("Conflict", codes.FailedPrecondition)
	ErrLeaseLost       = ErrConflict.child("LeaseLost")       // MessageID, LeaseID
	ErrSourceQueueGone = ErrConflict.child("SourceQueueGone") // Queue

	// ErrOverloaded and its children: a bound of capacity; nothing was stored, and the same call may succeed
	// later. RetryAfter says when, if the broker did.
	ErrOverloaded = newKind("Overloaded", codes.ResourceExhausted)
	ErrQueueFull  = ErrOverloaded.child("QueueFull") // Queue
	ErrHooksFull  = ErrOverloaded.child("HooksFull") // too many messages wait for a script that fails
	ErrDiskFloor  = ErrOverloaded.child("DiskFloor") // enqueues are refused, acks and deliveries go on

	// ErrUnavailable: the broker could not be reached, or is stopping. Nothing happened, unless it is an
	// ErrAnswerLost: then the request may have arrived, and it may or may not have happened.
	ErrUnavailable = newKind("Unavailable", codes.Unavailable)
	ErrAnswerLost  = ErrUnavailable.child("AnswerLost")
	// ErrNotOwner: another node of the group serves, and nothing happened. The client goes there by itself.
	ErrNotOwner = ErrUnavailable.child("NotOwner") // Owner

	// ErrNotSupported: this broker does not do that.
	ErrNotSupported = newKind("NotSupported", codes.Unimplemented)
	// ErrNotAllowed: credentials are missing, or do not permit it.
	ErrNotAllowed = newKind("NotAllowed", codes.PermissionDenied)
	// ErrInternal: the broker's own mistake; its log has the rest. Its child: ReadLog came to messages that the broker's
	// disk damaged; the text says from which offset to read on.
	ErrInternal   = newKind("InternalError", codes.Internal)
	ErrLogDamaged = ErrInternal.childBy("LogDamaged", codes.DataLoss)
	// ErrClientClosed: the call was made on, or outlived, a closed client.
	ErrClientClosed = newKind("ClientClosed", codes.Canceled)
	// ErrUnknown: a status that no kind is for.
	ErrUnknown = newKind("FilaError", codes.Unknown)
)

var kindByReason = map[string]*Kind{
	"QUEUE_NOT_FOUND":      ErrQueueNotFound,
	"CHANNEL_NOT_FOUND":    ErrChannelNotFound,
	"MESSAGE_NOT_FOUND":    ErrMessageNotFound,
	"CONFIG_KEY_NOT_FOUND": ErrConfigKeyNotFound,
	"NOT_FOUND":            ErrNotFound,
	"QUEUE_EXISTS":         ErrQueueExists,
	"CHANNEL_EXISTS":       ErrChannelExists,
	"EXISTS":               ErrExists,
	"INVALID_FIELD":        ErrInvalid,
	"LIMIT_EXCEEDED":       ErrLimitExceeded,
	"CONFLICT":             ErrConflict,
	"LEASE_LOST":           ErrLeaseLost,
	"SOURCE_QUEUE_GONE":    ErrSourceQueueGone,
	"LOG_DAMAGED":          ErrLogDamaged,
	"OVERLOADED":           ErrOverloaded,
	"QUEUE_FULL":           ErrQueueFull,
	"HOOKS_FULL":           ErrHooksFull,
	"DISK_FLOOR":           ErrDiskFloor,
	"SHUTTING_DOWN":        ErrUnavailable,
	"NOT_OWNER":            ErrNotOwner,
	"UNIMPLEMENTED":        ErrNotSupported,
	"INTERNAL":             ErrInternal,
}

var kindByCode = map[codes.Code]*Kind{
	codes.NotFound:           ErrNotFound,
	codes.AlreadyExists:      ErrExists,
	codes.InvalidArgument:    ErrInvalid,
	codes.OutOfRange:         ErrInvalid,
	codes.FailedPrecondition: ErrConflict,
	codes.Aborted:            ErrConflict,
	codes.ResourceExhausted:  ErrOverloaded,
	codes.Unavailable:        ErrUnavailable,
	codes.DeadlineExceeded:   ErrAnswerLost,
	codes.Unimplemented:      ErrNotSupported,
	codes.Unauthenticated:    ErrNotAllowed,
	codes.PermissionDenied:   ErrNotAllowed,
	codes.Internal:           ErrInternal,
	codes.DataLoss:           ErrInternal,
}
