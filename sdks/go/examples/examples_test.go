// Package examples_test runs the examples against a real broker, each in a process of its own.
package examples_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startBroker starts the repository's broker, which `make build` has made; FILA_TEST_SERVER names another.
func startBroker(t *testing.T) string {
	t.Helper()
	broker := exec.Command(cmp.Or(os.Getenv("FILA_TEST_SERVER"), "../../../.venv/bin/fila-server"))
	broker.Env = append(os.Environ(), "FILA_SERVER__LISTEN_ADDR=127.0.0.1:0", "FILA_SERVER__DATA_DIR="+t.TempDir(),
		"FILA_REDIS__ENABLED=false", "FILA_METRICS__LISTEN_ADDR=")
	log, err := broker.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	broker.Stdout = broker.Stderr
	if err := broker.Start(); err != nil {
		t.Fatalf("no broker to test against: %v; `make build` makes it", err)
	}
	t.Cleanup(func() {
		broker.Process.Signal(syscall.SIGTERM)
		broker.Wait()
	})
	serving := make(chan string, 1)
	go func() { // whatever it says, so that it never waits for us
		for lines := bufio.NewScanner(log); lines.Scan(); {
			var said struct{ Event, Grpc string }
			if json.Unmarshal(lines.Bytes(), &said) == nil && said.Event == "server.started" {
				serving <- said.Grpc
			}
		}
	}()
	select {
	case addr := <-serving:
		return addr
	case <-time.After(60 * time.Second):
		t.Fatal("the broker does not start")
		return ""
	}
}

func TestEachExamplePrintsWhatItShould(t *testing.T) {
	addr := startBroker(t)
	for name, want := range map[string]string{
		"firststeps":   "acme wants one coffee\n",
		"requestreply": "HELLO\n",
		"worker":       "sent email 9\n",
		"bulk":         "stored 10000\ntaken 10000\n",
	} {
		t.Run(name, func(t *testing.T) {
			example := exec.Command("go", "run", "./"+name)
			example.Env = append(os.Environ(), "FILA_ADDR="+addr)
			printed, err := example.CombinedOutput()
			if err != nil || !strings.Contains(string(printed), want) {
				t.Errorf("%v\n%s", err, printed)
			}
		})
	}
}

func TestTheReadmeShowsTheFirstExampleAsItIs(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join("firststeps", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(example), "package main\n")
	if !strings.Contains(string(readme), "package main\n"+program) {
		t.Error("the README's first program is not examples/firststeps/main.go")
	}
}
