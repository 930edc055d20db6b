package fila

import "time"

// ConnectionEventKind is what happened to a consumer's stream.
type ConnectionEventKind string

const (
	// ConnectionLost: the stream broke, and is being resumed.
	ConnectionLost ConnectionEventKind = "lost"
	// ConnectionDraining: the broker ended the stream because it is stopping, or another node serves; it is being resumed.
	ConnectionDraining ConnectionEventKind = "draining"
	// ConnectionBack: the stream stands again.
	ConnectionBack ConnectionEventKind = "back"
)

// ConnectionEvent tells of a consumer's stream that broke or came back.
type ConnectionEvent struct {
	Kind    ConnectionEventKind
	Queue   string
	Channel string
	// Err is why the stream broke.
	Err error
	// Outage is how long it was gone, LeasesLost how many messages lost their lease meanwhile, of those in
	// hand and in the buffer; of a stream that is back.
	Outage     time.Duration
	LeasesLost int
}

// WithConnectionEvents calls f, from a goroutine of the client's, whenever a consumer's stream breaks or is
// back. f must return soon: the consumer waits for it. Without it the client logs them, as warnings of log/slog.
func WithConnectionEvents(f func(ConnectionEvent)) Option {
	return func(s *settings) { s.onConnection = f }
}
