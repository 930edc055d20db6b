package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/fila-mq/fila/sdks/go/internal/prefetch"
)

// step is one line of the file: what happens, and what must be answered.
type step map[string]string

func (s step) number(t *testing.T, name string) int64 {
	t.Helper()
	number, err := strconv.ParseInt(s[name], 10, 64)
	if err != nil {
		t.Fatalf("%v: %s: %v", s, name, err)
	}
	return number
}

type scenario struct {
	name  string
	steps []step
}

// readScenarios reads the part of YAML that the file uses: a list of names, each with a list of flow mappings.
func readScenarios(t *testing.T) []scenario {
	t.Helper()
	text, err := os.ReadFile("../../conformance/prefetch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var scenarios []scenario
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "- name:"):
			name := strings.Trim(strings.TrimSpace(strings.TrimPrefix(line, "- name:")), `"`)
			scenarios = append(scenarios, scenario{name: name})
		case strings.HasPrefix(line, "- {"):
			s := step{}
			for _, field := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "- {"), "}"), ",") {
				name, value, found := strings.Cut(field, ":")
				if !found {
					t.Fatalf("cannot read %q", line)
				}
				s[strings.TrimSpace(name)] = strings.TrimSpace(value)
			}
			last := &scenarios[len(scenarios)-1]
			last.steps = append(last.steps, s)
		case line == "" || line == "scenarios:" || line == "steps:" || strings.HasPrefix(line, "#"):
		default:
			t.Fatalf("this reader does not know %q", line)
		}
	}
	return scenarios
}

func play(t *testing.T, control prefetch.Control, s step) *prefetch.Decision {
	t.Helper()
	at := s.number(t, "at")
	loop := -1
	if s["loop"] != "" {
		loop = int(s.number(t, "loop"))
	}
	count := func() int { return int(s.number(t, "count")) }
	switch s["event"] {
	case "joined":
		return control.Joined(at, loop, int(s.number(t, "size")))
	case "left":
		return control.Left(at, loop)
	case "delivered":
		return control.Delivered(at, count())
	case "began":
		control.Began(at, loop, count())
	case "settled":
		return control.Settled(at, loop, count())
	case "answered":
		control.Answered(at, loop)
	case "dropped":
		control.Dropped(count())
	case "idle":
		return control.Idle(at, loop)
	case "handled":
		after := int64(-1)
		if s["after_us"] != "" {
			after = s.number(t, "after_us")
		}
		return control.Handled(at, s.number(t, "handling_us"), loop, after)
	case "tick":
		return control.Tick(at)
	default:
		t.Fatalf("unknown event in %v", s)
	}
	return nil
}

func TestEachStepOfThePrefetchFileIsAnsweredExactlyAsItSays(t *testing.T) {
	scenarios := readScenarios(t)
	if len(scenarios) < 5 {
		t.Fatalf("only %d scenarios were read", len(scenarios))
	}
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			control := prefetch.NewAdaptive(prefetch.BufferUs)
			for i, s := range scenario.steps {
				got := "nothing"
				if decision := play(t, control, s); decision != nil {
					got = fmt.Sprintf("%d, %d", decision.Window, decision.GiveBack)
				}
				want := "nothing"
				if s["window"] != "" {
					want = s["window"] + ", " + s["give_back"]
				}
				if got != want {
					t.Fatalf("step %d %v: told the broker %s, want %s", i, s, got, want)
				}
				if want, given := s["check_at"]; given {
					got := "null"
					if at, ok := control.CheckAt(); ok {
						got = strconv.FormatInt(at, 10)
					}
					if got != want {
						t.Fatalf("step %d %v: check at %s, want %s", i, s, got, want)
					}
				}
				if want, given := s["median_us"]; given && strconv.FormatInt(control.MedianUs(), 10) != want {
					t.Fatalf("step %d %v: median %d, want %s", i, s, control.MedianUs(), want)
				}
			}
		})
	}
}
