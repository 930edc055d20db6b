package fila

import (
	"cmp"
	"context"
	"os"
	"sync"
)

// Client is a client of one broker. Any number of goroutines may share it.
type Client struct {
	connection *connection

	mu       sync.Mutex
	closed   bool
	producer *producer
	sessions map[*session]struct{}
	pullers  map[channelName]*puller
}

type channelName struct{ queue, channel string }

// Connect returns a client of the broker at addr: host:port, with or without http:// (https:// for TLS), or
// several of them separated by commas, of which the first that answers is used. Without an addr it is the
// environment's FILA_ADDR, or localhost:5555. It fails with ErrUnavailable when none answers within the connect
// timeout, and at once when the two do not agree on TLS, or something else answers there.
func Connect(addr string, opts ...Option) (*Client, error) {
	if addr == "" {
		addr = cmp.Or(os.Getenv("FILA_ADDR"), "localhost:"+defaultPort)
	}
	s := defaultSettings()
	for _, opt := range opts {
		opt(&s)
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	c, err := newConnection(addr, s)
	if err != nil {
		return nil, err
	}
	if err := c.ready(context.Background(), patienceFromNow(s.connectTimeout)); err != nil {
		c.close()
		return nil, err
	}
	return &Client{
		connection: c,
		sessions:   make(map[*session]struct{}),
		pullers:    make(map[channelName]*puller),
	}, nil
}

// Close sends what waits, settles what is under way, gives back what consumers hold, and disconnects. No
// goroutine of the client is left when it returns.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	producer := c.producer
	var settlers []*settler
	var sessions []*session
	for s := range c.sessions {
		sessions, settlers = append(sessions, s), append(settlers, s.settler)
	}
	for _, p := range c.pullers {
		settlers = append(settlers, p.settler)
	}
	c.mu.Unlock()

	ctx, stop := context.WithTimeout(context.Background(), c.connection.settings.callTimeout)
	defer stop()
	if producer != nil {
		producer.close(ctx)
	}
	inParallel(settlers, func(s *settler) { s.close(ctx) })
	inParallel(sessions, (*session).close)
	err := c.connection.close()
	for _, s := range settlers {
		s.calls.running.Wait()
	}
	return err
}

func inParallel[T any](items []T, work func(T)) {
	var running sync.WaitGroup
	for _, item := range items {
		running.Add(1)
		go func() {
			defer running.Done()
			work(item)
		}()
	}
	running.Wait()
}

func (c *Client) getProducer() (*producer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed()
	}
	if c.producer == nil {
		c.producer = newProducer(c.connection)
	}
	return c.producer, nil
}

// puller settles what was leased by pulling, and what outlived its consumer, of one queue and channel.
type puller struct {
	settler *settler

	mu     sync.Mutex
	leases leaseMemory
}

func (c *Client) getPuller(queue, channel string) (*puller, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed()
	}
	return c.pullerLocked(queue, channel), nil
}

func (c *Client) pullerLocked(queue, channel string) *puller {
	name := channelName{queue, channelOrDefault(channel)}
	p := c.pullers[name]
	if p == nil {
		p = &puller{leases: newLeaseMemory()}
		p.settler = newSettler(c.connection, queue, channel, p.forget)
		c.pullers[name] = p
	}
	return p
}

func (p *puller) remember(messageID string, leaseID uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases.remember(messageID, leaseID)
}

func (p *puller) forget(messageID string, leaseID uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases.forget(messageID, leaseID)
}

func (p *puller) leaseOf(messageID string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leases.get(messageID)
}

// outlive keeps the leases of a consumer that is over: its messages may still be settled by id.
func (c *Client) outlive(s *session) {
	left := s.holding.inHandLeases()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, s)
	for id, lease := range left {
		c.pullerLocked(s.plan.queue, s.plan.channel).remember(id, lease)
	}
}

const defaultChannel = "default"

func channelOrDefault(channel string) string {
	if channel == "" {
		return defaultChannel
	}
	return channel
}
