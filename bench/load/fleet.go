package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// workerVariable names a worker process's number in its environment. The plan comes on its standard input,
// what it measured goes to its standard output.
const workerVariable = "FILA_LOAD_WORKER"

// runFleet runs the plan in as many processes as it says, and returns what each measured.
func runFleet(ctx context.Context, plan Plan) ([]Measured, error) {
	if err := createQueue(ctx, plan); err != nil {
		return nil, err
	}
	if plan.Processes == 1 {
		measured, err := runLoad(ctx, plan, 0)
		return []Measured{measured}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]Measured, plan.Processes)
	failures := make([]error, plan.Processes)
	var processes sync.WaitGroup
	for i := range plan.Processes {
		processes.Go(func() {
			results[i], failures[i] = runProcess(ctx, plan, i)
			if failures[i] != nil {
				cancel() // the others would measure a load that is not the plan's
			}
		})
	}
	processes.Wait()
	return results, errors.Join(failures...)
}

func runProcess(ctx context.Context, plan Plan, number int) (Measured, error) {
	executable, err := os.Executable()
	if err != nil {
		return Measured{}, err
	}
	command := exec.CommandContext(ctx, executable)
	command.Env = append(os.Environ(), workerVariable+"="+strconv.Itoa(number))
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return Measured{}, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return Measured{}, err
	}
	if err := command.Start(); err != nil {
		return Measured{}, err
	}
	var measured Measured
	err = json.NewEncoder(input).Encode(plan)
	if err == nil {
		err = json.NewDecoder(bufio.NewReader(output)).Decode(&measured)
	}
	if ended := command.Wait(); ended != nil {
		return Measured{}, fmt.Errorf("process %d: %w", number, ended)
	}
	return measured, err
}

// runWorker is the other side of runProcess.
func runWorker(ctx context.Context, number string, input io.Reader, output io.Writer) error {
	process, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%s: %w", workerVariable, err)
	}
	var plan Plan
	if err := json.NewDecoder(input).Decode(&plan); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	measured, err := runLoad(ctx, plan, process)
	if err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(measured)
}
