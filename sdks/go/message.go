package fila

import (
	"context"
	"fmt"
	"time"
)

// Receipt is what the broker says of a message it has stored.
type Receipt struct {
	// ID is a UUIDv7 made at enqueue; retry, dead-letter and redrive keep it.
	ID string
	// Offset is the message's position in its queue's log, from 1.
	Offset uint64
}

// NewMessage is a message to store.
type NewMessage struct {
	Headers map[string]string
	Payload []byte

	// Delay: not ready before this long from now. Not together with DeliverAt.
	Delay time.Duration
	// DeliverAt: not ready before this moment.
	DeliverAt time.Time
	// TTL: dropped when nobody has leased it this long after it was accepted. 0 for never; a negative one is
	// over already, and refused.
	TTL time.Duration
	// DedupKey: a second enqueue with this key within the queue's window answers the first one's id.
	DedupKey string
	// Replace: the latest wins. An earlier message with this DedupKey that is not delivered yet gives way to this one.
	Replace bool
	// MaxWait, with Replace: however often it is replaced, its delay ends at the latest so long after the first.
	MaxWait time.Duration
	// FairnessKey, where the queue has AllowProducerRouting; empty: its headers and the queue decide.
	FairnessKey string
	// Weight of that key, 1 to 1000, in the same way; 0: as the queue says.
	Weight uint32
	// Cost of a delivery, 0.001 to 1,000,000, in the same way; 0: as the queue says.
	Cost float64
	// Priority among the messages of its fairness key, 0 to 3, where 3 goes first; nil: as the queue says.
	Priority *uint32
}

// StoredMessage is a message as it is peeked at or read from the log: nobody's lease, nothing to settle.
type StoredMessage struct {
	ID      string
	Headers map[string]string
	// Payload lies in the frame it came in (at most 4 MiB), which stays in memory as long as it. To keep a
	// small payload for long, keep a copy.
	Payload []byte

	Queue       string
	Channel     string
	Offset      uint64
	FairnessKey string
	Weight      int
	Cost        float64
	// Priority among the messages of its fairness key, 0 to 3, where 3 goes first and 1 is usual.
	Priority     int
	ThrottleKeys []string
	// AttemptCount is how many earlier deliveries in this channel were begun and failed.
	AttemptCount int
	// Redelivered: somebody had begun it in this channel before, and it failed or came back.
	Redelivered bool
	// CameBack: it was sent to a consumer of this channel before, and came back before anybody had begun it.
	CameBack bool

	// EnqueuedAt is when the producer's call was accepted, AppendedAt when this log entry was made.
	EnqueuedAt, AppendedAt time.Time
	// DueAt is when a delayed message becomes ready, as Peek shows it; zero where it is not delayed.
	DueAt time.Time

	// DeadLetter says why the message was given up; nil outside dead-letter queues.
	DeadLetter *DeadLetter
}

// DeadLetter is why a message is in a dead-letter queue.
type DeadLetter struct {
	SourceQueue   string
	SourceChannel string
	// Reason is max_attempts, on_failure, ttl, rejected or skipped.
	Reason    string
	LastError string
	Attempts  int
	At        time.Time
}

// Message is a delivery to work on and then settle, before its lease ends. Settling calls return when the
// broker has made it durable; those of many goroutines travel together. Any goroutine may settle.
type Message struct {
	StoredMessage

	// LeaseID is the right to settle this delivery, a new number each time.
	LeaseID uint64
	// LeasedAt and LeaseExpiresAt are by the broker's clock, as of the delivery.
	LeasedAt, LeaseExpiresAt time.Time

	settler *settler
	lease   leaseContext
	taker   *loop
	taking  *sample // what it is measured with; nil when it is not
	// heldUntil is when the lease of an unbegun message ends at the latest, by this machine's clock.
	heldUntil time.Time
}

// mustDeclare says that the program must not see it before the broker knows that it is begun.
func (m *Message) mustDeclare() bool { return m.Redelivered || m.CameBack }

// Ack says that the message is done. It fails with ErrLeaseLost when the lease had ended, ErrMessageNotFound
// when the message is gone.
func (m *Message) Ack(ctx context.Context) error {
	return m.settle(ctx, verdict{kind: acked})
}

// Nack says that the message failed, and why; the queue's policy decides when it comes back, or Delay does.
func (m *Message) Nack(ctx context.Context, reason string, opts ...NackOption) error {
	v, _, err := nackVerdict(reason, opts)
	if err != nil {
		return err
	}
	return m.settle(ctx, v)
}

// Reject makes the message a dead letter now, whatever attempts it has left.
func (m *Message) Reject(ctx context.Context, reason string) error {
	v, err := rejectVerdict(reason)
	if err != nil {
		return err
	}
	return m.settle(ctx, v)
}

// Release puts the message back where it was, with the attempts it had: it did not fail.
func (m *Message) Release(ctx context.Context) error {
	return m.settle(ctx, verdict{kind: released})
}

// Limited is what a provider says that refuses a call (HTTP's 429). It is an error, so that whatever calls the
// provider can return it.
type Limited struct {
	// RetryAfter is how long to wait, at most 5 minutes; 0 where the provider did not say.
	RetryAfter time.Duration
	// Limit is one of the message's throttle keys; left out it is each of them whose limit learns.
	Limit string
	// Reason is kept with a dead letter.
	Reason string
}

// Error says it to people.
func (l Limited) Error() string {
	return fmt.Sprintf("the provider refused the call: retry after %v: %s", l.RetryAfter, l.Reason)
}

// Limited says that the provider behind a limit refused the call: for all workers the limit closes for so long,
// and slows down. The message did not fail: it goes back to its place, and comes when the limit lets it. Where no
// limit of its learns, this is a Nack with that Delay.
func (m *Message) Limited(ctx context.Context, l Limited) error {
	v, err := limitedVerdict(l)
	if err != nil {
		return err
	}
	return m.settle(ctx, v)
}

// Extend holds the message for this long from now, at least 1 s and at most 12 h. It returns when the lease
// ends, by the broker's clock. A consumer's leases are kept by the broker for as long as its
// MaxLeaseRenewal says; beyond that, and for pulled messages, Extend is what keeps them.
func (m *Message) Extend(ctx context.Context, by time.Duration) (time.Time, error) {
	v, err := extendVerdict(by)
	if err != nil {
		return time.Time{}, err
	}
	return m.settler.settle(ctx, v, m.ID, m.LeaseID)
}

// Context is done when the lease is lost: it expired, the channel was moved, the queue was deleted, the
// broker gave the consumer up. context.Cause then is an ErrLeaseLost. It is also done once the message is
// settled. Work that should stop when it became somebody else's runs under this context.
func (m *Message) Context() context.Context { return m.lease.context() }

func (m *Message) settle(ctx context.Context, v verdict) error {
	if ctx.Err() != nil {
		return stoppedBefore(ctx) // and it is still in hand
	}
	_, err := m.settler.settle(ctx, v, m.ID, m.LeaseID)
	m.lease.end(errSettled)
	return err
}
