// Command conformance lets the conformance suite call this SDK: it speaks the line protocol of
// sdks/conformance/PROTOCOL.md on its standard input and output, and only translates.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	fila "github.com/fila-mq/fila/sdks/go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
)

// answer is what a request gave: the fields of an `ok`.
type answer map[string]any

// driver holds the clients, consumers and messages that scenarios named.
type driver struct {
	mu        sync.Mutex
	output    *json.Encoder
	clients   map[string]*connected
	consumers map[string]*taking
	messages  map[int]*fila.Message
	handles   int
	cancels   map[int]context.CancelFunc
}

// connected is a client, and what it told of its consumers' streams.
type connected struct {
	*fila.Client

	mu     sync.Mutex
	events []fila.ConnectionEventKind
}

func main() {
	// One goroutine at a time: a call that is started runs until it waits, so calls start in the order of the
	// lines.
	runtime.GOMAXPROCS(1)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	d := &driver{
		output:    json.NewEncoder(os.Stdout),
		clients:   map[string]*connected{},
		consumers: map[string]*taking{},
		messages:  map[int]*fila.Message{},
		cancels:   map[int]context.CancelFunc{},
	}
	d.write(map[string]any{"ready": true, "language": "go"})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		d.start(lines.Bytes())
	}
	d.end()
}

func (d *driver) write(line map[string]any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.output.Encode(line); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
	}
}

// start begins what a line asks for, and returns once the call waits for its answer.
func (d *driver) start(line []byte) {
	var head struct {
		ID int    `json:"id"`
		Op string `json:"op"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		fmt.Fprintln(os.Stderr, "read:", err)
		return
	}
	operation, known := operations[head.Op]
	if !known {
		d.write(map[string]any{"id": head.ID, "unsupported": head.Op})
		return
	}
	r, err := newRequest(line)
	if err != nil {
		d.write(map[string]any{"id": head.ID, "unsupported": err.Error()})
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.mu.Lock()
	d.cancels[head.ID] = cancel
	d.mu.Unlock()
	go func() {
		ok, err := operation(d, ctx, r)
		cancel()
		d.mu.Lock()
		delete(d.cancels, head.ID)
		d.mu.Unlock()
		switch {
		case errors.Is(err, errUnsupported):
			d.write(map[string]any{"id": head.ID, "unsupported": err.Error()})
		case errors.Is(err, context.Canceled):
			d.write(map[string]any{"id": head.ID, "cancelled": true})
		case err != nil:
			d.write(map[string]any{"id": head.ID, "error": errorAnswer(err)})
		default:
			if ok == nil {
				ok = answer{}
			}
			d.write(map[string]any{"id": head.ID, "ok": ok})
		}
	}()
	runtime.Gosched()
}

// end ends what scenarios left open.
func (d *driver) end() {
	for _, consumer := range d.consumers {
		consumer.leave()
	}
	var closing sync.WaitGroup
	for _, client := range d.clients {
		closing.Add(1)
		go func() {
			defer closing.Done()
			client.Close()
		}()
	}
	closed := make(chan struct{})
	go func() {
		closing.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		fmt.Fprintln(os.Stderr, "closing took too long")
	}
}

func (d *driver) client(r *request) (*connected, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	client := d.clients[r.Client]
	if client == nil {
		return nil, fmt.Errorf("%w: no client %q", errUnsupported, r.Client)
	}
	return client, nil
}

func (d *driver) handOut(m *fila.Message) answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handles++
	d.messages[d.handles] = m
	told := leasedAnswer(m)
	told["handle"] = d.handles
	return told
}

func (d *driver) message(handle int) (*fila.Message, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.messages[handle]
	if m == nil {
		return nil, fmt.Errorf("%w: no message %d", errUnsupported, handle)
	}
	return m, nil
}
