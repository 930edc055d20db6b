package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Plan is one load: what is sent, by how many, how fast and for how long. It travels to the worker
// processes as JSON.
type Plan struct {
	Addr         string        `json:"addr"`
	Queue        string        `json:"queue"`
	Client       string        `json:"client"`
	Producers    int           `json:"producers"`
	Consumers    int           `json:"consumers"`
	Batch        int           `json:"batch"`
	PayloadBytes int           `json:"payload_bytes"`
	Keys         int           `json:"keys"`
	Distribution string        `json:"distribution"`
	ZipfExponent float64       `json:"zipf_exponent"`
	KeyHeader    string        `json:"key_header"`
	Window       int           `json:"window"`
	MaxInFlight  int           `json:"max_in_flight"`
	Rate         float64       `json:"rate"`
	WarmUp       time.Duration `json:"warm_up_ns"`
	Duration     time.Duration `json:"duration_ns"`
	Processes    int           `json:"processes"`
	Seed         uint64        `json:"seed"`
	CA           string        `json:"ca"`
	ServerPID    int           `json:"server_pid"`

	profile string
}

const (
	uniform = "uniform"
	zipf    = "zipf"
)

const usage = `fila-load puts load on a Fila broker and says what it did with it.

    fila-load                                        closed loop: as fast as answers come
    fila-load -rate 50000                            open loop: so many messages a second, whatever the broker does
    fila-load -client unary -producers 1 -consumers 0    one call at a time
    fila-load -processes 2 -json                     two processes, their results summed
    fila-load -ca ca.pem                             encrypted; a key comes from FILA_API_KEY, as in the SDKs

The queue is made if there is none. In a closed loop latency counts from the moment of sending. In an open
loop it counts from the moment the schedule named, so a broker that stalls is charged for all that had to wait.

`

// parsePlan reads the command line. It returns flag.ErrHelp when help was asked for and printed.
func parsePlan(arguments []string, out io.Writer) (Plan, bool, error) {
	plan := Plan{}
	flags := flag.NewFlagSet("fila-load", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&plan.Addr, "addr", "localhost:5555", "the broker's `host:port`")
	flags.StringVar(&plan.Queue, "queue", "load", "the queue's `name`")
	flags.StringVar(&plan.Client, "client", "bare", "what sends and receives: "+strings.Join(clientNames(), ", "))
	flags.IntVar(&plan.Producers, "producers", 1, "producers in each process")
	flags.IntVar(&plan.Consumers, "consumers", 1, "consumers in each process")
	flags.IntVar(&plan.Batch, "batch", 100, "messages in a frame")
	flags.IntVar(&plan.PayloadBytes, "payload", 1024, "`bytes` of payload; from 16 on, delivery latency is measured")
	flags.IntVar(&plan.Keys, "keys", 10, "fairness keys")
	flags.StringVar(&plan.Distribution, "distribution", uniform, "how messages fall on keys: uniform (in turn) or zipf")
	flags.Float64Var(&plan.ZipfExponent, "zipf-exponent", 1.1, "above 1; larger is more uneven")
	flags.StringVar(&plan.KeyHeader, "key-header", "tenant", "the header that carries the fairness key")
	flags.IntVar(&plan.Window, "window", 8, "closed loop: unanswered frames of a producer")
	flags.IntVar(&plan.MaxInFlight, "max-in-flight", 4096, "messages a consumer holds at once")
	flags.Float64Var(&plan.Rate, "rate", 0, "open loop: messages a second over all processes; 0 for a closed loop")
	flags.DurationVar(&plan.WarmUp, "warm-up", 2*time.Second, "how long to run before measuring")
	flags.DurationVar(&plan.Duration, "duration", 8*time.Second, "how long to measure")
	flags.IntVar(&plan.Processes, "processes", 1, "processes that share the load")
	flags.Uint64Var(&plan.Seed, "seed", 1, "of the key draws")
	flags.StringVar(&plan.CA, "ca", "", "encrypt, and trust the certificates of this `file`; of clients bare and unary")
	flags.IntVar(&plan.ServerPID, "server-pid", 0, "say what CPU time this `process` uses meanwhile; 0 for none")
	flags.StringVar(&plan.profile, "cpu-profile", "", "write a CPU profile of this process to a `file`")
	asJSON := flags.Bool("json", false, "print JSON instead of text")
	if err := flags.Parse(arguments); err != nil {
		return Plan{}, false, err
	}
	if flags.NArg() > 0 {
		return Plan{}, false, fmt.Errorf("unexpected argument %q: every setting is a flag, see -help", flags.Arg(0))
	}
	return plan, *asJSON, plan.validate()
}

func (p Plan) validate() error {
	atLeast := []struct {
		name  string
		value int
		least int
	}{
		{"producers", p.Producers, 0},
		{"consumers", p.Consumers, 0},
		{"batch", p.Batch, 1},
		{"payload", p.PayloadBytes, 0},
		{"keys", p.Keys, 1},
		{"window", p.Window, 1},
		{"max-in-flight", p.MaxInFlight, 1},
		{"processes", p.Processes, 1},
		{"server-pid", p.ServerPID, 0},
	}
	for _, bound := range atLeast {
		if bound.value < bound.least {
			return fmt.Errorf("-%s must be at least %d, got %d", bound.name, bound.least, bound.value)
		}
	}
	switch {
	case p.Producers+p.Consumers == 0:
		return errors.New("nothing to do: give -producers, -consumers or both")
	case p.Batch > 10_000:
		return fmt.Errorf("-batch must be at most 10000, got %d", p.Batch)
	case p.Rate < 0:
		return fmt.Errorf("-rate must not be negative, got %g", p.Rate)
	case p.Duration <= 0 || p.WarmUp < 0:
		return errors.New("-duration must be positive and -warm-up not negative")
	case p.Distribution != uniform && p.Distribution != zipf:
		return fmt.Errorf("-distribution must be uniform or zipf, got %q", p.Distribution)
	case p.Distribution == zipf && p.ZipfExponent <= 1:
		return fmt.Errorf("-zipf-exponent must be above 1, got %g", p.ZipfExponent)
	case !slices.Contains(clientNames(), p.Client):
		return fmt.Errorf("-client must be one of %s, got %q", strings.Join(clientNames(), ", "), p.Client)
	case p.CA != "" && p.Client == "sdk":
		return errors.New("-ca is for the clients bare and unary")
	}
	return nil
}

// frameInterval is the time between two frames of one producer in an open loop; 0 in a closed one.
func (p Plan) frameInterval() time.Duration {
	if p.Rate == 0 {
		return 0
	}
	framesPerSecond := p.Rate / float64(p.Batch*p.Producers*p.Processes)
	return time.Duration(float64(time.Second) / framesPerSecond)
}
